/* sink_failure.c - what a failure means, the next producer, and what is given up; see
 * sink_state.h. */
#include "base/must.h"
#include "base/random.h"
#include "core/poison.h"
#include "io/kafka_error.h"
#include "io/sink_state.h"

#include <limits.h>
#include <stdio.h>

enum {
    /* librdkafka raises the fatal error of a refused batch just before its reports
     * (rd_kafka_handle_Produce_error), and these name the reason. */
    REPORTS_MS = 100,
    QUIET_MS = 10000, /* a producer that lasted that long may fail once for free */
};

/* How much an error says about the cause. */
enum { SAYS_NOTHING, SAYS_REBUILD, SAYS_CLUSTER, SAYS_MESSAGE };

static int says(int error)
{
    if (error == 0)
        return SAYS_NOTHING;
    switch (poison_class_of(error)) {
    case POISON_PRODUCER:
        return SAYS_REBUILD;
    case POISON_CLUSTER:
        return SAYS_CLUSTER;
    default:
        return SAYS_MESSAGE;
    }
}

int64_t sink_delay(struct sink *sink, struct topic *topic)
{
    return backoff_next(&topic->backoff, random_next(&sink->random));
}

void sink_suspend(struct sink *sink, struct topic *topic)
{
    if (topic->suspended)
        return;
    topic->suspended = true;
    topic->suspended_until_ms = sink->now_ms + sink_delay(sink, topic);
}

/* One refused message makes many failures: first the producer's own, then one report for
 * each message of its batch, and one for each healthy message that is purged. */
void sink_fail(struct sink *sink, int error, struct topic *topic, int32_t partition,
               window_seq_t seq, const char *reason)
{
    struct sink_failure *f = &sink->failure;

    if (topic && poison_class_of(error) == POISON_TOPIC)
        sink_begin_trouble(sink, topic, error);
    if (says(error) > says(f->error)) {
        *f = (struct sink_failure){
            .error = error,
            .topic = topic,
            .partition = partition,
            .first = seq,
            .conclude_ms = sink->now_ms + (says(error) == SAYS_MESSAGE ? 0 : REPORTS_MS),
        };
        (void)snprintf(f->reason, sizeof(f->reason), "%s",
                       reason ? reason : kafka_error_text(error));
    }
    if (f->error == error && f->topic == topic && f->partition == partition) {
        f->suspects++;
        f->last = seq;
    }
}

void sink_begin_destroying(struct sink *sink)
{
    if (sink->configs)
        topic_configs_use(sink->configs, NULL);
    topics_forget_producer(sink->topics);
    sink->ready = NULL;
    sink->asking = (struct asking){0};
    sink->job = producer_retire(sink->producer);
    sink->producer = NULL;
    sink->in_flight = 0;
    sink->probes = 0;
    sink->unpushed = 0;
    sink->phase = sink->job ? SINK_DESTROYING : SINK_WAITING;
}

static void unsend_all(struct sink *sink)
{
    window_seq_t end = window_end(sink->window);

    for (window_seq_t seq = window_begin(sink->window); seq != end; seq++) {
        struct entry *entry = window_entry(sink->window, seq);

        if (entry->state == ENTRY_SENT && !entry->in_lane)
            entry->state = ENTRY_QUEUED;
        if (entry->state == ENTRY_QUEUED && entry->offered) {
            entry->offered = false;
            sink->gathering.n++;
            sink->gathering.bytes += entry->cost_bytes;
        }
    }
    sink->cursor = window_begin(sink->window);
}

int sink_make_producer(struct sink *sink, struct err *err)
{
    struct producer_options options = {
        .properties = sink->options.properties,
        .nproperties = sink->options.nproperties,
        .batch_bytes = sink_foreseen_batch(sink),
        .missing_ms = lane_missing_ms(sink->options.topic_wait_ms),
        .max_messages = sink->acked_cap + 1,
        .max_bytes = (size_t)sink_widest(sink->options.memory_bytes),
        .callbacks = {sink_on_report, sink_on_trouble, sink_on_log, sink_on_described,
                      sink},
    };

    sink->producer = producer_new(&options, err);
    if (!sink->producer)
        return -1;
    sink->phase = SINK_RUNNING;
    if (sink->configs)
        topic_configs_use(sink->configs, sink->producer);
    sink->max_message_bytes = producer_max_message_bytes(sink->producer);
    return 0;
}

/* ---- what a failure means --------------------------------------------------------- */

