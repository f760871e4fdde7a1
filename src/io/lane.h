/* lane.h - the second producer, for records of which one may be refused.
 *
 * It is idempotent and has no gapless guarantee, so a refusal does not end it; but then
 * librdkafka would go on with what is behind a refused batch.  So each queue has one
 * batch under way: nothing behind a refused batch has been sent, and nothing of it is in
 * the log.  A refused batch of one record is a refused record; a larger one is cut, the
 * first part first, until the guilty one is alone.
 *
 * What lies in the window and what lies in the table of dead letters come here alike: the
 * bytes are borrowed.  What to do about an error says core/poison.h.
 *
 * The producer is made when there is something to send.  Nothing here blocks longer than
 * a millisecond; one thread owns a lane, and librdkafka's callbacks run in it. */
#ifndef WALRELAY_IO_LANE_H
#define WALRELAY_IO_LANE_H

#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/message.h"
#include "core/poison.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lane;

struct lane_options {
    const struct kafka_property *properties; /* borrowed for the lane's life */
    size_t nproperties;
    struct poison_limits limits;
    int64_t missing_ms; /* as for a producer */
    void (*notice)(void *arg, enum log_level level, const struct log_field *fields,
                   const char *text);
    void *notice_arg;
};

/* How soon a topic that does not exist should be an error, if its events are to wait so
 * long; 0: as late as usual. */
static inline int64_t lane_missing_ms(int64_t topic_wait_ms)
{
    enum { LEAST_MS = 1000, MOST_MS = 10000 };

    if (topic_wait_ms == 0 || topic_wait_ms > MOST_MS)
        return topic_wait_ms == 0 ? 0 : MOST_MS;
    return topic_wait_ms > LEAST_MS ? topic_wait_ms : LEAST_MS;
}

/* Message's slices and headers are borrowed until the record's result, or, after
 * lane_drop, until lane_borrows says no; the topic's name is copied.  lane_put copies the
 * struct itself. */
struct lane_record {
    struct message message;
    int32_t partition; /* where it goes, if that is known already; or PARTITION_ANY: where
                          message.partition or the key says */
    unsigned attempts; /* how often it was sent before */
    bool doubted;      /* its partition did not exist when it was sent last */
    uint64_t tag;      /* the caller's own */
};

enum lane_outcome {
    LANE_ACKNOWLEDGED,
    LANE_REFUSED, /* this record can never be published */
    LANE_LATER, /* a state of the cluster or of the topic: the record is not to blame, and
                   may be in Kafka or not.  What was behind it comes back likewise,
                   without having been sent: put it again in the same order. */
    LANE_BEHIND, /* not sent, as one before it in its queue, of the same key, was refused:
                    put it again in the same order, unless it has to wait for that one */
};

struct lane_result {
    uint64_t tag;
    enum lane_outcome outcome;
    int32_t partition; /* where it went or was to go; PARTITION_ANY: not known */
    int error;         /* 0: acknowledged; LANE_LATER: of the one it waits for */
    char text[256];    /* librdkafka's or the broker's; "" if acknowledged */
    unsigned attempts; /* how often it was sent by now */
    bool doubted;      /* for the next lane_put */
    bool commit_time;  /* it carries the commit time instead of its own, see
                          window_use_commit_time */
};

/* NULL with err set: no memory.  Makes no producer yet. */
struct lane *lane_new(const struct lane_options *options, struct err *err)
    __attribute__((warn_unused_result));

/* Forgets all records; waits some milliseconds until nothing is borrowed. */
void lane_free(struct lane *lane);

/* Records of one topic and partition, where partition is part of the record, are sent in
 * the order in which they are put; those with PARTITION_ANY in that of their topic.
 *
 * 1: taken; 0: its queue is full, try again when results have come; -1: no memory, err is
 * set. */
int lane_put(struct lane *lane, const struct lane_record *record, struct err *err)
    __attribute__((warn_unused_result));

/* One result, those of a key in the order of its records; false: there is none. */
bool lane_done(struct lane *lane, struct lane_result *ret)
    __attribute__((warn_unused_result));

/* Reports, batches, state changes.  -1 with err set: librdkafka refuses the properties,
 * or there is no memory. */
int lane_serve(struct lane *lane, int64_t now_ms, struct err *err)
    __attribute__((warn_unused_result));

/* For poll(2): at most LANE_FDS entries are filled; how many. */
enum { LANE_FDS = 1 };
size_t lane_fds(const struct lane *lane, struct pollfd *fds);

/* When lane_serve or lane_done has something to do without an event. */
int64_t lane_deadline(const struct lane *lane);

/* Records whose result lane_done has not handed out. */
size_t lane_pending(const struct lane *lane);

/* Forgets all records, without results, and destroys the producer so that what librdkafka
 * holds is not sent late. */
void lane_drop(struct lane *lane);

/* Bytes of records that were dropped are still in use; lane_serve ends that soon. */
bool lane_borrows(const struct lane *lane);

#endif
