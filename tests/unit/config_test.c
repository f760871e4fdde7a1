#include "core/config.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const nothing[] = {NULL};

#define SMALLEST                                                                         \
    "[postgres]\ndsn = host=db\n[kafka]\nbootstrap.servers = k:9092\n"                   \
    "[table outbox_events]\n"

static struct config *parse(const char *text, config_env_t env)
{
    struct err err = {0};
    struct config *config = config_parse("walrelay.conf", slice_of(text), env, &err);

    if (!config)
        fail_msg("%s", err.text);
    return config;
}

static void refuse_with(const char *text, config_env_t env, const char *why)
{
    struct err err = {0};

    assert_null(config_parse("walrelay.conf", slice_of(text), env, &err));
    assert_int_equal(err.class, ERR_CONFIG);
    assert_string_equal(err.text, why);
}

static void refuse(const char *text, const char *why)
{
    refuse_with(text, nothing, why);
}

static const char *property(const struct config *config, const char *name)
{
    for (size_t i = 0; i < config->nkafka; i++) {
        if (strcmp(config->kafka[i].name, name) == 0)
            return config->kafka[i].value;
    }
    return NULL;
}

/* ---- values -------------------------------------------------------------------- */

static void every_setting_but_three_has_a_default(void **state)
{
    struct config *config = parse(SMALLEST, nothing);
    const struct table_settings *table = &config->tables[0];

    (void)state;
    assert_string_equal(config->postgres.dsn, "host=db");
    assert_string_equal(config->postgres.slot, "walrelay");
    assert_int_equal(config->ntables, 1);
    assert_string_equal(table->schema, "public");
    assert_string_equal(table->name, "outbox_events");
    assert_int_equal(table->line, 5);
    assert_string_equal(table->topic, "outbox.event.{aggregate_type}");
    assert_string_equal(table->key, "aggregate_id");
    assert_string_equal(table->payload, "payload");
    assert_string_equal(table->id.column, "id");
    assert_string_equal(table->id.header, "id");
    assert_string_equal(table->type.column, "event_type");
    assert_string_equal(table->type.header, "type");
    assert_int_equal(table->nheaders, 0);
    assert_string_equal(table->aggregate_id, "aggregate_id");
    assert_null(table->partition);
    assert_null(table->timestamp);
    assert_int_equal(config->nkafka, 1);
    assert_string_equal(property(config, "bootstrap.servers"), "k:9092");
    assert_int_equal(config->relay.memory_bytes, 4 << 20);
    assert_int_equal(config->relay.shutdown_timeout_ms, 10000);
    assert_int_equal(config->relay.log_format, LOG_TEXT);
    assert_int_equal(config->relay.log_level, LOG_INFO);
    config_free(config);
}

static void every_setting_can_be_written_in_the_file(void **state)
{
    struct config *config = parse(
        "[postgres]\ndsn = postgresql://w:p%23@db/shop?sslmode=require # x\n"
        "slot = shop_2\n"
        "[table \"Sales\".outbox]\ntopic = {Topic}\nkey = \"Key, the\"\n"
        "payload = Body\nid = event_id:x-id\ntype = kind\n"
        "headers = trace_id, Tenant : x-tenant , \"a,b:c\":d\naggregate_id = customer\n"
        "partition = part\ntimestamp = created_at\n"
        "[kafka]\nbootstrap.servers = a:1,b:2\nclient.id = x = y\nlinger.ms=7\n"
        "[relay]\nmemory = 2 GB\nshutdown_timeout=90s\nlog_format = json\n"
        "log_level = debug\n",
        nothing);
    const struct table_settings *table = &config->tables[0];

    (void)state;
    assert_string_equal(config->postgres.dsn,
                        "postgresql://w:p%23@db/shop?sslmode=require # x");
    assert_string_equal(config->postgres.slot, "shop_2");
    assert_string_equal(table->schema, "Sales");
    assert_string_equal(table->name, "outbox");
    assert_string_equal(table->topic, "{Topic}");
    assert_string_equal(table->key, "Key, the");
    assert_string_equal(table->payload, "Body");
    assert_string_equal(table->id.column, "event_id");
    assert_string_equal(table->id.header, "x-id");
    assert_string_equal(table->type.column, "kind");
    assert_string_equal(table->type.header, "kind");
    assert_int_equal(table->nheaders, 3);
    assert_string_equal(table->headers[0].column, "trace_id");
    assert_string_equal(table->headers[0].header, "trace_id");
    assert_string_equal(table->headers[1].column, "Tenant");
    assert_string_equal(table->headers[1].header, "x-tenant");
    assert_string_equal(table->headers[2].column, "a,b:c");
    assert_string_equal(table->headers[2].header, "d");
    assert_string_equal(table->aggregate_id, "customer");
    assert_string_equal(table->partition, "part");
    assert_string_equal(table->timestamp, "created_at");
    assert_int_equal(config->nkafka, 3);
    assert_string_equal(property(config, "client.id"), "x = y");
    assert_int_equal(config->relay.memory_bytes, (uint64_t)2 << 30);
    assert_int_equal(config->relay.shutdown_timeout_ms, 90000);
    assert_int_equal(config->relay.log_format, LOG_JSON);
    assert_int_equal(config->relay.log_level, LOG_DEBUG);
    config_free(config);
}

