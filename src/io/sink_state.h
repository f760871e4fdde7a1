/* sink_state.h - what the three files of the sink share; nobody else includes it.
 *
 *   sink.c          the interface, the producer's callbacks, the timers
 *   sink_send.c     which message may be sent now
 *   sink_failure.c  what a failure means, and the next producer
 *
 * Each message is an entry of the window.  The cursor is the first entry that has not
 * been offered to the producer; those before it are sent, done, or held in a list of
 * their topic or partition until that may send.  After a failure every entry that is
 * not done is offered again, from the front. */
#ifndef WALRELAY_IO_SINK_STATE_H
#define WALRELAY_IO_SINK_STATE_H

#include "core/backoff.h"
#include "core/window.h"
#include "io/job.h"
#include "io/producer.h"
#include "io/sink.h"
#include "io/topics.h"

/* A warning about something that lasts is repeated that often. */
enum { SINK_WARN_EVERY_MS = 60000 };

enum sink_phase {
    SINK_RUNNING,
    SINK_DESTROYING, /* the old producer, in a job */
    SINK_WAITING,    /* until restart_ms, then a new producer is made */
};

/* A push, until what it is for is acknowledged or would have left anyway. */
struct push {
    bool active;
    window_seq_t end; /* for what is before that */
    int64_t again_ms;
    int64_t wait_ms;
    int64_t until_ms;
};

/* The failure of a producer that says most about the cause, and those of its batch. */
struct sink_failure {
    int error;           /* 0: none */
    struct topic *topic; /* NULL: the producer itself */
    int32_t partition;
    size_t suspects; /* messages that failed together */
    window_seq_t first;
    window_seq_t last;
    int64_t conclude_ms; /* by then the reports that belong to it have come */
    char reason[256];
};

struct sink {
    struct sink_options options;
    enum sink_phase phase;
    struct producer *producer;
    struct job *job;
    int64_t restart_ms;
    struct backoff backoff;
    int64_t failed_ms; /* the last failure */
    uint64_t random;
    size_t batch_bytes; /* 0, or lowered because batches were refused */
    size_t max_message_bytes;
    struct sink_failure failure;

    struct window *window;
    struct topics *topics;
    struct topic *ready;
    window_seq_t cursor;
    size_t in_flight; /* sent and not acknowledged */
    size_t probes;    /* of these, the first ones of topics, which may not exist yet */
    size_t unpushed;  /* sent since the last push, acknowledged or not */
    bool hurry;       /* a message travels alone and others wait for it: no lingering */
    struct push push;
    bool dropping; /* the producer being destroyed still borrows from the window */

    ticket_t *acked; /* a ring: as many as the window has entries */
    size_t acked_cap;
    size_t acked_first;
    size_t nacked;

    int64_t now_ms;
    int64_t progress_ms; /* the last acknowledgement, or when the window was empty */
    int64_t check_ms;
    bool up;
    int trouble; /* the last error that was told, 0 when Kafka is up */
    int64_t trouble_ms;
    int failure_told; /* the last failure of no topic that was told */
    int64_t failure_told_ms;
    int64_t stall_told_ms;
    int64_t missing_ms; /* not before it is told of missing topics again */
};

static inline struct slice sink_topic_name(const struct topic *topic)
{
    return topic ? (struct slice){topic->name, topic->name_len} : (struct slice){0};
}

/* sink.c */
void sink_tell(struct sink *sink, enum log_level level, const struct log_field *fields,
               const char *text);
void sink_on_report(void *arg, window_seq_t seq, int32_t partition, int error);
void sink_on_trouble(void *arg, int error, bool fatal, const char *reason);
void sink_on_log(void *arg, int level, const char *text);

/* sink_send.c */
enum sink_offer {
    OFFER_SENT,
    OFFER_HELD,   /* in a list, until an acknowledgement */
    OFFER_FAILED, /* sink->failure is set */
};
enum sink_offer sink_offer(struct sink *sink, window_seq_t seq);
void sink_offer_from_cursor(struct sink *sink);
void sink_make_ready(struct sink *sink, struct topic *topic);
void sink_release_ready(struct sink *sink);

/* sink_failure.c */
/* Remembers a failure.  topic is NULL when the producer itself failed. */
void sink_fail(struct sink *sink, int error, struct topic *topic, int32_t partition,
               window_seq_t seq, const char *reason);
/* Makes a producer for the first time, or after the last one was destroyed. */
int sink_make_producer(struct sink *sink, struct err *err)
    __attribute__((warn_unused_result));
/* All reports that came with the failure are in: decides, and begins to rebuild.  -1
 * with err set if the process should stop. */
int sink_conclude(struct sink *sink, struct err *err) __attribute__((warn_unused_result));
/* Goes on rebuilding. */
int sink_serve_rebuild(struct sink *sink, struct err *err)
    __attribute__((warn_unused_result));
void sink_begin_destroying(struct sink *sink);

#endif
