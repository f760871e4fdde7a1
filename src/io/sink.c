#include "base/clock.h"
#include "base/must.h"
#include "io/kafka_error.h"
#include "io/sink_state.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    REBUILD_MS = 100,
    REBUILD_MAX_MS = 10000,
    STALL_MS = 10000, /* without an acknowledgement before an operator hears of it */
    CHECK_EVERY_MS = 1000,
    TOPICS_TOLD = 10,
};

/* ---- telling ------------------------------------------------------------------ */

void sink_tell(struct sink *sink, enum log_level level, const struct log_field *fields,
               const char *text)
{
    sink->options.notice(sink->options.notice_arg, level, fields, text);
}

static void tell_entry(struct sink *sink, enum log_level level, const struct entry *entry,
                       const char *text)
{
    char attempt[16];
    struct log_field fields[] = {{"topic", sink_topic_name(entry->topic)},
                                 {"table", entry->table},
                                 {"event_id", entry->event_id},
                                 {"event_type", entry->event_type},
                                 {"aggregate_id", entry->aggregate_id},
                                 {"attempt", {0}},
                                 LOG_END};

    if (entry->attempts > 0) {
        (void)snprintf(attempt, sizeof(attempt), "%u", entry->attempts);
        fields[5].value = slice_of(attempt);
    }
    sink_tell(sink, level, fields, text);
}

/* ---- callbacks of the producer -------------------------------------------------- */

void sink_came_up(struct sink *sink)
{
    sink->progress_ms = sink->now_ms;
    if (sink->up)
        return;
    sink->up = true;
    if (sink->trouble != 0 || sink->stall_told_ms != 0)
        sink_tell(sink, LOG_INFO, NULL, "Kafka acknowledges again");
    sink->trouble = 0;
    sink->stall_told_ms = 0;
}

static void acknowledged(struct sink *sink, struct entry *entry, window_seq_t seq,
                         int32_t n)
{
    struct topic *topic = entry->topic;
    /* A probe's is new.  Without memory for it the next message travels alone again. */
    struct partition *partition = topic_partition(topic, n);

    must(partition || entry->sent_partition < 0);
    if (partition) {
        partition->warm = true;
        partition->acked_ms = sink->now_ms;
    }
    if (entry->sent_partition >= 0)
        partition->in_flight--;
    else {
        topic->probing = false;
        sink->probes--;
    }
    if (topic->waiting.n > 0 || (partition && partition->waiting.n > 0))
        sink_make_ready(sink, topic);
    topic->in_flight--;
    sink->in_flight--;
    sink_end_asking(sink, topic);
    sink_finish(sink, entry, seq);
    sink_came_up(sink);
}

void sink_on_report(void *arg, window_seq_t seq, int32_t partition, int error)
{
    struct sink *sink = arg;
    struct entry *entry = window_entry(sink->window, seq);

    must(entry->state == ENTRY_SENT);
    if (error != 0 && sink->ebbing) { /* purged, or refused: it is not under way */
        entry->state = ENTRY_QUEUED;
        sink->in_flight--;
        return;
    }
    if (error == 0)
        acknowledged(sink, entry, seq, partition);
    else
        sink_fail(sink, error, entry->topic, partition, seq, NULL);
}

void sink_on_trouble(void *arg, int error, bool fatal, const char *reason)
{
    struct sink *sink = arg;
    struct log_field fields[] = {{"code", slice_of(kafka_error_name(error))}, LOG_END};
    const char *cure = kafka_error_cure(error);
    char text[ERR_TEXT_MAX];

    if (fatal) {
        sink_fail(sink, error, NULL, PARTITION_ANY, 0, reason);
        return;
    }
    sink->up = false;
    if (error == sink->trouble && sink->now_ms - sink->trouble_ms < SINK_WARN_EVERY_MS)
        return;
    sink->trouble = error;
    sink->trouble_ms = sink->now_ms;
    (void)snprintf(text, sizeof(text), "Kafka: %s%s%s", reason, *cure ? "; " : "", cure);
    sink_tell(sink, LOG_WARNING, fields, text);
}

