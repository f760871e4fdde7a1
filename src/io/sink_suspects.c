/* sink_suspects.c - partitions on which something was refused, and the second producer
 * that serves them; see sink_state.h and lane.h.
 *
 * The main producer leaves such a partition alone until nothing was refused on it for a
 * minute. It is empty in between: the one goes on when the other has nothing under way
 * there. What comes back from the lane unsent is held in front of what waits for the
 * partition, and offered again. */
#include "base/clock.h"
#include "base/grow.h"
#include "base/must.h"
#include "core/poison.h"
#include "io/sink_state.h"

#include <stdlib.h>

enum { SUSPECT_FOR_MS = 60000, LOOK_EVERY_MS = 500 };

struct lane *sink_lane(struct sink *sink)
{
    struct lane_options options = {
        .properties = sink->options.properties,
        .nproperties = sink->options.nproperties,
        .limits = {.attempts =
                       sink->attempts_max}, /* how long a topic waits is said here */
        .missing_ms = lane_missing_ms(sink->options.topic_wait_ms),
        .notice = sink->options.notice,
        .notice_arg = sink->options.notice_arg,
    };
    struct err err = {0};

    if (!sink->lane)
        sink->lane = lane_new(&options, &err);
    return sink->lane;
}

static struct suspect *find(const struct sink *sink, const struct topic *topic, int32_t n)
{
    for (size_t i = 0; i < sink->nsuspects; i++) {
        if (sink->suspects[i].topic == topic && sink->suspects[i].partition == n)
            return &sink->suspects[i];
    }
    return NULL;
}

bool sink_suspect(struct sink *sink, struct topic *topic, int32_t n)
{
    struct suspect *s = find(sink, topic, n);

    if (!s) {
        if (n < 0 || !sink_lane(sink))
            return false;
        s = grow(sink->suspects, sink->nsuspects, sizeof(*s));
        if (!s)
            return false;
        sink->suspects = s;
        s = &sink->suspects[sink->nsuspects++];
        *s = (struct suspect){.topic = topic, .partition = n};
        topic->suspects++;
    }
    s->refused_ms = sink->now_ms;
    return true;
}

bool sink_is_suspect(struct sink *sink, struct topic *topic, int32_t n)
{
    struct suspect *s = find(sink, topic, n);

    if (!s)
        return false;
    if (s->in_lane > 0 || sink->now_ms - s->refused_ms < SUSPECT_FOR_MS)
        return true;
    topic->suspects--;
    *s = sink->suspects[--sink->nsuspects];
    return false;
}

int32_t sink_suspect_for(const struct sink *sink, const struct entry *entry)
{
    const struct topic *topic = entry->topic;
    int32_t n;

    /* If the topic has fewer than it had the main producer finds out. */
    if (topic->suspects == 0 || topic->count == 0 || entry->doubted)
        return PARTITION_ANY;
    if (!entry->key.ptr) {
        for (size_t i = 0; i < sink->nsuspects; i++) {
            n = sink->suspects[i].partition;
            /* A row may name one that the topic does not have. */
            if (sink->suspects[i].topic == topic && n < topic->count)
                return n;
        }
        return PARTITION_ANY;
    }
    n = producer_partition_of(topic->handle, entry->key, topic->count);
    return find(sink, topic, n) ? n : PARTITION_ANY;
}

bool sink_lane_has(const struct sink *sink, const struct topic *topic)
{
    for (size_t i = 0; topic->suspects > 0 && i < sink->nsuspects; i++) {
        if (sink->suspects[i].topic == topic && sink->suspects[i].in_lane > 0)
            return true;
    }
    return false;
}

/* ---- into the lane ---------------------------------------------------------------- */

struct lane_record sink_lane_record(const struct entry *entry, window_seq_t seq,
                                    int32_t partition)
{
    struct message message = window_message(entry);

    message.topic = sink_topic_name(entry->topic);
    return (struct lane_record){
        .message = message,
        .partition = partition,
        .attempts = entry->attempts,
        .doubted = entry->doubted,
        .tag = seq,
    };
}

/* After a minute nothing more goes into the lane, so that it gets empty. */
static bool must_wait(const struct sink *sink, const struct suspect *s,
                      const struct partition *p)
{
    return p->in_flight > 0 || p->waiting.n > 0 || sink->now_ms < s->retry_ms ||
           sink->now_ms - s->refused_ms >= SUSPECT_FOR_MS;
}

enum sink_offer sink_offer_suspect(struct sink *sink, window_seq_t seq, int32_t n)
{
    struct entry *entry = window_entry(sink->window, seq);
    struct suspect *s = find(sink, entry->topic, n);
    struct partition *p = topic_partition(entry->topic, n);
    struct lane_record record = sink_lane_record(entry, seq, n);
    int rc;

    must(s && p);
    rc = must_wait(sink, s, p) ? 0 : lane_put(sink->lane, &record, &sink->stop);
    if (rc < 0)
        return OFFER_FAILED;
    if (rc == 0) {
        sink_hold(sink, &p->waiting, seq);
        return OFFER_HELD;
    }
    entry->state = ENTRY_SENT;
    entry->in_lane = true;
    entry->sent_partition = n;
    s->in_lane++;
    return OFFER_SENT;
}

