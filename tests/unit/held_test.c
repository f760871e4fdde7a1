#include "core/held.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#define S(text) slice_of(text)

static const struct slice none = {NULL, 0};
static const struct held_limits ample = {1000, 10000, 1 << 20};

static struct place at(unsigned n)
{
    return (struct place){.lsn = 0x1000 + 8 * (lsn_t)n, .number = 1, .commit_us = 7};
}

static enum held_verdict judge(struct held *held, const char *key, unsigned n)
{
    struct place place = at(n);

    return held_judge(held, S("orders"), S(key), &place);
}

static void load(struct held *held, const char *key, unsigned n, bool unresolved,
                 bool comes_again)
{
    struct held_row row = {S("orders"), S(key), at(n), unresolved, comes_again};

    assert_int_equal(held_load(held, &row), 0);
}

static void add(struct held *held, const char *key)
{
    assert_int_equal(held_add(held, S("orders"), S(key)), HELD_TAKEN);
}

static void only_the_key_of_a_refused_event_is_held(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    assert_true(held_is_empty(held));
    add(held, "a");
    assert_false(held_is_empty(held));
    assert_int_equal(judge(held, "a", 2), HELD_BEHIND);
    assert_int_equal(judge(held, "b", 3), HELD_FREE);
    assert_int_equal(judge(held, "", 4), HELD_FREE);
    held_free(held);
}

static void a_key_is_that_of_its_topic(void **state)
{
    struct held *held = held_new(ample);
    struct place place = at(2);

    (void)state;
    assert_int_equal(held_add(held, S("ab"), S("c")), HELD_TAKEN);
    assert_int_equal(held_judge(held, S("a"), S("bc"), &place), HELD_FREE);
    assert_int_equal(held_judge(held, S("abc"), S(""), &place), HELD_FREE);
    assert_int_equal(held_judge(held, S("ab"), S("c"), &place), HELD_BEHIND);
    held_free(held);
}

static void an_empty_key_is_a_key_and_an_absent_one_holds_nothing(void **state)
{
    struct held *held = held_new(ample);
    struct place place = at(2);

    (void)state;
    assert_int_equal(held_add(held, S("t"), none), HELD_TAKEN);
    assert_int_equal(held_add(held, none, S("k")), HELD_TAKEN);
    assert_true(held_is_empty(held));
    assert_int_equal(held_judge(held, S("t"), none, &place), HELD_FREE);
    assert_int_equal(held_add(held, S("t"), S("")), HELD_TAKEN);
    assert_int_equal(held_judge(held, S("t"), S(""), &place), HELD_BEHIND);
    assert_int_equal(held_judge(held, S("t"), none, &place), HELD_FREE);
    held_remove(held, S("t"), none);
    held_remove(held, none, S("k"));
    assert_int_equal(held_events(held), 1);
    held_free(held);
}

static void a_key_is_free_when_its_last_row_is_resolved(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    add(held, "a");
    add(held, "a");
    held_remove(held, S("orders"), S("a"));
    assert_int_equal(judge(held, "a", 3), HELD_BEHIND);
    held_remove(held, S("orders"), S("a"));
    assert_int_equal(judge(held, "a", 4), HELD_FREE);
    assert_true(held_is_empty(held));
    held_free(held);
}

static void a_row_that_comes_again_is_known_once_whatever_its_state(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    load(held, "a", 1, true, true);
    load(held, "a", 2, true, true);
    load(held, "b", 3, false, true);
    assert_int_equal(judge(held, "a", 1), HELD_KNOWN);
    assert_int_equal(judge(held, "a", 2), HELD_KNOWN);
    assert_int_equal(judge(held, "b", 3), HELD_KNOWN);
    assert_int_equal(judge(held, "a", 4), HELD_BEHIND);
    assert_int_equal(judge(held, "b", 5), HELD_FREE);
    held_free(held);
}

static void the_whole_place_names_a_row(void **state)
{
    struct held *held = held_new(ample);
    struct place other[] = {at(1), at(1), at(2)};

    (void)state;
    load(held, "a", 1, false, true);
    other[0].number = 2;
    other[1].commit_us = 8;
    for (size_t i = 0; i < COUNT(other); i++)
        assert_int_equal(held_judge(held, S("orders"), S("a"), &other[i]), HELD_FREE);
    assert_int_equal(judge(held, "a", 1), HELD_KNOWN);
    held_free(held);
}

static void what_comes_again_from_before_the_refused_event_is_published(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    load(held, "a", 5, true, true);
    load(held, "a", 6, true, true);
    assert_int_equal(judge(held, "a", 3), HELD_FREE);
    assert_int_equal(judge(held, "a", 4), HELD_FREE);
    assert_int_equal(judge(held, "a", 5), HELD_KNOWN);
    assert_int_equal(judge(held, "a", 6), HELD_KNOWN);
    assert_int_equal(judge(held, "a", 7), HELD_BEHIND);
    held_free(held);
}

static void
a_refused_event_that_does_not_come_again_holds_from_the_beginning(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    load(held, "a", 1, true, false);
    load(held, "a", 5, true, true);
    assert_int_equal(judge(held, "a", 4), HELD_BEHIND);
    assert_int_equal(judge(held, "a", 5), HELD_KNOWN);
    held_free(held);
}

