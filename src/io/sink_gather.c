/* sink_gather.c - while catching up, messages gather until there are enough of each
 * topic; see sink_state.h and sink_gather in sink.h. */
#include "base/clock.h"
#include "io/sink_state.h"

enum {
    FEW_TOPICS = 32, /* fill batches in the usual memory */
    QUIET_MS = 50,
    OFFERS_AT_ONCE = 8192,    /* some milliseconds */
    WIDEST = 32,              /* times the usual memory */
    ENTRY_BYTES_GUESS = 1024, /* the window has one entry for that much memory */
};

static const uint64_t WIDEST_BYTES = (uint64_t)1 << 30;

static bool gathers(const struct sink *sink)
{
    return sink->gathering.wanted;
}

/* Of the memory three quarters wait, so that batches are large, and one is left, so that
 * the stream goes on while they are sent. */
static bool is_enough(const struct sink *sink)
{
    return sink->gathering.n >= window_max_entries(sink->window) / 4 * 3 ||
           sink->gathering.bytes >= window_max_bytes(sink->window) / 4 * 3;
}

/* Many topics leave at a time: librdkafka looks at all partitions whenever it wakes.  All
 * of them: in a stream that has events of each in turn, the last one to leave keeps the
 * room of the others. */
static bool may_lag(struct sink *sink)
{
    struct gathering *g = &sink->gathering;

    if (!gathers(sink))
        return false;
    if (sink->cursor >= g->due && is_enough(sink) && !sink_widen(sink))
        sink_leave(sink);
    return sink->cursor >= g->due && sink->now_ms - g->put_ms < QUIET_MS;
}

/* With all that gathered behind it in its topic.  False: a failure. */
static bool offer_with_others(struct sink *sink, window_seq_t seq)
{
    const struct entry *entry = window_entry(sink->window, seq);
    struct topic *topic = entry->topic;

    if (entry->offered)
        return true;
    if (topic->gathered.n > 0 && topic->gathered.first == seq)
        return sink_release(sink, &topic->gathered);
    return sink_offer(sink, seq) != OFFER_FAILED;
}

void sink_offer_from_cursor(struct sink *sink)
{
    size_t before = sink->gathering.n;

    while (sink->cursor != window_end(sink->window) && !may_lag(sink) &&
           before - sink->gathering.n < OFFERS_AT_ONCE) {
        if (sink->cursor < window_begin(sink->window)) {
            sink->cursor = window_begin(sink->window);
            continue;
        }
        if (!offer_with_others(sink, sink->cursor))
            return;
        sink->cursor++;
    }
}

/* The first message to a topic does not gather: it has to travel alone, and meanwhile
 * others can. */
void sink_take(struct sink *sink, window_seq_t seq)
{
    struct entry *entry = window_entry(sink->window, seq);
    struct topic *topic = entry->topic;

    sink->gathering.n++;
    sink->gathering.bytes += entry->cost_bytes;
    if (!sink_may_offer(sink))
        return;
    if (gathers(sink) && (topic->handle || topic->entries > 1))
        sink_hold(sink, &topic->gathered, seq);
    else if (gathers(sink) && sink_offer(sink, seq) == OFFER_FAILED)
        return;
    sink_offer_from_cursor(sink);
}

int64_t sink_gathered_until(const struct sink *sink)
{
    const struct gathering *g = &sink->gathering;

    if (sink->cursor == window_end(sink->window))
        return CLOCK_NEVER;
    if (!gathers(sink) || sink->cursor < g->due)
        return sink->now_ms;
    return g->put_ms + QUIET_MS;
}

void sink_leave(struct sink *sink)
{
    sink->gathering.due = window_end(sink->window);
}

/* What is at the front and has not been offered frees no room by itself.  What has will,
 * and then larger batches are worth the wait. */
void sink_make_room(struct sink *sink)
{
    window_seq_t front = window_begin(sink->window);

    if (front != window_end(sink->window) && !window_entry(sink->window, front)->offered)
        sink_leave(sink);
}

void sink_gather(struct sink *sink, bool on)
{
    sink->gathering.wanted = on;
    if (!on && sink_may_offer(sink))
        sink_offer_from_cursor(sink);
}

void sink_hasten(struct sink *sink)
{
    if (sink->gathering.due < sink->gathering.next_due)
        sink->gathering.due = sink->gathering.next_due;
    sink->gathering.next_due = window_end(sink->window);
}

/* ---- memory ---------------------------------------------------------------------- */

size_t sink_entries_for(uint64_t memory_bytes)
{
    return (size_t)(memory_bytes / ENTRY_BYTES_GUESS);
}

uint64_t sink_widest(uint64_t memory_bytes)
{
    if (memory_bytes >= WIDEST_BYTES)
        return memory_bytes;
    return memory_bytes * WIDEST < WIDEST_BYTES ? memory_bytes * WIDEST : WIDEST_BYTES;
}

static bool resize(struct sink *sink, uint64_t bytes)
{
    return window_resize(sink->window, sink_entries_for(bytes), (size_t)bytes);
}

/* Each topic more adds the share that it would have if they were few. */
bool sink_widen(struct sink *sink)
{
    uint64_t bytes = sink->options.memory_bytes;

    if (!gathers(sink) || sink->busy_topics <= FEW_TOPICS)
        return false;
    bytes += bytes / FEW_TOPICS * (sink->busy_topics - FEW_TOPICS);
    if (bytes > sink_widest(sink->options.memory_bytes))
        bytes = sink_widest(sink->options.memory_bytes);
    /* Not for a little: memory is made anew. */
    return bytes >= window_max_bytes(sink->window) / 2 * 3 && resize(sink, bytes);
}

void sink_narrow(struct sink *sink)
{
    uint64_t bytes = sink->options.memory_bytes;

    if (!sink->gathering.wanted && !sink_is_borrowed(sink) &&
        window_max_bytes(sink->window) > bytes)
        (void)resize(sink, bytes);
}
