/* sink_state.h - what the files of the sink share; nobody else includes it.
 *
 *   sink.c          the interface, the producer's callbacks, the timers
 *   sink_send.c     which message may be sent now
 *   sink_gather.c   which are better sent later, together with others of their topic
 *   sink_failure.c  what a failure means, the next producer, and what is given up
 *   sink_foresee.c  what Kafka would refuse
 *   sink_suspects.c the second producer, for partitions on which something was refused
 *   sink_trouble.c  the same, for topics that Kafka refuses as a whole
 *   sink_refuse.c   what is not for Kafka, until it is in the table of dead letters
 *   sink_numbers.c  how much of all that there is
 *
 * Each message is an entry of the window.  Those before the cursor have been offered to
 * the producer: they are sent, done, or held in a list of their topic or partition until
 * that may send.  The cursor follows the end of the window; while messages gather it lags
 * behind, and what it reaches is offered with all others of its topic.  After a failure
 * every entry that is not done is offered again, from the front. */
#ifndef WALRELAY_IO_SINK_STATE_H
#define WALRELAY_IO_SINK_STATE_H

#include "base/must.h"
#include "core/backoff.h"
#include "core/window.h"
#include "io/job.h"
#include "io/lane.h"
#include "io/producer.h"
#include "io/sink.h"
#include "io/topic_config.h"
#include "io/topics.h"

/* A warning about something that lasts is repeated that often. */
enum { SINK_WARN_EVERY_MS = 60000 };

enum sink_phase {
    SINK_RUNNING,
    SINK_DESTROYING, /* the old producer, in a job */
    SINK_WAITING,    /* until restart_ms, then a new producer is made */
};

/* For each new topic librdkafka sends a request of its own, and each time it wakes it
 * walks over all that wait to be sent, once for every partition (2.0.2:
 * rd_kafka_broker_bufq_purge_by_toppar).  So the others stand in line. */
struct asking {
    size_t n;
    struct topic *first; /* in line */
    struct topic *last;
    int64_t look_ms; /* are there some that do not exist and should not keep others up? */
};

/* Messages that were not offered yet; see sink_gather. */
struct gathering {
    bool wanted;
    size_t n;
    size_t bytes;
    int64_t put_ms;   /* the last message, taken or refused */
    window_seq_t due; /* what is before has gathered long enough */
    window_seq_t next_due;
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

/* A partition on which something was refused: the second producer serves it. */
struct suspect {
    struct topic *topic;
    int32_t partition;
    size_t in_lane;
    int64_t refused_ms;  /* the last one */
    int64_t retry_ms;    /* nothing goes there before */
    bool changed;        /* results have come */
    struct waiting back; /* from the lane, unsent */
};

struct sink {
    struct sink_options options;
    enum sink_phase phase;
    unsigned attempts_max; /* see sink_dead_letters */
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
    size_t busy_topics; /* have entries in the window */
    struct gathering gathering;
    struct asking asking;
    size_t in_flight;  /* sent and not acknowledged */
    size_t probes;     /* of these, the first ones of topics, which may not exist yet */
    size_t unpushed;   /* sent since the last push, acknowledged or not */
    struct held *held; /* NULL: there is no table of dead letters */
    size_t refused;    /* entries of the window that are for that table */
    uint64_t refusals;
    struct topic_configs *configs; /* NULL: nothing is foreseen */
    struct lane *lane;             /* NULL: nothing was refused yet */
    struct suspect *suspects;
    size_t nsuspects;
    int64_t suspects_ms; /* when they are looked at again */
    bool hurry;      /* a message travels alone and others wait for it: no lingering */
    bool up;         /* Kafka answers */
    bool ebbing;     /* see sink_ebb */
    bool dropping;   /* the producer being destroyed still borrows from the window */
    struct err stop; /* why sink_serve is to fail */

    ticket_t *acked; /* a ring: as many as the window has entries */
    size_t acked_cap;
    size_t acked_first;
    size_t nacked;

