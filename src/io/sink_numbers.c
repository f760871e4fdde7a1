/* sink_numbers.c - how much there is in the sink; see sink.h. */
#include "io/sink_state.h"

size_t sink_pending(const struct sink *sink)
{
    return window_pending(sink->window) + sink->nacked;
}

size_t sink_bytes(const struct sink *sink)
{
    return window_cost_bytes(sink->window);
}

int64_t sink_oldest_ms(const struct sink *sink)
{
    for (window_seq_t seq = window_begin(sink->window); seq != window_end(sink->window);
         seq++) {
        const struct entry *entry = window_entry(sink->window, seq);

        if (entry->state != ENTRY_DONE && !ticket_is_retry(entry->ticket))
            return entry->commit_ms;
    }
    return 0;
}

bool sink_is_up(const struct sink *sink)
{
    return sink->up;
}
