/* Topics and partitions: what is missing, refused, chosen, or too much. */
#include "io/sink_state.h"

#include "rig.h"

#include <stdio.h>
#include <string.h>

static void must_hold(struct rig *rig, const char *topic, int64_t first, int64_t end)
{
    struct record_list list = rig_read(rig, topic);

    assert_int_equal(record_list_count(&list, first, end), end - first);
    record_list_must_ascend(&list);
    record_list_free(&list);
}

static void records_without_a_key_spread_over_the_partitions(void **state)
{
    struct rig *rig = rig_new(1, 4);
    struct record_list list;
    size_t on[4] = {0};

    (void)state;
    rig_start(rig);
    rig_put(rig, "events", NULL, 20000);
    rig_run_until_all_acked(rig);
    list = rig_read(rig, "events");
    assert_int_equal(record_list_count(&list, 0, 20000), 20000);
    for (size_t i = 0; i < list.n; i++) {
        assert_false(list.records[i].has_key);
        on[list.records[i].partition]++;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(on[i], 500, 15000);
    record_list_free(&list);
    rig_free(rig);
}

/* One at a time, 200 of them would take 4 s. */
static void records_without_a_key_do_not_wait_for_each_other(void **state)
{
    struct rig *rig = rig_new(1, 4);

    (void)state;
    rig_start(rig);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 20);
    rig_put(rig, "events", NULL, 200);
    rig_run_for(rig, 1000);
    assert_int_equal(rig->acked, 200);
    rig_free(rig);
}

static void a_record_goes_to_the_partition_it_names(void **state)
{
    struct rig *rig = rig_new(1, 4);
    struct record_list list;

    (void)state;
    rig_start(rig);
    for (int i = 0; i < 400; i++) {
        struct message message = rig_message("events", i % 3 == 0 ? "k" : NULL);

        if (i % 5 != 0)
            message.partition = i % 4;
        rig_put_message(rig, message);
    }
    rig_run_until_all_acked(rig);
    list = rig_read(rig, "events");
    assert_int_equal(record_list_count(&list, 0, 400), 400);
    record_list_must_ascend(&list);
    for (size_t i = 0; i < list.n; i++) {
        if (list.records[i].value % 5 != 0)
            assert_int_equal(list.records[i].partition, list.records[i].value % 4);
    }
    record_list_free(&list);
    rig_free(rig);
}

/* Messages that wait for a partition and messages that wait for the topic's number of
 * partitions, in one topic. */
static void chosen_partitions_and_keys_stay_in_order(void **state)
{
    static const struct {
        const char *key;
        int32_t partition;
    } order[] = {{"k", 1}, {"k", 1}, {"k", PARTITION_ANY}, {"k", 1}, {"k", 1}};
    struct rig *rig = rig_new(1, 4);

    (void)state;
    rig_start(rig);
    for (size_t i = 0; i < 50 * COUNT(order); i++) {
        struct message message = rig_message("events", order[i % COUNT(order)].key);

        message.partition = order[i % COUNT(order)].partition;
        rig_put_message(rig, message);
    }
    rig_run_until_all_acked(rig);
    must_hold(rig, "events", 0, 50 * COUNT(order));
    rig_free(rig);
}

static void a_partition_that_the_topic_does_not_have_is_named(void **state)
{
    struct rig *rig = rig_new(1, 4);
    struct message message = rig_message("events", "k");

    (void)state;
    rig_start(rig);
    rig_put(rig, "events", "k", 10);
    rig_run_until_all_acked(rig);
    message.partition = 7;
    rig_put_message(rig, message);
    rig_run_until_failed(rig);
    assert_int_equal(rig->err.class, ERR_POISON);
    assert_string_equal(rig->err.code, "_UNKNOWN_PARTITION");
    assert_non_null(strstr(rig->err.text, "topic events partition 7"));
    rig_free(rig);
}

static void a_topic_without_a_leader_waits_while_others_flow(void **state)
{
    struct rig *rig = rig_new(1, 2);

    (void)state;
    rd_kafka_mock_topic_create(rig->mock, "stuck", 1, 1);
    rd_kafka_mock_partition_set_leader(rig->mock, "stuck", 0, -1);
    rig_start(rig);
    rig_put(rig, "stuck", "k", 100);
    rig_put(rig, "events", "k", 1000);
    rig_put(rig, "stuck", "k", 100);
    rig_run_until_acked(rig, 1000);
    assert_int_equal(sink_pending(rig->sink), 200);
    rd_kafka_mock_partition_set_leader(rig->mock, "stuck", 0, 1);
    rig_run_until_all_acked(rig);
    must_hold(rig, "stuck", 0, 100);
    must_hold(rig, "stuck", 1100, 1200);
    must_hold(rig, "events", 100, 1100);
    rig_free(rig);
}

