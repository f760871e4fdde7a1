#include "core/settings.h"

#include "core/config.h"
#include "core/nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COUNT(array)  (sizeof(array) / sizeof((array)[0]))
#define CONFIG(field) offsetof(struct config, field)
#define TABLE(field)  offsetof(struct table_settings, field)

enum { MEGABYTE = 1 << 20, DAY_MS = 24 * 3600 * 1000 };

static const char *const log_formats[] = {"text", "json", NULL};
static const char *const on_poison[] = {"dead-letter", "stop", NULL};
static const char *const orders[] = {"hold", "skip", NULL};
static const char *const log_levels[] = {"error", "warning", "info", "debug", NULL};

const struct section_kind section_kinds[] = {
    {"postgres", "[postgres]", "The database whose outbox tables are read."},
    {"table", "[table schema.name]",
     "One section for each outbox table; at least one. The name is written as in SQL: "
     "`[table outbox_events]`, `[table public.outbox_events]`, `[table \"Sales "
     "Dept\".\"Out box\"]`; without quotes it is folded to lower case, without a schema "
     "it "
     "is in `public`. Columns are named as they stand in the catalog, upper and lower "
     "case matter; a column whose name holds `:` or `,` or begins with `\"` is written "
     "in "
     "double quotes."},
    {"kafka", "[kafka]",
     "Properties of librdkafka, by their own names; see its `CONFIGURATION.md`."},
    {"relay", "[relay]", "The relay itself."},
    {"dead_letters", "[dead_letters]",
     "Events that Kafka does not take, in the table `walrelay_dead_letters`."},
    {"http", "[http]", "What the relay says of itself to a monitoring system."},
};
const size_t nsection_kinds = COUNT(section_kinds);