static void dead_letters_have_defaults(void **state)
{
    struct config *config = parse(SMALLEST, nothing);

    (void)state;
    assert_int_equal(config->dead_letters.on_poison, ON_POISON_DEAD_LETTER);
    assert_int_equal(config->dead_letters.order, ORDER_HOLD);
    assert_string_equal(config->dead_letters.schema, "public");
    assert_int_equal(config->dead_letters.retry_initial_ms, 10000);
    assert_int_equal(config->dead_letters.retry_max_ms, 3600000);
    assert_int_equal(config->dead_letters.max_attempts, 10);
    assert_int_equal(config->dead_letters.held_per_key, 10000);
    assert_int_equal(config->dead_letters.held_total, 100000);
    assert_int_equal(config->dead_letters.limit, 1000);
    assert_int_equal(config->dead_letters.limit_window_ms, 300000);
    assert_int_equal(config->dead_letters.topic_wait_ms, 0);
    assert_string_equal(config->dead_letters.topic, "");
    config_free(config);
}

static void dead_letters_can_be_set(void **state)
{
    static const char *const environment[] = {"WALRELAY_DEAD_LETTERS_LIMIT=0", NULL};
    struct config *config = parse(
        SMALLEST "[dead_letters]\non_poison = stop\norder = skip\nschema = Sales Dept\n"
                 "retry_initial = 1s\nretry_max = 1s\nmax_attempts = 3\n"
                 "held_per_key = 5\nheld_total = 7\n"
                 "limit_window = 1min\ntopic_wait = 720h\n"
                 "dead_letter_topic = dead.letters\n",
        environment);

    (void)state;
    assert_int_equal(config->dead_letters.on_poison, ON_POISON_STOP);
    assert_int_equal(config->dead_letters.order, ORDER_SKIP);
    assert_string_equal(config->dead_letters.schema, "Sales Dept");
    assert_int_equal(config->dead_letters.retry_initial_ms, 1000);
    assert_int_equal(config->dead_letters.retry_max_ms, 1000);
    assert_int_equal(config->dead_letters.max_attempts, 3);
    assert_int_equal(config->dead_letters.held_per_key, 5);
    assert_int_equal(config->dead_letters.held_total, 7);
    assert_int_equal(config->dead_letters.limit, 0);
    assert_int_equal(config->dead_letters.limit_window_ms, 60000);
    assert_int_equal(config->dead_letters.topic_wait_ms, INT64_C(2592000000));
    assert_string_equal(config->dead_letters.topic, "dead.letters");
    config_free(config);
}

