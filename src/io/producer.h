/* producer.h - one instance of librdkafka's idempotent producer; with kafka_error.c
 * the only place that knows librdkafka.
 *
 * It sends what it is told where it is told.  What is sent when, and what is sent again
 * by the next instance, is decided in sink.c. */
#ifndef WALRELAY_IO_PRODUCER_H
#define WALRELAY_IO_PRODUCER_H

#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/window.h"
#include "io/job.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct producer;
struct producer_topic;

/* So many small messages make one batch of a producer for a lane, at least. */
enum { PRODUCER_LANE_BATCH = 1000 };

/* What a broker says of a topic that was asked for with producer_describe. */
struct producer_description {
    const char *topic;  /* NULL: that was all; no word on those that did not come */
    int error;          /* of this topic, or, without one, of the whole question */
    const char *reason; /* in the broker's words; "" */
    const struct producer_setting *settings;
    size_t nsettings;
};

struct producer_setting {
    const char *name;
    const char *value;
};

/* All are called in the thread that calls producer_poll or producer_push, inside it. */
struct producer_callbacks {
    /* Delivery report, one for each message sent, except that a producer with a fatal
     * error may keep some back for ever.  partition: where it went, or was to go.  A
     * broker says which record of a batch is to blame, from librdkafka 2.4 on: then the
     * others have KAFKA_ERROR_OTHER_RECORD. */
    void (*report)(void *arg, window_seq_t seq, int32_t partition, int error);
    /* Something is wrong with a broker, or, fatal, with the producer, which sends nothing
     * any more; reason is librdkafka's.  A fatal error comes before the report of the
     * message that caused it. */
    void (*trouble)(void *arg, int error, bool fatal, const char *reason);
    /* A line of librdkafka's own log. */
    void (*log)(void *arg, enum log_level level, const char *text);
    /* An answer to producer_describe; NULL if that is not called. */
    void (*described)(void *arg, const struct producer_description *description);
    void *arg;
};

struct producer_options {
    const struct kafka_property *properties; /* the user's, which win over ours */
    size_t nproperties;
    size_t batch_bytes;  /* lowers batch.size; 0: leave it */
    size_t max_messages; /* librdkafka's queue must hold at least that many, */
    size_t max_bytes;    /* and that much of keys and values: it is never full */
    int64_t missing_ms;  /* lowers topic.metadata.propagation.max.ms, after which a topic
                            that does not exist is an error; 0: leave it */
    bool lane; /* see lane.h: no gapless guarantee, nothing lingers, and what is not
                  acknowledged within 30 s fails */
    struct producer_callbacks callbacks;
};

/* NULL with err set: ERR_CONFIG in librdkafka's words, ERR_RETRY without threads or
 * memory.  Does not wait for a broker. */
struct producer *producer_new(const struct producer_options *options, struct err *err)
    __attribute__((warn_unused_result));

/* What was not sent is dropped, without a report; its topics go with it.  Takes some
 * milliseconds, and may be done in another thread: no callback runs any more. */
void producer_free(struct producer *producer);

/* The same in a job, as it may take a while.  NULL: there was no thread for it, and it is
 * done. */
struct job *producer_retire(struct producer *producer)
    __attribute__((warn_unused_result));

/* Readable when producer_poll has something to do.  Never -1. */
int producer_fd(const struct producer *producer);

/* Runs the callbacks of all that is waiting, without waiting. */
void producer_poll(struct producer *producer);

/* Sends what waits for linger.ms now.  Waits up to a millisecond, as rd_kafka_flush
 * with 0 gives up before its threads wake.  Runs callbacks.  On a busy machine these
 * threads may sleep longer than that, and nothing is sent, or not for all partitions. */
void producer_push(struct producer *producer);

/* How many produce requests have been sent, one partition's messages in each. */
uint64_t producer_requests(const struct producer *producer);

/* Asks for some settings of n topics, in one request: those in topic_config.c.  All comes
 * through the callback `described`, within ten seconds, unless the producer is freed
 * before.  False: no memory, nothing was asked. */
bool producer_describe(struct producer *producer, const char *const *topics, size_t n)
    __attribute__((warn_unused_result));

/* Between pause and resume nothing of a partition is put into a request, so that what is
 * sent meanwhile makes one batch; then producer_push.  Waits for one of librdkafka's
 * threads, for some microseconds.  False: the partition is not known, nothing is paused.
 */
bool producer_pause(struct producer *producer, const struct producer_topic *topic,
                    int32_t partition) __attribute__((warn_unused_result));
void producer_resume(struct producer *producer, const struct producer_topic *topic,
                     int32_t partition);

/* What no request carries yet will not be sent; each such message gets its report, with
 * an error, soon.  The producer is of no further use: the numbers of its messages have a
 * gap. */
void producer_purge(struct producer *producer);

/* The user's batch.size and message.max.bytes, or librdkafka's default. */
size_t producer_batch_bytes(const struct producer *producer);
size_t producer_max_message_bytes(const struct producer *producer);

/* A handle makes the first message faster than a name does (0.7 s with 2.0.2).  Lives as
 * long as producer, and so does what librdkafka keeps of the topic.  Once for each name.
 * NULL: *error is why. */
struct producer_topic *producer_topic_new(struct producer *producer, const char *name,
                                          int *error) __attribute__((warn_unused_result));

/* Asks the brokers for the topic's partitions, which are otherwise known for minutes;
 * waits a millisecond at most, hence not for the answer. */
void producer_look_at(struct producer *producer, const struct producer_topic *topic);

/* How many partitions the last message by key met; 0 before the first. */
int32_t producer_partition_count(const struct producer_topic *topic);

/* The partition of key among count, as Java's default partitioner has it (murmur2); a
 * random one for an absent key. */
int32_t producer_partition_of(const struct producer_topic *topic, struct slice key,
                              int32_t count);

/* Sends entry, whose slices must live until its report, or until producer_free.
 * partition: a number, or PARTITION_ANY for the partition of its key; if the topic has
 * another number of partitions than producer_partition_count says, PARTITION_ANY fails
 * once with KAFKA_BAD_PARTITION, is not sent, and the count is right afterwards.
 *
 * 0, or an error number; then nothing was sent and there will be no report. */
int producer_send(struct producer *producer, struct producer_topic *topic,
                  const struct entry *entry, int32_t partition, window_seq_t seq)
    __attribute__((warn_unused_result));

/* At most what librdkafka counts for a record (rd_kafka_msg_wire_size): with each header
 * two lengths of five bytes. */
static inline size_t producer_record_bytes(struct slice key, struct slice payload,
                                           const struct header *headers, size_t nheaders)
{
    enum { RECORD_OVERHEAD = 36, HEADER_OVERHEAD = 10 };
    size_t size = RECORD_OVERHEAD + key.len + payload.len;

    for (size_t i = 0; i < nheaders; i++)
        size += headers[i].name.len + headers[i].value.len + HEADER_OVERHEAD;
    return size;
}

#endif
