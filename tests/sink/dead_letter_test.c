/* What Kafka refuses when there is a table of dead letters: it stays, the others go on.
 */
#include "base/clock.h"
#include "core/held.h"

#include "rig.h"

#include <string.h>

static const struct held_limits limits = {100, 1000, 1 << 20, false};

/* A sink whose partition has acknowledged something, so that it sends batches. */
static struct rig *rig_with(struct held **held, size_t warm)
{
    struct rig *rig = rig_new(1, 1);

    rig_start(rig);
    *held = held_new(limits);
    assert_non_null(*held);
    sink_dead_letters(rig->sink, *held, 10);
    if (warm > 0)
        rig_put(rig, "events", "k", warm);
    rig_run_until_all_acked(rig);
    return rig;
}

static void end(struct rig *rig, struct held *held)
{
    rig_free(rig);
    held_free(held);
}

static void refuse(struct rig *rig, size_t times, rd_kafka_resp_err_t error)
{
    for (size_t i = 0; i < times; i++)
        rd_kafka_mock_push_request_errors(rig->mock, PRODUCE, 1, error);
}

/* Until so many are refused and all else is acknowledged. */
static size_t run_until_refused(struct rig *rig, size_t n, struct entry **entries)
{
    int64_t until_ms = clock_mono_ms() + RIG_LIMIT_MS;

    while (sink_pending(rig->sink) != n ||
           sink_refused(rig->sink, entries, 100, SIZE_MAX) != n) {
        assert_true(clock_mono_ms() < until_ms);
        rig_turn(rig, 10);
    }
    return n;
}

static void a_refused_record_becomes_a_dead_letter_and_holds_its_key(void **state)
{
    struct held *held;
    struct rig *rig = rig_with(&held, 0);
    struct entry *entries[100];
    struct record_list list;

    (void)state;
    refuse(rig, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD);
    rig_put(rig, "events", "k", 3);
    rig_put(rig, "events", "other", 2);
    run_until_refused(rig, 3, entries);
    assert_string_equal(entries[0]->refusal.code, "INVALID_RECORD");
    assert_false(entries[0]->refusal.held);
    assert_true(entries[1]->refusal.held && entries[2]->refusal.held);
    assert_int_equal(entries[2]->ticket, 2);
    assert_int_equal(sink_refusals(rig->sink), 1);
    assert_int_equal(rig->refused, 1);
    assert_int_equal(sink_oldest_ms(rig->sink), entries[0]->commit_ms);
    list = rig_read(rig, "events");
    assert_int_equal(list.n, 2);
    record_list_free(&list);
    sink_settle(rig->sink, 3);
    assert_int_equal(sink_pending(rig->sink), 0);
    assert_int_equal(sink_bytes(rig->sink), 0);
    assert_int_equal(sink_oldest_ms(rig->sink), 0);
    end(rig, held);
}

static void of_a_refused_batch_only_the_dead_letter_stays(void **state)
{
    struct held *held;
    struct rig *rig = rig_with(&held, 1);
    struct entry *entries[100];
    struct record_list list;

    (void)state;
    refuse(rig, 2, RD_KAFKA_RESP_ERR_INVALID_RECORD); /* the batch, then its first */
    for (int i = 0; i < 50; i++)
        rig_put(rig, "events", i == 0 ? "bad" : "k", 1);
    run_until_refused(rig, 1, entries);
    assert_int_equal(entries[0]->ticket, 1);
    list = rig_read(rig, "events");
    assert_int_equal(record_list_count(&list, 0, 51), 50);
    record_list_must_ascend(&list);
    record_list_free(&list);
    end(rig, held);
}

static void
a_batch_that_is_too_large_of_records_that_are_not_makes_no_dead_letter(void **state)
{
    struct held *held;
    struct rig *rig = rig_with(&held, 1);
    struct record_list list;

    (void)state;
    refuse(rig, 1, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    rig_put(rig, "events", "k", 50);
    rig_run_until_all_acked(rig);
    assert_int_equal(sink_refusals(rig->sink), 0);
    list = rig_read(rig, "events");
    assert_int_equal(record_list_count(&list, 0, 51), 51);
    record_list_must_ascend(&list);
    record_list_free(&list);
    end(rig, held);
}

/* A turn that leaves the tickets where they are. */
static void serve(struct rig *rig)
{
    struct pollfd fds[SINK_FDS];

    (void)poll(fds, sink_fds(rig->sink, fds), 10);
    assert_int_equal(sink_serve(rig->sink, clock_mono_ms(), &rig->err), 0);
}

static void put_retry(struct rig *rig, const char *key, ticket_t row)
{
    struct message message = rig_message("events", key);

    assert_int_equal(sink_put(rig->sink, &message, TICKET_RETRY | row, &rig->err), 1);
}

static void a_dead_letter_that_is_refused_again_keeps_those_behind_it(void **state)
{
    struct held *held;
    struct rig *rig = rig_with(&held, 0);
    struct entry *entries[100];
    const struct held_row row = {
        .topic = slice_of("events"), .key = slice_of("k"), .unresolved = true};
    ticket_t ticket;

    (void)state;
    assert_int_equal(held_load(held, &row), 0);
    refuse(rig, 1, RD_KAFKA_RESP_ERR_INVALID_RECORD);
    put_retry(rig, "k", 0);
    put_retry(rig, "k", 1);
    put_retry(rig, "other", 2);
    assert_int_equal(sink_oldest_ms(rig->sink), 0);
    for (ticket_t i = 0; i < 2; i++) {
        while (sink_refused(rig->sink, entries, 100, SIZE_MAX) != 1)
            serve(rig);
        assert_int_equal(entries[0]->ticket, TICKET_RETRY | i);
        assert_int_equal(entries[0]->refusal.held, i == 1);
        sink_settle(rig->sink, 1);
    }
    while (!sink_done(rig->sink, &ticket))
        serve(rig);
    assert_int_equal(ticket, TICKET_RETRY | 2);
    assert_int_equal(sink_pending(rig->sink), 0);
    assert_int_equal(sink_refusals(rig->sink), 0);
    assert_int_equal(rig->refused, 1);
    end(rig, held);
}

static void dead_letters_with_others_between_them_are_settled_together(void **state)
{
    static const struct refusal refusal = {.reason = "not publishable"};
    struct held *held;
    struct rig *rig = rig_with(&held, 0);
    struct entry *entries[100];
    struct message message = rig_message("events", NULL);

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            sink_refuse(rig->sink, &message, rig->next++, &refusal, &rig->err), 1);
        rig_put(rig, "events", "k", 3);
    }
    run_until_refused(rig, 3, entries);
    sink_settle(rig->sink, 3);
    assert_int_equal(sink_pending(rig->sink), 0);
    end(rig, held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_record_becomes_a_dead_letter_and_holds_its_key),
        cmocka_unit_test(of_a_refused_batch_only_the_dead_letter_stays),
        cmocka_unit_test(
            a_batch_that_is_too_large_of_records_that_are_not_makes_no_dead_letter),
        cmocka_unit_test(a_dead_letter_that_is_refused_again_keeps_those_behind_it),
        cmocka_unit_test(dead_letters_with_others_between_them_are_settled_together),
    };

    return cmocka_run_group_tests_name("dead letters of the sink", tests, NULL, NULL);
}