static void dead_letters_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    refuse(SMALLEST "[dead_letters]\nmax_attempts = 0\n",
           "walrelay.conf:7: max_attempts: 0 is out of range; it may be 1 to 1000000");
    refuse(SMALLEST "[dead_letters]\nmax_attempts = ten\n",
           "walrelay.conf:7: max_attempts: \"ten\" is no whole number");
    refuse(SMALLEST "[dead_letters]\nmax_attempts = 10s\n",
           "walrelay.conf:7: max_attempts: \"10s\" is no whole number");
    refuse(SMALLEST "[dead_letters]\nretry_initial = 2h\n",
           "walrelay.conf: retry_initial in [dead_letters] is longer than retry_max");
    refuse(
        SMALLEST "[dead_letters]\ndead_letter_topic = no topic\n",
        "walrelay.conf: dead_letter_topic in [dead_letters]: no topic is no name for a "
        "topic");
    refuse(SMALLEST "topic = all\n[dead_letters]\ndead_letter_topic = all\n",
           "walrelay.conf: dead_letter_topic in [dead_letters] is the topic of [table "
           "public.outbox_events], too");
}

static void assert_listens(const char *text, const char *host, uint16_t port)
{
    struct config *config;
    char file[256];

    (void)snprintf(file, sizeof(file), SMALLEST "[http]\nlisten = %s\n", text);
    config = parse(file, nothing);
    assert_string_equal(config->http.listen.host, host);
    assert_int_equal(config->http.listen.port, port);
    config_free(config);
}

static void an_address_to_listen_at_is_a_host_and_a_port(void **state)
{
    (void)state;
    assert_listens("127.0.0.1:8464", "127.0.0.1", 8464);
    assert_listens("localhost:1", "localhost", 1);
    assert_listens("[::1]:65535", "::1", 65535);
    assert_listens("[fe80::1%eth0]:8464", "fe80::1%eth0", 8464);
}

static void nobody_listens_unless_told_so(void **state)
{
    static const char *const given[] = {"WALRELAY_HTTP_LISTEN=10.0.0.1:80", NULL};
    static const char *const taken_back[] = {"WALRELAY_HTTP_LISTEN=", NULL};
    struct config *config = parse(SMALLEST, nothing);

    (void)state;
    assert_null(config->http.listen.host);
    config_free(config);
    config = parse(SMALLEST, given);
    assert_string_equal(config->http.listen.host, "10.0.0.1");
    assert_int_equal(config->http.listen.port, 80);
    config_free(config);
    config = parse(SMALLEST "[http]\nlisten = 127.0.0.1:8464\n", taken_back);
    assert_null(config->http.listen.host);
    config_free(config);
}

static void what_is_no_address_to_listen_at_is_refused(void **state)
{
    static const char *const wrong[] = {
        "8464",        ":8464",     "127.0.0.1",     "127.0.0.1:",
        "127.0.0.1:0", "a:65536",   "a:-1",          "a:1x",
        "a b:1",       "[::1]8464", "[::1:80",       "[]:80",
        "::1:8464",    "[::1]",     "http://a:8464", "a:99999999999999999999"};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char file[256];
        char why[256];

        (void)snprintf(file, sizeof(file), SMALLEST "[http]\nlisten = %s\n", wrong[i]);
        (void)snprintf(why, sizeof(why),
                       "walrelay.conf:7: listen: \"%s\" is no address to listen at; it "
                       "may be 127.0.0.1:8464, [::1]:8464 or name:8464",
                       wrong[i]);
        refuse(file, why);
    }
}

static void an_empty_column_is_one_that_is_not_used(void **state)
{
    struct config *config = parse(SMALLEST "key =\nid =\ntype =\nheaders =\n", nothing);
    const struct table_settings *table = &config->tables[0];

    (void)state;
    assert_null(table->key);
    assert_null(table->id.column);
    assert_null(table->type.column);
    assert_int_equal(table->nheaders, 0);
    assert_null(table->aggregate_id);
    config_free(config);
}

static void the_logged_aggregate_is_the_key_unless_it_is_set(void **state)
{
    struct config *config = parse(SMALLEST "key = customer\n", nothing);

    (void)state;
    assert_string_equal(config->tables[0].aggregate_id, "customer");
    config_free(config);
}