void sink_on_log(void *arg, enum log_level level, const char *text)
{
    sink_tell(arg, level, NULL, text);
}

/* ---- timers ----------------------------------------------------------------------- */

static void resume_topics(struct sink *sink)
{
    for (struct topic *t = topics_next(sink->topics, NULL); t;
         t = topics_next(sink->topics, t)) {
        if (t->suspended && sink->now_ms >= t->suspended_until_ms) {
            t->suspended = false;
            sink_make_ready(sink, t);
        }
    }
}

/* Some of them once a minute: there may be thousands, and not for want of a topic when
 * Kafka as a whole is away. */
static void warn_of_missing_topics(struct sink *sink)
{
    int left = TOPICS_TOLD;

    if (sink->now_ms < sink->missing_ms || sink->now_ms - sink->progress_ms >= STALL_MS)
        return;
    for (struct topic *t = topics_next(sink->topics, NULL); t && left > 0;
         t = topics_next(sink->topics, t)) {
        if (!t->probing || sink->now_ms - t->probing_ms < STALL_MS ||
            (t->warned_ms != 0 && sink->now_ms - t->warned_ms < SINK_WARN_EVERY_MS))
            continue;
        t->warned_ms = sink->now_ms;
        tell_entry(sink, LOG_WARNING, window_entry(sink->window, t->probe),
                   "Kafka has not taken the first event of this topic; if the topic does "
                   "not exist, create it; its events wait");
        left--;
    }
    if (left == 0)
        sink->missing_ms = sink->now_ms + SINK_WARN_EVERY_MS;
}

static void warn_of_stall(struct sink *sink)
{
    window_seq_t seq = window_begin(sink->window);
    char text[256];

    if (sink->now_ms - sink->progress_ms < STALL_MS ||
        (sink->stall_told_ms != 0 &&
         sink->now_ms - sink->stall_told_ms < SINK_WARN_EVERY_MS))
        return;
    sink->stall_told_ms = sink->now_ms;
    sink->up = false;
    (void)snprintf(
        text, sizeof(text),
        "Kafka has acknowledged nothing for %d s; check that it runs, that the topic "
        "exists and that min.insync.replicas of its replicas are in sync; %zu events "
        "wait, the first is",
        (int)((sink->now_ms - sink->progress_ms) / 1000), window_pending(sink->window));
    tell_entry(sink, LOG_WARNING, window_entry(sink->window, seq), text);
}

static void check(struct sink *sink)
{
    if (sink->now_ms < sink->check_ms)
        return;
    sink->check_ms = sink->now_ms + CHECK_EVERY_MS;
    sink_hasten(sink);
    sink_narrow(sink);
    if (window_pending(sink->window) == sink->refused) {
        sink->progress_ms = sink->now_ms;
        return;
    }
    warn_of_stall(sink);
    if (sink->phase != SINK_RUNNING)
        return;
    warn_of_missing_topics(sink);
    resume_topics(sink);
}

/* ---- the interface ---------------------------------------------------------------- */

struct sink *sink_new(const struct sink_options *options, struct err *err)
{
    struct sink *sink = calloc(1, sizeof(*sink));
    size_t entries = sink_entries_for(options->memory_bytes);

    if (!sink)
        goto no_memory;
    sink->options = *options;
    sink->random = (uint64_t)clock_wall_us() | 1;
    backoff_init(&sink->backoff, REBUILD_MS, REBUILD_MAX_MS);
    sink->window = window_new(entries, (size_t)options->memory_bytes);
    sink->topics = topics_new();
    if (!sink->window || !sink->topics)
        goto no_memory;
    sink->acked_cap = sink_entries_for(sink_widest(options->memory_bytes)) + 1;
    if (sink->acked_cap < window_max_entries(sink->window))
        sink->acked_cap = window_max_entries(sink->window);
    sink->acked = calloc(sink->acked_cap, sizeof(*sink->acked));
    if (!sink->acked)
        goto no_memory;
    sink->now_ms = clock_mono_ms();
    sink->progress_ms = sink->now_ms;
    if (sink_make_producer(sink, err) != 0) {
        sink_free(sink);
        return NULL;
    }
    return sink;
no_memory:
    (void)err_set(err, ERR_INTERNAL, "out of memory for %zu events", entries);
    sink_free(sink);
    return NULL;
}

