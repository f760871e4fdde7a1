/* Brokers that go, come back, or fail again and again. */
#include "base/clock.h"
#include "io/sink_state.h"

#include "rig.h"

#include <string.h>

static void must_hold_all(struct rig *rig)
{
    struct record_list list = rig_read(rig, "events");

    assert_int_equal(record_list_count(&list, 0, (int64_t)rig->next), rig->next);
    record_list_must_ascend(&list);
    record_list_free(&list);
}

static void a_broker_that_comes_back_gets_all_in_order(void **state)
{
    struct rig *rig = rig_new(1, 2);

    (void)state;
    rig_start(rig);
    rig_put(rig, "events", "a", 100);
    rig_run_until_all_acked(rig);
    assert_true(sink_is_up(rig->sink));
    rd_kafka_mock_broker_set_down(rig->mock, 1);
    rig_put(rig, "events", "a", 500);
    rig_put(rig, "events", "b", 500);
    rig_run_for(rig, 5000);
    assert_false(sink_is_up(rig->sink));
    assert_int_equal(sink_pending(rig->sink), 1000);
    assert_in_range(rig->nnotices, 1, 3); /* told, but not again and again */
    rd_kafka_mock_broker_set_up(rig->mock, 1);
    rig_run_until_all_acked(rig);
    assert_non_null(rig_notice(rig, "Kafka acknowledges again"));
    must_hold_all(rig);
    rig_free(rig);
}

/* Each new producer gets one record acknowledged and then fails: that must not become a
 * tight loop, nor fill the log.  In 2 s: */
static void a_failure_that_repeats_rebuilds_at_a_growing_distance(void **state)
{
    struct rig *rig = rig_new(1, 1);

    (void)state;
    rig_start(rig);
    rig_put(rig, "events", "k", 1);
    rig_run_until_all_acked(rig);
    for (int i = 0; i < 100; i++)
        rd_kafka_mock_push_request_errors(rig->mock, PRODUCE, 2,
                                          RD_KAFKA_RESP_ERR_NO_ERROR,
                                          RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER);
    for (int i = 0; i < 100; i++) {
        rig_put(rig, "events", "k", 1);
        rig_run_for(rig, 20);
    }
    rd_kafka_mock_clear_request_errors(rig->mock, PRODUCE);
    assert_in_range(rig_count_notices(rig, "OUT_OF_ORDER_SEQUENCE_NUMBER"), 2, 6);
    for (size_t i = 1; i < rig->nnotices; i++)
        assert_int_equal(rig->notices[i].level, LOG_DEBUG);
    rig_run_until_all_acked(rig);
    must_hold_all(rig);
    rig_free(rig);
}

/* Whatever its code; librdkafka gives such an error without a message. */
static void an_error_of_the_producer_blames_no_message(void **state)
{
    struct rig *rig = rig_new(1, 1);

    (void)state;
    rig_start(rig);
    rig_put(rig, "events", "k", 10);
    sink_on_trouble(rig->sink, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, true, "too large");
    rig_put(rig, "events", "k", 10);
    rig_run_until_all_acked(rig);
    assert_int_equal(rig->err.class, ERR_NONE);
    must_hold_all(rig);
    rig_free(rig);
}

static void dropped_messages_are_not_handed_back(void **state)
{
    struct rig *rig = rig_new(1, 1);
    ticket_t before;

    (void)state;
    rig_start(rig);
    rig_put(rig, "events", "k", 1);
    rig_run_until_all_acked(rig);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 200);
    rig_put(rig, "events", "k", 2000);
    rig_run_for(rig, 100);
    before = rig->next;
    sink_drop(rig->sink);
    assert_int_equal(sink_pending(rig->sink), 0);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 0);
    /* new bytes take the place of those that the old producer still reads */
    rig_put(rig, "events", "k", 2000);
    rig_run_until_acked(rig, 1 + 2000);
    for (ticket_t t = 1; t < before; t++)
        assert_int_equal(rig->times_acked[t], 0);
    for (ticket_t t = before; t < rig->next; t++)
        assert_int_equal(rig->times_acked[t], 1);
    rig_free(rig);
}

/* What is put now is acknowledged, once each. */
static void must_go_on(struct rig *rig, ticket_t before)
{
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 0);
    rig_put(rig, "events", "k", 100);
    rig_run_until_acked(rig, rig->acked + 100);
    for (ticket_t t = before; t < rig->next; t++)
        assert_int_equal(rig->times_acked[t], 1);
}

/* Five requests of ten messages are under way, the rest waits. */
static struct rig *rig_with_a_queue(void)
{
    struct rig *rig = rig_new(1, 1);

    rig_set(rig, "batch.num.messages", "10");
    rig_start(rig);
    rig_put(rig, "events", "k", 1);
    rig_run_until_all_acked(rig);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 300);
    rig_put(rig, "events", "k", 2000);
    sink_push(rig->sink);
    rig_run_for(rig, 100);
    return rig;
}

