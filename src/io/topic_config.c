#include "io/topic_config.h"

#include "base/clock.h"
#include "core/poison.h"
#include "io/kafka_error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    AT_ONCE = 100, /* topics in a request */
    AGAIN_MS = 300000,
    SOON_MS = 30000, /* after a failure, and for a topic that does not exist */
    DEFAULT_MAX_BYTES = 1048588, /* Kafka's */
    MARGIN_MS = 10000,           /* between the clocks of broker and relay */
};

/* In a list by due_ms. */
struct node {
    struct topic_config config; /* first: this is what is handed out */
    struct node *next;
    const char *name;
    int64_t due_ms;
    bool answered;
};

struct topic_configs {
    struct topic_configs_options options;
    struct producer *producer;
    struct node *first;
    struct node *last;
    struct node *asked; /* not in that list meanwhile; in the order of the question */
    int64_t now_ms;
    int64_t retry_ms;
    bool denied; /* that was said */
};

static struct topic_config unknown(void)
{
    return (struct topic_config){.state = TOPIC_CONFIG_UNKNOWN,
                                 .max_message_bytes = SIZE_MAX,
                                 .before_max_ms = INT64_MAX,
                                 .after_max_ms = INT64_MAX};
}

struct topic_configs *topic_configs_new(const struct topic_configs_options *options)
{
    struct topic_configs *configs = calloc(1, sizeof(*configs));

    if (configs)
        configs->options = *options;
    return configs;
}

void topic_configs_free(struct topic_configs *configs)
{
    if (!configs)
        return;
    topic_configs_clear(configs);
    free(configs);
}

static void push_front(struct topic_configs *configs, struct node *node)
{
    node->next = configs->first;
    configs->first = node;
    if (!configs->last)
        configs->last = node;
}

/* Most come last: all wait equally long. */
static void insert(struct topic_configs *configs, struct node *node)
{
    struct node **at = &configs->first;

    if (configs->last && node->due_ms >= configs->last->due_ms)
        at = &configs->last->next;
    while (*at && (*at)->due_ms <= node->due_ms)
        at = &(*at)->next;
    node->next = *at;
    *at = node;
    if (!node->next)
        configs->last = node;
}

static struct node *pop_front(struct topic_configs *configs)
{
    struct node *node = configs->first;

    configs->first = node->next;
    if (!configs->first)
        configs->last = NULL;
    return node;
}

static void free_nodes(struct node *node)
{
    struct node *next;

    for (; node; node = next) {
        next = node->next;
        free(node);
    }
}

void topic_configs_clear(struct topic_configs *configs)
{
    free_nodes(configs->first);
    free_nodes(configs->asked);
    configs->first = configs->last = configs->asked = NULL;
}

const struct topic_config *topic_configs_add(struct topic_configs *configs,
                                             const char *name)
{
    struct node *node = calloc(1, sizeof(*node));

    if (!node)
        return NULL;
    node->config = unknown();
    node->name = name;
    node->due_ms = configs->now_ms;
    push_front(configs, node);
    return &node->config;
}

/* ---- asking ----------------------------------------------------------------------- */

static void unask(struct topic_configs *configs)
{
    while (configs->asked) {
        struct node *node = configs->asked;

        configs->asked = node->next;
        push_front(configs, node);
    }
}

void topic_configs_use(struct topic_configs *configs, struct producer *producer)
{
    unask(configs);
    configs->producer = producer;
}

void topic_configs_serve(struct topic_configs *configs, int64_t now_ms)
{
    const char *names[AT_ONCE];
    struct node **end = &configs->asked;
    size_t n = 0;

    configs->now_ms = now_ms;
    if (!configs->producer || configs->asked || now_ms < configs->retry_ms)
        return;
    while (n < AT_ONCE && configs->first && configs->first->due_ms <= now_ms) {
        struct node *node = pop_front(configs);

        names[n++] = node->name;
        node->answered = false;
        node->next = NULL;
        *end = node;
        end = &node->next;
    }
    if (n == 0 || producer_describe(configs->producer, names, n))
        return;
    unask(configs);
    configs->retry_ms = now_ms + SOON_MS;
}

int64_t topic_configs_deadline(const struct topic_configs *configs)
{
    int64_t due_ms;

    if (!configs->producer || configs->asked || !configs->first)
        return CLOCK_NEVER;
    due_ms = configs->first->due_ms;
    return due_ms > configs->retry_ms ? due_ms : configs->retry_ms;
}

/* ---- answers ---------------------------------------------------------------------- */

static const char *setting_of(const struct producer_description *d, const char *name)
{
    for (size_t i = 0; i < d->nsettings; i++) {
        if (strcmp(d->settings[i].name, name) == 0)
            return d->settings[i].value;
    }
    return NULL;
}

static bool is_set(const struct producer_description *d, const char *name,
                   const char *part)
{
    const char *value = setting_of(d, name);

    return value && strstr(value, part);
}

static int64_t number_of(const struct producer_description *d, const char *name,
                         int64_t otherwise)
{
    const char *value = setting_of(d, name);
    char *end;
    long long n;

    if (!value)
        return otherwise;
    errno = 0;
    n = strtoll(value, &end, 10);
    return errno != 0 || *end || n < 0 ? otherwise : (int64_t)n;
}

