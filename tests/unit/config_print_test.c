#include "core/config.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const nothing[] = {NULL};

static struct config *parse(const char *text, config_env_t env)
{
    struct err err = {0};
    struct config *config = config_parse("walrelay.conf", slice_of(text), env, &err);

    if (!config)
        fail_msg("%s", err.text);
    return config;
}

/* What config_print says; to be freed. */
static char *printed(const struct config *config)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    config_print(config, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static char *printed_by(void (*print)(FILE *))
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    print(out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void each_value_is_shown_with_its_origin(void **state)
{
    const char *const env[] = {"WALRELAY_POSTGRES_DSN=host=db password=hunter2",
                               "WALRELAY_KAFKA_SASL_PASSWORD=hunter2",
                               "WALRELAY_KAFKA_SSL_CA_PEM=one\ntwo", NULL};
    struct config *config =
        parse("[table \"O\"\"x\".b]\nkey = k\n[kafka]\nclient.id = c\n"
              "bootstrap.servers = k\n[relay]\nmemory = 32MB\n",
              env);
    char *text = printed(config);

    (void)state;
    assert_string_equal(text, "[postgres]\n"
                              "# WALRELAY_POSTGRES_DSN\n"
                              "dsn = host=db password=********\n"
                              "# default\n"
                              "slot = walrelay\n"
                              "\n"
                              "[table \"O\"\"x\".\"b\"]\n"
                              "# default\n"
                              "topic = outbox.event.{aggregate_type}\n"
                              "# walrelay.conf:2\n"
                              "key = k\n"
                              "# default\n"
                              "payload = payload\n"
                              "# default\n"
                              "id = id\n"
                              "# default\n"
                              "type = event_type:type\n"
                              "# default\n"
                              "headers =\n"
                              "# default\n"
                              "aggregate_id =\n"
                              "# default\n"
                              "partition =\n"
                              "# default\n"
                              "timestamp =\n"
                              "\n"
                              "[kafka]\n"
                              "# walrelay.conf:5\n"
                              "bootstrap.servers = k\n"
                              "# walrelay.conf:4\n"
                              "client.id = c\n"
                              "# WALRELAY_KAFKA_SASL_PASSWORD\n"
                              "sasl.password = ********\n"
                              "# WALRELAY_KAFKA_SSL_CA_PEM, several lines\n"
                              "ssl.ca.pem = one two\n"
                              "# default\n"
                              "acks = all\n"
                              "# default\n"
                              "enable.idempotence = true\n"
                              "# default\n"
                              "enable.gapless.guarantee = true\n"
                              "# default\n"
                              "message.timeout.ms = 0\n"
                              "# default\n"
                              "compression.codec = lz4\n"
                              "# default\n"
                              "linger.ms = 5\n"
                              "# default\n"
                              "topic.metadata.propagation.max.ms = 1800000\n"
                              "# default\n"
                              "socket.nagle.disable = true\n"
                              "# default\n"
                              "reconnect.backoff.max.ms = 2000\n"
                              "# default\n"
                              "log.connection.close = false\n"
                              "# default\n"
                              "log.queue = true\n"
                              "\n"
                              "[relay]\n"
                              "# walrelay.conf:7\n"
                              "memory = 32MB\n"
                              "# default\n"
                              "shutdown_timeout = 10s\n"
                              "# default\n"
                              "log_format = text\n"
                              "# default\n"
                              "log_level = info\n"
                              "\n"
                              "[dead_letters]\n"
                              "# default\n"
                              "on_poison = dead-letter\n"
                              "# default\n"
                              "schema = public\n"
                              "# default\n"
                              "order = hold\n"
                              "# default\n"
                              "retry_initial = 10s\n"
                              "# default\n"
                              "retry_max = 1h\n"
                              "# default\n"
                              "max_attempts = 10\n"
                              "# default\n"
                              "held_per_key = 10000\n"
                              "# default\n"
                              "held_total = 100000\n"
                              "# default\n"
                              "limit = 1000\n"
                              "# default\n"
                              "limit_window = 5min\n"
                              "# default\n"
                              "topic_wait = 0s\n"
                              "# default\n"
                              "dead_letter_topic =\n"
                              "\n"
                              "[http]\n"
                              "# default\n"
                              "listen =\n");
    free(text);
    config_free(config);
}

static void an_alias_stands_in_for_a_default(void **state)
{
    struct config *config =
        parse("[table a]\n[postgres]\ndsn = x=y\n[kafka]\nbootstrap.servers = k\n"
              "compression.type = zstd\nqueue.buffering.max.ms = 9\ntopic.acks = all\n",
              nothing);
    char *text = printed(config);

    (void)state;
    assert_null(strstr(text, "compression.codec"));
    assert_null(strstr(text, "linger.ms"));
    assert_null(strstr(text, "\nacks"));
    assert_non_null(strstr(text, "\nmessage.timeout.ms = 0\n"));
    free(text);
    config_free(config);
}

static char *without_comments(const char *text)
{
    char *copy = strdup(text);
    char *to = copy;

    assert_non_null(copy);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        size_t len = strcspn(line, "\n") + 1;

        if (*line == '#')
            continue;
        memcpy(to, line, len);
        to += len;
    }
    *to = '\0';
    return copy;
}

static void what_is_printed_is_a_configuration_with_the_same_values(void **state)
{
    struct config *first =
        parse("[postgres]\ndsn = host=db\n[table a]\nheaders = x, y:z\n"
              "[table \"B c\".\"d]e\"]\ntopic = t\n[kafka]\nbootstrap.servers = k\n"
              "client.id = a = b # c\n[relay]\nlog_level = debug\n",
              nothing);
    char *text = printed(first);
    struct config *second = parse(text, nothing);
    char *again = printed(second);
    char *values = without_comments(text);
    char *values_again = without_comments(again);

    (void)state;
    assert_string_equal(values, values_again);
    assert_string_equal(second->tables[1].name, "d]e");
    free(values);
    free(values_again);
    free(text);
    free(again);
    config_free(first);
    config_free(second);
}

static void assert_mentions_all(const char *text)
{
    const char *const keys[] = {"dsn",          "slot",
                                "topic",        "key",
                                "payload",      "id",
                                "type",         "headers",
                                "aggregate_id", "partition",
                                "timestamp",    "bootstrap.servers",
                                "memory",       "shutdown_timeout",
                                "log_format",   "log_level",
                                "on_poison",    "schema",
                                "order",        "retry_initial",
                                "retry_max",    "max_attempts",
                                "held_per_key", "held_total",
                                "limit",        "limit_window",
                                "topic_wait",   "dead_letter_topic"};

    for (size_t i = 0; i < COUNT(keys); i++) {
        if (!strstr(text, keys[i]))
            fail_msg("%s is not mentioned", keys[i]);
    }
}

static void the_help_names_every_setting_in_lines_that_fit_a_terminal(void **state)
{
    char *text = printed_by(config_help);

    (void)state;
    assert_mentions_all(text);
    assert_non_null(strstr(text, "\n  memory = 4MB  # size in B, kB, MB or GB, 1MB to "
                                 "1024GB\n"));
    assert_non_null(strstr(text, "\n  dsn (required)  # text\n"));
    for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
        if (strcspn(line, "\n") > 80)
            fail_msg("too long: %.*s", (int)strcspn(line, "\n"), line);
    }
    free(text);
}