const struct setting settings[] = {
    {.section = "postgres",
     .key = "dsn",
     .type = SETTING_TEXT,
     .filled = true,
     .offset = CONFIG(postgres.dsn),
     .help = "Connection string in any form that libpq takes: `host=db dbname=shop "
             "user=walrelay`, `postgresql://walrelay@db/shop`, `service=shop`. To keep a "
             "password out of the file use `WALRELAY_POSTGRES_DSN_FILE` or libpq's "
             "password file."},
    {.section = "postgres",
     .key = "slot",
     .type = SETTING_SLOT,
     .filled = true,
     .fallback = "walrelay",
     .offset = CONFIG(postgres.slot),
     .help = "The logical replication slot, made by `walrelay setup`."},

    {.section = "table",
     .key = "topic",
     .type = SETTING_TEXT,
     .filled = true,
     .fallback = "outbox.event.{aggregate_type}",
     .offset = TABLE(topic),
     .help = "The topic of an event. `{column}` stands for the column's value."},
    {.section = "table",
     .key = "key",
     .type = SETTING_COLUMN,
     .fallback = "aggregate_id",
     .offset = TABLE(key),
     .help = "The column that becomes the record's key. Events with the same key stay in "
             "order. Empty: records have no key."},
    {.section = "table",
     .key = "payload",
     .type = SETTING_COLUMN,
     .filled = true,
     .fallback = "payload",
     .offset = TABLE(payload),
     .help =
         "The column that becomes the record's value, byte for byte. SQL NULL becomes "
         "a tombstone."},
    {.section = "table",
     .key = "id",
     .type = SETTING_HEADER,
     .fallback = "id",
     .offset = TABLE(id),
     .help = "The column that tells one event from another, and the header it becomes. "
             "Consumers recognise a repeated event by it. Empty: no such header."},
    {.section = "table",
     .key = "type",
     .type = SETTING_HEADER,
     .fallback = "event_type:type",
     .offset = TABLE(type),
     .help =
         "The column with the type of the event, and the header it becomes. Empty: no "
         "such header."},
    {.section = "table",
     .key = "headers",
     .type = SETTING_HEADERS,
     .fallback = "",
     .offset = TABLE(headers),
     .help = "Further columns that become headers: `trace_id, tenant:x-tenant`."},
    {.section = "table",
     .key = "aggregate_id",
     .type = SETTING_COLUMN,
     .fallback = "",
     .offset = TABLE(aggregate_id),
     .help =
         "The column that log lines show as `aggregate_id`. Empty: the key's column."},
    {.section = "table",
     .key = "partition",
     .type = SETTING_COLUMN,
     .fallback = "",
     .offset = TABLE(partition),
     .help = "A column with the partition's number. Empty, or SQL NULL in a row: the "
             "partition follows from the key as with Java's producer (murmur2)."},
    {.section = "table",
     .key = "timestamp",
     .type = SETTING_COLUMN,
     .fallback = "",
     .offset = TABLE(timestamp),
     .help = "A column with the record's timestamp. Empty: the time of the commit."},

    {.section = "kafka",
     .key = "bootstrap.servers",
     .type = SETTING_PROPERTY,
     .filled = true,
     .help = "The brokers to begin with: `kafka-1:9092,kafka-2:9092`."},
    {.section = "kafka",
     .key = "*",
     .type = SETTING_PROPERTY,
     .help = "Any other property of librdkafka, for instance `security.protocol`, "
             "`sasl.password` or `compression.type`. Those that would break the promise "
             "of delivery are refused."},

    {.section = "relay",
     .key = "memory",
     .type = SETTING_SIZE,
     .filled = true,
     .fallback = "4MB",
     .min = MEGABYTE,
     .max = (int64_t)1024 * 1024 * MEGABYTE,
     .offset = CONFIG(relay.memory_bytes),
     .help = "Ceiling of the events that Kafka has not acknowledged yet. When it is "
             "reached, reading from PostgreSQL pauses. While a backlog goes to more than "
             "32 topics, each further one adds 1/32, up to 32 times as much in all."},
    {.section = "relay",
     .key = "shutdown_timeout",
     .type = SETTING_DURATION,
     .filled = true,
     .fallback = "10s",
     .min = 0,
     .max = DAY_MS,
     .offset = CONFIG(relay.shutdown_timeout_ms),
     .help =
         "How long SIGTERM waits for the end of the open transaction and for Kafka's "
         "acknowledgements. What is not acknowledged by then is published again after "
         "the next start."},
    {.section = "relay",
     .key = "log_format",
     .type = SETTING_CHOICE,
     .filled = true,
     .fallback = "text",
     .choices = log_formats,
     .offset = CONFIG(relay.log_format),
     .help = "How a log line looks."},
    {.section = "relay",
     .key = "log_level",
     .type = SETTING_CHOICE,
     .filled = true,
     .fallback = "info",
     .choices = log_levels,
     .offset = CONFIG(relay.log_level),
     .help = "The least important lines that are still written."},

    {.section = "dead_letters",
     .key = "on_poison",
     .type = SETTING_CHOICE,
     .filled = true,
     .fallback = "dead-letter",
     .choices = on_poison,
     .offset = CONFIG(dead_letters.on_poison),
     .help =
         "What becomes of an event that Kafka can never take: it goes into the table, "
         "or the relay stops before it. Without the table the relay stops."},
    {.section = "dead_letters",
     .key = "schema",
     .type = SETTING_TEXT,
     .filled = true,
     .fallback = "public",
     .offset = CONFIG(dead_letters.schema),
     .help =
         "The schema of the table, as it stands in the catalog; `walrelay setup` makes "
         "it there."},
    {.section = "dead_letters",
     .key = "order",
     .type = SETTING_CHOICE,
     .filled = true,
     .fallback = "hold",
     .choices = orders,
     .offset = CONFIG(dead_letters.order),
     .help = "What becomes of later events of the same topic and key: they wait in the "
             "table until it is resolved, or are published without it."},
    {.section = "dead_letters",
     .key = "retry_initial",
     .type = SETTING_DURATION,
     .filled = true,
     .fallback = "10s",
     .min = 100,
     .max = DAY_MS,
     .offset = CONFIG(dead_letters.retry_initial_ms),
     .help = "The delay before the first further attempt; it doubles with each."},
    {.section = "dead_letters",
     .key = "retry_max",
     .type = SETTING_DURATION,
     .filled = true,
     .fallback = "1h",
     .min = 100,
     .max = DAY_MS,
     .offset = CONFIG(dead_letters.retry_max_ms),
     .help = "The longest delay between two attempts."},
    {.section = "dead_letters",
     .key = "max_attempts",
     .type = SETTING_COUNT,
     .filled = true,
     .fallback = "10",
     .min = 1,
     .max = 1000000,
     .offset = CONFIG(dead_letters.max_attempts),
     .help = "After so many attempts an event is dead: it stays in the table until "
             "somebody retries or discards it."},
    {.section = "dead_letters",
     .key = "held_per_key",
     .type = SETTING_COUNT,
     .filled = true,
     .fallback = "10000",
     .min = 1,
     .max = 1000000,
     .offset = CONFIG(dead_letters.held_per_key),
     .help = "How many unresolved events one key may have; at the next one the relay "
             "stops before it."},
    {.section = "dead_letters",
     .key = "held_total",
     .type = SETTING_COUNT,
     .filled = true,
     .fallback = "100000",
     .min = 1,
     .max = 10000000,
     .offset = CONFIG(dead_letters.held_total),
     .help =
         "The same for all keys together. Each takes some 100 bytes of memory and its "
         "key."},
    {.section = "dead_letters",
     .key = "limit",
     .type = SETTING_COUNT,
     .filled = true,
     .fallback = "1000",
     .min = 0,
     .max = 1000000,
     .offset = CONFIG(dead_letters.limit),
     .help = "More refused events than that within `limit_window` are not the events' "
             "fault: publishing pauses and the log says so. 0: no limit."},
    {.section = "dead_letters",
     .key = "limit_window",
     .type = SETTING_DURATION,
     .filled = true,
     .fallback = "5min",
     .min = 1000,
     .max = DAY_MS,
     .offset = CONFIG(dead_letters.limit_window_ms),
     .help = "See `limit`."},
    {.section = "dead_letters",
     .key = "topic_wait",
     .type = SETTING_DURATION,
     .filled = true,
     .fallback = "0s",
     .min = 0,
     .max = (int64_t)30 * DAY_MS,
     .offset = CONFIG(dead_letters.topic_wait_ms),
     .help = "How long events wait for a topic that does not exist or may not be "
             "written; then they become dead letters. 0s: for ever. Needs the table."},
    {.section = "dead_letters",
     .key = "dead_letter_topic",
     .type = SETTING_TEXT,
     .fallback = "",
     .offset = CONFIG(dead_letters.topic),
     .help =
         "A topic to which each event that Kafka refuses is sent besides, with headers "
         "that say why. Empty: none."},

    {.section = "http",
     .key = "listen",
     .type = SETTING_ADDRESS,
     .fallback = "",
     .offset = CONFIG(http.listen),
     .help = "Where `GET /metrics` is answered, for Prometheus: `127.0.0.1:8464`, "
             "`[::1]:8464`, `0.0.0.0:8464` for all interfaces. There is no TLS and no "
             "password. Empty: nowhere."},
};
const size_t nsettings = COUNT(settings);

