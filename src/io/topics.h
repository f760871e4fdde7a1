/* topics.h - what the sink knows of each topic, for one producer instance.
 *
 * Why partitions are warmed up: a broker that has no state yet of a producer on a
 * partition accepts any sequence number (ProducerAppendInfo in Kafka's storage module).
 * If the first record there is refused while more requests are under way, those are
 * appended and the order is broken.  So to each partition of each instance one record
 * travels alone until it is acknowledged, and again after minutes of silence, because
 * brokers forget a producer after producer.id.expiration.ms. */
#ifndef WALRELAY_IO_TOPICS_H
#define WALRELAY_IO_TOPICS_H

#include "core/backoff.h"
#include "core/window.h"
#include "io/producer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entries that wait, in order, linked by entry->next. */
struct waiting {
    window_seq_t first;
    window_seq_t last;
    size_t n;
};

struct partition {
    bool warm;
    size_t in_flight;
    int64_t acked_ms; /* the last acknowledgement */
    struct waiting waiting;
};

struct topic {
    struct topic *next_in_bucket;
    struct topic *next_ready;
    struct topic *next_in_line;
    char *name;
    size_t name_len;
    size_t entries;   /* in the window, not done */
    size_t in_flight; /* with the producer */

    struct producer_topic *handle; /* NULL: not made for this instance yet */
    bool ready;                    /* in the list of those that may send what waits */
    bool in_line;                  /* until fewer topics are being asked for */
    bool asked;   /* librdkafka asks for it; until an acknowledgement, or a while */
    bool probing; /* a message is under way to learn the number of partitions */
    int32_t npartitions; /* made so far, not what the topic has */
    int64_t asked_ms;
    struct partition *partitions;
    int64_t probing_ms; /* since when */
    window_seq_t probe;
    struct waiting waiting;  /* for that, or for the end of a suspension */
    struct waiting gathered; /* not offered yet, see sink_gather */
    int32_t keyless;         /* the partition for messages without a key, for a while */
    unsigned keyless_left;

    int32_t count;   /* of partitions, as the last producer knew it; 0: not */
    bool innocent;   /* when careful_end was asked last, none was to blame */
    bool suspended;  /* Kafka refuses the topic as a whole; until suspended_until_ms */
    size_t suspects; /* partitions that the second producer serves */
    window_seq_t careful_end;          /* what is before travels alone: is it to blame? */
    const struct topic_config *config; /* NULL: not asked for */
    int64_t suspended_until_ms;
    int64_t failed_ms; /* since when it does, and the cluster is well; 0: it does not */
    int failure;       /* Kafka's word for it */
    bool trying;       /* the first of its events is with the second producer, to see */
    bool again;        /* somebody may have mended it: the next failure does not count */
    bool given_up; /* those that are offered now are asked whether they waited enough */
    struct backoff backoff;
    int64_t warned_ms;
};

struct topics;

struct topics *topics_new(void); /* NULL: no memory */
void topics_free(struct topics *topics);

/* The topic of that name, made if it is new.  NULL: no memory, or topics_full. */
struct topic *topics_get(struct topics *topics, struct slice name);

/* There are so many that none is made any more.  librdkafka keeps some kilobytes for
 * each topic it ever sent to, so the way out is another producer and topics_clear. */
bool topics_full(const struct topics *topics);

/* Forgets all; no entry of the window may point to one. */
void topics_clear(struct topics *topics);

/* The producer is gone, and with it handles and partitions; names, counts and
 * suspensions stay. */
void topics_forget_producer(struct topics *topics);

/* All of them, in no order: for (t = topics_next(ts, NULL); t; t = topics_next(ts, t)).
 */
struct topic *topics_next(const struct topics *topics, const struct topic *after);

/* Partition number n, made if it is new.  NULL: no memory.  Moves the others. */
struct partition *topic_partition(struct topic *topic, int32_t n);

#endif
