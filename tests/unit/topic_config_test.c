/* What is asked of whom and when, and what is made of the answers.  The producer here is
 * none: it only writes down what it is asked. */
#include "base/clock.h"
#include "io/topic_config.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

enum { MINUTE_MS = 60000, MAX_ASKED = 200 };

/* Stands in for the one of io/producer_describe.c. */
struct producer {
    const char *asked[MAX_ASKED];
    size_t n;
    size_t questions;
    bool refuses;
};

bool producer_describe(struct producer *producer, const char *const *topics, size_t n)
{
    if (producer->refuses)
        return false;
    assert_true(n <= MAX_ASKED);
    for (size_t i = 0; i < n; i++)
        producer->asked[i] = topics[i];
    producer->n = n;
    producer->questions++;
    return true;
}

static int notices;

static void on_notice(void *arg, enum log_level level, const struct log_field *fields,
                      const char *text)
{
    (void)arg, (void)level, (void)fields, (void)text;
    notices++;
}

static struct topic_configs *make(struct producer *producer)
{
    struct topic_configs_options options = {.notice = on_notice};
    struct topic_configs *configs = topic_configs_new(&options);

    assert_non_null(configs);
    notices = 0;
    topic_configs_use(configs, producer);
    return configs;
}

static const struct topic_config *add(struct topic_configs *configs, const char *name)
{
    const struct topic_config *config = topic_configs_add(configs, name);

    assert_non_null(config);
    return config;
}

static void answer(struct topic_configs *configs, const char *topic,
                   const struct producer_setting *settings, size_t n)
{
    struct producer_description d = {
        .topic = topic, .reason = "", .settings = settings, .nsettings = n};

    topic_configs_described(configs, &d);
}

static void deny(struct topic_configs *configs, const char *topic, int error)
{
    struct producer_description d = {.topic = topic, .error = error, .reason = ""};

    topic_configs_described(configs, &d);
}

static void end(struct topic_configs *configs)
{
    deny(configs, NULL, 0);
}

static void what_a_broker_says_is_known(void **state)
{
    static const struct producer_setting settings[] = {
        {"max.message.bytes", "2000"},
        {"cleanup.policy", "compact,delete"},
        {"message.timestamp.type", "CreateTime"},
        {"message.timestamp.before.max.ms", "9223372036854775807"},
        {"message.timestamp.after.max.ms", "3600000"},
    };
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);
    const struct topic_config *config = add(configs, "events");

    (void)state;
    assert_int_equal(config->state, TOPIC_CONFIG_UNKNOWN);
    topic_configs_serve(configs, 1000);
    assert_int_equal(producer.n, 1);
    assert_string_equal(producer.asked[0], "events");
    answer(configs, "events", settings, COUNT(settings));
    end(configs);
    assert_int_equal(config->state, TOPIC_CONFIG_KNOWN);
    assert_int_equal(config->max_message_bytes, 2000);
    assert_true(config->compacted);
    assert_true(config->before_max_ms == INT64_MAX);
    assert_int_equal(config->after_max_ms, 3600000);
    assert_int_equal(topic_configs_smallest(configs), 2000);
    topic_configs_free(configs);
}

static void the_brokers_own_time_takes_any_timestamp(void **state)
{
    static const struct producer_setting settings[] = {
        {"message.timestamp.before.max.ms", "1000"},
        {"message.timestamp.type", "LogAppendTime"},
    };
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);
    const struct topic_config *config = add(configs, "events");

    (void)state;
    topic_configs_serve(configs, 1000);
    answer(configs, "events", settings, COUNT(settings));
    assert_true(config->before_max_ms == INT64_MAX);
    topic_configs_free(configs);
}

static void an_old_broker_has_one_limit_for_past_and_future(void **state)
{
    static const struct producer_setting settings[] = {
        {"message.timestamp.difference.max.ms", "5000"}};
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);
    const struct topic_config *config = add(configs, "events");

    (void)state;
    topic_configs_serve(configs, 1000);
    answer(configs, "events", settings, COUNT(settings));
    assert_int_equal(config->before_max_ms, 5000);
    assert_int_equal(config->after_max_ms, 5000);
    topic_configs_free(configs);
}

static void it_is_asked_again_after_five_minutes(void **state)
{
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);

    (void)state;
    (void)add(configs, "events");
    topic_configs_serve(configs, 1000);
    answer(configs, "events", NULL, 0);
    end(configs);
    assert_int_equal(topic_configs_deadline(configs), 1000 + 5 * MINUTE_MS);
    topic_configs_serve(configs, 1000 + 5 * MINUTE_MS - 1);
    assert_int_equal(producer.questions, 1);
    topic_configs_serve(configs, 1000 + 5 * MINUTE_MS);
    assert_int_equal(producer.questions, 2);
    topic_configs_free(configs);
}

static void many_topics_are_asked_for_in_few_requests(void **state)
{
    static char names[4000][8];
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        (void)snprintf(names[i], sizeof(names[i]), "t%zu", i);
        (void)add(configs, names[i]);
    }
    for (size_t i = 0; i < 40; i++) {
        topic_configs_serve(configs, 1000);
        topic_configs_serve(configs, 1000); /* one question at a time */
        assert_int_equal(producer.questions, i + 1);
        assert_int_equal(producer.n, 100);
        for (size_t j = 0; j < producer.n; j++)
            answer(configs, producer.asked[j], NULL, 0);
        end(configs);
    }
    topic_configs_serve(configs, 1000);
    assert_int_equal(producer.questions, 40);
    topic_configs_free(configs);
}

