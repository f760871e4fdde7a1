#include "core/memo.h"

#include "unit.h"

#include <string.h>

static const struct memo memo = {.system_id = "7", .timeline = 1, .confirmed = 0x10000};
static const struct history here = {.system_id = "7", .timeline = 1};
static const struct history promoted = {.system_id = "7", .timeline = 2};

static void without_a_memo_every_slot_fits(void **state)
{
    const struct memo none = {0};

    (void)state;
    assert_int_equal(memo_judge(&none, &here, LSN_NONE, 0x999999), MEMO_FITS);
}

static void a_slot_at_or_behind_the_memo_fits(void **state)
{
    (void)state;
    assert_int_equal(memo_judge(&memo, &here, LSN_NONE, 0x10000), MEMO_FITS);
    assert_int_equal(memo_judge(&memo, &here, LSN_NONE, 1), MEMO_FITS);
}

static void only_what_others_write_is_confirmed_beyond_the_memo(void **state)
{
    (void)state;
    assert_int_equal(memo_judge(&memo, &here, LSN_NONE, 0x10000 + MEMO_SLACK_BYTES),
                     MEMO_FITS);
    assert_int_equal(memo_judge(&memo, &here, LSN_NONE, 0x10001 + MEMO_SLACK_BYTES),
                     MEMO_AHEAD);
}

static void another_system_never_fits(void **state)
{
    const struct history other = {.system_id = "8", .timeline = 1};

    (void)state;
    assert_int_equal(memo_judge(&memo, &other, LSN_NONE, 1), MEMO_OTHER_SYSTEM);
}

static void a_slot_that_stands_before_the_branch_came_along(void **state)
{
    (void)state;
    assert_int_equal(memo_judge(&memo, &promoted, 0x20000, 0x20000), MEMO_CARRIED);
    assert_int_equal(memo_judge(&memo, &promoted, 0x20000, 1), MEMO_CARRIED);
}

static void a_slot_that_stands_behind_the_branch_was_made_there(void **state)
{
    (void)state;
    assert_int_equal(memo_judge(&memo, &promoted, 0x20000, 0x20001), MEMO_AHEAD);
}

static void where_the_branch_is_not_known_nothing_is_claimed(void **state)
{
    (void)state;
    assert_int_equal(memo_judge(&memo, &promoted, LSN_NONE, 0x999999), MEMO_CARRIED);
}

static void the_branch_point_is_found_by_the_timelines_number(void **state)
{
    static const char file[] = "1\t0/3000148\tno recovery target specified\n\n"
                               "12\t1/A0\tbefore 2000-01-01\n";

    (void)state;
    assert_int_equal(memo_branch_point(file, 1), 0x3000148);
    assert_int_equal(memo_branch_point(file, 12), 0x1000000A0);
    assert_int_equal(memo_branch_point(file, 2), LSN_NONE);
    assert_int_equal(memo_branch_point("", 1), LSN_NONE);
    assert_int_equal(memo_branch_point("1\tgarbage\n", 1), LSN_NONE);
}

static void nothing_is_told_before_the_first_memo(void **state)
{
    struct memo_gate gate = {0};

    (void)state;
    assert_int_equal(memo_pass(&gate, 100, LSN_NONE), LSN_NONE);
}

static void an_own_event_is_told_when_the_memo_names_it(void **state)
{
    struct memo_gate gate = {.named = 100};

    (void)state;
    assert_int_equal(memo_pass(&gate, 100, 100), 100);
    assert_int_equal(memo_pass(&gate, 120, 110), 100);
    gate.named = 120;
    assert_int_equal(memo_pass(&gate, 120, 110), 120);
}

static void what_others_write_is_told_a_little_beyond_the_memo(void **state)
{
    struct memo_gate gate = {.named = 100};

    (void)state;
    assert_int_equal(memo_pass(&gate, 200, 100), 200);
    assert_int_equal(memo_pass(&gate, 101 + MEMO_SLACK_BYTES, 100), 200);
}

static void an_open_gate_lets_everything_pass(void **state)
{
    struct memo_gate gate = {.open = true};

    (void)state;
    assert_int_equal(memo_pass(&gate, 5, 5), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_memo_every_slot_fits),
        cmocka_unit_test(a_slot_at_or_behind_the_memo_fits),
        cmocka_unit_test(only_what_others_write_is_confirmed_beyond_the_memo),
        cmocka_unit_test(another_system_never_fits),
        cmocka_unit_test(a_slot_that_stands_before_the_branch_came_along),
        cmocka_unit_test(a_slot_that_stands_behind_the_branch_was_made_there),
        cmocka_unit_test(where_the_branch_is_not_known_nothing_is_claimed),
        cmocka_unit_test(the_branch_point_is_found_by_the_timelines_number),
        cmocka_unit_test(nothing_is_told_before_the_first_memo),
        cmocka_unit_test(an_own_event_is_told_when_the_memo_names_it),
        cmocka_unit_test(what_others_write_is_told_a_little_beyond_the_memo),
        cmocka_unit_test(an_open_gate_lets_everything_pass),
    };

    return cmocka_run_group_tests_name("memo", tests, NULL, NULL);
}
