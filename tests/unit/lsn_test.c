#include "base/lsn.h"

#include "unit.h"

#include <stdio.h>

static void reads(const char *text, lsn_t expected)
{
    lsn_t lsn = 1;

    assert_true(lsn_parse(text, &lsn));
    assert_int_equal(lsn, expected);
}

static void a_position_is_read_as_postgresql_writes_it(void **state)
{
    (void)state;
    reads("0/0", LSN_NONE);
    reads("16/B374D848", 0x16B374D848);
    reads("16/b374d848", 0x16B374D848);
    reads("0/1", 1);
    reads("1/0", (lsn_t)1 << 32);
    reads("FFFFFFFF/FFFFFFFF", UINT64_MAX);
}

static void a_position_is_written_as_postgresql_does(void **state)
{
    char text[32];

    (void)state;
    (void)snprintf(text, sizeof(text), "%" LSN_FMT, LSN_ARG((lsn_t)0x16B374D848));
    assert_string_equal(text, "16/B374D848");
    (void)snprintf(text, sizeof(text), "%" LSN_FMT, LSN_ARG(LSN_NONE));
    assert_string_equal(text, "0/0");
    (void)snprintf(text, sizeof(text), "%" LSN_FMT, LSN_ARG((lsn_t)0x100000001));
    assert_string_equal(text, "1/1");
}

static void anything_else_is_no_position(void **state)
{
    const char *const wrong[] = {
        "",      "0",    "/",           "0/",          "/0",  "0/0 ", " 0/0", "0/0/",
        "0x0/0", "-0/0", "123456789/0", "0/123456789", "G/0", "0/G",  "0//0", "NULL"};

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        lsn_t lsn = 42;

        assert_false(lsn_parse(wrong[i], &lsn));
        assert_int_equal(lsn, 42);
    }
}

static void sql_null_is_no_position(void **state)
{
    lsn_t lsn = 42;

    (void)state;
    assert_false(lsn_parse(NULL, &lsn));
    assert_int_equal(lsn, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_position_is_read_as_postgresql_writes_it),
        cmocka_unit_test(a_position_is_written_as_postgresql_does),
        cmocka_unit_test(anything_else_is_no_position),
        cmocka_unit_test(sql_null_is_no_position),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