bool setting_is_wildcard(const struct setting *setting)
{
    return strcmp(setting->key, "*") == 0;
}

const struct setting *setting_find(const char *section, const char *key)
{
    const struct setting *wildcard = NULL;

    for (size_t i = 0; i < nsettings; i++) {
        if (strcmp(settings[i].section, section) != 0)
            continue;
        if (setting_is_wildcard(&settings[i]))
            wildcard = &settings[i];
        else if (strcmp(settings[i].key, key) == 0)
            return &settings[i];
    }
    return wildcard;
}

const char *setting_nearest(const char *section, const char *key)
{
    const char *keys[COUNT(settings)];
    size_t n = 0;

    for (size_t i = 0; i < nsettings; i++) {
        if (strcmp(settings[i].section, section) == 0)
            keys[n++] = settings[i].key;
    }
    return nearest_name(key, keys, n);
}

static const char *const type_words[] = {
    [SETTING_TEXT] = "text",
    [SETTING_SLOT] = "name of a slot",
    [SETTING_COLUMN] = "column",
    [SETTING_HEADER] = "COLUMN[:HEADER]",
    [SETTING_HEADERS] = "list of COLUMN[:HEADER]",
    [SETTING_SIZE] = "size in B, kB, MB or GB",
    [SETTING_DURATION] = "duration in ms, s, min or h",
    [SETTING_COUNT] = "whole number",
    [SETTING_ADDRESS] = "HOST:PORT",
    [SETTING_CHOICE] = "one of",
    [SETTING_PROPERTY] = "text",
};

