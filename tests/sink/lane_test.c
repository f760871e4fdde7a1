/* The second producer: one batch at a time, and a verdict on each record. */
#include "base/clock.h"
#include "io/lane.h"

#include "rig.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RECORDS = 6000 };

/* A lane on the rig's cluster; the tag and the value of a record are its number. */
struct track {
    struct rig *rig;
    struct lane *lane;
    size_t next;
    char values[MAX_RECORDS][12];
    struct lane_record records[MAX_RECORDS];
    struct lane_result results[MAX_RECORDS];
    size_t nresults;
    struct err err;
};

static void on_notice(void *arg, enum log_level level, const struct log_field *fields,
                      const char *text)
{
    (void)arg, (void)level, (void)fields;
    if (getenv("RIG_VERBOSE"))
        (void)fprintf(stderr, "notice: %s\n", text);
}

static struct track *track_new(int partitions)
{
    struct track *track = calloc(1, sizeof(*track));
    struct lane_options options = {.limits = {.attempts = 3}, .notice = on_notice};
    struct err err = {0};

    assert_non_null(track);
    track->rig = rig_new(1, partitions);
    options.properties = track->rig->properties;
    options.nproperties = track->rig->nproperties;
    track->lane = lane_new(&options, &err);
    assert_non_null(track->lane);
    return track;
}

static void track_free(struct track *track)
{
    lane_free(track->lane);
    rig_free(track->rig);
    free(track);
}

static int put_again(struct track *track, uint64_t tag)
{
    return lane_put(track->lane, &track->records[tag], &track->err);
}

/* What comes back from behind a refused one is put again when all results are there. */
static void take_results(struct track *track)
{
    static uint64_t again[MAX_RECORDS];
    struct lane_result result;
    size_t n = 0;

    while (lane_done(track->lane, &result)) {
        if (result.outcome == LANE_BEHIND)
            again[n++] = result.tag;
        else
            track->results[track->nresults++] = result;
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(again[i] < track->next);
        assert_int_equal(put_again(track, again[i]), 1);
    }
}

static void turn(struct track *track)
{
    struct pollfd fds[LANE_FDS];
    size_t n = lane_fds(track->lane, fds);
    int64_t left = lane_deadline(track->lane) - clock_mono_ms();

    (void)poll(fds, n, left < 0 ? 0 : left < 100 ? (int)left : 100);
    if (lane_serve(track->lane, clock_mono_ms(), &track->err) != 0)
        print_error("lane_serve: %s\n", track->err.text);
    assert_int_equal(track->err.class, ERR_NONE);
    take_results(track);
}

static struct lane_record record_of(struct track *track, const char *topic,
                                    const char *key, int32_t partition)
{
    char *value = track->values[track->next];
    struct lane_record record = {
        .message = rig_message(topic, key), .partition = partition, .tag = track->next};

    (void)snprintf(value, sizeof(track->values[0]), "%zu", track->next);
    record.message.payload = slice_of(value);
    return record;
}

static void put_record(struct track *track, const struct lane_record *record)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;
    int rc = lane_put(track->lane, record, &track->err);

    while (rc == 0 && clock_mono_ms() < until) {
        turn(track);
        rc = lane_put(track->lane, record, &track->err);
    }
    assert_int_equal(rc, 1);
    track->records[record->tag] = *record;
    track->next++;
}

static void put(struct track *track, const char *topic, const char *key,
                int32_t partition, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct lane_record record = record_of(track, topic, key, partition);

        put_record(track, &record);
    }
}

/* Until all that was put has a result. */
static void run(struct track *track)
{
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    while (track->nresults < track->next && clock_mono_ms() < until)
        turn(track);
    assert_int_equal(track->nresults, track->next);
    assert_int_equal(lane_pending(track->lane), 0);
}

/* One record has been acknowledged, so that there are batches from now on. */
static struct track *warm_track(int partitions)
{
    struct track *track = track_new(partitions);

    put(track, "events", "k", 0, 1);
    run(track);
    assert_int_equal(track->results[0].outcome, LANE_ACKNOWLEDGED);
    return track;
}

/* What the next requests are answered with; 0 is a good answer. */
#define answer(track, ...)                                                               \
    answer_list(track, (const rd_kafka_resp_err_t[]){__VA_ARGS__},                       \
                sizeof((const rd_kafka_resp_err_t[]){__VA_ARGS__}) /                     \
                    sizeof(rd_kafka_resp_err_t))
enum {
    OK = RD_KAFKA_RESP_ERR_NO_ERROR,
    BAD = RD_KAFKA_RESP_ERR_INVALID_RECORD,
    LARGE = RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
};

