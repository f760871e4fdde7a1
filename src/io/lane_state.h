/* lane_state.h - what the files of the lane share; nobody else includes it.
 *
 *   lane.c        the interface, the queues, the producer
 *   lane_batch.c  what is sent together, and what becomes of it
 *
 * A record is in its queue until it has a result, and then in the list of those until
 * lane_done.  The first ones of a queue, as many as `sent`, are the batch under way. */
#ifndef WALRELAY_IO_LANE_STATE_H
#define WALRELAY_IO_LANE_STATE_H

#include "core/backoff.h"
#include "io/job.h"
#include "io/lane.h"
#include "io/producer.h"
#include "io/topics.h"

struct lane_item {
    struct lane_item *next;
    struct lane_queue *queue;
    struct lane_record record;
    bool commit_time;
    bool reported;
    enum lane_outcome outcome;
    int32_t partition;
    int error;
};

struct lane_queue {
    struct lane_queue *next;
    struct topic *topic;
    int32_t partition;
    struct lane_item *first;
    struct lane_item *last;
    size_t n;
    size_t sent;
    size_t reported;
    bool warm;        /* something was acknowledged here: the partition is known */
    size_t bad;       /* so many at the front hold a guilty one; 0: nothing is known */
    bool named;       /* it is the last of these */
    size_t too_large; /* the size of the batch with which the search began; 0: that was
                         not the complaint */
    size_t most;      /* batches are no larger */
    size_t large;     /* a record of so many bytes was too large; 0: none */
    bool keyless;     /* one without a key was refused, which is usually why */
    int64_t used_ms;
};

enum lane_phase {
    LANE_EMPTY, /* no producer yet */
    LANE_RUNNING,
    LANE_DESTROYING, /* in a job */
    LANE_WAITING,    /* until restart_ms */
};

struct lane {
    struct lane_options options;
    enum lane_phase phase;
    struct producer *producer;
    struct job *job;
    int spoiled; /* the error that ended the producer; 0: it is well */
    bool dropping;
    int64_t restart_ms;
    int64_t failed_ms;
    struct backoff backoff;
    uint64_t random;

    struct topics *topics;
    struct lane_queue *queues;
    size_t n; /* records in queues */
    size_t in_flight;
    struct lane_item *done;
    struct lane_item *last_done;
    size_t ndone;
    struct header *headers; /* for a record with its commit time */
    size_t headers_cap;

    int64_t now_ms;
    int64_t push_ms; /* again */
    int64_t push_wait_ms;
    int64_t sweep_ms;
    int trouble; /* the last one that was told */
    int64_t trouble_ms;
};

/* lane.c */
/* The front of the queue has a result. */
void lane_finish(struct lane *lane, struct lane_queue *queue, enum lane_outcome outcome,
                 int error);
/* The producer is of no further use; what is under way is sent again by the next one, or
 * comes back if the error is a state of the cluster. */
void lane_spoil(struct lane *lane, int error);

/* lane_batch.c */
/* Sends a batch, if none is under way and there is something to send. */
void lane_send(struct lane *lane, struct lane_queue *queue);
/* If all of the batch is reported: results, or what is tried next. */
void lane_settle(struct lane *lane, struct lane_queue *queue);
/* All of the queue comes back: as LANE_LATER, or without an error as LANE_BEHIND. */
void lane_give_back(struct lane *lane, struct lane_queue *queue, int error);
/* What is under way counts as unsent, but for what is acknowledged. */
void lane_unsend(struct lane *lane, struct lane_queue *queue);

#endif
