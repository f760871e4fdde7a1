/* frames.h - what PostgreSQL sends for an outbox table, the same bytes in each run. */
#ifndef WALRELAY_TESTS_PERF_FRAMES_H
#define WALRELAY_TESTS_PERF_FRAMES_H

#include "base/lsn.h"
#include "base/slice.h"

enum {
    TRANSACTIONS = 31,
    ROWS = 100,        /* in each */
    FRAMES = ROWS + 2, /* of each */
    EVENTS = TRANSACTIONS * ROWS,
    KEYS = 1000,
    PAYLOAD_BYTES = 200, /* as Kafka gets it */
};

/* The CopyData payloads of TRANSACTIONS transactions in sql/outbox_events.sql's table:
 * XLogData around what wal2json 2.5 writes with the options of START_REPLICATION in
 * core/start_replication.c.  The payload is JSON, so about 30 of its bytes are escaped.
 */
struct frames {
    struct slice all[TRANSACTIONS * FRAMES];
    size_t n;
    lsn_t end; /* of the last commit record */
};

struct frames *frames_new(void); /* never NULL */
void frames_free(struct frames *frames);

#endif