static void each_table_has_its_own_settings(void **state)
{
    struct config *config = parse(SMALLEST "key = a\n[table b]\nkey = b\n[table \"B\"]\n"
                                           "[table s.b]\ntopic = t\n",
                                  nothing);

    (void)state;
    assert_int_equal(config->ntables, 4);
    assert_string_equal(config->tables[0].key, "a");
    assert_string_equal(config->tables[1].key, "b");
    assert_string_equal(config->tables[2].name, "B");
    assert_string_equal(config->tables[2].key, "aggregate_id");
    assert_string_equal(config->tables[3].schema, "s");
    assert_string_equal(config->tables[3].topic, "t");
    config_free(config);
}

static void sizes_and_durations_have_units(void **state)
{
    const struct {
        const char *size, *duration;
        uint64_t bytes;
        int64_t ms;
    } cases[] = {{"1048576B", "0s", 1 << 20, 0},
                 {"1024kB", "1ms", 1 << 20, 1},
                 {"1MB", "3 min", 1 << 20, 180000},
                 {"1024GB", "24h", (uint64_t)1 << 40, 86400000}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[512];
        struct config *config;

        (void)snprintf(text, sizeof(text),
                       SMALLEST "[relay]\nmemory = %s\nshutdown_timeout = %s\n",
                       cases[i].size, cases[i].duration);
        config = parse(text, nothing);
        assert_int_equal(config->relay.memory_bytes, cases[i].bytes);
        assert_int_equal(config->relay.shutdown_timeout_ms, cases[i].ms);
        config_free(config);
    }
}

/* ---- errors -------------------------------------------------------------------- */

static void a_wrong_quantity_is_refused_with_what_would_be_right(void **state)
{
    (void)state;
    refuse(SMALLEST "[relay]\nmemory = 16\n",
           "walrelay.conf:7: memory: \"16\" has no unit; a size in B, kB, MB or GB is "
           "needed, as in 4MB");
    refuse(
        SMALLEST "[relay]\nmemory = 16mb\n",
        "walrelay.conf:7: memory: \"16mb\" has an unknown unit; a size in B, kB, MB or "
        "GB is needed, as in 4MB");
    refuse(SMALLEST "[relay]\nmemory = lots\n",
           "walrelay.conf:7: memory: \"lots\" is no whole number with a unit");
    refuse(SMALLEST "[relay]\nmemory = -1MB\n",
           "walrelay.conf:7: memory: \"-1MB\" is no whole number with a unit");
    refuse(
        SMALLEST "[relay]\nmemory = 1.5MB\n",
        "walrelay.conf:7: memory: \"1.5MB\" has an unknown unit; a size in B, kB, MB or "
        "GB is needed, as in 4MB");
    refuse(SMALLEST "[relay]\nmemory = 1023kB\n",
           "walrelay.conf:7: memory: 1023kB is out of range; it may be 1MB to 1024GB");
    refuse(
        SMALLEST "[relay]\nmemory = 99999999999999999999GB\n",
        "walrelay.conf:7: memory: 99999999999999999999GB is out of range; it may be 1MB "
        "to 1024GB");
    refuse(
        SMALLEST "[relay]\nmemory = 9223372036854775807GB\n",
        "walrelay.conf:7: memory: 9223372036854775807GB is out of range; it may be 1MB "
        "to 1024GB");
    refuse(
        SMALLEST "[relay]\nshutdown_timeout = 10\n",
        "walrelay.conf:7: shutdown_timeout: \"10\" has no unit; a duration in ms, s, min "
        "or h is needed, as in 10s");
    refuse(SMALLEST "[relay]\nshutdown_timeout = 25h\n",
           "walrelay.conf:7: shutdown_timeout: 25h is out of range; it may be 0s to 24h");
    refuse(SMALLEST "[relay]\nmemory =\n",
           "walrelay.conf:7: memory: it must not be empty");
}

