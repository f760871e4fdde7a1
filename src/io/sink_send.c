/* sink_send.c - which message may be sent now; see sink_state.h and topics.h. */
#include "base/clock.h"
#include "base/must.h"
#include "core/poison.h"
#include "io/kafka_error.h"
#include "io/sink_state.h"

enum {
    COLD_AFTER_MS = 300000,
    KEYLESS_RUN = 500,  /* messages without a key to one partition, for larger batches */
    ASKED_AT_ONCE = 96, /* topics */
    ASKED_FOR_MS = 200,
};

void sink_append(struct sink *sink, struct waiting *waiting, struct waiting more)
{
    if (more.n == 0)
        return;
    if (waiting->n == 0)
        waiting->first = more.first;
    else
        window_entry(sink->window, waiting->last)->next = more.first;
    waiting->last = more.last;
    waiting->n += more.n;
}

void sink_hold(struct sink *sink, struct waiting *waiting, window_seq_t seq)
{
    sink_append(sink, waiting, (struct waiting){seq, seq, 1});
}

void sink_make_ready(struct sink *sink, struct topic *topic)
{
    if (topic->ready)
        return;
    topic->ready = true;
    topic->next_ready = sink->ready;
    sink->ready = topic;
}

static int32_t keyless_partition(struct topic *topic, struct slice key, int32_t count)
{
    if (topic->keyless_left == 0 || topic->keyless >= count) {
        topic->keyless = producer_partition_of(topic->handle, key, count);
        topic->keyless_left = KEYLESS_RUN;
    }
    topic->keyless_left--;
    return topic->keyless;
}

static enum sink_offer send_to(struct sink *sink, struct entry *entry, window_seq_t seq,
                               int32_t partition)
{
    struct topic *topic = entry->topic;
    int error = producer_send(sink->producer, topic->handle, entry, partition, seq);

    if (error == 0) {
        entry->state = ENTRY_SENT;
        entry->attempts++;
        topic->in_flight++;
        sink->in_flight++;
        sink->unpushed++;
        return OFFER_SENT;
    }
    sink_fail(sink, error, topic, partition, seq, NULL);
    return OFFER_FAILED;
}

/* The first message by key to a topic: librdkafka finds the partition when it knows how
 * many there are, and so do we when it is acknowledged. */
static enum sink_offer send_probe(struct sink *sink, struct entry *entry,
                                  window_seq_t seq)
{
    struct topic *topic = entry->topic;
    enum sink_offer offer = send_to(sink, entry, seq, PARTITION_ANY);

    if (offer == OFFER_SENT) {
        entry->sent_partition = -1;
        topic->probing = true;
        sink->probes++;
        topic->probing_ms = sink->now_ms;
        topic->probe = seq;
    }
    return offer;
}

static enum sink_offer hold_for_partition(struct sink *sink, struct partition *p,
                                          window_seq_t seq)
{
    sink_hold(sink, &p->waiting, seq);
    sink->hurry = true;
    return OFFER_HELD;
}

enum sink_offer sink_hold_for_topic(struct sink *sink, struct topic *topic,
                                    window_seq_t seq)
{
    sink_hold(sink, &topic->waiting, seq);
    if (topic->probing || topic->in_flight > 0)
        sink->hurry = true;
    return OFFER_HELD;
}

/* A partition of the row's own choice that there is not is no reason for another
 * producer: the second one finds out whether the topic has grown. */
static bool is_missing(struct sink *sink, const struct entry *entry, int32_t n)
{
    if (!sink->held || entry->partition == PARTITION_ANY ||
        poison_class_of(sink->failure.error) != POISON_PARTITION ||
        !sink_suspect(sink, entry->topic, n))
        return false;
    sink->failure = (struct sink_failure){0};
    return true;
}

