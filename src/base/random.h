/* random.h - numbers that need not be good: for jitter. */
#ifndef WALRELAY_BASE_RANDOM_H
#define WALRELAY_BASE_RANDOM_H

#include <stdint.h>

/* xorshift64; *state is not 0 and never becomes so. */
static inline uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

#endif
