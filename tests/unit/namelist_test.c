#include "core/namelist.h"

#include "unit.h"

#include <string.h>

static void a_plain_list_names_its_members(void **state)
{
    (void)state;
    assert_true(standby_names_match("s1, walrelay", "walrelay"));
    assert_true(standby_names_match("walrelay", "walrelay"));
    assert_false(standby_names_match("s1, walrelay2", "walrelay"));
    assert_false(standby_names_match("s1,s2", "walrelay"));
}

static void an_empty_setting_names_nobody(void **state)
{
    (void)state;
    assert_false(standby_names_match("", "walrelay"));
    assert_false(standby_names_match("  ", "walrelay"));
    assert_false(standby_names_match("\"\"", "walrelay"));
}

static void a_star_names_everybody(void **state)
{
    (void)state;
    assert_true(standby_names_match("*", "walrelay"));
    assert_true(standby_names_match("s1,*", "walrelay"));
    assert_true(standby_names_match("ANY 1 (*)", "walrelay"));
    assert_true(standby_names_match("\"*\"", "walrelay"));
    assert_true(standby_names_match("*", ""));
}

static void a_method_and_its_number_are_not_names(void **state)
{
    (void)state;
    assert_false(standby_names_match("FIRST 2 (s1, s2)", "first"));
    assert_false(standby_names_match("ANY 2 (s1, s2)", "2"));
    assert_false(standby_names_match("2(s1,s2)", "2"));
    assert_true(standby_names_match("first 2(s1,walrelay)", "walrelay"));
    assert_true(standby_names_match("Any 1 ( walrelay )", "walrelay"));
    assert_true(standby_names_match("2 (s1, \"walrelay\")", "walrelay"));
}

static void a_number_may_be_a_name(void **state)
{
    (void)state;
    assert_true(standby_names_match("1, 2", "2"));
    assert_true(standby_names_match("1 (1, 2)", "1"));
}

static void case_does_not_count(void **state)
{
    (void)state;
    assert_true(standby_names_match("WalRelay", "walrelay"));
    assert_true(standby_names_match("\"WALRELAY\"", "walrelay"));
}

static void quotes_hold_odd_names_together(void **state)
{
    (void)state;
    assert_true(standby_names_match("\"a, (b)\"", "a, (b)"));
    assert_false(standby_names_match("\"a, walrelay\"", "walrelay"));
    assert_true(standby_names_match("\"we\"\"ird\"", "we\"ird"));
    assert_true(standby_names_match("\"walrelay", "walrelay"));
    assert_false(standby_names_match("\"FIRST 1 (walrelay)\"", "walrelay"));
}

static void an_overlong_name_equals_nothing(void **state)
{
    char setting[400];

    (void)state;
    memset(setting, 'x', sizeof(setting) - 1);
    setting[sizeof(setting) - 1] = '\0';
    assert_false(standby_names_match(setting, "walrelay"));
    assert_false(namelist_has(setting, "wal2json"));
}

static void a_library_list_is_read_name_by_name(void **state)
{
    (void)state;
    assert_true(namelist_has("pgoutput, test_decoding, wal2json", "wal2json"));
    assert_true(namelist_has("\"wal2json\"", "wal2json"));
    assert_false(namelist_has("pgoutput, wal2jsonx", "wal2json"));
    assert_false(namelist_has("", "wal2json"));
}

/* What ALTER SYSTEM SET output_plugin_libraries = 'a, wal2json' makes. */
static void a_list_in_one_pair_of_quotes_is_one_name(void **state)
{
    (void)state;
    assert_false(namelist_has("\"a, wal2json\"", "wal2json"));
    assert_false(namelist_has("\"a, wal2json, b\"", "wal2json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_list_names_its_members),
        cmocka_unit_test(an_empty_setting_names_nobody),
        cmocka_unit_test(a_star_names_everybody),
        cmocka_unit_test(a_method_and_its_number_are_not_names),
        cmocka_unit_test(a_number_may_be_a_name),
        cmocka_unit_test(case_does_not_count),
        cmocka_unit_test(quotes_hold_odd_names_together),
        cmocka_unit_test(an_overlong_name_equals_nothing),
        cmocka_unit_test(a_library_list_is_read_name_by_name),
        cmocka_unit_test(a_list_in_one_pair_of_quotes_is_one_name),
    };

    return cmocka_run_group_tests_name("namelist", tests, NULL, NULL);
}
