/* backoff.h - how long to wait before the next attempt. */
#ifndef WALRELAY_CORE_BACKOFF_H
#define WALRELAY_CORE_BACKOFF_H

#include <stdint.h>

/* Delays that double from initial_ms to max_ms, each jittered so that many relays
 * whose server comes back do not come back together. */
struct backoff {
    int64_t initial_ms;
    int64_t max_ms;
    int64_t current_ms; /* the next delay before jitter */
};

/* 0 < initial_ms <= max_ms. */
void backoff_init(struct backoff *backoff, int64_t initial_ms, int64_t max_ms);

/* The next delay: between half and all of the current step, by random, which is any
 * 64 random bits.  Never less than half, so a peer that refuses at once is not hammered.
 */
int64_t backoff_next(struct backoff *backoff, uint64_t random);

/* As after that many attempts in a row, for a count that outlives the process. */
void backoff_resume(struct backoff *backoff, unsigned attempts);

/* The attempt succeeded: begin again at initial_ms. */
void backoff_reset(struct backoff *backoff);

#endif
