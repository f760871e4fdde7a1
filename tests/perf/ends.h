/* ends.h - what the relay's path begins and ends at, in place of io/pg.c, io/producer.c
 * and io/kafka_error.c: a PostgreSQL whose stream has all arrived, and a Kafka that
 * acknowledges, when it is asked again, whatever it was sent before.
 *
 * They do as little as they can: what is counted should be the relay's own. */
#ifndef WALRELAY_TESTS_PERF_ENDS_H
#define WALRELAY_TESTS_PERF_ENDS_H

#include "io/pg.h"

#include "frames.h"

/* ends_pg.c: a connection that has these frames to give, also those that are added later.
 */
struct pg *ends_pg(const struct frames *frames);

/* The last status that it was sent; zeros before there was one. */
struct slice ends_told(const struct pg *pg);

/* ends_kafka.c: what Kafka has been sent, by all producers together. */
struct ends_sent {
    size_t messages;
    size_t payload_bytes;
    size_t headers;
};
struct ends_sent ends_sent(void);

#endif
