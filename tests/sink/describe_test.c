/* Asking for the configuration of topics. The mock cluster cannot describe any, which is
 * an answer too; what a real broker says is looked at in tests/integration. */
#include "base/clock.h"
#include "io/topic_config.h"

#include "rig.h"

#include <poll.h>
#include <string.h>

struct asker {
    struct topic_configs *configs;
    int notices;
};

static void on_notice(void *arg, enum log_level level, const struct log_field *fields,
                      const char *text)
{
    struct asker *asker = arg;

    (void)level, (void)fields;
    assert_non_null(strstr(text, "DESCRIBE_CONFIGS"));
    asker->notices++;
}

static void on_log(void *arg, int level, const char *text)
{
    (void)arg, (void)level, (void)text;
}

static void on_trouble(void *arg, int error, bool fatal, const char *reason)
{
    (void)arg, (void)error, (void)fatal, (void)reason;
}

static void on_described(void *arg, const struct producer_description *description)
{
    const struct asker *asker = arg;

    topic_configs_described(asker->configs, description);
}

static struct producer *make_producer(const struct rig *rig, struct asker *asker)
{
    struct producer_options options = {
        .properties = rig->properties,
        .nproperties = rig->nproperties,
        .max_messages = 1,
        .callbacks = {.trouble = on_trouble,
                      .log = on_log,
                      .described = on_described,
                      .arg = asker},
    };
    struct err err = {0};
    struct producer *producer = producer_new(&options, &err);

    assert_non_null(producer);
    return producer;
}

static void a_cluster_that_describes_nothing_leaves_the_defaults(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct asker asker = {0};
    struct topic_configs_options options = {on_notice, &asker};
    struct producer *producer = make_producer(rig, &asker);
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;
    const struct topic_config *config;

    (void)state;
    asker.configs = topic_configs_new(&options);
    assert_non_null(asker.configs);
    topic_configs_use(asker.configs, producer);
    config = topic_configs_add(asker.configs, "events");
    assert_non_null(topic_configs_add(asker.configs, "others"));
    while (config->state == TOPIC_CONFIG_UNKNOWN && clock_mono_ms() < until) {
        struct pollfd fd = {producer_fd(producer), POLLIN, 0};

        topic_configs_serve(asker.configs, clock_mono_ms());
        (void)poll(&fd, 1, 100);
        producer_poll(producer);
    }
    assert_int_equal(config->state, TOPIC_CONFIG_ASSUMED);
    assert_int_equal(asker.notices, 1);
    producer_free(producer);
    topic_configs_free(asker.configs);
    rig_free(rig);
}

/* A question may be under way. */
static void a_producer_can_be_freed_before_its_answer(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct asker asker = {0};
    struct producer *producer = make_producer(rig, &asker);
    const char *topic = "events";

    (void)state;
    assert_true(producer_describe(producer, &topic, 1));
    producer_free(producer);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cluster_that_describes_nothing_leaves_the_defaults),
        cmocka_unit_test(a_producer_can_be_freed_before_its_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