/* ---- out of the lane -------------------------------------------------------------- */

void sink_unsend(struct entry *entry, const struct lane_result *result)
{
    entry->state = ENTRY_QUEUED;
    entry->doubted = result->doubted;
    if (result->commit_time)
        (void)window_use_commit_time(entry);
}

static void take_back(struct sink *sink, struct suspect *s, window_seq_t seq,
                      const struct lane_result *result)
{
    sink_unsend(window_entry(sink->window, seq), result);
    sink_hold(sink, &s->back, seq);
    if (result->outcome != LANE_LATER)
        return;
    if (poison_class_of(result->error) == POISON_TOPIC)
        sink_begin_trouble(sink, s->topic, result->error);
    else if (sink->now_ms >= s->retry_ms)
        s->retry_ms = sink->now_ms + sink_delay(sink, s->topic);
}

static int take_result(struct sink *sink, const struct lane_result *result,
                       struct err *err)
{
    window_seq_t seq = result->tag;
    struct entry *entry = window_entry(sink->window, seq);
    struct suspect *s = find(sink, entry->topic, entry->sent_partition);

    must(entry->in_lane);
    entry->in_lane = false;
    if (!s)
        return sink_end_trial(sink, result, err);
    entry->attempts = result->attempts;
    s->in_lane--;
    s->changed = true;
    if (result->commit_time) /* it would have been refused by the main producer */
        s->refused_ms = sink->now_ms;
    switch (result->outcome) {
    case LANE_ACKNOWLEDGED:
        sink_finish(sink, entry, seq);
        sink_came_up(sink);
        break;
    case LANE_REFUSED:
        s->refused_ms = sink->now_ms;
        return sink_refuse_for(sink, seq, result->error, result->text, err);
    case LANE_LATER:
    case LANE_BEHIND:
        take_back(sink, s, seq, result);
        break;
    }
    return 0;
}

/* What came back is older than what waits. */
static void put_in_front(struct sink *sink, struct suspect *s, struct partition *p)
{
    if (s->back.n == 0)
        return;
    if (p->waiting.n > 0) {
        window_entry(sink->window, s->back.last)->next = p->waiting.first;
        s->back.last = p->waiting.last;
        s->back.n += p->waiting.n;
    }
    p->waiting = s->back;
    s->back = (struct waiting){0};
}

/* Those that may go on: results have come, or a delay is over. */
static void wake(struct sink *sink)
{
    bool look = sink->now_ms >= sink->suspects_ms;

    if (look)
        sink->suspects_ms = sink->now_ms + LOOK_EVERY_MS;
    for (size_t i = 0; i < sink->nsuspects; i++) {
        struct suspect *s = &sink->suspects[i];
        struct partition *p = topic_partition(s->topic, s->partition);

        if (!p || !(s->changed || look))
            continue;
        put_in_front(sink, s, p);
        s->changed = false;
        if (p->waiting.n > 0 || s->topic->waiting.n > 0)
            sink_make_ready(sink, s->topic);
    }
}

int sink_serve_suspects(struct sink *sink, struct err *err)
{
    struct lane_result result;

    if (sink->configs)
        topic_configs_serve(sink->configs, sink->now_ms);
    if (!sink->lane)
        return 0;
    if (lane_serve(sink->lane, sink->now_ms, err) != 0)
        return -1;
    while (lane_done(sink->lane, &result)) {
        if (take_result(sink, &result, err) != 0)
            return -1;
    }
    wake(sink);
    return 0;
}

int64_t sink_suspects_deadline(const struct sink *sink)
{
    int64_t deadline = sink->lane ? lane_deadline(sink->lane) : CLOCK_NEVER;

    if (sink->configs)
        deadline = clock_min(deadline, topic_configs_deadline(sink->configs));
    return sink->nsuspects > 0 && window_pending(sink->window) > 0
               ? clock_min(deadline, sink->suspects_ms)
               : deadline;
}

/* ---- giving up -------------------------------------------------------------------- */

void sink_drop_lane(struct sink *sink)
{
    if (!sink->lane)
        return;
    lane_drop(sink->lane);
    for (window_seq_t seq = window_begin(sink->window); seq != window_end(sink->window);
         seq++) {
        struct entry *entry = window_entry(sink->window, seq);

        if (entry->in_lane && entry->state == ENTRY_SENT)
            entry->state = ENTRY_QUEUED;
        if (entry->in_lane)
            ((struct topic *)entry->topic)->trying = false;
        entry->in_lane = false;
    }
    for (size_t i = 0; i < sink->nsuspects; i++) {
        sink->suspects[i].in_lane = 0;
        sink->suspects[i].back = (struct waiting){0};
    }
}

void sink_forget_suspects(struct sink *sink)
{
    sink->nsuspects = 0;
    if (sink->configs)
        topic_configs_clear(sink->configs);
}

void sink_free_suspects(struct sink *sink)
{
    lane_free(sink->lane);
    topic_configs_free(sink->configs);
    free(sink->suspects);
}