static void without_the_right_the_defaults_are_assumed_and_that_is_said_once(void **state)
{
    enum { TOPIC_AUTHORIZATION_FAILED = 29 };
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);
    const struct topic_config *a = add(configs, "a");
    const struct topic_config *b = add(configs, "b");

    (void)state;
    topic_configs_serve(configs, 1000);
    deny(configs, "a", TOPIC_AUTHORIZATION_FAILED);
    deny(configs, "b", TOPIC_AUTHORIZATION_FAILED);
    end(configs);
    assert_int_equal(notices, 1);
    assert_int_equal(a->state, TOPIC_CONFIG_ASSUMED);
    assert_int_equal(b->max_message_bytes, 1048588);
    assert_false(b->compacted);
    assert_true(topic_configs_smallest(configs) == SIZE_MAX);
    topic_configs_free(configs);
}

static void a_topic_that_does_not_exist_yet_is_asked_for_soon(void **state)
{
    enum { UNKNOWN_TOPIC = 3 };
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);
    const struct topic_config *config = add(configs, "known");

    (void)state;
    topic_configs_serve(configs, 1000);
    answer(configs, "known", NULL, 0);
    end(configs);
    config = add(configs, "new");
    topic_configs_serve(configs, 2000);
    deny(configs, "new", UNKNOWN_TOPIC);
    end(configs);
    assert_int_equal(config->state, TOPIC_CONFIG_UNKNOWN);
    assert_int_equal(notices, 0);
    topic_configs_serve(configs, 2000 + MINUTE_MS / 2);
    assert_int_equal(producer.questions, 3);
    assert_int_equal(producer.n, 1);
    assert_string_equal(producer.asked[0], "new");
    topic_configs_free(configs);
}

static void what_has_no_answer_is_asked_for_soon_and_stays_as_it_was(void **state)
{
    enum { TIMED_OUT = -185 };
    static const struct producer_setting settings[] = {{"max.message.bytes", "2000"}};
    struct producer producer = {0};
    struct topic_configs *configs = make(&producer);
    const struct topic_config *config = add(configs, "events");

    (void)state;
    topic_configs_serve(configs, 0);
    answer(configs, "events", settings, 1);
    end(configs);
    topic_configs_serve(configs, 5 * MINUTE_MS);
    deny(configs, NULL, TIMED_OUT);
    assert_int_equal(config->max_message_bytes, 2000);
    topic_configs_serve(configs, 5 * MINUTE_MS + 1);
    assert_int_equal(producer.questions, 2);
    topic_configs_serve(configs, 6 * MINUTE_MS);
    assert_int_equal(producer.questions, 3);
    topic_configs_free(configs);
}

static void another_producer_is_asked_what_the_last_one_did_not_answer(void **state)
{
    struct producer first = {0};
    struct producer second = {.refuses = true};
    struct topic_configs *configs = make(&first);

    (void)state;
    (void)add(configs, "events");
    topic_configs_serve(configs, 1000);
    topic_configs_use(configs, NULL);
    assert_true(topic_configs_deadline(configs) == CLOCK_NEVER);
    topic_configs_serve(configs, 1000);
    topic_configs_use(configs, &second);
    topic_configs_serve(configs, 1000); /* no memory */
    second.refuses = false;
    assert_true(topic_configs_deadline(configs) > 1000);
    topic_configs_serve(configs, topic_configs_deadline(configs));
    assert_int_equal(second.n, 1);
    topic_configs_free(configs);
}

static void a_record_is_judged_by_what_is_known(void **state)
{
    const int64_t now = 1700000000000;
    struct topic_config config = {TOPIC_CONFIG_KNOWN, 1000, true, 3600000, INT64_MAX};

    (void)state;
    assert_int_equal(topic_config_judge(&config, true, 1000, now, now),
                     TOPIC_CONFIG_FITS);
    assert_int_equal(topic_config_judge(&config, false, 1000, now, now),
                     TOPIC_CONFIG_NO_KEY);
    assert_int_equal(topic_config_judge(&config, true, 1001, now, now),
                     TOPIC_CONFIG_LARGE);
    assert_int_equal(topic_config_judge(&config, true, 1000, now - 3700000, now),
                     TOPIC_CONFIG_TIMESTAMP);
    assert_int_equal(topic_config_judge(&config, true, 1000, now + 3700000, now),
                     TOPIC_CONFIG_FITS);
    config.after_max_ms = 3600000;
    assert_int_equal(topic_config_judge(&config, true, 1000, now + 3700000, now),
                     TOPIC_CONFIG_TIMESTAMP);
    config.state = TOPIC_CONFIG_UNKNOWN;
    assert_int_equal(topic_config_judge(&config, false, 1001, 0, now), TOPIC_CONFIG_FITS);
    assert_int_equal(topic_config_judge(NULL, false, 1001, 0, now), TOPIC_CONFIG_FITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_broker_says_is_known),
        cmocka_unit_test(the_brokers_own_time_takes_any_timestamp),
        cmocka_unit_test(an_old_broker_has_one_limit_for_past_and_future),
        cmocka_unit_test(it_is_asked_again_after_five_minutes),
        cmocka_unit_test(many_topics_are_asked_for_in_few_requests),
        cmocka_unit_test(
            without_the_right_the_defaults_are_assumed_and_that_is_said_once),
        cmocka_unit_test(a_topic_that_does_not_exist_yet_is_asked_for_soon),
        cmocka_unit_test(what_has_no_answer_is_asked_for_soon_and_stays_as_it_was),
        cmocka_unit_test(another_producer_is_asked_what_the_last_one_did_not_answer),
        cmocka_unit_test(a_record_is_judged_by_what_is_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
