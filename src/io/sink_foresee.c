/* sink_foresee.c - what Kafka would refuse, as far as a topic's configuration says so;
 * see sink_state.h and topic_config.h. */
#include "base/clock.h"
#include "core/poison.h"
#include "io/sink_state.h"

enum {
    SMALLEST_BATCH = 16384, /* one odd topic does not make all requests small */
};

void sink_on_described(void *arg, const struct producer_description *description)
{
    const struct sink *sink = arg;

    if (sink->configs)
        topic_configs_described(sink->configs, description);
}

/* Without memory nothing is foreseen. */
void sink_begin_foreseeing(struct sink *sink)
{
    struct topic_configs_options options = {sink->options.notice,
                                            sink->options.notice_arg};

    if (sink->configs)
        return;
    sink->configs = topic_configs_new(&options);
    if (sink->configs)
        topic_configs_use(sink->configs, sink->producer);
}

void sink_look_up(struct sink *sink, struct topic *topic)
{
    if (sink->configs && !topic->config)
        topic->config = topic_configs_add(sink->configs, topic->name);
}

size_t sink_foreseen_batch(const struct sink *sink)
{
    size_t smallest = sink->configs ? topic_configs_smallest(sink->configs) : SIZE_MAX;
    size_t most = sink->batch_bytes ? sink->batch_bytes : SIZE_MAX;

    if (smallest < SMALLEST_BATCH)
        smallest = SMALLEST_BATCH;
    if (smallest < most)
        most = smallest;
    return most == SIZE_MAX ? 0 : most;
}

static enum topic_config_verdict judge(const struct entry *entry)
{
    const struct topic *topic = entry->topic;
    bool own_time = entry->given_timestamp.ptr != NULL;
    int64_t wall_ms = own_time ? clock_wall_us() / 1000 : 0;

    return topic_config_judge(topic->config, entry->key.ptr != NULL,
                              producer_record_bytes(entry->key, entry->payload,
                                                    entry->headers, entry->nheaders),
                              own_time ? entry->timestamp_ms : wall_ms, wall_ms);
}

bool sink_is_over_limit(const struct entry *entry)
{
    return judge(entry) == TOPIC_CONFIG_LARGE;
}

static enum sink_offer refuse(struct sink *sink, window_seq_t seq)
{
    static const char why[] = "the topic is compacted and takes no record without a key";

    return sink_refuse_for(sink, seq, POISON_INVALID_RECORD, why, &sink->stop) == 0
               ? OFFER_ASIDE
               : OFFER_FAILED;
}

enum sink_offer sink_foresee(struct sink *sink, window_seq_t seq)
{
    struct entry *entry = window_entry(sink->window, seq);

    switch (judge(entry)) {
    case TOPIC_CONFIG_NO_KEY:
        return refuse(sink, seq);
    case TOPIC_CONFIG_TIMESTAMP:
        (void)window_use_commit_time(entry);
        return OFFER_SENT;
    case TOPIC_CONFIG_LARGE: /* see sink_is_large */
    case TOPIC_CONFIG_FITS:
        break;
    }
    return OFFER_SENT;
}
