/* Asking for the configuration of topics.  The mock cluster cannot describe any; what is
 * made of answers is in tests/unit/topic_config_test.c. */
#include "io/producer.h"

#include "rig.h"

static void on_report(void *arg, window_seq_t seq, int32_t partition, int error)
{
    (void)arg, (void)seq, (void)partition, (void)error;
}

static void on_log(void *arg, enum log_level level, const char *text)
{
    (void)arg, (void)level, (void)text;
}

static void on_trouble(void *arg, int error, bool fatal, const char *reason)
{
    (void)arg, (void)error, (void)fatal, (void)reason;
}

static void on_described(void *arg, const struct producer_description *description)
{
    (void)arg, (void)description;
}

static void a_producer_can_be_freed_before_the_answer(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct producer_options options = {
        .properties = rig->properties,
        .nproperties = rig->nproperties,
        .max_messages = 1,
        .callbacks = {on_report, on_trouble, on_log, on_described, NULL},
    };
    static const char *const topics[] = {"events", "others"};
    struct err err = {0};
    struct producer *producer = producer_new(&options, &err);

    (void)state;
    assert_non_null(producer);
    assert_true(producer_describe(producer, topics, COUNT(topics)));
    producer_poll(producer);
    producer_free(producer);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_producer_can_be_freed_before_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
