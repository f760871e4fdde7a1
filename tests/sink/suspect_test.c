/* What Kafka refuses goes aside, through the second producer, and the rest arrives. */
#include "base/clock.h"
#include "core/held.h"
#include "io/sink_state.h"

#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ASIDE = 4000 };

/* A rig with a table of dead letters, which is a list here. */
struct yard {
    struct rig *rig;
    struct held *held;
    ticket_t aside[MAX_ASIDE];
    bool was_held[MAX_ASIDE];
    const char *reason[MAX_ASIDE];
    size_t naside;
};

/* topic_wait_ms as in struct sink_options. */
static struct yard *patient_yard(int partitions, int64_t topic_wait_ms)
{
    struct yard *yard = calloc(1, sizeof(*yard));

    assert_non_null(yard);
    yard->held = held_new(
        (struct held_limits){.per_key = 10000, .total = 10000, .key_bytes = 1 << 20});
    assert_non_null(yard->held);
    yard->rig = rig_new(1, partitions);
    yard->rig->topic_wait_ms = topic_wait_ms;
    rig_start(yard->rig);
    sink_dead_letters(yard->rig->sink, yard->held, 3);
    return yard;
}

static struct yard *yard_new(int partitions)
{
    return patient_yard(partitions, 0);
}

static void yard_free(struct yard *yard)
{
    rig_free(yard->rig);
    held_free(yard->held);
    free(yard);
}

static void write_rows(struct yard *yard)
{
    struct entry *entries[100];
    size_t n = sink_refused(yard->rig->sink, entries, COUNT(entries), SIZE_MAX);

    for (size_t i = 0; i < n; i++) {
        assert_true(yard->naside < MAX_ASIDE);
        yard->was_held[yard->naside] = entries[i]->refusal.held;
        yard->reason[yard->naside] = entries[i]->refusal.reason;
        yard->aside[yard->naside++] = entries[i]->ticket;
        held_written(yard->held, sink_topic_of(entries[i]), entries[i]->key);
    }
    sink_settle(yard->rig->sink, n);
}

/* Until all that was put is in Kafka or aside. */
static void run(struct yard *yard)
{
    struct rig *rig = yard->rig;
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    while (rig->acked + yard->naside < rig->next && clock_mono_ms() < until) {
        rig_turn(rig, 100);
        write_rows(yard);
        if (rig->err.class != ERR_NONE)
            print_error("sink: %s\n", rig->err.text);
        assert_int_equal(rig->err.class, ERR_NONE);
    }
    assert_int_equal(rig->acked + yard->naside, rig->next);
    assert_int_equal(sink_pending(rig->sink), 0);
}

static struct yard *warm_yard(int partitions)
{
    struct yard *yard = yard_new(partitions);

    rig_put(yard->rig, "events", "k", 1);
    run(yard);
    return yard;
}

static void put_keys(struct yard *yard, int n)
{
    for (int i = 0; i < n; i++) {
        char key[16];

        (void)snprintf(key, sizeof(key), "key-%d", i);
        rig_put(yard->rig, "events", key, 1);
    }
}

static void answer(struct yard *yard, const char *answers)
{
    for (; *answers; answers++)
        rd_kafka_mock_push_request_errors(yard->rig->mock, PRODUCE, 1,
                                          *answers == '.' ? RD_KAFKA_RESP_ERR_NO_ERROR
                                          : *answers == 's'
                                              ? RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE
                                              : RD_KAFKA_RESP_ERR_INVALID_RECORD);
}

static void must_have_arrived(struct yard *yard, size_t n)
{
    struct record_list list = rig_read(yard->rig, "events");

    assert_int_equal(record_list_count(&list, 0, (int64_t)yard->rig->next), n);
    record_list_must_ascend(&list);
    record_list_free(&list);
}

/* The batch of 50 is refused; the lane sends the first alone and halves the rest. */
static void the_guilty_one_of_a_batch_goes_aside_and_the_others_arrive(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    answer(yard, "x.xxxxxx");
    put_keys(yard, 50);
    run(yard);
    assert_int_equal(yard->naside, 1);
    assert_int_equal(yard->aside[0], 2);
    assert_false(yard->was_held[0]);
    must_have_arrived(yard, 50);
    yard_free(yard);
}