static void name_suspects(struct sink *sink, char *text, size_t size)
{
    const struct sink_failure *f = &sink->failure;
    const struct entry *first = window_entry(sink->window, f->first);
    const struct entry *last = window_entry(sink->window, f->last);

    if (f->suspects == 1)
        (void)snprintf(text, size,
                       "; table %.*s, event id %.*s at %" LSN_FMT
                       ", payload of %zu bytes",
                       SLICE_ARG(first->table), SLICE_ARG(first->event_id),
                       LSN_ARG(first->place.lsn), first->payload.len);
    else
        (void)snprintf(
            text, size,
            "; %zu events in the batch, of table %.*s, from id %.*s at %" LSN_FMT
            " to id %.*s at %" LSN_FMT,
            f->suspects, SLICE_ARG(first->table), SLICE_ARG(first->event_id),
            LSN_ARG(first->place.lsn), SLICE_ARG(last->event_id),
            LSN_ARG(last->place.lsn));
}

static void describe(struct sink *sink, char *text, size_t size)
{
    const struct sink_failure *f = &sink->failure;
    const char *cure = kafka_error_cure(f->error);
    char where[300] = "";
    char who[400] = "";

    if (f->topic) {
        (void)snprintf(where, sizeof(where), "topic %s partition %d: ", f->topic->name,
                       (int)f->partition);
        name_suspects(sink, who, sizeof(who));
    }
    (void)snprintf(text, size, "Kafka refuses: %s%s (%s)%s%s%s", where, f->reason,
                   kafka_error_name(f->error), who, *cure ? "; " : "", cure);
}

static int poison(struct sink *sink, struct err *err)
{
    const struct entry *first = window_entry(sink->window, sink->failure.first);
    char text[ERR_TEXT_MAX];

    describe(sink, text, sizeof(text));
    (void)err_set_code(err, ERR_POISON, kafka_error_name(sink->failure.error), "%s",
                       text);
    err_set_event(err, first->event_id, first->event_type, first->aggregate_id,
                  first->attempts > 0 ? first->attempts : 1);
    return -1;
}

static bool is_suspect(const struct sink *sink, const struct entry *entry)
{
    return entry->state == ENTRY_SENT && entry->topic == sink->failure.topic &&
           (entry->sent_partition < 0 ||
            entry->sent_partition == sink->failure.partition);
}

/* The suspects with a timestamp of their own travel with the commit time from now on.
 * False: there are none, so the clocks or the topic's limits are to blame. */
static bool use_commit_times(struct sink *sink)
{
    bool any = false;

    for (window_seq_t seq = sink->failure.first; seq <= sink->failure.last; seq++) {
        struct entry *entry = window_entry(sink->window, seq);

        if (is_suspect(sink, entry) && window_use_commit_time(entry))
            any = true;
    }
    return any;
}

/* The one suspect is to blame. */
static int refuse(struct sink *sink, struct err *err)
{
    struct sink_failure *f = &sink->failure;

    if (!sink->held)
        return poison(sink, err);
    must(f->topic);
    f->topic->innocent = false;
    if (poison_class_of(f->error) != POISON_PARTITION)
        (void)sink_suspect(sink, f->topic, f->partition); /* where one is, more may be */
    return sink_refuse_for(sink, f->first, f->error, f->reason, err);
}

/* A partition may be missing because the topic was deleted, made again, or has grown: a
 * new producer looks at it afresh. */
static void wait_for_topic(struct sink *sink)
{
    must(sink->failure.topic);
    if (poison_class_of(sink->failure.error) == POISON_PARTITION)
        window_entry(sink->window, sink->failure.first)->doubted = true;
    sink_suspend(sink, sink->failure.topic);
}

/* Smaller batches, until one record is refused alone. */
static int halve_batches(struct sink *sink, struct err *err)
{
    size_t half = producer_batch_bytes(sink->producer) / 2;

    if (half == 0)
        return refuse(sink, err);
    sink->batch_bytes = half;
    return 0;
}

/* The second producer finds it out.  Without that the suspects travel alone.  If none of
 * them is refused, then the batch is to blame that is refused next. */
static int isolate(struct sink *sink, struct err *err)
{
    struct topic *topic = sink->failure.topic;

    must(topic);
    if (sink->held && sink_suspect(sink, topic, sink->failure.partition))
        return 0;
    if (!sink->held && poison_class_of(sink->failure.error) != POISON_SIZE)
        return poison(sink, err);
    if (!sink->held || topic->innocent)
        return halve_batches(sink, err);
    topic->innocent = poison_class_of(sink->failure.error) == POISON_SIZE;
    topic->careful_end = sink->failure.last + 1;
    return 0;
}

static struct poison_case case_of(struct sink *sink)
{
    const struct sink_failure *f = &sink->failure;
    struct poison_case c = {.error = f->error, .suspects = f->suspects};
    const struct entry *first;

    if (!f->topic)
        return c;
    first = window_entry(sink->window, f->first);
    c.own_partition = first->partition != PARTITION_ANY;
    c.doubted = first->doubted;
    c.attempts = first->attempts;
    c.own_time = poison_class_of(f->error) == POISON_TIME && use_commit_times(sink);
    return c;
}

/* How the next producer differs; -1 with err set if there must be none.  *delay is set
 * when it should come later. */
