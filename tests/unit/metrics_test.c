#include "core/metrics.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

struct bench {
    struct metrics *metrics;
    struct buf page;
};

static int set_up(void **state)
{
    static struct bench bench;

    bench.metrics = metrics_new();
    buf_init(&bench.page, METRICS_PAGE_MAX);
    *state = &bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *b = *state;

    metrics_free(b->metrics);
    buf_done(&b->page);
    return 0;
}

/* Without memory a test fails, which is right. */
static struct bench *ready(void **state)
{
    struct bench *b = *state;

    assert_non_null(b->metrics);
    return b;
}

static const char *page(struct bench *b)
{
    buf_reset(&b->page);
    metrics_render(b->metrics, &b->page);
    assert_false(b->page.failed);
    return buf_str(&b->page);
}

static void count(struct bench *b, const char *type)
{
    metrics_count_failed(b->metrics, slice_of(type));
}

static void assert_has(struct bench *b, const char *line)
{
    if (!strstr(page(b), line))
        fail_msg("there is no %s in\n%s", line, page(b));
}

static size_t times(const char *text, const char *word)
{
    size_t n = 0;

    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

static void the_page_is_what_prometheus_reads(void **state)
{
    struct bench *b = ready(state);

    for (enum metric i = 0; i < METRICS; i++)
        metrics_set(b->metrics, i, 1000 + i);
    count(b, "OrderPaid");
    assert_string_equal(
        page(b),
        "# HELP walrelay_build_info Always 1; the version is a label.\n"
        "# TYPE walrelay_build_info gauge\n"
        "walrelay_build_info{version=\"" WALRELAY_VERSION "\"} 1000\n"
        "# HELP outbox_streaming 1 while the relay streams from its slot.\n"
        "# TYPE outbox_streaming gauge\n"
        "outbox_streaming 1001\n"
        "# HELP outbox_reconnects_total Streams, and attempts to begin one, that "
        "failed.\n"
        "# TYPE outbox_reconnects_total counter\n"
        "outbox_reconnects_total 1002\n"
        "# HELP outbox_events_published_total Events that Kafka has acknowledged, "
        "repetitions included.\n"
        "# TYPE outbox_events_published_total counter\n"
        "outbox_events_published_total 1003\n"
        "# HELP outbox_events_failed_total How often an event was refused, each further "
        "attempt included.\n"
        "# TYPE outbox_events_failed_total counter\n"
        "outbox_events_failed_total{event_type=\"OrderPaid\"} 1\n"
        "# HELP outbox_events_pending Events that were read and are not acknowledged.\n"
        "# TYPE outbox_events_pending gauge\n"
        "outbox_events_pending 1005\n"
        "# HELP outbox_events_pending_bytes What they take of the setting memory.\n"
        "# TYPE outbox_events_pending_bytes gauge\n"
        "outbox_events_pending_bytes 1006\n"
        "# HELP outbox_received_lsn Up to where the WAL has been read, as a number.\n"
        "# TYPE outbox_received_lsn gauge\n"
        "outbox_received_lsn 1007\n"
        "# HELP outbox_confirmed_flush_lsn Up to where everything is durable, as a "
        "number.\n"
        "# TYPE outbox_confirmed_flush_lsn gauge\n"
        "outbox_confirmed_flush_lsn 1008\n"
        "# HELP outbox_lag_bytes WAL that has been read and is not confirmed.\n"
        "# TYPE outbox_lag_bytes gauge\n"
        "outbox_lag_bytes 1009\n"
        "# HELP outbox_lag_seconds Since the oldest pending event was committed; 0: "
        "there is none.\n"
        "# TYPE outbox_lag_seconds gauge\n"
        "outbox_lag_seconds 1.010\n"
        "# HELP outbox_timestamps_replaced_total Records with the commit time in place "
        "of a timestamp that none can have.\n"
        "# TYPE outbox_timestamps_replaced_total counter\n"
        "outbox_timestamps_replaced_total 1011\n"
        "# HELP outbox_dead_letters Unresolved rows of the table of dead letters.\n"
        "# TYPE outbox_dead_letters gauge\n"
        "outbox_dead_letters{state=\"waiting\"} 1012\n"
        "outbox_dead_letters{state=\"held\"} 1013\n"
        "outbox_dead_letters{state=\"dead\"} 1014\n"
        "# HELP outbox_dead_letters_oldest_age_seconds Since the oldest of these was "
        "written; 0: there is none.\n"
        "# TYPE outbox_dead_letters_oldest_age_seconds gauge\n"
        "outbox_dead_letters_oldest_age_seconds 1.015\n"
        "# HELP outbox_held_keys Keys whose events wait behind a dead letter.\n"
        "# TYPE outbox_held_keys gauge\n"
        "outbox_held_keys 1016\n"
        "# HELP outbox_dead_letters_breaker_open 1 after too many refused events: "
        "nothing is read.\n"
        "# TYPE outbox_dead_letters_breaker_open gauge\n"
        "outbox_dead_letters_breaker_open 1017\n"
        "# HELP process_start_time_seconds When the relay started, in seconds since "
        "1970.\n"
        "# TYPE process_start_time_seconds gauge\n"
        "process_start_time_seconds 1.018\n"
        "# HELP process_cpu_seconds_total CPU time of the process.\n"
        "# TYPE process_cpu_seconds_total counter\n"
        "process_cpu_seconds_total 1.019\n"
        "# HELP process_resident_memory_bytes Resident memory of the process.\n"
        "# TYPE process_resident_memory_bytes gauge\n"
        "process_resident_memory_bytes 1020\n");
}

static void what_is_not_known_is_not_on_the_page(void **state)
{
    struct bench *b = ready(state);

    assert_null(strstr(page(b), "\noutbox_held_keys "));
    metrics_set(b->metrics, METRIC_HELD_KEYS, 0);
    assert_has(b, "\noutbox_held_keys 0\n");
    metrics_forget(b->metrics, METRIC_HELD_KEYS);
    assert_null(strstr(page(b), "\noutbox_held_keys "));
}

static void a_position_is_exact(void **state)
{
    struct bench *b = ready(state);

    metrics_set(b->metrics, METRIC_RECEIVED_LSN, UINT64_MAX);
    assert_has(b, "\noutbox_received_lsn 18446744073709551615\n");
}

static void events_that_fail_are_counted_by_their_type(void **state)
{
    struct bench *b = ready(state);

    count(b, "a");
    count(b, "b");
    count(b, "a");
    count(b, "");
    count(b, NULL);
    assert_has(b, "\noutbox_events_failed_total{event_type=\"a\"} 2\n");
    assert_has(b, "\noutbox_events_failed_total{event_type=\"b\"} 1\n");
    assert_has(b, "\noutbox_events_failed_total{event_type=\"\"} 2\n");
    assert_int_equal(times(page(b), "# TYPE outbox_events_failed_total"), 1);
}

static void a_types_signs_do_not_end_the_label(void **state)
{
    struct bench *b = ready(state);

    count(b, "a\\b\"c\nd{}, \xc3\xa9\t");
    assert_has(b, "{event_type=\"a\\\\b\\\"c\\nd{}, \xc3\xa9\t\"} 1\n");
}

static void bytes_that_are_no_utf8_are_replaced_and_such_types_are_one(void **state)
{
    struct bench *b = ready(state);

    count(b, "caf\xe9");
    count(b, "caf\xff");
    count(b, "caf\xef\xbf\xbd");
    assert_has(b, "{event_type=\"caf\xef\xbf\xbd\"} 3\n");
    assert_int_equal(times(page(b), "{event_type="), 1);
}

static void a_long_type_is_cut_between_two_characters(void **state)
{
    struct bench *b = ready(state);
    char type[1000];

    memset(type, 'x', sizeof(type));
    memcpy(type + 127, "\xc3\xa9", 2);
    metrics_count_failed(b->metrics, (struct slice){type, sizeof(type)});
    type[127] = '"';
    type[128] = '\0';
    assert_has(b, type + 1); /* 126 of them, and the label's end */
}

static void after_200_types_all_others_are_one(void **state)
{
    struct bench *b = ready(state);
    char type[32];

    for (int i = 0; i < 1000; i++) {
        (void)snprintf(type, sizeof(type), "type %d", i);
        count(b, type);
        count(b, "type 7");
    }
    assert_has(b, "{event_type=\"type 199\"} 1\n");
    assert_has(b, "{event_type=\"type 7\"} 1001\n");
    assert_has(b, "{event_type=\"other\"} 800\n");
    assert_int_equal(times(page(b), "{event_type="), 201);
}

static void a_type_that_is_called_other_is_not_there_twice(void **state)
{
    struct bench *b = ready(state);
    char type[32];

    count(b, "other");
    for (int i = 0; i < 300; i++) {
        (void)snprintf(type, sizeof(type), "type %d", i);
        count(b, type);
    }
    assert_has(b, "{event_type=\"other\"} 102\n");
    assert_int_equal(times(page(b), "{event_type=\"other\"}"), 1);
}

static void the_longest_page_fits(void **state)
{
    struct bench *b = ready(state);
    char type[200];

    memset(type, '\n', sizeof(type));
    for (enum metric i = 0; i < METRICS; i++)
        metrics_set(b->metrics, i, UINT64_MAX);
    for (int i = 0; i < 201; i++) {
        type[0] = (char)('0' + i / 50);
        type[1] = (char)('0' + i % 50);
        metrics_count_failed(b->metrics, (struct slice){type, sizeof(type)});
    }
    assert_int_equal(times(page(b), "{event_type="), 201);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_page_is_what_prometheus_reads),
        TEST(what_is_not_known_is_not_on_the_page),
        TEST(a_position_is_exact),
        TEST(events_that_fail_are_counted_by_their_type),
        TEST(a_types_signs_do_not_end_the_label),
        TEST(bytes_that_are_no_utf8_are_replaced_and_such_types_are_one),
        TEST(a_long_type_is_cut_between_two_characters),
        TEST(after_200_types_all_others_are_one),
        TEST(a_type_that_is_called_other_is_not_there_twice),
        TEST(the_longest_page_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