static void an_unknown_word_is_refused_with_the_nearest_valid_one(void **state)
{
    (void)state;
    refuse(SMALLEST "[rely]\n",
           "walrelay.conf:6: unknown section [rely], the nearest valid one is [relay]");
    refuse(SMALLEST "[Kafka]\n",
           "walrelay.conf:6: unknown section [Kafka], the nearest valid one is [kafka]");
    refuse(
        SMALLEST "[tables x]\n",
        "walrelay.conf:6: unknown section [tables x], the nearest valid one is [table]");
    refuse(
        SMALLEST "[default]\n",
        "walrelay.conf:6: unknown section [default], the nearest valid one is [table]");
    refuse(
        SMALLEST "[relay]\nmemry = 1MB\n",
        "walrelay.conf:7: unknown key memry in [relay], the nearest valid one is memory");
    refuse(SMALLEST "[relay]\nMemory = 1MB\n",
           "walrelay.conf:7: unknown key Memory in [relay], the nearest valid one is "
           "memory");
    refuse(SMALLEST "[relay]\nlog-level = info\n",
           "walrelay.conf:7: unknown key log-level in [relay], the nearest valid one is "
           "log_level");
    refuse(
        SMALLEST "header = x\n",
        "walrelay.conf:6: unknown key header in [table outbox_events], the nearest valid "
        "one is headers");
    refuse(SMALLEST "[relay]\nlog_level = warn\n",
           "walrelay.conf:7: log_level: unknown value \"warn\", the nearest valid one is "
           "warning");
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    refuse("",
           "walrelay.conf: there is no [table] section; write one for each outbox table, "
           "as in [table public.outbox_events]");
    refuse("[table a]\n", "walrelay.conf: dsn is missing in [postgres]");
    refuse("[table a]\n[postgres]\ndsn = x=y\n",
           "walrelay.conf: bootstrap.servers is missing in [kafka]");
    refuse("[table a]\n[postgres]\ndsn =\n[kafka]\nbootstrap.servers=k\n",
           "walrelay.conf:3: dsn: it must not be empty");
    refuse("[table a]\n[postgres]\ndsn = x=y\n[kafka]\nbootstrap.servers=\n",
           "walrelay.conf:5: bootstrap.servers: it must not be empty");
    refuse(SMALLEST "topic=\n", "walrelay.conf:6: topic: it must not be empty");
    refuse(SMALLEST "payload=\n", "walrelay.conf:6: payload: it must not be empty");
}

static void what_comes_twice_is_refused(void **state)
{
    (void)state;
    refuse(SMALLEST "[kafka]\nclient.id = x\n",
           "walrelay.conf:6: section [kafka] stands in line 3 already");
    refuse(
        SMALLEST "[table outbox_events]\n",
        "walrelay.conf:6: table \"public\".\"outbox_events\" has a section already, in "
        "line 5");
    refuse(
        SMALLEST "[table Public.\"outbox_events\"]\n",
        "walrelay.conf:6: table \"public\".\"outbox_events\" has a section already, in "
        "line 5");
    refuse(SMALLEST "key = a\nkey = b\n",
           "walrelay.conf:7: key stands twice in this section");
}

static void a_wrong_name_is_refused(void **state)
{
    (void)state;
    refuse(SMALLEST "[table]\n", "walrelay.conf:6: [table] needs a name, as in [table "
                                 "public.outbox_events]");
    refuse(
        SMALLEST "[table a.b.c]\n",
        "walrelay.conf:6: [table]: the name has more parts than schema and table: a.b.c");
    refuse(SMALLEST "[table \"x]\n",
           "walrelay.conf:6: [table]: a double quote is not closed");
    refuse(SMALLEST "headers = a,,b\n", "walrelay.conf:6: headers: a name is empty");
    refuse(SMALLEST "headers = a,\n",
           "walrelay.conf:6: headers: the list ends with a comma");
    refuse(SMALLEST "headers = a:\n",
           "walrelay.conf:6: headers: there is no header's name after the colon");
    refuse(SMALLEST "id = :x\n", "walrelay.conf:6: id: a name is empty");
    refuse(
        "[postgres]\nslot = My-Slot\ndsn=x=y\n[table a]\n[kafka]\nbootstrap.servers=k\n",
        "walrelay.conf:2: slot: \"My-Slot\" cannot be a slot's name: at most 63 lower "
        "case letters, digits and _");
}