static int learn(struct sink *sink, bool quiet, bool *delay, struct err *err)
{
    const struct sink_failure *f = &sink->failure;
    /* Of the producer itself, no message can be to blame. */
    bool nobody = !f->topic && says(f->error) == SAYS_MESSAGE;
    struct poison_limits limits = {.attempts =
                                       sink->held ? sink->attempts_max : UINT_MAX};
    struct poison_case c = case_of(sink);

    switch (nobody ? FATE_AGAIN : poison_fate(&c, &limits)) {
    case FATE_REFUSED:
        return refuse(sink, err);
    case FATE_ISOLATE:
        return isolate(sink, err);
    case FATE_WAIT_TOPIC:
        wait_for_topic(sink);
        break;
    case FATE_COMMIT_TIME: /* they have it by now; the next ones get it in the lane */
        if (sink->held)
            (void)sink_suspect(sink, f->topic, f->partition);
        break;
    case FATE_WAIT:
        *delay = true;
        break;
    case FATE_AGAIN:
        *delay = !quiet;
        break;
    }
    return 0;
}

/* The same failure again within a minute is for those who debug. */
static enum log_level level_of(struct sink *sink)
{
    const struct sink_failure *f = &sink->failure;
    int64_t *told_ms = f->topic ? &f->topic->warned_ms : &sink->failure_told_ms;
    bool again = f->topic || f->error == sink->failure_told;

    if (again && *told_ms != 0 && sink->now_ms - *told_ms < SINK_WARN_EVERY_MS)
        return LOG_DEBUG;
    *told_ms = sink->now_ms;
    if (!f->topic)
        sink->failure_told = f->error;
    return LOG_WARNING;
}

static void tell_failure(struct sink *sink)
{
    struct log_field fields[] = {
        {"code", slice_of(kafka_error_name(sink->failure.error))},
        {"topic", sink_topic_name(sink->failure.topic)},
        LOG_END};
    char text[ERR_TEXT_MAX];

    describe(sink, text, sizeof(text));
    sink_tell(sink, level_of(sink), fields, text);
}

int sink_conclude(struct sink *sink, struct err *err)
{
    bool quiet = sink->failed_ms == 0 || sink->now_ms - sink->failed_ms >= QUIET_MS;
    bool delay = false;

    if (quiet)
        backoff_reset(&sink->backoff);
    sink->failed_ms = sink->now_ms;
    if (learn(sink, quiet, &delay, err) != 0)
        return -1;
    tell_failure(sink);
    sink->up = false;
    sink->restart_ms = sink->now_ms;
    if (delay)
        sink->restart_ms += backoff_next(&sink->backoff, random_next(&sink->random));
    sink->failure = (struct sink_failure){0};
    sink_begin_destroying(sink);
    unsend_all(sink);
    return 0;
}

int sink_serve_rebuild(struct sink *sink, struct err *err)
{
    struct err failed = {0};

    if (sink->phase == SINK_DESTROYING && job_is_done(sink->job)) {
        job_finish(sink->job);
        sink->job = NULL;
        sink->dropping = false;
        sink->phase = SINK_WAITING;
    }
    if (sink->phase != SINK_WAITING || sink->now_ms < sink->restart_ms)
        return 0;
    if (sink_make_producer(sink, &failed) == 0)
        return 0;
    if (failed.class != ERR_RETRY) {
        *err = failed;
        return -1;
    }
    sink->restart_ms =
        sink->now_ms + backoff_next(&sink->backoff, random_next(&sink->random));
    return 0;
}

/* ---- what is given up ------------------------------------------------------------ */

void sink_replace_producer(struct sink *sink)
{
    sink->restart_ms = sink->now_ms;
    sink_begin_destroying(sink);
}

void sink_ebb(struct sink *sink)
{
    if (window_pending(sink->window) == 0)
        return;
    sink->ebbing = true;
    sink_drop_lane(sink);
    if (sink->phase == SINK_RUNNING)
        producer_purge(sink->producer);
}

size_t sink_travelling(const struct sink *sink)
{
    return sink->in_flight + sink->nacked;
}

void sink_drop(struct sink *sink)
{
    sink->ebbing = false;
    if (sink_pending(sink) == 0)
        return;
    sink_drop_lane(sink);
    for (window_seq_t seq = window_begin(sink->window); seq != window_end(sink->window);
         seq++) {
        const struct entry *entry = window_entry(sink->window, seq);

        if (entry->state == ENTRY_QUEUED || entry->state == ENTRY_SENT)
            ((struct topic *)entry->topic)->entries--;
    }
    sink_forget_refused(sink);
    window_clear(sink->window);
    sink->cursor = window_end(sink->window);
    sink->busy_topics = 0;
    sink->gathering.n = sink->gathering.bytes = 0;
    sink->nacked = 0;
    sink->failure = (struct sink_failure){0};
    if (sink->phase == SINK_RUNNING)
        sink_replace_producer(sink);
    sink->dropping = sink->phase == SINK_DESTROYING;
}