static void a_key_that_is_resolved_before_its_row_comes_again_stays_free(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    load(held, "a", 5, true, true);
    held_remove(held, S("orders"), S("a"));
    assert_int_equal(held_keys(held), 0);
    assert_int_equal(judge(held, "a", 4), HELD_FREE);
    assert_int_equal(judge(held, "a", 5), HELD_KNOWN);
    assert_int_equal(judge(held, "a", 6), HELD_FREE);
    assert_true(held_is_empty(held));
    held_free(held);
}

static void a_key_that_waits_for_its_row_wakes_when_another_event_is_refused(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    load(held, "a", 5, true, true);
    add(held, "a");
    assert_int_equal(judge(held, "a", 4), HELD_BEHIND);
    assert_int_equal(judge(held, "a", 5), HELD_KNOWN);
    assert_int_equal(held_events(held), 2);
    held_free(held);
}

static void limits_stop_what_is_new_and_not_what_is_in_the_table(void **state)
{
    struct held *held = held_new((struct held_limits){2, 4, 20});

    (void)state;
    add(held, "a");
    add(held, "a");
    assert_int_equal(held_add(held, S("orders"), S("a")), HELD_KEY_FULL);
    add(held, "b");
    assert_int_equal(held_add(held, S("orders"), S("c")), HELD_NO_MEMORY);
    add(held, "b");
    assert_int_equal(held_add(held, S("orders"), S("c")), HELD_TOTAL_FULL);
    assert_int_equal(held_events(held), 4);
    for (unsigned i = 0; i < 3; i++)
        load(held, "c", i, true, false);
    assert_int_equal(held_events(held), 7);
    assert_int_equal(held_keys(held), 3);
    held_free(held);
}

static void clearing_forgets_all(void **state)
{
    struct held *held = held_new(ample);

    (void)state;
    load(held, "a", 1, true, true);
    add(held, "b");
    held_clear(held);
    assert_true(held_is_empty(held));
    assert_int_equal(held_events(held), 0);
    assert_int_equal(judge(held, "a", 1), HELD_FREE);
    held_free(held);
}

/* ---- beside a model that only counts ------------------------------------------- */

enum { MODEL_KEYS = 300, MODEL_STEPS = 20000 };

static void any_sequence_holds_as_a_count_for_each_key_does(void **state)
{
    struct held *held = held_new((struct held_limits){5, 600, 1 << 20});
    unsigned counts[MODEL_KEYS] = {0};
    unsigned total = 0;
    uint64_t random = 88172645463325252u;

    (void)state;
    for (unsigned step = 0; step < MODEL_STEPS; step++) {
        char key[16];
        unsigned k;

        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        k = (unsigned)(random >> 8) % MODEL_KEYS;
        (void)snprintf(key, sizeof(key), "key-%u", k);
        assert_int_equal(judge(held, key, step), counts[k] ? HELD_BEHIND : HELD_FREE);
        if (random % 5 < 3) {
            enum held_room room = held_add(held, S("orders"), S(key));

            assert_int_equal(room, total >= 600     ? HELD_TOTAL_FULL
                                   : counts[k] >= 5 ? HELD_KEY_FULL
                                                    : HELD_TAKEN);
            counts[k] += room == HELD_TAKEN;
            total += room == HELD_TAKEN;
        } else if (counts[k] > 0) {
            held_remove(held, S("orders"), S(key));
            counts[k]--;
            total--;
        }
        assert_int_equal(held_events(held), total);
    }
    held_free(held);
}

static void many_rows_that_come_again_are_all_found(void **state)
{
    struct held *held = held_new(ample);
    char key[16];

    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key-%u", i % 700);
        load(held, key, i, i % 3 == 0, true);
    }
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key-%u", i % 700);
        assert_int_equal(judge(held, key, i), HELD_KNOWN);
        assert_int_not_equal(judge(held, key, i), HELD_KNOWN);
    }
    held_free(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_key_of_a_refused_event_is_held),
        cmocka_unit_test(a_key_is_that_of_its_topic),
        cmocka_unit_test(an_empty_key_is_a_key_and_an_absent_one_holds_nothing),
        cmocka_unit_test(a_key_is_free_when_its_last_row_is_resolved),
        cmocka_unit_test(a_row_that_comes_again_is_known_once_whatever_its_state),
        cmocka_unit_test(the_whole_place_names_a_row),
        cmocka_unit_test(what_comes_again_from_before_the_refused_event_is_published),
        cmocka_unit_test(
            a_refused_event_that_does_not_come_again_holds_from_the_beginning),
        cmocka_unit_test(a_key_that_is_resolved_before_its_row_comes_again_stays_free),
        cmocka_unit_test(
            a_key_that_waits_for_its_row_wakes_when_another_event_is_refused),
        cmocka_unit_test(limits_stop_what_is_new_and_not_what_is_in_the_table),
        cmocka_unit_test(clearing_forgets_all),
        cmocka_unit_test(any_sequence_holds_as_a_count_for_each_key_does),
        cmocka_unit_test(many_rows_that_come_again_are_all_found),
    };

    return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
