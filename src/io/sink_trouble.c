/* sink_trouble.c - topics that Kafka refuses as a whole: there is none, or we may not
 * write to it; see sink_state.h.
 *
 * A refusal may cost the main producer, so from the first one on it leaves the topic
 * alone, and the second one gets the first of its events now and then, to see.  The
 * others wait behind that one.  Those that have waited topic_wait_ms, while nothing was
 * wrong with the cluster, are refused together, without being sent. */
#include "base/must.h"
#include "core/poison.h"
#include "io/kafka_error.h"
#include "io/sink_state.h"

#include <stdio.h>

void sink_begin_trouble(struct sink *sink, struct topic *topic, int error)
{
    sink_suspend(sink, topic);
    if (!sink->held || !sink_lane(sink)) /* then the main producer goes on trying */
        return;
    topic->failure = error;
    if (topic->failed_ms == 0)
        topic->failed_ms = sink->now_ms;
}

static void end_trouble(struct sink *sink, struct topic *topic)
{
    topic->failed_ms = 0;
    topic->again = false;
    sink_make_ready(sink, topic);
}

void sink_forget_trouble(struct sink *sink)
{
    for (struct topic *t = topics_next(sink->topics, NULL); t;
         t = topics_next(sink->topics, t))
        t->failed_ms = 0;
}

/* ---- those that have waited too long ---------------------------------------------- */

/* What is tried again has waited before. */
static bool is_over(const struct sink *sink, const struct entry *entry)
{
    const struct topic *topic = entry->topic;
    const struct poison_limits limits = {.topic_wait_ms = sink->options.topic_wait_ms};
    const struct poison_case c = {
        .error = topic->failure,
        .suspects = 1,
        .topic_waited_ms =
            ticket_is_retry(entry->ticket) ? INT64_MAX : sink->now_ms - topic->failed_ms,
    };

    return poison_fate(&c, &limits) == FATE_REFUSED;
}

static enum sink_offer refuse(struct sink *sink, window_seq_t seq)
{
    int error = ((struct topic *)window_entry(sink->window, seq)->topic)->failure;

    return sink_refuse_for(sink, seq, error, kafka_error_text(error), &sink->stop) == 0
               ? OFFER_ASIDE
               : OFFER_FAILED;
}

static int give_up(struct sink *sink, struct topic *topic, struct err *err)
{
    bool ok;

    if (sink->options.topic_wait_ms == 0)
        return 0;
    topic->suspended = false; /* or they were not offered */
    topic->given_up = true;
    ok = sink_release_topic(sink, topic);
    topic->given_up = false;
    sink_suspend(sink, topic);
    if (!ok)
        *err = sink->stop;
    return ok ? 0 : -1;
}

/* ---- trials ------------------------------------------------------------------------ */

static bool must_wait(const struct sink *sink, const struct topic *topic)
{
    return topic->suspended || topic->trying || topic->waiting.n > 0 ||
           topic->in_flight > 0 || sink_lane_has(sink, topic);
}

enum sink_offer sink_offer_in_trouble(struct sink *sink, window_seq_t seq)
{
    struct entry *entry = window_entry(sink->window, seq);
    struct topic *topic = entry->topic;
    struct lane_record record;
    int rc;

    if (topic->given_up && is_over(sink, entry))
        return refuse(sink, seq);
    if (topic->given_up || must_wait(sink, topic))
        return sink_hold_for_topic(sink, topic, seq);
    record = sink_lane_record(entry, seq, PARTITION_ANY);
    rc = lane_put(sink->lane, &record, &sink->stop);
    if (rc < 0)
        return OFFER_FAILED;
    if (rc == 0) {
        sink_suspend(sink, topic);
        return sink_hold_for_topic(sink, topic, seq);
    }
    entry->state = ENTRY_SENT;
    entry->in_lane = true;
    entry->sent_partition = PARTITION_ANY;
    topic->trying = true;
    return OFFER_SENT;
}

/* What librdkafka knows of a topic may be a second old, so that is asked twice. */
void sink_ask_again(struct sink *sink, struct topic *topic)
{
    if (topic->failed_ms == 0)
        return;
    topic->again = true;
    topic->suspended = false;
    backoff_reset(&topic->backoff);
    sink_make_ready(sink, topic);
}

static void tell(struct sink *sink, struct topic *topic, const char *reason)
{
    struct log_field fields[] = {{"code", slice_of(kafka_error_name(topic->failure))},
                                 {"topic", sink_topic_name(topic)},
                                 LOG_END};
    const char *cure = kafka_error_cure(topic->failure);
    char text[ERR_TEXT_MAX];

    if (topic->warned_ms != 0 && sink->now_ms - topic->warned_ms < SINK_WARN_EVERY_MS)
        return;
    topic->warned_ms = sink->now_ms;
    (void)snprintf(text, sizeof(text), "Kafka refuses: topic %s: %s (%s)%s%s",
                   topic->name, reason, kafka_error_name(topic->failure),
                   *cure ? "; " : "", cure);
    sink_tell(sink, LOG_WARNING, fields, text);
}

/* The topic is as before, or the cluster is not well: that is no attempt of the event. */
static int try_later(struct sink *sink, const struct lane_result *result, struct err *err)
{
    window_seq_t seq = result->tag;
    struct entry *entry = window_entry(sink->window, seq);
    struct topic *topic = entry->topic;
    struct waiting others = topic->waiting;

    sink_unsend(entry, result);
    if (poison_class_of(result->error) == POISON_LIMITED)
        entry->attempts = result->attempts;
    topic->waiting = (struct waiting){seq, seq, 1};
    sink_append(sink, &topic->waiting, others);
    sink_suspend(sink, topic);
    if (poison_class_of(result->error) != POISON_TOPIC) {
        topic->failed_ms = sink->now_ms;
        return 0;
    }
    topic->failure = result->error;
    tell(sink, topic, result->text);
    if (!topic->again)
        return give_up(sink, topic, err);
    topic->again = false;
    return 0;
}

int sink_end_trial(struct sink *sink, const struct lane_result *result, struct err *err)
{
    struct entry *entry = window_entry(sink->window, result->tag);
    struct topic *topic = entry->topic;

    must(topic->trying);
    topic->trying = false;
    if (result->outcome == LANE_LATER || result->outcome == LANE_BEHIND)
        return try_later(sink, result, err);
    entry->attempts = result->attempts;
    end_trouble(sink, topic);
    if (result->outcome == LANE_REFUSED) /* for itself, so the topic is well */
        return sink_refuse_for(sink, result->tag, result->error, result->text, err);
    sink_finish(sink, entry, result->tag);
    sink_came_up(sink);
    return 0;
}
