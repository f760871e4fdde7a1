#include "route_fixture.h"

static void timestamp_bench(struct bench *b)
{
    static char created_at[] = "created_at";

    bench_init(b);
    b->settings.id = (struct header_setting){NULL, NULL};
    b->settings.type = (struct header_setting){NULL, NULL};
    b->settings.timestamp = created_at;
    bench_start(b);
}

static void given(struct bench *b, struct row *row, const char *timestamp)
{
    default_row(row, "{}");
    row_set(row, "created_at", timestamp);
    assert_int_equal(route(b, row), ROUTE_MESSAGE);
    assert_int_equal(b->message.commit_ms, COMMIT_US / 1000);
}

static void kept(struct bench *b, const char *timestamp, int64_t ms)
{
    struct row row;

    given(b, &row, timestamp);
    assert_int_equal(b->message.timestamp_ms, ms);
    assert_int_equal(b->message.nheaders, 0);
    assert_slice(b->message.given_timestamp, timestamp, strlen(timestamp));
    row_done(&row);
}

static void replaced(struct bench *b, const char *timestamp)
{
    uint64_t before = router_timestamps_replaced(b->router);
    char expected[128];
    struct row row;

    given(b, &row, timestamp);
    assert_int_equal(b->message.timestamp_ms, COMMIT_US / 1000);
    (void)snprintf(expected, sizeof(expected), "walrelay.timestamp=%s", timestamp);
    assert_headers(&b->message, expected);
    assert_null(b->message.given_timestamp.ptr);
    assert_int_equal(router_timestamps_replaced(b->router), before + 1);
    row_done(&row);
}

static void a_timestamp_is_carried_in_milliseconds_rounded_down(void **state)
{
    struct bench b;

    (void)state;
    timestamp_bench(&b);
    kept(&b, "2026-11-30 09:15:02.114523+00", 1796030102114);
    kept(&b, "2026-11-30 09:15:02.114999", 1796030102114);
    kept(&b, "1970-01-01 00:00:00.001+00", 1);
    kept(&b, "2026-11-30 09:15:02", 1796030102000);
    bench_done(&b);
}

static void a_plain_number_is_milliseconds(void **state)
{
    struct bench b;

    (void)state;
    timestamp_bench(&b);
    kept(&b, "1796030102114", 1796030102114);
    kept(&b, "1", 1);
    replaced(&b, "0");
    replaced(&b, "-1");
    replaced(&b, "99999999999999999999999");
    bench_done(&b);
}

static void without_one_the_record_carries_the_commit_time(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    timestamp_bench(&b);
    given(&b, &row, NULL);
    assert_int_equal(b.message.timestamp_ms, COMMIT_US / 1000);
    assert_int_equal(b.message.nheaders, 0);
    assert_null(b.message.given_timestamp.ptr);
    row.columns[6].name = slice_of("created"); /* renamed: no reason to stop either */
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_int_equal(b.message.timestamp_ms, COMMIT_US / 1000);
    assert_int_equal(router_timestamps_replaced(b.router), 0);
    row_done(&row);
    bench_done(&b);
}

static void what_kafka_cannot_carry_gives_way_to_the_commit_time(void **state)
{
    struct bench b;

    (void)state;
    timestamp_bench(&b);
    replaced(&b, "infinity");
    replaced(&b, "-infinity");
    replaced(&b, "0044-03-15 10:00:00+00 BC");
    replaced(&b, "294276-01-01 00:00:00+00");
    replaced(&b, "1883-11-18 16:56:02+00");
    replaced(&b, "1969-12-31 23:59:59.999999+00"); /* -1 ms, not 0 */
    replaced(&b, "yesterday");
    replaced(&b, "");
    bench_done(&b);
}

static void an_hour_ahead_is_the_most(void **state)
{
    struct bench b;
    char text[32];

    (void)state;
    timestamp_bench(&b);
    (void)snprintf(text, sizeof(text), "%lld", (long long)NOW_MS + 3600000);
    kept(&b, text, NOW_MS + 3600000);
    (void)snprintf(text, sizeof(text), "%lld", (long long)NOW_MS + 3600001);
    replaced(&b, text);
    bench_done(&b);
}

static void the_commit_time_is_rounded_down(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    timestamp_bench(&b);
    default_row(&row, "{}");
    row_set(&row, "created_at", NULL);
    row.change.commit_us = 1999;
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_int_equal(b.message.timestamp_ms, 1);
    row.change.commit_us = -1;
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_int_equal(b.message.timestamp_ms, -1);
    row_done(&row);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timestamp_is_carried_in_milliseconds_rounded_down),
        cmocka_unit_test(a_plain_number_is_milliseconds),
        cmocka_unit_test(without_one_the_record_carries_the_commit_time),
        cmocka_unit_test(what_kafka_cannot_carry_gives_way_to_the_commit_time),
        cmocka_unit_test(an_hour_ahead_is_the_most),
        cmocka_unit_test(the_commit_time_is_rounded_down),
    };

    return cmocka_run_group_tests_name("route_timestamp", tests, NULL, NULL);
}
