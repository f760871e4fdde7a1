/* clock.h - the only reader of time. */
#ifndef WALRELAY_BASE_CLOCK_H
#define WALRELAY_BASE_CLOCK_H

#include <stdint.h>

/* A deadline that never comes. */
#define CLOCK_NEVER INT64_MAX

/* Milliseconds of CLOCK_MONOTONIC: for every delay and deadline. */
int64_t clock_mono_ms(void);

/* Microseconds since 1970-01-01 UTC: for what people and servers read. */
int64_t clock_wall_us(void);

/* Milliseconds of CPU time that the process has used. */
int64_t clock_cpu_ms(void);

/* The earlier of two deadlines. */
static inline int64_t clock_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