/* n: where the message goes; partition: how that is said to the producer. */
static enum sink_offer offer_to_partition(struct sink *sink, struct entry *entry,
                                          window_seq_t seq, int32_t n, int32_t partition)
{
    struct partition *p = topic_partition(entry->topic, n);
    enum sink_offer offer;

    if (!p) {
        sink_fail(sink, KAFKA_ERROR_NO_RESOURCES, NULL, n, seq, NULL);
        return OFFER_FAILED;
    }
    if (sink_is_large(entry) || ticket_is_retry(entry->ticket)) /* likely refused */
        (void)sink_suspect(sink, entry->topic, n);
    if (((struct topic *)entry->topic)->suspects > 0 &&
        sink_is_suspect(sink, entry->topic, n))
        return sink_offer_suspect(sink, seq, n);
    if (p->warm && p->in_flight == 0 && sink->now_ms - p->acked_ms > COLD_AFTER_MS)
        p->warm = false;
    if (seq < ((struct topic *)entry->topic)->careful_end)
        p->warm = false;
    if (p->waiting.n > 0 || (!p->warm && p->in_flight > 0))
        return hold_for_partition(sink, p, seq);
    offer = send_to(sink, entry, seq, partition);
    if (offer == OFFER_FAILED && is_missing(sink, entry, n))
        return sink_offer_suspect(sink, seq, n);
    if (offer == OFFER_SENT) {
        p->in_flight++;
        entry->sent_partition = n;
    }
    return offer;
}

static enum sink_offer offer_by_key(struct sink *sink, struct entry *entry,
                                    window_seq_t seq)
{
    struct topic *topic = entry->topic;
    int32_t count = producer_partition_count(topic->handle);
    int32_t suspect = count == 0 ? sink_suspect_for(sink, entry) : PARTITION_ANY;

    if (suspect != PARTITION_ANY)
        return offer_to_partition(sink, entry, seq, suspect, suspect);
    /* Where the probe will go is not known, so nothing else may be under way. */
    if (count == 0)
        return topic->in_flight > 0 ? sink_hold_for_topic(sink, topic, seq)
                                    : send_probe(sink, entry, seq);
    if (!entry->key.ptr) {
        int32_t n = keyless_partition(topic, entry->key, count);

        return offer_to_partition(sink, entry, seq, n, n);
    }
    for (;;) {
        int32_t n = producer_partition_of(topic->handle, entry->key, count);
        enum sink_offer offer = offer_to_partition(sink, entry, seq, n, PARTITION_ANY);
        int32_t seen = producer_partition_count(topic->handle);

        /* The topic changed since: nothing was sent, and seen is right. */
        if (offer != OFFER_FAILED || seen == count)
            return offer;
        sink->failure = (struct sink_failure){0};
        count = seen;
    }
}

static void stand_in_line(struct sink *sink, struct topic *topic)
{
    if (topic->in_line)
        return;
    topic->in_line = true;
    topic->next_in_line = NULL;
    if (sink->asking.first)
        sink->asking.last->next_in_line = topic;
    else
        sink->asking.first = topic;
    sink->asking.last = topic;
    sink->hurry = true;
}

static void ask(struct sink *sink, struct topic *topic)
{
    topic->asked = true;
    topic->asked_ms = sink->now_ms;
    sink->asking.n++;
}

void sink_end_asking(struct sink *sink, struct topic *topic)
{
    if (!topic->asked)
        return;
    topic->asked = false;
    sink->asking.n--;
}

/* A topic that does not exist is asked for again and again. */
static void forget_slow_ones(struct sink *sink)
{
    if (sink->now_ms < sink->asking.look_ms)
        return;
    sink->asking.look_ms = sink->now_ms + ASKED_FOR_MS;
    for (struct topic *t = topics_next(sink->topics, NULL); t;
         t = topics_next(sink->topics, t)) {
        if (sink->now_ms - t->asked_ms >= ASKED_FOR_MS)
            sink_end_asking(sink, t);
    }
}

void sink_ask(struct sink *sink)
{
    struct asking *a = &sink->asking;

    if (a->first && a->n >= ASKED_AT_ONCE)
        forget_slow_ones(sink);
    while (a->first && a->n < ASKED_AT_ONCE) {
        struct topic *topic = a->first;

        a->first = topic->next_in_line;
        topic->in_line = false;
        ask(sink, topic);
        sink_make_ready(sink, topic);
    }
}

