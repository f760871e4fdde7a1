/* message.h - what an outlet takes: one record for Kafka. */
#ifndef WALRELAY_CORE_MESSAGE_H
#define WALRELAY_CORE_MESSAGE_H

#include "base/lsn.h"
#include "base/slice.h"
#include "core/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The header that holds a timestamp which gave way to the commit time. */
#define HEADER_GIVEN_TIMESTAMP "walrelay.timestamp"

#define PARTITION_ANY (-1) /* by key, as Java's default partitioner does */
/* No topic has as many, and what is known of each is in an array. */
#define PARTITION_MAX 99999

struct header {
    struct slice name;
    struct slice value;
};

/* topic and headers live until the next message is made; the other slices borrow
 * from the change's frame or from the configuration. */
struct message {
    struct slice topic;
    struct slice key;     /* absent: NULL key */
    struct slice payload; /* absent: NULL value, a tombstone */
    const struct header *headers;
    size_t nheaders;
    int32_t partition;
    int64_t timestamp_ms;         /* since 1970, what the record carries */
    int64_t commit_ms;            /* what it carries if Kafka refuses that */
    struct slice given_timestamp; /* the timestamp column's text; absent without such a
                                   * column, for NULL, and when commit time already
                                   * replaces it (then it is among the headers) */

    /* for people: log lines and errors */
    struct slice table; /* schema.table, as SQL would write it */
    struct slice event_id;
    struct slice event_type;
    struct slice aggregate_id;
    struct place place; /* of the row */

    /* for the table of dead letters */
    lsn_t begin_lsn;             /* of the row's transaction */
    struct slice aggregate_type; /* the part of topic that a column gives; absent: none */
};

#endif