static void a_line_that_is_no_ini_is_refused(void **state)
{
    (void)state;
    refuse(SMALLEST "key: a\n", "walrelay.conf:6: there is no = in this line");
}

/* ---- librdkafka ---------------------------------------------------------------- */

static void a_property_that_would_break_the_promise_is_refused(void **state)
{
    const char *const refused[] = {
        "acks = 1",
        "acks = 0x0",
        "topic.acks = 1",
        "acks =",
        "request.required.acks = 0",
        "enable.idempotence = false",
        "enable.gapless.guarantee = False",
        "message.timeout.ms = 300000",
        "delivery.timeout.ms = 1",
        "topic.message.timeout.ms = 5",
        "max.in.flight = 6",
        "max.in.flight.requests.per.connection = 1000000",
        "max.in.flight = 5x",
        "retries = 0",
        "message.send.max.retries = 0",
        "retries = 99999999999999999999",
        "queuing.strategy = lifo",
        "partitioner = random",
        "transactional.id = x",
        "delivery.report.only.error = true",
        "enabled_events = 1",
        "topic.metadata.propagation.max.ms = 2147484",
        "test.mock.num.brokers = 3",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(refused); i++) {
        char text[512];
        struct err err = {0};

        (void)snprintf(
            text, sizeof(text),
            "[table a]\n[postgres]\ndsn=x=y\n[kafka]\nbootstrap.servers=k\n%s\n",
            refused[i]);
        assert_null(config_parse("f", slice_of(text), nothing, &err));
        assert_int_equal(err.class, ERR_CONFIG);
        assert_memory_equal(err.text, "f:6: ", 5);
        if (!strstr(err.text, "would break the promise of delivery: "))
            fail_msg("%s: %s", refused[i], err.text);
    }
}

static void a_property_that_keeps_the_promise_passes(void **state)
{
    struct config *config = parse(
        "[table a]\n[postgres]\ndsn=x=y\n[kafka]\nbootstrap.servers=k\nacks = All\n"
        "request.required.acks = -1\nenable.idempotence=TRUE\nmessage.timeout.ms=0\n"
        "max.in.flight=5\nretries=2147483647\nqueuing.strategy=FIFO\n"
        "partitioner=murmur2_random\ntopic.metadata.propagation.max.ms=2147483\n"
        "delivery.report.only.error=false\nqueue.buffering.max.messages=9\n"
        "no.such.property=librdkafka will tell\n",
        nothing);

    (void)state;
    assert_string_equal(property(config, "acks"), "All");
    assert_string_equal(property(config, "no.such.property"), "librdkafka will tell");
    config_free(config);
}

static void a_refusal_says_why(void **state)
{
    (void)state;
    refuse("[table a]\n[postgres]\ndsn=x=y\n[kafka]\nbootstrap.servers=k\nacks=1\n",
           "walrelay.conf:6: acks: 1 would break the promise of delivery: an event "
           "counts as "
           "published when all in-sync replicas have it");
}

static void a_property_in_upper_case_is_refused(void **state)
{
    (void)state;
    refuse("[table a]\n[postgres]\ndsn=x=y\n[kafka]\nbootstrap.servers=k\nAcks=all\n",
           "walrelay.conf:6: Acks: librdkafka's names are in lower case");
}

/* ---- environment --------------------------------------------------------------- */

static void the_environment_wins_over_the_file(void **state)
{
    const char *const env[] = {"HOME=/",
                               "WALRELAY_POSTGRES_DSN=host=other password=x",
                               "WALRELAY_RELAY_SHUTDOWN_TIMEOUT=1min",
                               "WALRELAY_KAFKA_BOOTSTRAP_SERVERS=z:1",
                               "WALRELAY_KAFKA_SASL_OAUTHBEARER_CLIENT_SECRET=s",
                               "WALRELAY_KAFKA_LOG_LEVEL=7",
                               NULL};
    struct config *config = parse(SMALLEST, env);

    (void)state;
    assert_string_equal(config->postgres.dsn, "host=other password=x");
    assert_int_equal(config->relay.shutdown_timeout_ms, 60000);
    assert_int_equal(config->nkafka, 3);
    assert_string_equal(property(config, "bootstrap.servers"), "z:1");
    assert_string_equal(property(config, "sasl.oauthbearer.client.secret"), "s");
    assert_string_equal(property(config, "log_level"), "7");
    config_free(config);
}