/* The right to write is taken away while records are under way. */
static void a_revoked_topic_waits_while_others_flow(void **state)
{
    struct rig *rig = rig_new(1, 1);

    (void)state;
    rd_kafka_mock_topic_create(rig->mock, "secret", 1, 1);
    rig_start(rig);
    rig_put(rig, "secret", "k", 1);
    rig_put(rig, "events", "k", 1);
    rig_run_until_all_acked(rig);
    rd_kafka_mock_push_request_errors(rig->mock, PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    rig_put(rig, "secret", "k", 100);
    rig_run_until_noticed(rig, "TOPIC_AUTHORIZATION_FAILED");
    assert_string_equal(rig_notice(rig, "TOPIC_AUTHORIZATION_FAILED")->topic, "secret");
    rig_put(rig, "events", "k", 100);
    rig_run_until_all_acked(rig);
    must_hold(rig, "secret", 2, 102);
    must_hold(rig, "events", 102, 202);
    rig_free(rig);
}

static void a_missing_topic_waits_until_it_is_created(void **state)
{
    struct rig *rig = rig_new(1, 2);

    (void)state;
    rd_kafka_mock_topic_set_error(rig->mock, "later",
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rig_start(rig);
    rig_put(rig, "later", "k", 300);
    rig_put(rig, "events", "k", 300);
    rig_run_until_acked(rig, 300);
    rig_run_for(rig, 500);
    assert_int_equal(sink_pending(rig->sink), 300);
    rd_kafka_mock_topic_set_error(rig->mock, "later", RD_KAFKA_RESP_ERR_NO_ERROR);
    rig_run_until_all_acked(rig);
    must_hold(rig, "later", 0, 300);
    rig_free(rig);
}

/* The push that it takes may be over before librdkafka's threads wake; that there is one
 * is what counts here. */
static void a_missing_topic_makes_no_other_wait_for_a_batch(void **state)
{
    struct rig *rig = rig_new(1, 1);

    (void)state;
    rd_kafka_mock_topic_set_error(rig->mock, "later",
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rig_start(rig);
    rig_put(rig, "events", "k", 1);
    rig_run_until_all_acked(rig);
    rig_put(rig, "later", "k", 1);
    rig_turn(rig, 0);
    rig_put(rig, "events", "k", 1);
    assert_int_equal(rig->sink->unpushed, 1);
    sink_push(rig->sink);
    assert_int_equal(rig->sink->unpushed, 0);
    rig_run_until_acked(rig, 2);
    rig_free(rig);
}

/* Only so many new topics are asked for at a time. */
static void many_missing_topics_do_not_keep_a_new_one_up(void **state)
{
    enum { MISSING = 100 };
    struct rig *rig = rig_new(1, 1);
    char name[32];

    (void)state;
    rig_start(rig);
    for (int i = 0; i < MISSING; i++) {
        (void)snprintf(name, sizeof(name), "missing-%d", i);
        rd_kafka_mock_topic_set_error(rig->mock, name,
                                      RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
        rig_put(rig, name, "k", 2);
    }
    rig_put(rig, "events", "k", 50);
    rig_run_until_acked(rig, 50);
    assert_int_equal(sink_pending(rig->sink), 2 * MISSING);
    must_hold(rig, "events", 2 * MISSING, 2 * MISSING + 50);
    for (int i = 0; i < MISSING; i++) {
        (void)snprintf(name, sizeof(name), "missing-%d", i);
        rd_kafka_mock_topic_set_error(rig->mock, name, RD_KAFKA_RESP_ERR_NO_ERROR);
        rd_kafka_mock_topic_create(rig->mock, name, 1, 1);
    }
    rig_run_until_all_acked(rig);
    must_hold(rig, "missing-99", 2 * MISSING - 2, 2 * MISSING);
    rig_free(rig);
}

static void more_topics_than_are_kept_can_be_used_again(void **state)
{
    struct rig *rig = rig_new(1, 1);
    char name[32];

    (void)state;
    rig_start(rig);
    for (int i = 0; i < 4200; i++) {
        (void)snprintf(name, sizeof(name), "events-%d", i);
        rd_kafka_mock_topic_create(rig->mock, name, 1, 1);
        rig_put(rig, name, "k", 1);
        if (i % 64 == 0)
            rig_run_until_all_acked(rig);
    }
    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof(name), "events-%d", i);
        rig_put(rig, name, "k", 2);
    }
    rig_run_until_all_acked(rig);
    must_hold(rig, "events-99", 4398, 4400);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_without_a_key_spread_over_the_partitions),
        cmocka_unit_test(records_without_a_key_do_not_wait_for_each_other),
        cmocka_unit_test(a_record_goes_to_the_partition_it_names),
        cmocka_unit_test(chosen_partitions_and_keys_stay_in_order),
        cmocka_unit_test(a_partition_that_the_topic_does_not_have_is_named),
        cmocka_unit_test(a_topic_without_a_leader_waits_while_others_flow),
        cmocka_unit_test(a_revoked_topic_waits_while_others_flow),
        cmocka_unit_test(a_missing_topic_waits_until_it_is_created),
        cmocka_unit_test(a_missing_topic_makes_no_other_wait_for_a_batch),
        cmocka_unit_test(many_missing_topics_do_not_keep_a_new_one_up),
        cmocka_unit_test(more_topics_than_are_kept_can_be_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