void sink_free(struct sink *sink)
{
    if (!sink)
        return;
    if (sink->job)
        job_finish(sink->job);
    sink_forget_refused(sink);
    sink_free_suspects(sink);
    producer_free(sink->producer);
    topics_free(sink->topics);
    window_free(sink->window);
    free(sink->acked);
    free(sink);
}

/* What a length takes in a record header: a varint, zigzag, seven bits to a byte. */
static size_t varint_size(size_t len)
{
    size_t size = 1;

    for (size_t rest = len * 2; rest >= 0x80; rest >>= 7)
        size++;
    return size;
}

/* librdkafka's own sum (rd_kafka_msg_new0), so that it never refuses one later. */
static int fits_kafka(const struct sink *sink, const struct message *m, struct err *err)
{
    size_t size = 36 + m->key.len + m->payload.len;

    for (size_t i = 0; i < m->nheaders; i++) {
        const struct header *h = &m->headers[i];

        size += varint_size(h->name.len) + h->name.len + varint_size(h->value.len) +
                h->value.len;
    }
    if (size <= sink->max_message_bytes)
        return 0;
    return err_set_code(
        err, ERR_POISON, "MSG_SIZE_TOO_LARGE",
        "table %.*s, event id %.*s at %" LSN_FMT
        ": a record of %zu bytes for topic %.*s is over message.max.bytes "
        "= %zu; raise it in [kafka], and max.message.bytes of the topic",
        SLICE_ARG(m->table), SLICE_ARG(m->event_id), LSN_ARG(m->place.lsn), size,
        SLICE_ARG(m->topic), sink->max_message_bytes);
}

/* An empty window has room for every message, if there is memory.  To wait would not help
 * then, and nobody would hear of it. */
static int no_room(const struct sink *sink, const struct message *m, struct err *err)
{
    if (window_begin(sink->window) != window_end(sink->window))
        return 0;
    return err_set(err, ERR_INTERNAL,
                   "out of memory for table %.*s, event id %.*s at %" LSN_FMT
                   ", payload of %zu bytes",
                   SLICE_ARG(m->table), SLICE_ARG(m->event_id), LSN_ARG(m->place.lsn),
                   m->payload.len);
}

/* All topics are forgotten together, with the producer, once nothing is under way. */
static int no_topic(struct sink *sink, const struct message *m, struct err *err)
{
    if (!topics_full(sink->topics))
        return err_set(err, ERR_INTERNAL, "out of memory for topic %.*s",
                       SLICE_ARG(m->topic));
    if (window_pending(sink->window) > 0)
        return 0;
    if (sink->phase == SINK_RUNNING)
        sink_replace_producer(sink);
    sink_forget_suspects(sink);
    topics_clear(sink->topics);
    return 0;
}

int sink_add(struct sink *sink, const struct message *message, ticket_t ticket,
             window_seq_t *ret, struct err *err)
{
    struct topic *topic = NULL;

    /* Each ticket in the window has a place among those that nobody took yet. */
    if (sink_is_borrowed(sink) ||
        sink->nacked + window_pending(sink->window) >= sink->acked_cap)
        return 0;
    sink->gathering.put_ms = sink->now_ms;
    if (message->topic.ptr)
        topic = topics_get(sink->topics, message->topic);
    if (!topic && message->topic.ptr)
        return no_topic(sink, message, err);
    if (!window_add(sink->window, message, ticket) &&
        (!sink_widen(sink) || !window_add(sink->window, message, ticket))) {
        sink_make_room(sink);
        return no_room(sink, message, err);
    }
    *ret = window_end(sink->window) - 1;
    window_entry(sink->window, *ret)->topic = topic;
    if (topic && topic->entries++ == 0)
        sink->busy_topics++;
    return 1;
}

