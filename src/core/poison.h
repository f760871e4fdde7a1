/* poison.h - whose fault a failure of Kafka is, and what becomes of the event.
 *
 * One table gives each error a class, one function the fate of an event that met it.
 * The rule behind both: a state of the cluster is never charged to an event, and an
 * event that can never be published must not stop the others.
 *
 * Errors are librdkafka's numbers (rd_kafka_resp_err_t): Kafka's own are positive,
 * librdkafka's negative, 0 is none. */
#ifndef WALRELAY_CORE_POISON_H
#define WALRELAY_CORE_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum poison_class {
    POISON_PRODUCER,  /* the producer instance is spoiled; its successor goes on */
    POISON_CLUSTER,   /* a state of the cluster, or of our credentials */
    POISON_TOPIC,     /* a state of one topic, or a right on it */
    POISON_SIZE,      /* the batch is over a limit, or the one record in it */
    POISON_TIME,      /* a record's timestamp, or a clock */
    POISON_PARTITION, /* the topic has no such partition, or not yet */
    POISON_RECORD,    /* a record in the batch can never be written */
    POISON_LIMITED,   /* not known: an event is tried a limited number of times */
};

/* INVALID_RECORD, for a record that was not even sent. */
enum { POISON_INVALID_RECORD = 87 };

enum poison_class poison_class_of(int error);

/* Has it a row in the table?  The others are POISON_LIMITED. */
bool poison_is_known(int error);

/* Kafka's or librdkafka's name, "MSG_SIZE_TOO_LARGE"; NULL if it is not known. */
const char *poison_name(int error);

/* One failure of one event, or of several that travelled together. */
struct poison_case {
    int error;
    size_t suspects; /* records in the batch: with more than one, any may be to blame */
    bool own_time;   /* a suspect carries the value of a timestamp column */
    bool own_partition;      /* the event's row says which partition */
    bool doubted;            /* it failed like this before, at another producer */
    unsigned attempts;       /* how often the event was sent, this time included */
    int64_t topic_waited_ms; /* since its topic failed first */
};

struct poison_limits {
    unsigned attempts;     /* for POISON_LIMITED */
    int64_t topic_wait_ms; /* for POISON_TOPIC; 0: for ever */
};

enum poison_fate {
    FATE_AGAIN,       /* send it again with the next producer */
    FATE_WAIT,        /* the same, later; the operator is told */
    FATE_WAIT_TOPIC,  /* the same, and other topics go on meanwhile */
    FATE_COMMIT_TIME, /* send again, with the commit time as timestamp */
    FATE_ISOLATE,     /* send the suspects one at a time: who is it? */
    FATE_REFUSED,     /* this event, now: a dead letter, or the end of the relay */
};

enum poison_fate poison_fate(const struct poison_case *c,
                             const struct poison_limits *limits);

/* How many attempts a refused event has behind it that was sent that often: all, if the
 * error is not known.  Otherwise the last was the first that was refused for its own
 * sake; before, it travelled with the guilty one, or the cluster was not well. */
unsigned poison_attempts(int error, unsigned sent);

#endif