    int64_t now_ms;
    int64_t progress_ms; /* the last acknowledgement, or when the window was empty */
    int64_t check_ms;
    int64_t trouble_ms;
    int trouble;      /* the last error that was told, 0 when Kafka is up */
    int failure_told; /* the last failure of no topic that was told */
    int64_t failure_told_ms;
    int64_t stall_told_ms;
    int64_t missing_ms; /* not before it is told of missing topics again */
};

static inline bool sink_may_offer(const struct sink *sink)
{
    return sink->phase == SINK_RUNNING && sink->failure.error == 0 && !sink->ebbing &&
           sink->stop.class == ERR_NONE;
}

/* Something that is being destroyed still borrows from the window. */
static inline bool sink_is_borrowed(const struct sink *sink)
{
    return sink->dropping || (sink->lane && lane_borrows(sink->lane));
}

static inline struct slice sink_topic_name(const struct topic *topic)
{
    return topic ? (struct slice){topic->name, topic->name_len} : (struct slice){0};
}

/* sink.c */
void sink_tell(struct sink *sink, enum log_level level, const struct log_field *fields,
               const char *text);
void sink_on_report(void *arg, window_seq_t seq, int32_t partition, int error);
void sink_on_trouble(void *arg, int error, bool fatal, const char *reason);
void sink_on_log(void *arg, enum log_level level, const char *text);

void sink_came_up(struct sink *sink);

/* The entry is durable in Kafka. */
static inline void sink_finish(struct sink *sink, struct entry *entry, window_seq_t seq)
{
    struct topic *topic = entry->topic;

    must(sink->nacked < sink->acked_cap);
    if (--topic->entries == 0)
        sink->busy_topics--;
    backoff_reset(&topic->backoff);
    sink->acked[(sink->acked_first + sink->nacked++) % sink->acked_cap] = entry->ticket;
    window_mark_done(sink->window, seq);
}

/* sink_send.c */
enum sink_offer {
    OFFER_SENT,
    OFFER_HELD,   /* in a list, until an acknowledgement */
    OFFER_ASIDE,  /* it is not for Kafka */
    OFFER_FAILED, /* sink->failure or sink->stop is set */
};
enum sink_offer sink_offer(struct sink *sink, window_seq_t seq);
void sink_hold(struct sink *sink, struct waiting *waiting, window_seq_t seq);
/* All of more, behind what waits. */
void sink_append(struct sink *sink, struct waiting *waiting, struct waiting more);
/* Offers what waits in a list; some of it may have to wait again, in another list or at
 * the end of the same.  False: a failure, after which all is offered from the front. */
bool sink_release(struct sink *sink, struct waiting *waiting);
void sink_make_ready(struct sink *sink, struct topic *topic);
enum sink_offer sink_hold_for_topic(struct sink *sink, struct topic *topic,
                                    window_seq_t seq);
/* All that waits for the topic or for one of its partitions, in order. */
bool sink_release_topic(struct sink *sink, struct topic *topic);
void sink_release_ready(struct sink *sink);
/* The first topics in line, as far as there is room. */
void sink_ask(struct sink *sink);
void sink_end_asking(struct sink *sink, struct topic *topic);
/* When sink_ask has something to do; CLOCK_NEVER. */
int64_t sink_ask_ms(const struct sink *sink);

/* sink_gather.c */
/* A new message, at the end of the window: it leaves at once, or gathers. */
void sink_take(struct sink *sink, window_seq_t seq);
void sink_offer_from_cursor(struct sink *sink);
/* Called once in a while: nothing gathers for longer than two calls. */
void sink_hasten(struct sink *sink);
/* When what has gathered leaves though nothing more comes; CLOCK_NEVER: nothing has. */
int64_t sink_gathered_until(const struct sink *sink);
/* There is no room for the next message. */
void sink_make_room(struct sink *sink);
size_t sink_entries_for(uint64_t memory_bytes);
/* The most that sink_widen makes of it. */
uint64_t sink_widest(uint64_t memory_bytes);
/* More memory, if so many topics gather.  False: no. */
bool sink_widen(struct sink *sink);
/* No more than usual, as soon as that is enough for what is pending. */
void sink_narrow(struct sink *sink);

/* sink_refuse.c */
/* The entry, queued or sent and failed, is not for Kafka.  refusal is moved.  -1 with err
 * set: no more may be held. */
int sink_refuse_entry(struct sink *sink, window_seq_t seq, struct refusal refusal,
                      struct err *err) __attribute__((warn_unused_result));
/* The same because of an error, in text's words, which are copied. */
int sink_refuse_for(struct sink *sink, window_seq_t seq, int error, const char *text,
                    struct err *err) __attribute__((warn_unused_result));
/* Another event of its key is refused: then it waits in the table, too. */
bool sink_must_wait(const struct sink *sink, window_seq_t seq);
enum sink_offer sink_hold_back(struct sink *sink, window_seq_t seq);
/* All that were refused are forgotten. */
void sink_forget_refused(struct sink *sink);

/* sink.c: as sink_put, with the size judged; *ret names the new entry. */
int sink_add(struct sink *sink, const struct message *message, ticket_t ticket,
             window_seq_t *ret, struct err *err) __attribute__((warn_unused_result));

/* sink_foresee.c */
void sink_on_described(void *arg, const struct producer_description *description);
void sink_begin_foreseeing(struct sink *sink);
/* A topic is used: what are its limits? */
void sink_look_up(struct sink *sink, struct topic *topic);
/* How large a batch may be at most for the topics that are known; 0: no limit. */
size_t sink_foreseen_batch(const struct sink *sink);
static inline bool sink_can_foresee(const struct topic *topic)
{
    return topic->config && topic->config->state == TOPIC_CONFIG_KNOWN;
}
/* The entry of such a topic: OFFER_SENT if it may be sent. */
enum sink_offer sink_foresee(struct sink *sink, window_seq_t seq);
bool sink_is_over_limit(const struct entry *entry);
/* Unless it is compressed it is larger than the topic allows.  What it costs here is more
 * than what it takes there. */
static inline bool sink_is_large(const struct entry *entry)
{
    const struct topic *topic = entry->topic;

    return topic->config && entry->cost_bytes > topic->config->max_message_bytes &&
           sink_is_over_limit(entry);
}

/* sink_suspects.c */
/* Something was refused on partition n: the second producer serves it from now on, for a
 * minute and longer while more is refused.  False: no memory, or n is not known. */
bool sink_suspect(struct sink *sink, struct topic *topic, int32_t n);
/* Both for a topic that has some. */
bool sink_is_suspect(struct sink *sink, struct topic *topic, int32_t n);
/* The partition for its key if it is one of these, while the producer does not know yet
 * how many there are; PARTITION_ANY: no. */
int32_t sink_suspect_for(const struct sink *sink, const struct entry *entry);
enum sink_offer sink_offer_suspect(struct sink *sink, window_seq_t seq, int32_t n);
/* The second producer; NULL: no memory. */
struct lane *sink_lane(struct sink *sink);
struct lane_record sink_lane_record(const struct entry *entry, window_seq_t seq,
                                    int32_t partition);
/* Has it events of that topic, whose partition is known? */
bool sink_lane_has(const struct sink *sink, const struct topic *topic);
/* An event has come back unsent, or not acknowledged. */
void sink_unsend(struct entry *entry, const struct lane_result *result);
/* The second producer's results, and questions about topics. */
int sink_serve_suspects(struct sink *sink, struct err *err)
    __attribute__((warn_unused_result));
int64_t sink_suspects_deadline(const struct sink *sink);
/* What is with the second producer is queued again, and is not sent any more. */
void sink_drop_lane(struct sink *sink);
/* All topics are forgotten. */
void sink_forget_suspects(struct sink *sink);
void sink_free_suspects(struct sink *sink);

/* sink_trouble.c */
/* Kafka refuses the topic, which is suspended by now.  From here to the end of it its
 * events are offered here. */
void sink_begin_trouble(struct sink *sink, struct topic *topic, int error);
enum sink_offer sink_offer_in_trouble(struct sink *sink, window_seq_t seq);
/* A dead letter is tried again: may the topic be mended? */
void sink_ask_again(struct sink *sink, struct topic *topic);
/* What came of the one that was sent to see. */
int sink_end_trial(struct sink *sink, const struct lane_result *result, struct err *err)
    __attribute__((warn_unused_result));
void sink_forget_trouble(struct sink *sink);

/* sink_failure.c */
/* Nothing is sent to the topic for a while, longer each time. */
void sink_suspend(struct sink *sink, struct topic *topic);
/* Until the topic is tried again, longer each time. */
int64_t sink_delay(struct sink *sink, struct topic *topic);
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
/* The same, and the next one is made at once. */
void sink_replace_producer(struct sink *sink);

#endif