static void the_reference_has_a_row_for_every_setting_and_refusal(void **state)
{
    char *text = printed_by(config_reference);

    (void)state;
    assert_mentions_all(text);
    assert_non_null(strstr(text,
                           "\n| `memory` | size in B, kB, MB or GB, 1MB to 1024GB | "
                           "`4MB` | "));
    assert_non_null(strstr(text, "\n| `dsn` | text | required | "));
    assert_non_null(strstr(text, "\n| `timestamp` | column | empty | "));
    assert_non_null(strstr(text, "\n| `acks` | all | "));
    assert_non_null(strstr(text, "\n| `max.in.flight` | 1 to 5 | "));
    assert_non_null(strstr(text, "\n| `retries` | 1 or more | "));
    assert_non_null(strstr(text, "\n| `message.timeout.ms` | 0 | "));
    assert_non_null(strstr(text, "\n| `transactional.id` | not at all | "));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_is_shown_with_its_origin),
        cmocka_unit_test(an_alias_stands_in_for_a_default),
        cmocka_unit_test(what_is_printed_is_a_configuration_with_the_same_values),
        cmocka_unit_test(the_help_names_every_setting_in_lines_that_fit_a_terminal),
        cmocka_unit_test(the_reference_has_a_row_for_every_setting_and_refusal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
