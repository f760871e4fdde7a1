/* resident.h - how much memory this process has in RAM. */
#ifndef WALRELAY_BASE_RESIDENT_H
#define WALRELAY_BASE_RESIDENT_H

#include <stdint.h>

/* Bytes; 0: it cannot be told. */
uint64_t resident_bytes(void);

#endif