static void answer_list(struct track *track, const rd_kafka_resp_err_t *errors, size_t n)
{
    rd_kafka_mock_push_request_errors_array(track->rig->mock, PRODUCE, n, errors);
}

static void outcomes_must_be(const struct track *track, size_t first, size_t end,
                             enum lane_outcome outcome)
{
    for (size_t i = first; i < end; i++) {
        assert_int_equal(track->results[i].tag, i);
        assert_int_equal(track->results[i].outcome, outcome);
    }
}

/* All values from 0 to before end but one, in order, each once. */
static void must_have_arrived_without(struct track *track, int64_t end, int64_t missing)
{
    struct record_list list = rig_read(track->rig, "events");
    int64_t next = 0;

    for (size_t i = 0; i < list.n; i++, next++) {
        if (next == missing)
            next++;
        assert_int_equal(list.records[i].value, next);
    }
    assert_int_equal(next == missing ? next + 1 : next, end);
    record_list_free(&list);
}

static void records_arrive_in_order(void **state)
{
    struct track *track = track_new(1);

    (void)state;
    put(track, "events", "k", 0, 5000);
    run(track);
    outcomes_must_be(track, 0, 5000, LANE_ACKNOWLEDGED);
    assert_int_equal(track->results[4999].partition, 0);
    assert_int_equal(track->results[4999].attempts, 1);
    must_have_arrived_without(track, 5000, -1);
    track_free(track);
}

static void a_record_refused_alone_is_refused(void **state)
{
    struct track *track = track_new(1);

    (void)state;
    answer(track, BAD);
    put(track, "events", "k", 0, 50);
    run(track);
    assert_int_equal(track->results[0].outcome, LANE_REFUSED);
    assert_int_equal(track->results[0].error, BAD);
    assert_non_null(strstr(track->results[0].text, "record"));
    outcomes_must_be(track, 1, 50, LANE_ACKNOWLEDGED);
    must_have_arrived_without(track, 50, 0);
    track_free(track);
}

/* They may have to wait for it. */
static void what_is_behind_a_refused_record_comes_back_unsent(void **state)
{
    struct track *track = warm_track(1);
    struct lane_result result;
    size_t n = 0;
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    (void)state;
    answer(track, BAD, BAD, BAD);
    put(track, "events", "k", 0, 4);
    while (lane_pending(track->lane) > 0 && clock_mono_ms() < until) {
        assert_int_equal(lane_serve(track->lane, clock_mono_ms(), &track->err), 0);
        for (; lane_done(track->lane, &result); n++) {
            assert_int_equal(result.tag, 1 + n);
            assert_int_equal(result.outcome, n == 0 ? LANE_REFUSED : LANE_BEHIND);
        }
    }
    assert_int_equal(n, 4);
    must_have_arrived_without(track, 1, -1);
    track_free(track);
}

static void what_is_behind_a_refused_record_and_of_another_key_is_sent(void **state)
{
    static const char *const keys[] = {"a", "b", "a", "b"};
    static const enum lane_outcome outcomes[] = {LANE_REFUSED, LANE_BEHIND,
                                                 LANE_ACKNOWLEDGED, LANE_ACKNOWLEDGED};
    static const uint64_t tags[] = {1, 3, 2, 4};
    struct track *track = warm_track(1);
    struct lane_result result;
    size_t n = 0;
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    (void)state;
    answer(track, BAD, BAD, BAD);
    for (size_t i = 0; i < 4; i++)
        put(track, "events", keys[i], 0, 1);
    while (lane_pending(track->lane) > 0 && clock_mono_ms() < until) {
        assert_int_equal(lane_serve(track->lane, clock_mono_ms(), &track->err), 0);
        for (; lane_done(track->lane, &result); n++) {
            assert_int_equal(result.tag, tags[n]);
            assert_int_equal(result.outcome, outcomes[n]);
        }
    }
    assert_int_equal(n, 4);
    track_free(track);
}

/* It is the second of the next requests that is refused, and nothing else is in it. */
static void next_one_travels_alone(struct track *track, const struct lane_record *like,
                                   rd_kafka_resp_err_t error)
{
    size_t first = track->next;
    struct lane_record record = *like;

    answer(track, error);
    put_record(track, &record);
    run(track);
    assert_int_equal(track->results[first].outcome, LANE_REFUSED);
    answer(track, RD_KAFKA_RESP_ERR_NO_ERROR, error);
    put(track, "events", "k", 0, 3);
    record.tag = track->next;
    put_record(track, &record);
    put(track, "events", "k", 0, 3);
    run(track);
    outcomes_must_be(track, first + 1, first + 4, LANE_ACKNOWLEDGED);
    assert_int_equal(track->results[first + 4].outcome, LANE_REFUSED);
    outcomes_must_be(track, first + 5, first + 8, LANE_ACKNOWLEDGED);
}