static struct topic_config known(const struct producer_description *d)
{
    struct topic_config config = unknown();
    int64_t difference = number_of(d, "message.timestamp.difference.max.ms", INT64_MAX);

    config.state = TOPIC_CONFIG_KNOWN;
    config.max_message_bytes = (size_t)number_of(d, "max.message.bytes", INT64_MAX);
    config.compacted = is_set(d, "cleanup.policy", "compact");
    if (is_set(d, "message.timestamp.type", "LogAppendTime")) /* ours is not looked at */
        return config;
    config.before_max_ms = number_of(d, "message.timestamp.before.max.ms", difference);
    config.after_max_ms = number_of(d, "message.timestamp.after.max.ms", difference);
    return config;
}

static void tell_denied(struct topic_configs *configs, const char *topic, int error,
                        const char *reason)
{
    struct log_field fields[] = {
        {"code", slice_of(kafka_error_name(error))}, {"topic", slice_of(topic)}, LOG_END};
    char text[ERR_TEXT_MAX];

    if (configs->denied)
        return;
    configs->denied = true;
    (void)snprintf(text, sizeof(text),
                   "Kafka does not tell the configuration of topics, so the brokers' "
                   "defaults are assumed (%s); grant DESCRIBE_CONFIGS on the topics to "
                   "the relay's principal, so that it refuses fewer events by trial",
                   *reason ? reason : kafka_error_text(error));
    configs->options.notice(configs->options.notice_arg, LOG_INFO, fields, text);
}

static void assume(struct topic_configs *configs, struct node *node, int error,
                   const char *reason)
{
    tell_denied(configs, node->name, error, reason);
    node->config = unknown();
    node->config.state = TOPIC_CONFIG_ASSUMED;
    node->config.max_message_bytes = DEFAULT_MAX_BYTES;
}

/* Of these it is no use to ask again soon. */
static bool is_denied(int error)
{
    enum {
        UNSUPPORTED_FEATURE = -165,
        TOPIC_AUTHORIZATION = 29,
        CLUSTER_AUTHORIZATION = 31
    };

    return error == TOPIC_AUTHORIZATION || error == CLUSTER_AUTHORIZATION ||
           error == UNSUPPORTED_FEATURE;
}

static void take(struct topic_configs *configs, struct node *node,
                 const struct producer_description *d)
{
    bool denied = is_denied(d->error);

    node->answered = true;
    node->due_ms = configs->now_ms + (d->error == 0 || denied ? AGAIN_MS : SOON_MS);
    if (d->error == 0)
        node->config = known(d);
    else if (denied)
        assume(configs, node, d->error, d->reason);
}

/* Those without an answer are asked for soon, in their order. */
static void end_of_answer(struct topic_configs *configs,
                          const struct producer_description *d)
{
    struct node *unanswered = NULL;
    struct node **end = &unanswered;

    while (configs->asked) {
        struct node *node = configs->asked;

        configs->asked = node->next;
        node->next = NULL;
        if (!node->answered && is_denied(d->error))
            take(configs, node, d);
        if (node->answered) {
            insert(configs, node);
            continue;
        }
        node->due_ms = configs->now_ms;
        *end = node;
        end = &node->next;
    }
    if (!unanswered)
        return;
    configs->retry_ms = configs->now_ms + SOON_MS;
    configs->asked = unanswered;
    unask(configs);
}

void topic_configs_described(struct topic_configs *configs,
                             const struct producer_description *description)
{
    struct node *node = configs->asked;

    if (!description->topic) {
        end_of_answer(configs, description);
        return;
    }
    while (node && strcmp(node->name, description->topic) != 0)
        node = node->next;
    if (node)
        take(configs, node, description);
}

/* ---- using it --------------------------------------------------------------------- */

static size_t smallest_of(const struct node *node, size_t smallest)
{
    for (; node; node = node->next) {
        if (node->config.state == TOPIC_CONFIG_KNOWN &&
            node->config.max_message_bytes < smallest)
            smallest = node->config.max_message_bytes;
    }
    return smallest;
}

size_t topic_configs_smallest(const struct topic_configs *configs)
{
    return smallest_of(configs->asked, smallest_of(configs->first, SIZE_MAX));
}

static bool is_out_of_range(const struct topic_config *config, int64_t timestamp_ms,
                            int64_t wall_ms)
{
    int64_t age_ms = wall_ms - timestamp_ms;

    if (age_ms >= 0)
        return config->before_max_ms < INT64_MAX - MARGIN_MS &&
               age_ms > config->before_max_ms + MARGIN_MS;
    return config->after_max_ms < INT64_MAX - MARGIN_MS &&
           -age_ms > config->after_max_ms + MARGIN_MS;
}

enum topic_config_verdict topic_config_judge(const struct topic_config *config,
                                             bool has_key, size_t bytes,
                                             int64_t timestamp_ms, int64_t wall_ms)
{
    if (!config || config->state == TOPIC_CONFIG_UNKNOWN)
        return TOPIC_CONFIG_FITS;
    if (config->compacted && !has_key)
        return TOPIC_CONFIG_NO_KEY;
    if (bytes > config->max_message_bytes)
        return TOPIC_CONFIG_LARGE;
    if (is_out_of_range(config, timestamp_ms, wall_ms))
        return TOPIC_CONFIG_TIMESTAMP;
    return TOPIC_CONFIG_FITS;
}
