/* lsn.h - positions in PostgreSQL's WAL. */
#ifndef WALRELAY_BASE_LSN_H
#define WALRELAY_BASE_LSN_H

#include <stdbool.h>
#include <stdint.h>

typedef uint64_t lsn_t;

#define LSN_NONE ((lsn_t)0)

/* printf("%" LSN_FMT, LSN_ARG(lsn)) gives PostgreSQL's own spelling, 16/B374D848. */
#define LSN_FMT      "X/%X"
#define LSN_ARG(lsn) (uint32_t)((lsn) >> 32), (uint32_t)(lsn)

/* Reads that spelling.  False, and *ret untouched, for anything else. */
bool lsn_parse(const char *text, lsn_t *ret) __attribute__((warn_unused_result));

#endif
