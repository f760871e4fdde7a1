/* sink_refuse.c - what is not for Kafka, until it is in the table of dead letters; see
 * sink_state.h.
 *
 * It stays in its place in the window, so that what is before it is durable when it is
 * written, and so that it costs memory like any other. */
#include "base/must.h"
#include "core/poison.h"
#include "io/kafka_error.h"
#include "io/sink_state.h"

#include <stdlib.h>
#include <string.h>

void sink_dead_letters(struct sink *sink, struct held *held, unsigned attempts)
{
    sink->held = held;
    sink->attempts_max = attempts;
    if (held)
        sink_begin_foreseeing(sink);
    else
        sink_forget_trouble(sink);
}

struct slice sink_topic_of(const struct entry *entry)
{
    return sink_topic_name(entry->topic);
}

/* ---- refusing ------------------------------------------------------------------- */

static const struct refusal behind_another = {.held = true, .reason = "held"};

static const char *const room_words[] = {
    [HELD_TAKEN] = "",
    [HELD_KEY_FULL] = "has as many unresolved events as held_per_key allows",
    [HELD_TOTAL_FULL] = "is of no more use: all keys together have as many unresolved "
                        "events as held_total allows",
    [HELD_NO_MEMORY] = "finds no memory to be held in",
};

static int full(const struct entry *entry, enum held_room room, struct err *err)
{
    (void)err_set(err, ERR_POISON,
                  "table %.*s, event id %.*s at %" LSN_FMT
                  ": its key %.*s of topic %.*s %s; resolve or discard dead letters "
                  "(walrelay dead-letters list), or raise the limit",
                  SLICE_ARG(entry->table), SLICE_ARG(entry->event_id),
                  LSN_ARG(entry->place.lsn), SLICE_ARG(entry->key),
                  SLICE_ARG(sink_topic_of(entry)), room_words[room]);
    err_set_event(err, entry->event_id, entry->event_type, entry->aggregate_id,
                  entry->attempts > 0 ? entry->attempts : 1);
    return -1;
}

static void put_aside(struct sink *sink, struct entry *entry, struct refusal refusal)
{
    struct topic *topic = entry->topic;

    must(entry->state == ENTRY_QUEUED || entry->state == ENTRY_SENT);
    entry->state = ENTRY_REFUSED;
    entry->refusal = refusal;
    sink->refused++;
    if (topic && --topic->entries == 0)
        sink->busy_topics--;
}

/* What was to be tried again after seq, under the same key, is not: it goes aside when it
 * is offered, as it may be in a list, or come back from the second producer. */
static void mark_followers(struct sink *sink, window_seq_t seq)
{
    const struct entry *first = window_entry(sink->window, seq);

    for (window_seq_t i = seq + 1; first->key.ptr && i != window_end(sink->window); i++) {
        struct entry *entry = window_entry(sink->window, i);

        if (ticket_is_retry(entry->ticket) && entry->topic == first->topic &&
            slice_eq(entry->key, first->key))
            entry->behind = true;
    }
}

static void tell_refused(struct sink *sink, const struct entry *entry,
                         const struct refusal *refusal)
{
    if (sink->options.refused && !refusal->held)
        sink->options.refused(sink->options.refused_arg, entry->event_type);
}

int sink_refuse_entry(struct sink *sink, window_seq_t seq, struct refusal refusal,
                      struct err *err)
{
    struct entry *entry = window_entry(sink->window, seq);
    enum held_room room;

    if (ticket_is_retry(entry->ticket)) {
        tell_refused(sink, entry, &refusal);
        put_aside(sink, entry, refusal);
        mark_followers(sink, seq);
        return 0;
    }
    room = held_add(sink->held, sink_topic_of(entry), entry->key, seq);
    if (room != HELD_TAKEN) {
        free(refusal.text);
        return full(entry, room, err);
    }
    if (!refusal.held)
        sink->refusals++;
    tell_refused(sink, entry, &refusal);
    put_aside(sink, entry, refusal);
    return 0;
}

static const char *reason_of_topic(int error)
{
    switch (error) {
    case KAFKA_ERROR_UNKNOWN_TOPIC:
    case KAFKA_ERROR_NO_SUCH_TOPIC:
        return "topic missing";
    case KAFKA_ERROR_NO_RIGHT:
        return "not authorized";
    default:
        return "refused by the topic";
    }
}

