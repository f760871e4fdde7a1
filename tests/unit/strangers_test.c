#include "core/strangers.h"

#include "unit.h"

#include <stdio.h>

static bool have(const struct strangers *strangers, const char *name, int64_t commit_us)
{
    return strangers_have(strangers, slice_of("public"), slice_of(name), commit_us);
}

static void add(struct strangers *strangers, const char *name, int64_t before_us)
{
    assert_int_equal(
        strangers_add(strangers, slice_of("public"), slice_of(name), before_us), 0);
}

static void the_answer_holds_for_what_was_committed_before(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    assert_false(have(&strangers, "archive", 1));
    add(&strangers, "archive", 100);
    assert_true(have(&strangers, "archive", 99));
    assert_false(have(&strangers, "archive", 100));
    add(&strangers, "archive", 200); /* asked again */
    assert_true(have(&strangers, "archive", 199));
    strangers_done(&strangers);
}

static void schema_and_name_both_count(void **state)
{
    struct strangers strangers = {0};

    (void)state;
    add(&strangers, "archive", 100);
    assert_false(have(&strangers, "archive2", 1));
    assert_false(have(&strangers, "archiv", 1));
    assert_false(strangers_have(&strangers, slice_of("other"), slice_of("archive"), 1));
    strangers_done(&strangers);
}

static void the_oldest_names_are_forgotten_beyond_the_limit(void **state)
{
    struct strangers strangers = {0};
    char name[16];

    (void)state;
    for (int i = 0; i <= STRANGERS_MAX; i++) {
        (void)snprintf(name, sizeof(name), "t%d", i);
        add(&strangers, name, 100);
    }
    assert_false(have(&strangers, "t0", 1));
    assert_true(have(&strangers, "t1", 1));
    assert_true(have(&strangers, name, 1));
    strangers_done(&strangers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_holds_for_what_was_committed_before),
        cmocka_unit_test(schema_and_name_both_count),
        cmocka_unit_test(the_oldest_names_are_forgotten_beyond_the_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
