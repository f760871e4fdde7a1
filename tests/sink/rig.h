/* rig.h - a sink on librdkafka's mock cluster, and what arrived there.
 *
 * The mock cluster speaks Kafka's protocol in a thread of this process and answers with
 * the errors it is told to.  It keeps what it accepts; unlike a broker it does not look
 * at sequence numbers. */
#ifndef WALRELAY_TESTS_SINK_RIG_H
#define WALRELAY_TESTS_SINK_RIG_H

#include "io/sink.h"

#include "unit.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <stdbool.h>

enum { PRODUCE = 0, METADATA = 3, INIT_PRODUCER_ID = 22 }; /* request types of Kafka */

enum {
    RIG_TICKETS = 100000, /* tickets are 0 to that */
    RIG_LIMIT_MS = 20000, /* any wait that takes longer fails the test */
    RIG_NOTICES = 400,
};

struct notice {
    enum log_level level;
    char code[64];
    char topic[64];
    char text[ERR_TEXT_MAX];
};

struct rig {
    rd_kafka_t *rk; /* carries the mock cluster */
    rd_kafka_mock_cluster_t *mock;
    struct sink *sink;
    struct kafka_property properties[16];
    size_t nproperties;
    uint64_t memory_bytes;
    int64_t topic_wait_ms;

    ticket_t next; /* the ticket of the next message */
    size_t acked;
    unsigned char times_acked[RIG_TICKETS];
    size_t refused; /* that the sink has told of, one by one */
    struct err err; /* what sink_serve failed with */
    struct notice notices[RIG_NOTICES];
    size_t nnotices;
};

/* A cluster without topics; what does not exist is created with partitions when first
 * used.  brokers have the ids 1 to brokers. */
struct rig *rig_new(int brokers, int partitions);
void rig_free(struct rig *rig);

/* A property of the [kafka] section. */
void rig_set(struct rig *rig, const char *name, const char *value);

/* With what was set so far. */
void rig_start(struct rig *rig);

/* A message whose value is its ticket; key NULL: without one. */
struct message rig_message(const char *topic, const char *key);

/* sink_put with the next ticket; what it returned. */
int rig_offer(struct rig *rig, struct message message);
/* Puts n messages, which must be taken, and serves the sink while it is full. */
void rig_put(struct rig *rig, const char *topic, const char *key, size_t n);
void rig_put_message(struct rig *rig, struct message message);

/* One turn of a loop: waits up to wait_ms for an event, serves, takes tickets. */
void rig_turn(struct rig *rig, int wait_ms);
void rig_run_for(struct rig *rig, int64_t ms);
/* Until nothing is pending, and every ticket put so far came back exactly once. */
void rig_run_until_all_acked(struct rig *rig);
void rig_run_until_acked(struct rig *rig, size_t acked);
/* Until sink_serve fails, with rig->err. */
void rig_run_until_failed(struct rig *rig);

/* Until there is a notice whose text holds part. */
void rig_run_until_noticed(struct rig *rig, const char *part);

/* The first notice whose text holds part, or NULL. */
const struct notice *rig_notice(const struct rig *rig, const char *part);
size_t rig_count_notices(const struct rig *rig, const char *part);

/* ---- what arrived ----------------------------------------------------------------- */

struct record {
    int32_t partition;
    int64_t offset;
    int64_t value; /* -1: NULL */
    char key[32];  /* "" for NULL, see has_key */
    bool has_key;
    int64_t timestamp_ms;
    char headers[256]; /* "name=value;..." */
};

struct record_list {
    struct record *records;
    size_t n;
};

/* All records of a topic, partition by partition, each in its order. */
struct record_list rig_read(struct rig *rig, const char *topic);
void record_list_free(struct record_list *list);

/* How many different values there are from first to before end. */
size_t record_list_count(const struct record_list *list, int64_t first, int64_t end);
/* Fails the test unless the first occurrences of each partition's values ascend. */
void record_list_must_ascend(const struct record_list *list);

#endif