static void a_record_like_one_that_was_refused_travels_alone(void **state)
{
    static char long_value[1000];
    struct track *track = warm_track(1);
    struct header header = {slice_of("long"), {long_value, sizeof(long_value)}};
    struct lane_record record = record_of(track, "events", NULL, 0);

    (void)state;
    next_one_travels_alone(track, &record, RD_KAFKA_RESP_ERR_INVALID_RECORD);
    record = record_of(track, "events", "other", 0);
    record.message.headers = &header;
    record.message.nheaders = 1;
    next_one_travels_alone(track, &record, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    track_free(track);
}

/* Seven at once: 1 2 3 are taken, 4 5 refused, 4 taken, and 5 alone is refused. */
static void a_refused_batch_is_halved_until_the_guilty_one_is_alone(void **state)
{
    struct track *track = warm_track(1);

    (void)state;
    answer(track, BAD, OK, BAD, OK, BAD);
    put(track, "events", "k", 0, 7);
    run(track);
    outcomes_must_be(track, 1, 5, LANE_ACKNOWLEDGED);
    assert_int_equal(track->results[5].outcome, LANE_REFUSED);
    assert_int_equal(track->results[5].attempts, 3);
    outcomes_must_be(track, 6, 8, LANE_ACKNOWLEDGED);
    must_have_arrived_without(track, 8, 5);
    track_free(track);
}

static void one_guilty_among_a_thousand_takes_a_dozen_requests(void **state)
{
    struct track *track = warm_track(1);

    (void)state;
    answer(track, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD, BAD);
    put(track, "events", "k", 0, 1000);
    run(track);
    assert_int_equal(track->results[1].outcome, LANE_REFUSED);
    assert_int_equal(track->results[1].attempts, 10);
    outcomes_must_be(track, 2, 1001, LANE_ACKNOWLEDGED);
    must_have_arrived_without(track, 1001, 1);
    track_free(track);
}

/* The first request of each round is refused.  If librdkafka made two of a batch, the
 * second would be taken, and its records would come twice. */
static void a_batch_is_one_request(void **state)
{
    struct track *track = warm_track(1);

    (void)state;
    for (int round = 0; round < 10; round++) {
        answer(track, BAD);
        put(track, "events", "k", 0, 500);
        run(track);
    }
    outcomes_must_be(track, 1, 5001, LANE_ACKNOWLEDGED);
    must_have_arrived_without(track, 5001, -1);
    track_free(track);
}

static void a_batch_too_large_as_a_whole_is_nobodys_fault(void **state)
{
    struct track *track = warm_track(1);

    (void)state;
    answer(track, LARGE, LARGE, OK);
    put(track, "events", "k", 0, 100);
    run(track);
    outcomes_must_be(track, 1, 101, LANE_ACKNOWLEDGED);
    must_have_arrived_without(track, 101, -1);
    track_free(track);
}

static void a_refused_timestamp_gives_way_to_the_commit_time(void **state)
{
    struct track *track = warm_track(1);
    struct header header = {slice_of("id"), slice_of("e-1")};
    struct lane_record record = record_of(track, "events", "k", 0);
    struct record_list list;

    (void)state;
    answer(track, RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP);
    record.message.given_timestamp = slice_of("1970-01-01 00:00:01+00");
    record.message.timestamp_ms = 1000;
    record.message.headers = &header;
    record.message.nheaders = 1;
    put_record(track, &record);
    run(track);
    outcomes_must_be(track, 1, 2, LANE_ACKNOWLEDGED);
    assert_true(track->results[1].commit_time);
    list = rig_read(track->rig, "events");
    assert_int_equal(list.n, 2);
    assert_int_equal(list.records[1].timestamp_ms, 1700000001000);
    assert_string_equal(list.records[1].headers,
                        "id=e-1;walrelay.timestamp=1970-01-01 00:00:01+00;");
    record_list_free(&list);
    track_free(track);
}

/* It says nothing about the records, and those behind were not even sent. */
static void a_state_of_the_topic_gives_all_of_the_queue_back(void **state)
{
    struct track *track = warm_track(1);

    (void)state;
    answer(track, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    put(track, "events", "k", 0, 1500);
    run(track);
    outcomes_must_be(track, 1, 1501, LANE_LATER);
    assert_int_equal(track->results[1].error,
                     RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    assert_int_equal(track->results[1].attempts, 1);
    assert_int_equal(track->results[1500].attempts, 0);
    must_have_arrived_without(track, 1, -1);
    track_free(track);
}

static void a_state_of_the_cluster_is_waited_for_and_not_charged(void **state)
{
    struct track *track = warm_track(1);

    (void)state;
    answer(track, RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
           RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    put(track, "events", "k", 0, 100);
    run(track);
    outcomes_must_be(track, 1, 101, LANE_ACKNOWLEDGED);
    must_have_arrived_without(track, 101, -1);
    track_free(track);
}

/* A broker of the future. */
static void an_error_that_is_not_known_is_tried_a_few_times(void **state)
{
    struct track *track = warm_track(1);
    struct lane_record record = record_of(track, "events", "k", 0);
    size_t last = 1;

    (void)state;
    answer(track, 2000, 2000, 2000);
    put_record(track, &record);
    run(track);
    for (; track->results[last].outcome == LANE_LATER; last++) {
        record.attempts = track->results[last].attempts;
        track->next = last + 1; /* one more result of the same */
        put_record(track, &record);
        run(track);
    }
    assert_int_equal(track->results[last].outcome, LANE_REFUSED);
    assert_int_equal(track->results[last].attempts, 3);
    track_free(track);
}

static void a_spoiled_producer_is_replaced_and_nothing_is_lost(void **state)
{
    static const rd_kafka_resp_err_t errors[] = {
        RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER,
        RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH,
        RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING,
    };

    (void)state;
    for (size_t i = 0; i < COUNT(errors); i++) {
        struct track *track = warm_track(1);

        answer(track, errors[i], OK, errors[i]);
        put(track, "events", "k", 0, 500);
        run(track);
        outcomes_must_be(track, 1, 501, LANE_ACKNOWLEDGED);
        must_have_arrived_without(track, 501, -1);
        track_free(track);
    }
}

static void without_a_partition_the_key_says_where(void **state)
{
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    struct track *track = track_new(4);
    struct record_list list;

    (void)state;
    for (int i = 0; i < 40; i++) {
        put(track, "events", i % 7 == 0 ? NULL : keys[i % 10], PARTITION_ANY, 1);
    }
    put(track, "events", "same", PARTITION_ANY, 300);
    run(track);
    outcomes_must_be(track, 0, 340, LANE_ACKNOWLEDGED);
    list = rig_read(track->rig, "events");
    assert_int_equal(list.n, 340);
    record_list_must_ascend(&list);
    for (size_t i = 1; i < list.n; i++) {
        for (size_t j = 0; j < i && list.records[i].has_key; j++) {
            if (strcmp(list.records[i].key, list.records[j].key) == 0)
                assert_int_equal(list.records[i].partition, list.records[j].partition);
        }
    }
    record_list_free(&list);
    track_free(track);
}

static void what_is_dropped_is_soon_not_borrowed_any_more(void **state)
{
    struct track *track = warm_track(1);
    int64_t until = clock_mono_ms() + RIG_LIMIT_MS;

    (void)state;
    rd_kafka_mock_broker_set_rtt(track->rig->mock, 1, 500);
    put(track, "events", "k", 0, 100);
    turn(track);
    lane_drop(track->lane);
    assert_int_equal(lane_pending(track->lane), 0);
    while (lane_borrows(track->lane) && clock_mono_ms() < until)
        turn(track);
    assert_false(lane_borrows(track->lane));
    rd_kafka_mock_broker_set_rtt(track->rig->mock, 1, 0);
    track->next = track->nresults;
    put(track, "other", "k", 0, 100);
    run(track);
    outcomes_must_be(track, 1, 101, LANE_ACKNOWLEDGED);
    track_free(track);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_arrive_in_order),
        cmocka_unit_test(a_record_refused_alone_is_refused),
        cmocka_unit_test(what_is_behind_a_refused_record_comes_back_unsent),
        cmocka_unit_test(what_is_behind_a_refused_record_and_of_another_key_is_sent),
        cmocka_unit_test(a_record_like_one_that_was_refused_travels_alone),
        cmocka_unit_test(a_refused_batch_is_halved_until_the_guilty_one_is_alone),
        cmocka_unit_test(one_guilty_among_a_thousand_takes_a_dozen_requests),
        cmocka_unit_test(a_batch_is_one_request),
        cmocka_unit_test(a_batch_too_large_as_a_whole_is_nobodys_fault),
        cmocka_unit_test(a_refused_timestamp_gives_way_to_the_commit_time),
        cmocka_unit_test(a_state_of_the_topic_gives_all_of_the_queue_back),
        cmocka_unit_test(a_state_of_the_cluster_is_waited_for_and_not_charged),
        cmocka_unit_test(an_error_that_is_not_known_is_tried_a_few_times),
        cmocka_unit_test(a_spoiled_producer_is_replaced_and_nothing_is_lost),
        cmocka_unit_test(without_a_partition_the_key_says_where),
        cmocka_unit_test(what_is_dropped_is_soon_not_borrowed_any_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
