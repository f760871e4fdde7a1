/* metrics.h - one table of counters and gauges, and the page that shows them.
 *
 * A new one is a name in enum metric and a row in metrics.c; docs/reference.md says what
 * each means.  The page is Prometheus's text format 0.0.4.  No I/O, no clock. */
#ifndef WALRELAY_CORE_METRICS_H
#define WALRELAY_CORE_METRICS_H

#include "base/buf.h"

#include <stdint.h>

/* Names end with the unit in which a value is set; the page has seconds for _MS. */
enum metric {
    METRIC_BUILD,
    METRIC_STREAMING,
    METRIC_RECONNECTS,
    METRIC_PUBLISHED,
    METRIC_FAILED, /* not set, but counted by type: metrics_count_failed */
    METRIC_PENDING,
    METRIC_PENDING_BYTES,
    METRIC_RECEIVED_LSN,
    METRIC_FLUSHED_LSN,
    METRIC_LAG_BYTES,
    METRIC_LAG_MS,
    METRIC_TIMESTAMPS_REPLACED,
    METRIC_WAITING,
    METRIC_HELD,
    METRIC_DEAD,
    METRIC_OLDEST_MS,
    METRIC_HELD_KEYS,
    METRIC_BREAKER_OPEN,
    METRIC_START_MS,
    METRIC_CPU_MS,
    METRIC_RESIDENT_BYTES,
    METRICS,
};

/* The page is never longer. */
enum { METRICS_PAGE_MAX = 128 << 10 };

struct metrics;

struct metrics *metrics_new(void); /* nothing is known yet; NULL: no memory */
void metrics_free(struct metrics *metrics);

/* What is not known is not on the page: "0" would be a claim. */
void metrics_set(struct metrics *metrics, enum metric metric, uint64_t value);
void metrics_forget(struct metrics *metrics, enum metric metric);

/* One more event of that type was refused; absent is as empty.  The type is shown as
 * UTF-8, the first 128 bytes of it; after 200 different ones all others are `other`. */
void metrics_count_failed(struct metrics *metrics, struct slice event_type);

/* Appends the page. */
void metrics_render(const struct metrics *metrics, struct buf *page);

#endif