/* A few words for the table; static. */
static const char *reason_of(int error)
{
    switch (poison_class_of(error)) {
    case POISON_SIZE:
        return "too large";
    case POISON_PARTITION:
        return "no such partition";
    case POISON_RECORD:
        return "not a legal record";
    case POISON_TOPIC:
        return reason_of_topic(error);
    default:
        return "refused";
    }
}

int sink_refuse_for(struct sink *sink, window_seq_t seq, int error, const char *text,
                    struct err *err)
{
    struct entry *entry = window_entry(sink->window, seq);
    struct refusal refusal = {
        .reason = reason_of(error),
        .code = kafka_error_name(error),
        .text = strdup(text), /* without memory there is less to read */
    };

    entry->attempts = poison_attempts(error, entry->attempts);
    return sink_refuse_entry(sink, seq, refusal, err);
}

bool sink_must_wait(const struct sink *sink, window_seq_t seq)
{
    const struct entry *entry = window_entry(sink->window, seq);

    if (ticket_is_retry(entry->ticket))
        return entry->behind;
    return held_holds(sink->held, sink_topic_of(entry), entry->key, seq);
}

enum sink_offer sink_hold_back(struct sink *sink, window_seq_t seq)
{
    return sink_refuse_entry(sink, seq, behind_another, &sink->stop) == 0 ? OFFER_ASIDE
                                                                          : OFFER_FAILED;
}

int sink_refuse(struct sink *sink, const struct message *message, ticket_t ticket,
                const struct refusal *refusal, struct err *err)
{
    struct refusal mine = *refusal;
    window_seq_t seq = 0;
    int rc = sink_add(sink, message, ticket, &seq, err);

    if (rc != 1)
        return rc;
    window_entry(sink->window, seq)->offered = true;
    if (refusal->text)
        mine.text = strdup(refusal->text); /* without memory there is less to read */
    if (sink_refuse_entry(sink, seq, mine, &sink->stop) == 0)
        return 1;
    *err = sink->stop; /* beyond a limit: it stays as it is, and nothing more is sent */
    return -1;
}

/* ---- settling ------------------------------------------------------------------- */

size_t sink_refused(const struct sink *sink, struct entry **ret, size_t max,
                    size_t max_bytes)
{
    size_t n = 0;
    size_t bytes = 0;

    if (sink->refused == 0)
        return 0;
    for (window_seq_t seq = window_begin(sink->window);
         seq != window_end(sink->window) && n < max; seq++) {
        struct entry *entry = window_entry(sink->window, seq);

        if (entry->state == ENTRY_DONE)
            continue;
        bytes += entry->cost_bytes;
        if (entry->state != ENTRY_REFUSED || (n > 0 && bytes > max_bytes) ||
            (n > 0 && ticket_is_retry(entry->ticket)))
            break;
        ret[n++] = entry;
        if (ticket_is_retry(entry->ticket))
            break;
    }
    return n;
}

static void forget(struct sink *sink, struct entry *entry)
{
    free(entry->refusal.text);
    entry->refusal = (struct refusal){0};
    sink->refused--;
}

void sink_settle(struct sink *sink, size_t n)
{
    for (window_seq_t seq = window_begin(sink->window); n > 0; seq++) {
        struct entry *entry;

        if (seq <
            window_begin(sink->window)) /* what was done behind one has left with it */
            seq = window_begin(sink->window);
        entry = window_entry(sink->window, seq);
        if (entry->state != ENTRY_REFUSED)
            continue;
        forget(sink, entry);
        window_mark_done(sink->window, seq);
        n--;
    }
}

uint64_t sink_next(const struct sink *sink)
{
    return window_end(sink->window);
}

uint64_t sink_refusals(const struct sink *sink)
{
    return sink->refusals;
}

void sink_forget_refused(struct sink *sink)
{
    if (sink->refused == 0)
        return;
    for (window_seq_t seq = window_begin(sink->window);
         sink->refused > 0 && seq != window_end(sink->window); seq++) {
        struct entry *entry = window_entry(sink->window, seq);

        if (entry->state == ENTRY_REFUSED)
            forget(sink, entry);
    }
}
