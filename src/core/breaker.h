/* breaker.h - too many dead letters in too short a time: then it is not the events.
 *
 * An expired right or a wrong setting refuses everything, and would pour the stream
 * into the table.  Once open it stays so until somebody resets it. */
#ifndef WALRELAY_CORE_BREAKER_H
#define WALRELAY_CORE_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct breaker;

/* Opens at more than limit dead letters within any window_ms; limit 0: never.  NULL: no
 * memory. */
struct breaker *breaker_new(size_t limit, int64_t window_ms);
void breaker_free(struct breaker *breaker);

/* One more at now_ms, which never goes back. */
void breaker_count(struct breaker *breaker, int64_t now_ms);

bool breaker_is_open(const struct breaker *breaker);
void breaker_reset(struct breaker *breaker);

#endif
