/* What Kafka refuses, and what becomes of it and of its neighbours. */
#include "rig.h"

#include <string.h>

/* Partitions that have acknowledged something send batches. */
static struct rig *warm_rig(void)
{
    struct rig *rig = rig_new(1, 1);

    rig_start(rig);
    rig_put(rig, "events", "k", 1);
    rig_run_until_all_acked(rig);
    return rig;
}

static void refuse(struct rig *rig, size_t times, rd_kafka_resp_err_t error)
{
    for (size_t i = 0; i < times; i++)
        rd_kafka_mock_push_request_errors(rig->mock, PRODUCE, 1, error);
}

static void must_arrive_in_order(struct rig *rig)
{
    struct record_list list;

    rig_run_until_all_acked(rig);
    list = rig_read(rig, "events");
    assert_int_equal(record_list_count(&list, 0, (int64_t)rig->next), rig->next);
    record_list_must_ascend(&list);
    record_list_free(&list);
}

static void a_bad_record_that_travels_alone_is_named(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct record_list list;

    (void)state;
    refuse(rig, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD);
    rig_start(rig);
    rig_put(rig, "events", "k", 50);
    rig_run_until_failed(rig);
    assert_int_equal(rig->err.class, ERR_POISON);
    assert_string_equal(rig->err.code, "INVALID_RECORD");
    assert_non_null(strstr(rig->err.text, "topic events partition 0"));
    assert_non_null(
        strstr(rig->err.text, "table public.outbox_events, event id 0 at 0/0"));
    list = rig_read(rig, "events");
    assert_int_equal(list.n, 0); /* nothing overtook it */
    record_list_free(&list);
    rig_free(rig);
}

static void a_bad_record_in_a_batch_is_one_of_the_suspects_named(void **state)
{
    struct rig *rig = warm_rig();

    (void)state;
    refuse(rig, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD);
    rig_put(rig, "events", "k", 50);
    rig_run_until_failed(rig);
    assert_int_equal(rig->err.class, ERR_POISON);
    assert_string_equal(rig->err.code, "INVALID_RECORD");
    assert_non_null(strstr(rig->err.text, "50 events in the batch"));
    assert_non_null(strstr(rig->err.text, "from id 1 at 0/1 to id 50 at 0/32"));
    rig_free(rig);
}

static void a_refused_batch_is_sent_again_in_smaller_ones(void **state)
{
    struct rig *rig = warm_rig();

    (void)state;
    refuse(rig, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rig_put(rig, "events", "k", 500);
    must_arrive_in_order(rig);
    rig_free(rig);
}

static void a_record_alone_that_is_too_large_is_named(void **state)
{
    struct rig *rig = warm_rig();

    (void)state;
    refuse(rig, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rig_put(rig, "events", "k", 1);
    rig_run_until_failed(rig);
    assert_int_equal(rig->err.class, ERR_POISON);
    assert_string_equal(rig->err.code, "MSG_SIZE_TOO_LARGE");
    assert_non_null(strstr(rig->err.text, "event id 1 at 0/1"));
    rig_free(rig);
}

/* The mock refuses every request, so batches shrink to one record. */
static void halving_ends_with_one_record(void **state)
{
    struct rig *rig = warm_rig();

    (void)state;
    refuse(rig, 200, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rig_put(rig, "events", "k", 20);
    rig_run_until_failed(rig);
    assert_int_equal(rig->err.class, ERR_POISON);
    rig_free(rig);
}

static void a_refused_timestamp_gives_way_to_the_commit_time(void **state)
{
    struct rig *rig = warm_rig();
    struct message message = rig_message("events", "k");
    struct record_list list;

    (void)state;
    refuse(rig, 1, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP);
    message.given_timestamp = slice_of("1970-01-01 00:00:01+00");
    message.timestamp_ms = 1000;
    rig_put_message(rig, message);
    must_arrive_in_order(rig);
    list = rig_read(rig, "events");
    assert_int_equal(list.n, 2);
    assert_int_equal(list.records[1].timestamp_ms, 1700000001000);
    assert_string_equal(list.records[1].headers,
                        "walrelay.timestamp=1970-01-01 00:00:01+00;");
    record_list_free(&list);
    rig_free(rig);
}

/* Then the clocks or the topic's limits are to blame, which somebody may mend. */
static void a_refused_commit_time_waits(void **state)
{
    struct rig *rig = warm_rig();

    (void)state;
    refuse(rig, 3, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP);
    rig_put(rig, "events", "k", 20);
    must_arrive_in_order(rig);
    assert_non_null(rig_notice(rig, "message.timestamp.before.max.ms"));
    rig_free(rig);
}

static void a_spoiled_producer_is_replaced_and_nothing_is_lost(void **state)
{
    static const rd_kafka_resp_err_t errors[] = {
        RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
        RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING,
        RD_KAFKA_RESP_ERR_PRODUCER_FENCED,
        RD_KAFKA_RESP_ERR_UNKNOWN,
    };

    (void)state;
    for (size_t i = 0; i < COUNT(errors); i++) {
        struct rig *rig = warm_rig();

        refuse(rig, 1, errors[i]);
        rig_put(rig, "events", "k", 500);
        rig_run_until_acked(rig, 3);
        refuse(rig, 1, errors[i]);
        rig_put(rig, "events", "k", 500);
        must_arrive_in_order(rig);
        rig_free(rig);
    }
}

static void no_record_overtakes_the_first_of_its_partition(void **state)
{
    struct rig *rig = rig_new(1, 2);
    struct record_list list;

    (void)state;
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 50);
    refuse(rig, 3, RD_KAFKA_RESP_ERR_UNKNOWN);
    rig_start(rig);
    for (int i = 0; i < 100; i++) {
        rig_put(rig, "events", "a", 1);
        rig_put(rig, "events", "c", 1);
    }
    rig_run_until_all_acked(rig);
    list = rig_read(rig, "events");
    record_list_must_ascend(&list);
    assert_int_equal(record_list_count(&list, 0, 200), 200);
    record_list_free(&list);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_record_that_travels_alone_is_named),
        cmocka_unit_test(a_bad_record_in_a_batch_is_one_of_the_suspects_named),
        cmocka_unit_test(a_refused_batch_is_sent_again_in_smaller_ones),
        cmocka_unit_test(a_record_alone_that_is_too_large_is_named),
        cmocka_unit_test(halving_ends_with_one_record),
        cmocka_unit_test(a_refused_timestamp_gives_way_to_the_commit_time),
        cmocka_unit_test(a_refused_commit_time_waits),
        cmocka_unit_test(a_spoiled_producer_is_replaced_and_nothing_is_lost),
        cmocka_unit_test(no_record_overtakes_the_first_of_its_partition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