static void what_has_the_key_of_a_refused_one_waits_behind_it(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    answer(yard, "x.xxxxxx");
    rig_put(yard->rig, "events", "same", 50);
    run(yard);
    assert_int_equal(yard->naside, 49);
    for (size_t i = 0; i < 49; i++) {
        assert_int_equal(yard->aside[i], 2 + i);
        assert_int_equal(yard->was_held[i], i > 0);
    }
    must_have_arrived(yard, 2);
    yard_free(yard);
}

static void many_refusals_cost_one_producer(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    answer(yard, "x");
    put_keys(yard, 20);
    run(yard);
    for (int i = 0; i < 20; i++) {
        answer(yard, "x");
        rig_put(yard->rig, "events", NULL, 1);
        run(yard);
    }
    assert_int_equal(yard->naside, 20);
    assert_int_equal(rig_count_notices(yard->rig, "Kafka refuses"), 1);
    must_have_arrived(yard, 21);
    yard_free(yard);
}

static void other_partitions_go_on_meanwhile(void **state)
{
    struct yard *yard = warm_yard(4);

    (void)state;
    put_keys(yard, 100);
    run(yard);
    answer(yard, "x");
    put_keys(yard, 400);
    run(yard);
    put_keys(yard, 400);
    run(yard);
    assert_int_equal(yard->naside, 0); /* refused once, and taken when alone */
    must_have_arrived(yard, 901);
    yard_free(yard);
}

/* One that a row had named, so there never was a record. */
static void
a_record_without_a_key_does_not_follow_another_to_a_missing_partition(void **state)
{
    struct yard *yard = warm_yard(2);
    struct message astray = rig_message("events", "k");

    (void)state;
    astray.partition = 5;
    assert_int_equal(rig_offer(yard->rig, astray), 1);
    run(yard);
    assert_int_equal(yard->naside, 1);
    while (yard->rig->sink->phase != SINK_RUNNING)
        rig_turn(yard->rig, 100);
    assert_int_equal(yard->rig->sink->nsuspects, 1);
    sink_replace_producer(yard->rig->sink); /* one that knows no topic yet */
    rig_put(yard->rig, "events", NULL, 3);
    run(yard);
    assert_int_equal(yard->naside, 1);
    yard_free(yard);
}

static void a_batch_too_large_as_a_whole_arrives(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    answer(yard, "s.ss");
    put_keys(yard, 200);
    run(yard);
    assert_int_equal(yard->naside, 0);
    must_have_arrived(yard, 201);
    yard_free(yard);
}

static void a_topic_that_refuses_meanwhile_is_waited_for(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    answer(yard, "x.");
    rd_kafka_mock_push_request_errors(yard->rig->mock, PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    put_keys(yard, 200);
    run(yard);
    assert_int_equal(yard->naside, 0);
    must_have_arrived(yard, 201);
    yard_free(yard);
}

static void what_is_with_the_second_producer_can_be_dropped(void **state)
{
    struct yard *yard = warm_yard(1);
    struct rig *rig = yard->rig;
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    (void)state;
    answer(yard, "x");
    put_keys(yard, 200);
    while (!rig_notice(rig, "Kafka refuses") && clock_mono_ms() < until)
        rig_turn(rig, 100);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 300);
    rig_run_for(rig, 100);
    sink_ebb(rig->sink);
    while (sink_pending(rig->sink) > 0 && clock_mono_ms() < until)
        rig_turn(rig, 100);
    assert_int_equal(sink_pending(rig->sink), 0);
    rd_kafka_mock_broker_set_rtt(rig->mock, 1, 0);
    rig->acked = rig->next; /* what was dropped is put again by the source */
    put_keys(yard, 200);
    run(yard);
    yard_free(yard);
}

/* As a broker would say it; the mock cluster cannot. */
static void describe(struct yard *yard, const char *name, const char *value)
{
    struct producer_setting setting = {name, value};
    struct producer_description d = {
        .topic = "events", .reason = "", .settings = &setting, .nsettings = 1};

    rig_turn(yard->rig, 0); /* the question */
    sink_on_described(yard->rig->sink, &d);
}