const char *setting_type_words(enum setting_type type)
{
    return type_words[type];
}

/* ---- librdkafka ---------------------------------------------------------------- */

/* librdkafka itself refuses some of these beside enable.idempotence=true; the others
 * it takes without a word. */
#define ACKS        "an event counts as published when all in-sync replicas have it"
#define IN_FLIGHT   "more than five requests at once can overtake each other"
#define RETRIES     "a batch is sent again until the broker has it"
#define TIMEOUT     "an event that times out is lost, while the next one is published"
#define TRUE_VALUE  "true|t|1"
#define FALSE_VALUE "false|f|0"

const struct kafka_rule kafka_rules[] = {
    {"acks", "all|-1", 0, 0, ACKS},
    {"request.required.acks", "all|-1", 0, 0, ACKS},
    {"enable.idempotence", TRUE_VALUE, 0, 0,
     "without it a batch that is sent again may be written twice or out of order"},
    {"enable.gapless.guarantee", TRUE_VALUE, 0, 0,
     "without it the events after a failed batch are written before it"},
    {"message.timeout.ms", NULL, 0, 0, TIMEOUT},
    {"delivery.timeout.ms", NULL, 0, 0, TIMEOUT},
    {"max.in.flight.requests.per.connection", NULL, 1, 5, IN_FLIGHT},
    {"max.in.flight", NULL, 1, 5, IN_FLIGHT},
    {"retries", NULL, 1, INT32_MAX, RETRIES},
    {"message.send.max.retries", NULL, 1, INT32_MAX, RETRIES},
    {"queuing.strategy", "fifo", 0, 0, "events leave in the order of their commits"},
    {"partitioner", "murmur2_random", 0, 0,
     "a key goes to the partition that Java's producer would choose"},
    {"transactional.id", "", 0, 0, "the relay does not write in Kafka's transactions"},
    {"delivery.report.only.error", FALSE_VALUE, 0, 0,
     "the slot moves when Kafka reports success"},
    {"enabled_events", "0", 0, 0, "the relay takes delivery reports by callback"},
    {"topic.metadata.propagation.max.ms", NULL, 0, 2147483,
     "librdkafka counts it in microseconds and overflows, so a missing topic fails at "
     "once"},
    {"test.mock.num.brokers", "0", 0, 0, "a mock cluster forgets what it acknowledged"},
};
const size_t nkafka_rules = COUNT(kafka_rules);

static bool is_one_of(const char *value, const char *allowed)
{
    size_t len = strlen(value);

    while (*allowed) {
        size_t n = strcspn(allowed, "|");

        if (n == len && strncasecmp(allowed, value, n) == 0)
            return true;
        allowed += n + (allowed[n] == '|');
    }
    return false;
}

/* Stricter than librdkafka, which reads 1e6 as 1 and takes 4294967296 for 0. */
static bool is_within(const char *value, int64_t min, int64_t max)
{
    char *end;
    long long n;

    if (value[strspn(value, "0123456789")] != '\0' || value[0] == '\0')
        return false;
    errno = 0;
    n = strtoll(value, &end, 10);
    return errno == 0 && *end == '\0' && n >= min && n <= max;
}

/* librdkafka finds topic.acks as acks. */
static bool is_named(const struct kafka_rule *rule, const char *name)
{
    return strcmp(rule->name, name) == 0 ||
           (strncmp(name, "topic.", 6) == 0 && strcmp(rule->name, name + 6) == 0);
}

const struct kafka_rule *kafka_rule_against(const char *name, const char *value)
{
    for (size_t i = 0; i < nkafka_rules; i++) {
        const struct kafka_rule *rule = &kafka_rules[i];

        if (!is_named(rule, name))
            continue;
        if (rule->only ? !is_one_of(value, rule->only)
                       : !is_within(value, rule->min, rule->max))
            return rule;
    }
    return NULL;
}
