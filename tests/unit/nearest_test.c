#include "core/nearest.h"

#include "unit.h"

#include <string.h>

static const char *const columns[] = {"id",         "aggregate_type", "aggregate_id",
                                      "event_type", "payload",        "created_at"};

static void a_misspelt_name_finds_the_one_meant(void **state)
{
    (void)state;
    assert_string_equal(nearest_name("agregate_type", columns, COUNT(columns)),
                        "aggregate_type");
    assert_string_equal(nearest_name("aggregat_id", columns, COUNT(columns)),
                        "aggregate_id");
    assert_string_equal(nearest_name("pyaload", columns, COUNT(columns)), "payload");
    assert_string_equal(nearest_name("eventtype", columns, COUNT(columns)), "event_type");
    assert_string_equal(nearest_name("ids", columns, COUNT(columns)), "id");
}

static void a_name_that_differs_only_in_case_wins(void **state)
{
    static const char *const names[] = {"outbox_x", "OUTBOX", "outboxes"};

    (void)state;
    assert_string_equal(nearest_name("Outbox", names, COUNT(names)), "OUTBOX");
    assert_string_equal(nearest_name("outbox", names, COUNT(names)), "OUTBOX");
}

static void the_first_of_equally_near_names_is_taken(void **state)
{
    static const char *const names[] = {"topic_a", "topic_b"};

    (void)state;
    assert_string_equal(nearest_name("topic_c", names, COUNT(names)), "topic_a");
}

static void no_names_give_none(void **state)
{
    (void)state;
    assert_null(nearest_name("id", NULL, 0));
}

static void empty_and_overlong_names_are_compared_safely(void **state)
{
    char a[400];
    char b[400];
    const char *names[2] = {a, b};

    (void)state;
    memset(a, 'a', sizeof(a) - 1);
    memset(b, 'b', sizeof(b) - 1);
    a[sizeof(a) - 1] = '\0';
    b[sizeof(b) - 1] = '\0';
    assert_ptr_equal(nearest_name(b + 100, names, 2), b);
    assert_ptr_equal(nearest_name("", names, 2), a);
    assert_string_equal(nearest_name("x", (const char *const[]){"", "xyz"}, 2), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_misspelt_name_finds_the_one_meant),
        cmocka_unit_test(a_name_that_differs_only_in_case_wins),
        cmocka_unit_test(the_first_of_equally_near_names_is_taken),
        cmocka_unit_test(no_names_give_none),
        cmocka_unit_test(empty_and_overlong_names_are_compared_safely),
    };

    return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