static void a_record_without_a_key_is_not_sent_to_a_compacted_topic(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    describe(yard, "cleanup.policy", "compact");
    rig_put(yard->rig, "events", NULL, 10);
    rig_put(yard->rig, "events", "k", 10);
    run(yard);
    assert_int_equal(yard->naside, 10);
    assert_int_equal(yard->aside[9], 10);
    assert_int_equal(yard->rig->nnotices, 0);
    must_have_arrived(yard, 11);
    yard_free(yard);
}

static void a_record_over_the_topics_limit_does_not_end_the_main_producer(void **state)
{
    static char payload[5000];
    struct yard *yard = warm_yard(1);
    struct message message = rig_message("events", "large");

    (void)state;
    describe(yard, "max.message.bytes", "4000");
    memset(payload, 'x', sizeof(payload));
    message.payload = (struct slice){payload, sizeof(payload)};
    rig_put(yard->rig, "events", "k", 10);
    run(yard);
    answer(yard, "s");
    rig_put_message(yard->rig, message);
    rig_put(yard->rig, "events", "k", 10);
    run(yard);
    assert_int_equal(yard->naside, 1);
    assert_int_equal(yard->aside[0], 11);
    assert_int_equal(yard->rig->nnotices, 0);
    must_have_arrived(yard, 21);
    yard_free(yard);
}

static void a_timestamp_out_of_the_topics_range_gives_way_at_once(void **state)
{
    struct yard *yard = warm_yard(1);
    struct message message = rig_message("events", "k");
    struct record_list list;

    (void)state;
    describe(yard, "message.timestamp.before.max.ms", "3600000");
    message.given_timestamp = slice_of("1970-01-01 00:00:01+00");
    message.timestamp_ms = 1000;
    rig_put_message(yard->rig, message);
    run(yard);
    list = rig_read(yard->rig, "events");
    assert_int_equal(list.n, 2);
    assert_int_equal(list.records[1].timestamp_ms, 1700000001000);
    record_list_free(&list);
    yard_free(yard);
}

static void put_retry(struct yard *yard, const char *key, ticket_t row)
{
    struct message message = rig_message("events", key);
    struct err err = {0};

    message.payload = slice_of("1");
    assert_int_equal(sink_put(yard->rig->sink, &message, TICKET_RETRY | row, &err), 1);
}

/* The first of the window is one that is not for Kafka. */
static struct entry *wait_refused(struct yard *yard)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;
    struct entry *entry = NULL;

    while (sink_refused(yard->rig->sink, &entry, 1, SIZE_MAX) == 0 &&
           clock_mono_ms() < until)
        rig_turn(yard->rig, 100);
    assert_int_equal(sink_refused(yard->rig->sink, &entry, 1, SIZE_MAX), 1);
    return entry;
}

/* Somebody may have mended its topic, or not. */
static void a_dead_letter_tried_again_in_vain_does_not_end_the_main_producer(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    answer(yard, "x");
    put_retry(yard, "again", 0);
    assert_true(ticket_is_retry(wait_refused(yard)->ticket));
    assert_int_equal(yard->rig->nnotices, 0);
    sink_settle(yard->rig->sink, 1);
    put_keys(yard, 10);
    run(yard);
    must_have_arrived(yard, 11);
    yard_free(yard);
}

/* They are with the second producer, too. */
static void a_dead_letter_refused_again_keeps_all_of_its_key_behind_it(void **state)
{
    struct yard *yard = warm_yard(1);

    (void)state;
    answer(yard, "x");
    for (ticket_t row = 0; row < 10; row++)
        put_retry(yard, "again", row);
    for (ticket_t row = 0; row < 10; row++) {
        const struct entry *entry = wait_refused(yard);

        assert_int_equal(entry->ticket, TICKET_RETRY | row);
        assert_int_equal(entry->refusal.held, row > 0);
        sink_settle(yard->rig->sink, 1);
    }
    assert_int_equal(sink_pending(yard->rig->sink), 0);
    must_have_arrived(yard, 1);
    yard_free(yard);
}

/* ---- topics that are refused as a whole ---------------------------------------------
 */