static void the_environment_can_give_what_the_file_lacks(void **state)
{
    const char *const env[] = {"WALRELAY_POSTGRES_DSN=host=db",
                               "WALRELAY_KAFKA_BOOTSTRAP_SERVERS=k", NULL};
    struct config *config = parse("[table a]\n", env);

    (void)state;
    assert_string_equal(config->postgres.dsn, "host=db");
    config_free(config);
}

static void variables_of_others_are_left_alone(void **state)
{
    const char *const env[] = {"WALRELAY_CONFIG=x",
                               "WALRELAY_PORT=tcp://10.0.0.1:8464",
                               "WALRELAY_SERVICE_HOST=10.0.0.1",
                               "WALRELAY_RELAY",
                               "WALRELAY_",
                               NULL};

    (void)state;
    config_free(parse(SMALLEST, env));
}

static void a_variable_that_names_no_setting_is_refused(void **state)
{
    const char *const typo[] = {"WALRELAY_RELAY_MEMRY=1MB", NULL};
    const char *const lower[] = {"WALRELAY_RELAY_memory=1MB", NULL};
    const char *const table[] = {"WALRELAY_TABLE_TOPIC=x", NULL};
    const char *const bare[] = {"WALRELAY_KAFKA_=x", NULL};
    const char *const bad[] = {"WALRELAY_RELAY_MEMORY=1", NULL};
    const char *const acks[] = {"WALRELAY_KAFKA_ACKS=1", NULL};

    (void)state;
    refuse_with(
        SMALLEST, typo,
        "WALRELAY_RELAY_MEMRY: no setting has this variable, the nearest valid one "
        "is WALRELAY_RELAY_MEMORY");
    refuse_with(
        SMALLEST, lower,
        "WALRELAY_RELAY_memory: no setting has this variable, the nearest valid one "
        "is WALRELAY_RELAY_MEMORY");
    refuse_with(SMALLEST, table, "WALRELAY_TABLE_TOPIC: tables are set in the file only");
    refuse_with(SMALLEST, bare,
                "WALRELAY_KAFKA_: no setting has this variable, the nearest valid one is "
                "WALRELAY_KAFKA_BOOTSTRAP_SERVERS");
    refuse_with(
        SMALLEST, bad,
        "WALRELAY_RELAY_MEMORY: memory: \"1\" has no unit; a size in B, kB, MB or GB "
        "is needed, as in 4MB");
    refuse_with(
        SMALLEST, acks,
        "WALRELAY_KAFKA_ACKS: acks: 1 would break the promise of delivery: an event "
        "counts as published when all in-sync replicas have it");
}

/* A file with these bytes, its path written behind the = of variable. */
static void write_file(char *variable, struct slice bytes)
{
    char *path = strchr(variable, '=') + 1;
    int fd;

    strcpy(path, "/tmp/walrelay-config-XXXXXX");
    fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.ptr, bytes.len), bytes.len);
    close(fd);
}

static void a_variable_may_name_a_file_with_the_value(void **state)
{
    char variable[128] = "WALRELAY_KAFKA_SASL_PASSWORD_FILE=";
    const char *const env[] = {variable, NULL};
    const struct {
        const char *file, *value;
    } cases[] = {{"hunter2\n", "hunter2"},
                 {"hunter2", "hunter2"},
                 {"two\r\n", "two"},
                 {" a b \n\n", " a b \n"},
                 {"", ""},
                 {"\n", ""}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct config *config;

        write_file(variable, slice_of(cases[i].file));
        config = parse(SMALLEST, env);
        assert_string_equal(property(config, "sasl.password"), cases[i].value);
        config_free(config);
        (void)unlink(strchr(variable, '=') + 1);
    }
}