static void once_the_source_is_gone_nothing_that_waits_is_sent(void **state)
{
    struct rig *rig = rig_with_a_queue();
    ticket_t before = rig->next;
    struct record_list list;

    (void)state;
    sink_ebb(rig->sink);
    for (int64_t end = clock_mono_ms() + RIG_LIMIT_MS;
         sink_pending(rig->sink) > 0 && clock_mono_ms() < end;)
        rig_turn(rig, 10);
    assert_int_equal(sink_pending(rig->sink), 0);
    list = rig_read(rig, "events");
    assert_in_range(list.n, 1, 500);
    /* what was under way is acknowledged, so that it need not come again */
    assert_true(rig->acked >= list.n);
    record_list_free(&list);

    must_go_on(rig, before);
    rig_free(rig);
}

static void a_source_that_comes_back_soon_drops_what_is_under_way(void **state)
{
    struct rig *rig = rig_with_a_queue();
    ticket_t before = rig->next;

    (void)state;
    sink_ebb(rig->sink);
    sink_drop(rig->sink);
    assert_int_equal(sink_pending(rig->sink), 0);
    must_go_on(rig, before);
    rig_free(rig);
}

static void an_ebb_with_nothing_under_way_changes_nothing(void **state)
{
    struct rig *rig = rig_new(1, 1);

    (void)state;
    rig_start(rig);
    sink_ebb(rig->sink);
    sink_drop(rig->sink);
    rig_put(rig, "events", "k", 10);
    rig_run_until_all_acked(rig);
    rig_free(rig);
}

static void dropping_again_and_again_is_harmless(void **state)
{
    struct rig *rig = rig_new(1, 4);

    (void)state;
    rig_start(rig);
    for (int i = 0; i < 30; i++) {
        rig_put(rig, "events", i % 2 ? "k" : NULL, 300);
        rig_run_for(rig, i % 5);
        sink_drop(rig->sink);
        if (i % 3 == 0)
            sink_drop(rig->sink);
        rig->acked = 0;
    }
    rig_put(rig, "events", "k", 100);
    rig_run_until_acked(rig, 100);
    rig_free(rig);
}

static void a_full_sink_takes_again_what_it_refused(void **state)
{
    struct rig *rig = rig_new(1, 2);
    size_t refused = 0;

    (void)state;
    rig->memory_bytes = 1 << 20;
    rig_set(rig, "queue.buffering.max.messages", "10");
    rig_set(rig, "queue.buffering.max.kbytes", "1");
    rig_start(rig);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 20);
    while (rig->next < 20000) {
        int rc = rig_offer(rig, rig_message("events", rig->next % 3 ? "a" : "b"));

        assert_int_not_equal(rc, -1);
        if (rc == 1)
            continue;
        refused++;
        assert_in_range(sink_pending(rig->sink), 500, 2000);
        rig_turn(rig, 100);
    }
    assert_true(refused > 5);
    rig_run_until_all_acked(rig);
    must_hold_all(rig);
    rig_free(rig);
}

static void tickets_that_nobody_takes_make_the_sink_full(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct err err = {0};
    ticket_t ticket;
    size_t n = 0;
    int64_t until = clock_mono_ms() + 1000;

    (void)state;
    rig->memory_bytes = 1 << 20;
    rig_start(rig);
    while (clock_mono_ms() < until) {
        (void)rig_offer(rig, rig_message("events", "k"));
        sink_push(rig->sink);
        assert_int_equal(sink_serve(rig->sink, clock_mono_ms(), &err), 0);
    }
    while (sink_done(rig->sink, &ticket))
        assert_int_equal(ticket, n++);
    assert_true(n > 0);
    rig_free(rig);
}

/* librdkafka may have said something before it was told whom to wake. */
static void what_is_wrong_from_the_start_wakes_whoever_waits(void **state)
{
    struct rig *rig = rig_new(1, 1);
    struct pollfd fds[SINK_FDS];

    (void)state;
    rig_set(rig, "bootstrap.servers", "127.0.0.1:1");
    rig_start(rig);
    while (!rig_notice(rig, "Connection refused")) {
        size_t n = sink_fds(rig->sink, fds);

        assert_int_equal(poll(fds, n, RIG_LIMIT_MS), 1);
        rig_turn(rig, 0);
    }
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_broker_that_comes_back_gets_all_in_order),
        cmocka_unit_test(a_failure_that_repeats_rebuilds_at_a_growing_distance),
        cmocka_unit_test(an_error_of_the_producer_blames_no_message),
        cmocka_unit_test(dropped_messages_are_not_handed_back),
        cmocka_unit_test(once_the_source_is_gone_nothing_that_waits_is_sent),
        cmocka_unit_test(a_source_that_comes_back_soon_drops_what_is_under_way),
        cmocka_unit_test(an_ebb_with_nothing_under_way_changes_nothing),
        cmocka_unit_test(dropping_again_and_again_is_harmless),
        cmocka_unit_test(a_full_sink_takes_again_what_it_refused),
        cmocka_unit_test(tickets_that_nobody_takes_make_the_sink_full),
        cmocka_unit_test(what_is_wrong_from_the_start_wakes_whoever_waits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
