/* A backlog of many topics: messages gather and leave topic by topic. */
#include "base/clock.h"

#include "rig.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOPICS = 200, MEMORY = 1 << 20 };

static const char *topic_name(int i)
{
    static char name[32];

    (void)snprintf(name, sizeof(name), "events-%d", i);
    return name;
}

/* The mock cluster makes topics when they are asked for. */
static struct rig *backlog(int brokers)
{
    struct rig *rig = rig_new(brokers, 1);

    rig->memory_bytes = MEMORY;
    rig_start(rig);
    sink_gather(rig->sink, true);
    return rig;
}

/* In turn, as they come from a stream; ticket t goes to topic t % TOPICS. */
static void put_in_turn(struct rig *rig, int each)
{
    static const char *const keys[] = {"a", "b", "c", NULL};

    for (int i = 0; i < TOPICS * each; i++)
        rig_put(rig, topic_name(i % TOPICS), keys[(size_t)i / TOPICS % COUNT(keys)], 1);
}

static void must_hold_all(struct rig *rig, int topic, size_t each, bool ascending)
{
    struct record_list list = rig_read(rig, topic_name(topic));

    assert_int_equal(record_list_count(&list, 0, RIG_TICKETS), each);
    if (ascending)
        record_list_must_ascend(&list);
    record_list_free(&list);
}

static void must_have(struct rig *rig, size_t each)
{
    for (int i = 0; i < TOPICS; i += 23)
        must_hold_all(rig, i, each, true);
}

static void what_gathers_leaves_in_order(void **state)
{
    struct rig *rig = backlog(1);

    (void)state;
    put_in_turn(rig, 50);
    rig_run_until_all_acked(rig);
    must_have(rig, 50);
    rig_free(rig);
}

/* Nobody says that the backlog is over: it leaves when nothing more comes. */
static void what_gathers_leaves_when_nothing_more_comes(void **state)
{
    struct rig *rig = backlog(1);

    (void)state;
    put_in_turn(rig, 1);
    rig_run_until_all_acked(rig);
    put_in_turn(rig, 1);
    rig_run_until_all_acked(rig);
    must_have(rig, 2);
    rig_free(rig);
}

static void what_gathers_stays_in_order_when_the_backlog_ends(void **state)
{
    struct rig *rig = backlog(1);

    (void)state;
    for (int i = 0; i < 10; i++) {
        sink_gather(rig->sink, i % 2 == 0);
        put_in_turn(rig, 3);
    }
    rig_run_until_all_acked(rig);
    must_have(rig, 30);
    rig_free(rig);
}

/* Of the order a broker takes care, which refuses what follows a refused batch; the mock
 * does not look at sequence numbers. */
static void what_gathers_survives_a_failure(void **state)
{
    struct rig *rig = backlog(3);

    (void)state;
    put_in_turn(rig, 10);
    for (int i = 0; i < 3; i++) {
        rd_kafka_mock_push_request_errors(rig->mock, PRODUCE, 2,
                                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
                                          RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
        put_in_turn(rig, 10);
    }
    rig_run_until_all_acked(rig);
    for (int i = 0; i < TOPICS; i += 23)
        must_hold_all(rig, i, 40, false);
    rig_free(rig);
}

/* As many as there is memory for, when nothing is served in between. */
static size_t count_taken(struct rig *rig, size_t payload)
{
    char *bytes = calloc(1, payload + 1);
    struct message message;
    size_t n = 0;

    assert_non_null(bytes);
    do {
        message = rig_message(topic_name((int)(n++ % TOPICS)), "k");
        if (payload > 0)
            message.payload = (struct slice){bytes, payload};
    } while (rig_offer(rig, message) == 1);
    free(bytes);
    return n - 1;
}

/* Large ones use up the memory for bytes before the budget; time stands still. */
static void what_gathers_leaves_when_there_is_no_room(void **state)
{
    struct rig *rig = backlog(1);
    struct err err = {0};
    int64_t now_ms = clock_mono_ms();

    (void)state;
    for (int i = 0; i < 200 && rig->acked <= TOPICS; i++) {
        ticket_t ticket;

        (void)count_taken(rig, 3000);
        assert_int_equal(sink_serve(rig->sink, now_ms, &err), 0);
        while (sink_done(rig->sink, &ticket))
            rig->acked += rig->times_acked[ticket]++ == 0;
        (void)poll(NULL, 0, 10);
    }
    assert_true(rig->acked > TOPICS);
    rig_run_until_all_acked(rig);
    rig_free(rig);
}

static void memory_grows_while_many_topics_gather(void **state)
{
    struct rig *rig = backlog(1);
    size_t wide;

    (void)state;
    rd_kafka_mock_topic_create(rig->mock, "stuck", 1, 1);
    rd_kafka_mock_partition_set_leader(rig->mock, "stuck", 0, -1);
    wide = count_taken(rig, 0);
    rig_run_until_all_acked(rig);
    rig_put(rig, "stuck", "k", 1);
    sink_gather(rig->sink, false);
    rig_run_for(rig, 2500); /* checks once a second */
    assert_in_range(count_taken(rig, 0), 1, wide - wide / 3);
    rd_kafka_mock_partition_set_leader(rig->mock, "stuck", 0, 1);
    rig_run_until_all_acked(rig);
    rig_free(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_gathers_leaves_in_order),
        cmocka_unit_test(what_gathers_leaves_when_nothing_more_comes),
        cmocka_unit_test(what_gathers_stays_in_order_when_the_backlog_ends),
        cmocka_unit_test(what_gathers_survives_a_failure),
        cmocka_unit_test(what_gathers_leaves_when_there_is_no_room),
        cmocka_unit_test(memory_grows_while_many_topics_gather),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