static void refuse_topic(struct yard *yard, size_t times)
{
    while (times-- > 0)
        rd_kafka_mock_push_request_errors(yard->rig->mock, PRODUCE, 1,
                                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
}

static void a_topic_that_refuses_all_costs_one_producer_and_keeps_its_order(void **state)
{
    struct yard *yard = warm_yard(4);
    struct rig *rig = yard->rig;
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    (void)state;
    put_keys(yard, 100);
    run(yard);
    refuse_topic(yard, 3);
    put_keys(yard, 100);
    while (!rig_notice(rig, "Kafka refuses") && clock_mono_ms() < until)
        rig_turn(rig, 100);
    rig_put(rig, "others", "k", 1);
    put_keys(yard, 100);
    run(yard);
    assert_int_equal(yard->naside, 0);
    /* the other topic may have got one of the bad answers, too */
    assert_int_equal(rig_count_notices(rig, "Kafka refuses: topic events"), 1);
    must_have_arrived(yard, 301);
    yard_free(yard);
}

/* The mock cluster makes topics, but may be told to deny that there is one. */
static void after_topic_wait_what_is_for_a_missing_topic_goes_aside(void **state)
{
    struct yard *yard = patient_yard(1, 1000);
    struct rig *rig = yard->rig;

    (void)state;
    rd_kafka_mock_topic_set_error(rig->mock, "ghosts",
                                  RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    rig_put(rig, "ghosts", "a", 3);
    rig_put(rig, "ghosts", "b", 2);
    put_keys(yard, 10);
    run(yard);
    assert_int_equal(yard->naside, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(yard->aside[i], i);
        assert_int_equal(yard->was_held[i], i != 0 && i != 3);
    }
    assert_string_equal(yard->reason[0], "topic missing");
    rd_kafka_mock_topic_set_error(rig->mock, "ghosts", RD_KAFKA_RESP_ERR_NO_ERROR);
    rig_put(rig, "ghosts", "c", 20);
    run(yard);
    assert_int_equal(yard->naside, 5);
    must_have_arrived(yard, 10);
    yard_free(yard);
}

/* It has waited before. */
static void a_dead_letter_tried_again_does_not_wait_for_its_topic(void **state)
{
    struct yard *yard = patient_yard(1, RIG_LIMIT_MS * 10);

    (void)state;
    rig_put(yard->rig, "events", "k", 1);
    run(yard);
    refuse_topic(yard, 2);
    put_retry(yard, "again", 0);
    put_retry(yard, "again", 1);
    put_retry(yard, "other", 2);
    for (ticket_t row = 0; row < 3; row++) {
        const struct entry *entry = wait_refused(yard);

        assert_int_equal(entry->ticket, TICKET_RETRY | row);
        assert_string_equal(entry->refusal.reason, row == 1 ? "held" : "not authorized");
        sink_settle(yard->rig->sink, 1);
    }
    must_have_arrived(yard, 1);
    yard_free(yard);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_guilty_one_of_a_batch_goes_aside_and_the_others_arrive),
        cmocka_unit_test(what_has_the_key_of_a_refused_one_waits_behind_it),
        cmocka_unit_test(many_refusals_cost_one_producer),
        cmocka_unit_test(other_partitions_go_on_meanwhile),
        cmocka_unit_test(
            a_record_without_a_key_does_not_follow_another_to_a_missing_partition),
        cmocka_unit_test(a_batch_too_large_as_a_whole_arrives),
        cmocka_unit_test(a_topic_that_refuses_meanwhile_is_waited_for),
        cmocka_unit_test(what_is_with_the_second_producer_can_be_dropped),
        cmocka_unit_test(a_record_without_a_key_is_not_sent_to_a_compacted_topic),
        cmocka_unit_test(a_record_over_the_topics_limit_does_not_end_the_main_producer),
        cmocka_unit_test(a_timestamp_out_of_the_topics_range_gives_way_at_once),
        cmocka_unit_test(
            a_dead_letter_tried_again_in_vain_does_not_end_the_main_producer),
        cmocka_unit_test(a_dead_letter_refused_again_keeps_all_of_its_key_behind_it),
        cmocka_unit_test(a_topic_that_refuses_all_costs_one_producer_and_keeps_its_order),
        cmocka_unit_test(after_topic_wait_what_is_for_a_missing_topic_goes_aside),
        cmocka_unit_test(a_dead_letter_tried_again_does_not_wait_for_its_topic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