int64_t sink_ask_ms(const struct sink *sink)
{
    if (!sink->asking.first)
        return CLOCK_NEVER;
    return sink->asking.n < ASKED_AT_ONCE ? sink->now_ms : sink->asking.look_ms;
}

/* False: in line, for now. */
static bool may_ask(struct sink *sink, struct topic *topic)
{
    if (topic->asked)
        return true;
    if (sink->asking.first || sink->asking.n >= ASKED_AT_ONCE) {
        stand_in_line(sink, topic);
        return false;
    }
    ask(sink, topic);
    return true;
}

static void note_offered(struct sink *sink, struct entry *entry)
{
    if (entry->offered)
        return;
    entry->offered = true;
    sink->gathering.n--;
    sink->gathering.bytes -= entry->cost_bytes;
}

enum sink_offer sink_offer(struct sink *sink, window_seq_t seq)
{
    struct entry *entry = window_entry(sink->window, seq);
    struct topic *topic = entry->topic;
    enum sink_offer foreseen;
    int error = 0;

    note_offered(sink, entry);
    if (sink->held && (held_keys(sink->held) > 0 || entry->behind) &&
        sink_must_wait(sink, seq))
        return sink_hold_back(sink, seq);
    if (sink_can_foresee(topic) && !ticket_is_retry(entry->ticket) &&
        (foreseen = sink_foresee(sink, seq)) != OFFER_SENT)
        return foreseen;
    if (topic->failed_ms != 0)
        return sink_offer_in_trouble(sink, seq);
    if (topic->suspended || topic->probing || topic->waiting.n > 0)
        return sink_hold_for_topic(sink, topic, seq);
    if (!topic->handle && !may_ask(sink, topic))
        return sink_hold_for_topic(sink, topic, seq);
    if (!topic->handle) {
        topic->handle = producer_topic_new(sink->producer, topic->name, &error);
        sink_look_up(sink, topic);
    }
    if (!topic->handle) {
        sink_fail(sink, error, topic, PARTITION_ANY, seq, NULL);
        return OFFER_FAILED;
    }
    if (entry->partition != PARTITION_ANY)
        return offer_to_partition(sink, entry, seq, entry->partition, entry->partition);
    return offer_by_key(sink, entry, seq);
}

bool sink_release(struct sink *sink, struct waiting *waiting)
{
    struct waiting taken = *waiting;
    window_seq_t seq = taken.first;

    *waiting = (struct waiting){0};
    for (size_t i = 0; i < taken.n; i++) {
        window_seq_t next = window_entry(sink->window, seq)->next;

        if (sink_offer(sink, seq) == OFFER_FAILED)
            return false;
        seq = next;
    }
    return true;
}

static bool release_partitions(struct sink *sink, struct topic *topic)
{
    for (int32_t i = 0; i < topic->npartitions; i++) {
        struct partition *p = &topic->partitions[i];

        if (p->waiting.n > 0 && (p->warm || p->in_flight == 0) &&
            !sink_release(sink, &p->waiting))
            return false;
    }
    return true;
}

/* What waits for a partition came before what waits for the topic, and must not be made
 * to wait behind it. */
bool sink_release_topic(struct sink *sink, struct topic *topic)
{
    struct waiting later = topic->waiting;

    topic->waiting = (struct waiting){0};
    if (!release_partitions(sink, topic))
        return false;
    sink_append(sink, &topic->waiting, later);
    if (topic->waiting.n > 0 && !topic->probing && !topic->suspended)
        return sink_release(sink, &topic->waiting);
    return true;
}

void sink_release_ready(struct sink *sink)
{
    while (sink->ready && sink->failure.error == 0) {
        struct topic *topic = sink->ready;

        sink->ready = topic->next_ready;
        topic->ready = false;
        topic->next_ready = NULL;
        if (!sink_release_topic(sink, topic))
            return;
    }
}
