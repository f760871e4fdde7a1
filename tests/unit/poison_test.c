#include "core/poison.h"

#include "unit.h"

/* The wire's numbers, as https://kafka.apache.org/protocol#protocol_error_codes has them;
 * negative ones are librdkafka's. */
enum {
    TRANSPORT = -195,
    FATAL = -150,
    UNKNOWN_PARTITION = -190,
    UNKNOWN_TOPIC = 3,
    TOO_LARGE = 10,
    TOPIC_RIGHT = 29,
    CLUSTER_RIGHT = 31,
    BAD_TIMESTAMP = 32,
    BAD_RECORD = 87,
    OF_THE_FUTURE = 9999,
    ROWS = 158, /* librdkafka 2.0.2 */
};

static const struct poison_limits usual = {.attempts = 10};

static enum poison_fate fate(struct poison_case c)
{
    return poison_fate(&c, &usual);
}

static void a_state_of_the_cluster_is_never_charged_to_an_event(void **state)
{
    static const int errors[] = {TRANSPORT, CLUSTER_RIGHT, 5, 6, 7, 13, 19, 20, 56, 89};

    (void)state;
    for (size_t i = 0; i < COUNT(errors); i++)
        assert_int_equal(fate((struct poison_case){.error = errors[i],
                                                   .suspects = 1,
                                                   .attempts = 1000000,
                                                   .topic_waited_ms = INT64_MAX}),
                         FATE_WAIT);
}

static void a_spoiled_producer_has_a_successor(void **state)
{
    (void)state;
    assert_int_equal(fate((struct poison_case){.error = FATAL, .suspects = 1}),
                     FATE_AGAIN);
}

static void a_topic_waits_for_ever_unless_told_otherwise(void **state)
{
    static const struct poison_limits minute = {.attempts = 10, .topic_wait_ms = 60000};
    static const int errors[] = {UNKNOWN_TOPIC, TOPIC_RIGHT};

    (void)state;
    for (size_t i = 0; i < COUNT(errors); i++) {
        struct poison_case c = {.error = errors[i], .suspects = 1, .attempts = 99};

        c.topic_waited_ms = INT64_MAX;
        assert_int_equal(fate(c), FATE_WAIT_TOPIC);
        c.topic_waited_ms = 59999;
        assert_int_equal(poison_fate(&c, &minute), FATE_WAIT_TOPIC);
        c.topic_waited_ms = 60000;
        assert_int_equal(poison_fate(&c, &minute), FATE_REFUSED);
    }
}

static void of_several_in_a_batch_the_guilty_one_is_looked_for(void **state)
{
    (void)state;
    assert_int_equal(fate((struct poison_case){.error = BAD_RECORD, .suspects = 92}),
                     FATE_ISOLATE);
    assert_int_equal(fate((struct poison_case){.error = TOO_LARGE, .suspects = 2}),
                     FATE_ISOLATE);
}

static void a_record_that_was_alone_is_refused(void **state)
{
    (void)state;
    assert_int_equal(fate((struct poison_case){.error = BAD_RECORD, .suspects = 1}),
                     FATE_REFUSED);
    assert_int_equal(fate((struct poison_case){.error = TOO_LARGE, .suspects = 1}),
                     FATE_REFUSED);
}

static void a_timestamp_of_its_own_gives_way_and_others_mean_a_clock(void **state)
{
    struct poison_case c = {.error = BAD_TIMESTAMP, .suspects = 92, .own_time = true};

    (void)state;
    assert_int_equal(fate(c), FATE_COMMIT_TIME);
    c.own_time = false;
    assert_int_equal(fate(c), FATE_WAIT);
    c.suspects = 1;
    assert_int_equal(fate(c), FATE_WAIT);
}

static void
only_a_partition_of_the_rows_choice_that_is_missing_twice_is_refused(void **state)
{
    struct poison_case c = {.error = UNKNOWN_PARTITION, .suspects = 1};

    (void)state;
    assert_int_equal(fate(c), FATE_WAIT_TOPIC);
    c.doubted = true;
    assert_int_equal(fate(c), FATE_WAIT_TOPIC);
    c.own_partition = true;
    assert_int_equal(fate(c), FATE_REFUSED);
    c.doubted = false;
    assert_int_equal(fate(c), FATE_WAIT_TOPIC);
}

static void an_error_of_the_future_is_tried_a_limited_number_of_times(void **state)
{
    struct poison_case c = {.error = OF_THE_FUTURE, .suspects = 1, .attempts = 9};

    (void)state;
    assert_false(poison_is_known(OF_THE_FUTURE));
    assert_null(poison_name(OF_THE_FUTURE));
    assert_int_equal(fate(c), FATE_WAIT);
    c.attempts = 10;
    assert_int_equal(fate(c), FATE_REFUSED);
    c.suspects = 3;
    assert_int_equal(fate(c), FATE_ISOLATE);
}

static void what_was_sent_with_the_guilty_one_is_no_attempt(void **state)
{
    (void)state;
    assert_int_equal(poison_attempts(TOO_LARGE, 10), 1);
    assert_int_equal(poison_attempts(OF_THE_FUTURE, 10), 10);
}

static void each_error_stands_in_the_table_once(void **state)
{
    int found = 0;

    (void)state;
    for (int error = -1000; error < 1000; error++)
        found += poison_is_known(error);
    assert_int_equal(found, ROWS);
    assert_false(poison_is_known(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_of_the_cluster_is_never_charged_to_an_event),
        cmocka_unit_test(a_spoiled_producer_has_a_successor),
        cmocka_unit_test(a_topic_waits_for_ever_unless_told_otherwise),
        cmocka_unit_test(of_several_in_a_batch_the_guilty_one_is_looked_for),
        cmocka_unit_test(a_record_that_was_alone_is_refused),
        cmocka_unit_test(a_timestamp_of_its_own_gives_way_and_others_mean_a_clock),
        cmocka_unit_test(
            only_a_partition_of_the_rows_choice_that_is_missing_twice_is_refused),
        cmocka_unit_test(an_error_of_the_future_is_tried_a_limited_number_of_times),
        cmocka_unit_test(what_was_sent_with_the_guilty_one_is_no_attempt),
        cmocka_unit_test(each_error_stands_in_the_table_once),
    };

    return cmocka_run_group_tests_name("poison", tests, NULL, NULL);
}