int sink_put(struct sink *sink, const struct message *message, ticket_t ticket,
             struct err *err)
{
    window_seq_t seq = 0;
    int rc;

    if (fits_kafka(sink, message, err) != 0)
        return -1;
    rc = sink_add(sink, message, ticket, &seq, err);
    if (rc != 1)
        return rc;
    if (ticket_is_retry(ticket))
        sink_ask_again(sink, window_entry(sink->window, seq)->topic);
    sink_take(sink, seq); /* a failure shows in sink_serve */
    return 1;
}

bool sink_done(struct sink *sink, ticket_t *ret)
{
    if (sink->nacked == 0)
        return false;
    *ret = sink->acked[sink->acked_first];
    sink->acked_first = (sink->acked_first + 1) % sink->acked_cap;
    if (--sink->nacked == 0)
        sink->acked_first = 0; /* touch no more memory than is needed */
    return true;
}

static void push(struct sink *sink)
{
    sink->unpushed = 0;
    producer_push(sink->producer);
}

void sink_push(struct sink *sink)
{
    /* What was pushed before is acknowledged, but for topics that may not exist. */
    bool quiet = sink->in_flight <= sink->unpushed + sink->probes;

    if (sink_may_offer(sink) && sink->unpushed > 0 && quiet)
        push(sink);
}

/* Others wait for a message that travels alone: it should not wait for a batch. */
static void hurry(struct sink *sink)
{
    if (!sink->hurry)
        return;
    sink->hurry = false;
    push(sink);
}

int sink_serve(struct sink *sink, int64_t now_ms, struct err *err)
{
    sink->now_ms = now_ms;
    if (sink->ebbing && sink_travelling(sink) == 0)
        sink_drop(sink);
    if (sink->stop.class != ERR_NONE) {
        *err = sink->stop;
        return -1;
    }
    if (sink_serve_rebuild(sink, err) != 0)
        return -1;
    check(sink);
    if (sink_serve_suspects(sink, err) != 0)
        return -1;
    if (sink->phase != SINK_RUNNING)
        return 0;
    producer_poll(sink->producer);
    sink_ask(sink);
    if (sink_may_offer(sink))
        sink_release_ready(sink);
    if (sink_may_offer(sink))
        sink_offer_from_cursor(sink);
    if (sink_may_offer(sink))
        hurry(sink);
    if (sink->failure.error == 0 || sink->now_ms < sink->failure.conclude_ms)
        return 0;
    return sink_conclude(sink, err);
}

size_t sink_fds(const struct sink *sink, struct pollfd *fds)
{
    size_t n = 0;

    if (sink->phase == SINK_RUNNING)
        fds[n++] = (struct pollfd){producer_fd(sink->producer), POLLIN, 0};
    else if (sink->phase == SINK_DESTROYING)
        fds[n++] = (struct pollfd){job_fd(sink->job), POLLIN, 0};
    if (sink->lane)
        n += lane_fds(sink->lane, fds + n);
    return n;
}

int64_t sink_deadline(const struct sink *sink)
{
    int64_t deadline = sink_suspects_deadline(sink);

    if (sink->phase == SINK_WAITING)
        deadline = clock_min(deadline, sink->restart_ms);
    if (sink->failure.error != 0)
        return clock_min(deadline, sink->failure.conclude_ms);
    if (sink_may_offer(sink) && sink->ready)
        return sink->now_ms;
    if (sink->nacked > 0) /* sink_push took reports, too */
        return sink->now_ms;
    if (sink->ebbing && sink->in_flight == 0)
        return sink->now_ms;
    if (window_pending(sink->window) > 0)
        deadline = clock_min(deadline, sink->check_ms);
    if (sink_may_offer(sink))
        deadline = clock_min(deadline, sink_gathered_until(sink));
    if (sink->phase == SINK_RUNNING)
        deadline = clock_min(deadline, sink_ask_ms(sink));
    return deadline;
}
