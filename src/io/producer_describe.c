/* producer_describe.c - the configuration of topics, as brokers have it; see
 * producer_state.h. */
#include "io/producer_state.h"

#include <librdkafka/rdkafka.h>

#include <stdlib.h>

enum { ANSWER_MS = 10000, SETTINGS_MAX = 16 };

/* Only these are in the answer: all of a topic would be some kilobytes. */
static const char *const names[] = {
    "max.message.bytes",
    "cleanup.policy",
    "message.timestamp.type",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "message.timestamp.difference.max.ms", /* both, before Kafka 3.6 */
};

static rd_kafka_ConfigResource_t *question(const char *topic)
{
    rd_kafka_ConfigResource_t *resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, topic);

    for (size_t i = 0; resource && i < sizeof(names) / sizeof(names[0]); i++)
        (void)rd_kafka_ConfigResource_set_config(resource, names[i], "");
    return resource;
}

static void make_queue(struct producer *producer)
{
    if (producer->answers)
        return;
    producer->answers = rd_kafka_queue_new(producer->rk);
    rd_kafka_queue_io_event_enable(producer->answers, producer->fd, &(uint64_t){1},
                                   sizeof(uint64_t));
}

static void ask(struct producer *producer, rd_kafka_ConfigResource_t **resources,
                size_t n)
{
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(producer->rk, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS);

    make_queue(producer);
    (void)rd_kafka_AdminOptions_set_request_timeout(options, ANSWER_MS, NULL, 0);
    rd_kafka_DescribeConfigs(producer->rk, resources, n, options, producer->answers);
    rd_kafka_AdminOptions_destroy(options);
}

bool producer_describe(struct producer *producer, const char *const *topics, size_t n)
{
    rd_kafka_ConfigResource_t **resources = calloc(n, sizeof(void *));
    size_t made = 0;

    if (!resources)
        return false;
    for (size_t i = 0; i < n; i++) {
        resources[made] = question(topics[i]);
        if (resources[made]) /* NULL: an empty name */
            made++;
    }
    if (made > 0)
        ask(producer, resources, made);
    rd_kafka_ConfigResource_destroy_array(resources, made);
    free(resources);
    return made > 0;
}

static void take_topic(struct producer *producer,
                       const rd_kafka_ConfigResource_t *resource)
{
    struct producer_setting settings[SETTINGS_MAX];
    struct producer_description description = {
        .topic = rd_kafka_ConfigResource_name(resource),
        .error = (int)rd_kafka_ConfigResource_error(resource),
        .reason = rd_kafka_ConfigResource_error_string(resource),
        .settings = settings,
    };
    size_t n;
    const rd_kafka_ConfigEntry_t **entries =
        rd_kafka_ConfigResource_configs(resource, &n);

    for (size_t i = 0; i < n && description.nsettings < SETTINGS_MAX; i++) {
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);

        if (value)
            settings[description.nsettings++] =
                (struct producer_setting){rd_kafka_ConfigEntry_name(entries[i]), value};
    }
    if (!description.reason)
        description.reason = "";
    producer->callbacks.described(producer->callbacks.arg, &description);
}

static void take_event(struct producer *producer, rd_kafka_event_t *event)
{
    const rd_kafka_DescribeConfigs_result_t *result =
        rd_kafka_event_DescribeConfigs_result(event);
    const rd_kafka_ConfigResource_t **resources;
    struct producer_description end = {.error = (int)rd_kafka_event_error(event),
                                       .reason = ""};
    size_t n;

    if (!result)
        return;
    resources = rd_kafka_DescribeConfigs_result_resources(result, &n);
    for (size_t i = 0; i < n; i++)
        take_topic(producer, resources[i]);
    if (end.error != 0)
        end.reason = rd_kafka_event_error_string(event);
    producer->callbacks.described(producer->callbacks.arg, &end);
}

void producer_take_answers(struct producer *producer)
{
    rd_kafka_event_t *event;

    if (!producer->answers)
        return;
    while ((event = rd_kafka_queue_poll(producer->answers, 0))) {
        take_event(producer, event);
        rd_kafka_event_destroy(event);
    }
}