static void a_file_that_cannot_be_read_is_refused(void **state)
{
    char variable[128] = "WALRELAY_POSTGRES_DSN_FILE=";
    const char *const env[] = {variable, NULL};
    const char *const missing[] = {"WALRELAY_POSTGRES_DSN_FILE=/no/such/file", NULL};
    const char *const folder[] = {"WALRELAY_POSTGRES_DSN_FILE=/tmp", NULL};
    struct err err = {0};

    (void)state;
    refuse_with(SMALLEST, missing,
                "WALRELAY_POSTGRES_DSN_FILE: cannot open /no/such/file: No such file or "
                "directory");
    refuse_with(SMALLEST, folder,
                "WALRELAY_POSTGRES_DSN_FILE: cannot read /tmp: Is a directory");
    write_file(variable, (struct slice){"a\0b", 3});
    assert_null(config_parse("f", slice_of(SMALLEST), env, &err));
    assert_non_null(strstr(err.text, "holds a NUL byte"));
    (void)unlink(strchr(variable, '=') + 1);
}

static void a_variable_and_its_file_exclude_each_other(void **state)
{
    char variable[128] = "WALRELAY_POSTGRES_DSN_FILE=";
    const char *const env[] = {"WALRELAY_POSTGRES_DSN=host=db", variable, NULL};

    (void)state;
    write_file(variable, slice_of("host=x"));
    refuse_with(
        SMALLEST, env,
        "WALRELAY_POSTGRES_DSN_FILE: WALRELAY_POSTGRES_DSN gives the same setting");
    (void)unlink(strchr(variable, '=') + 1);
}

static void no_error_holds_a_secret(void **state)
{
    const char *const texts[] = {
        "[postgres]\ndsn = password=hunter2\ndsn = password=hunter2\n",
        "[postgres]\ndsn: password=hunter2\n",
        "[postgres]\ndsn = host=db\n  password=hunter2\n",
        SMALLEST "[kafka]\nsasl.password=hunter2\n",
        "[table a]\n[postgres]\ndsn = password=hunter2\n",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct err err = {0};

        assert_null(config_parse("f", slice_of(texts[i]), nothing, &err));
        assert_null(strstr(err.text, "hunter2"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_but_three_has_a_default),
        cmocka_unit_test(every_setting_can_be_written_in_the_file),
        cmocka_unit_test(dead_letters_have_defaults),
        cmocka_unit_test(dead_letters_can_be_set),
        cmocka_unit_test(dead_letters_that_make_no_sense_are_refused),
        cmocka_unit_test(an_address_to_listen_at_is_a_host_and_a_port),
        cmocka_unit_test(nobody_listens_unless_told_so),
        cmocka_unit_test(what_is_no_address_to_listen_at_is_refused),
        cmocka_unit_test(an_empty_column_is_one_that_is_not_used),
        cmocka_unit_test(the_logged_aggregate_is_the_key_unless_it_is_set),
        cmocka_unit_test(each_table_has_its_own_settings),
        cmocka_unit_test(sizes_and_durations_have_units),
        cmocka_unit_test(a_wrong_quantity_is_refused_with_what_would_be_right),
        cmocka_unit_test(an_unknown_word_is_refused_with_the_nearest_valid_one),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(what_comes_twice_is_refused),
        cmocka_unit_test(a_wrong_name_is_refused),
        cmocka_unit_test(a_line_that_is_no_ini_is_refused),
        cmocka_unit_test(a_property_that_would_break_the_promise_is_refused),
        cmocka_unit_test(a_property_that_keeps_the_promise_passes),
        cmocka_unit_test(a_refusal_says_why),
        cmocka_unit_test(a_property_in_upper_case_is_refused),
        cmocka_unit_test(the_environment_wins_over_the_file),
        cmocka_unit_test(the_environment_can_give_what_the_file_lacks),
        cmocka_unit_test(variables_of_others_are_left_alone),
        cmocka_unit_test(a_variable_that_names_no_setting_is_refused),
        cmocka_unit_test(a_variable_may_name_a_file_with_the_value),
        cmocka_unit_test(a_file_that_cannot_be_read_is_refused),
        cmocka_unit_test(a_variable_and_its_file_exclude_each_other),
        cmocka_unit_test(no_error_holds_a_secret),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
