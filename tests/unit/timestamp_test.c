#include "core/timestamp.h"

#include "unit.h"

static int64_t parsed(const char *text)
{
    int64_t us = INT64_MIN;

    if (!timestamp_parse(slice_of(text), &us))
        fail_msg("not parsed: %s", text);
    return us;
}

static void a_commit_time_has_microseconds(void **state)
{
    (void)state;
    assert_true(parsed("1970-01-01 00:00:00+00") == 0);
    assert_true(parsed("2026-11-30 09:15:02.114523+00") == INT64_C(1796030102114523));
    assert_true(parsed("2026-11-30 09:15:02.1+00") == INT64_C(1796030102100000));
    assert_true(parsed("1969-12-31 23:59:59.999999+00") == -1);
}

static void a_missing_zone_is_utc(void **state)
{
    (void)state;
    assert_true(parsed("2026-11-30 09:15:02") == INT64_C(1796030102000000));
}

static void zones_have_hours_minutes_and_seconds(void **state)
{
    (void)state;
    assert_true(parsed("2026-11-30 10:15:02+01") == INT64_C(1796030102000000));
    assert_true(parsed("2026-11-30 03:45:02-05:30") == INT64_C(1796030102000000));
    /* noon of local mean time in New York, 1883-11-18 */
    assert_true(parsed("1883-11-18 12:00:00-04:56:02") == INT64_C(-2717651038000000));
}

static void leap_days_follow_the_gregorian_rule(void **state)
{
    int64_t us;

    (void)state;
    assert_true(parsed("2000-02-29 00:00:00+00") == INT64_C(951782400000000));
    assert_false(timestamp_parse(slice_of("1900-02-29 00:00:00+00"), &us));
    assert_false(timestamp_parse(slice_of("2026-02-29 00:00:00+00"), &us));
    assert_false(timestamp_parse(slice_of("2026-04-31 00:00:00+00"), &us));
}

static void anything_else_is_refused_and_leaves_the_result(void **state)
{
    static const char *const bad[] = {
        "",
        "infinity",
        "-infinity",
        "(timestamp out of range)",
        "2026-11-30",
        "2026-11-30 09:15",
        "2026-11-30T09:15:02Z",
        "2026-11-30 09:15:02.+00",
        "2026-11-30 09:15:02.1234567+00",
        "2026-11-30 09:15:02+",
        "2026-11-30 09:15:02+1",
        "2026-11-30 09:15:02+01:",
        "2026-11-30 09:15:02+16",
        "2026-11-30 09:15:02+00 AD",
        "2026-11-30 09:15:02+00 BC ",
        "2026-11-30 09:15:02+00 B",
        "2026-13-30 09:15:02+00",
        "2026-00-30 09:15:02+00",
        "2026-11-00 09:15:02+00",
        "2026-11-30 24:15:02+00",
        "2026-11-30 09:60:02+00",
        "2026-11-30 09:15:60+00",
        "0000-01-01 00:00:00+00",
        "1000000-01-01 00:00:00+00",
        "Mon Nov 30 09:15:02 2026",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        int64_t us = 42;

        if (timestamp_parse(slice_of(bad[i]), &us))
            fail_msg("parsed: %s", bad[i]);
        assert_true(us == 42);
    }
    assert_false(timestamp_parse((struct slice){0}, &(int64_t){0}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_time_has_microseconds),
        cmocka_unit_test(a_missing_zone_is_utc),
        cmocka_unit_test(zones_have_hours_minutes_and_seconds),
        cmocka_unit_test(leap_days_follow_the_gregorian_rule),
        cmocka_unit_test(anything_else_is_refused_and_leaves_the_result),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
