#include "core/held.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#define S(text) slice_of(text)

static const struct slice none = {NULL, 0};
static const struct held_limits ample = {1000, 10000, 1 << 20, false};

static struct held *make(struct held_limits limits)
{
    struct held *held = held_new(limits);

    assert_non_null(held);
    return held;
}

static struct place at(unsigned n)
{
    return (struct place){.lsn = 0x1000 + 8 * (lsn_t)n, .number = 1, .commit_us = 7};
}

/* Does the event n, which enters the window as n, go behind another? */
static bool holds(const struct held *held, const char *key, uint64_t n)
{
    return held_holds(held, S("orders"), S(key), n);
}

static bool known(struct held *held, unsigned n)
{
    struct place place = at(n);
    bool has_end = true;
    bool ret = held_known(held, &place, n, &has_end);

    assert_int_equal(has_end, !ret || n % 2);
    return ret;
}

static void load(struct held *held, const char *key, unsigned n, bool unresolved,
                 bool comes_again)
{
    struct held_row row = {S("orders"), S(key), at(n), unresolved, comes_again, n % 2};

    assert_int_equal(held_load(held, &row), 0);
}

static void add(struct held *held, const char *key, uint64_t n)
{
    assert_int_equal(held_add(held, S("orders"), S(key), n), HELD_TAKEN);
}

static void resolve(struct held *held, const char *key)
{
    held_written(held, S("orders"), S(key));
    held_remove(held, S("orders"), S(key));
}

static void only_the_key_of_a_refused_event_is_held(void **state)
{
    struct held *held = make(ample);

    (void)state;
    assert_true(held_is_empty(held));
    add(held, "a", 1);
    assert_false(held_is_empty(held));
    assert_true(holds(held, "a", 2));
    assert_false(holds(held, "b", 3));
    assert_false(holds(held, "", 4));
    held_free(held);
}

static void what_stands_before_a_refused_event_is_not_held(void **state)
{
    struct held *held = make(ample);

    (void)state;
    add(held, "a", 7);
    assert_false(holds(held, "a", 6));
    assert_false(holds(held, "a", 7));
    assert_true(holds(held, "a", 8));
    add(held, "a", 5);
    assert_false(holds(held, "a", 5));
    assert_true(holds(held, "a", 6));
    add(held, "a", 9);
    assert_true(holds(held, "a", 6));
    held_free(held);
}

static void a_key_is_that_of_its_topic(void **state)
{
    struct held *held = make(ample);

    (void)state;
    assert_int_equal(held_add(held, S("ab"), S("c"), 1), HELD_TAKEN);
    assert_false(held_holds(held, S("a"), S("bc"), 2));
    assert_false(held_holds(held, S("abc"), S(""), 2));
    assert_true(held_holds(held, S("ab"), S("c"), 2));
    held_free(held);
}

static void an_empty_key_is_a_key_and_an_absent_one_holds_nothing(void **state)
{
    struct held *held = make(ample);

    (void)state;
    assert_int_equal(held_add(held, S("t"), none, 1), HELD_TAKEN);
    assert_int_equal(held_add(held, none, S("k"), 1), HELD_TAKEN);
    assert_true(held_is_empty(held));
    assert_false(held_holds(held, S("t"), none, 2));
    assert_int_equal(held_add(held, S("t"), S(""), 3), HELD_TAKEN);
    assert_true(held_holds(held, S("t"), S(""), 4));
    assert_false(held_holds(held, S("t"), none, 4));
    held_written(held, S("t"), none);
    held_remove(held, none, S("k"));
    assert_int_equal(held_events(held), 1);
    held_free(held);
}

static void a_key_is_free_when_its_last_row_is_resolved(void **state)
{
    struct held *held = make(ample);

    (void)state;
    add(held, "a", 1);
    add(held, "a", 2);
    resolve(held, "a");
    assert_true(holds(held, "a", 3));
    resolve(held, "a");
    assert_false(holds(held, "a", 4));
    assert_true(held_is_empty(held));
    held_free(held);
}

static void a_row_that_comes_again_is_known_once_whatever_its_state(void **state)
{
    struct held *held = make(ample);

    (void)state;
    load(held, "a", 1, true, true);
    load(held, "a", 2, true, true);
    load(held, "b", 3, false, true);
    for (unsigned n = 1; n <= 3; n++) {
        assert_true(known(held, n));
        assert_false(known(held, n));
    }
    assert_true(holds(held, "a", 4));
    assert_false(holds(held, "b", 5));
    held_free(held);
}

static void the_whole_place_names_a_row(void **state)
{
    struct held *held = make(ample);
    struct place other[] = {at(1), at(1), at(2)};
    bool has_end;

    (void)state;
    load(held, "a", 1, false, true);
    other[0].number = 2;
    other[1].commit_us = 8;
    for (size_t i = 0; i < COUNT(other); i++)
        assert_false(held_known(held, &other[i], 1, &has_end));
    assert_true(known(held, 1));
    held_free(held);
}

static void what_comes_again_from_before_the_refused_event_is_published(void **state)
{
    struct held *held = make(ample);

    (void)state;
    load(held, "a", 5, true, true);
    load(held, "a", 6, true, true);
    assert_false(holds(held, "a", 3));
    assert_false(holds(held, "a", 4));
    assert_true(known(held, 5));
    assert_true(known(held, 6));
    /* also when it is handed to the producer only now */
    assert_false(holds(held, "a", 4));
    assert_true(holds(held, "a", 7));
    held_free(held);
}

static void
a_refused_event_that_does_not_come_again_holds_from_the_beginning(void **state)
{
    struct held *held = make(ample);

    (void)state;
    load(held, "a", 1, true, false);
    load(held, "a", 5, true, true);
    assert_true(holds(held, "a", 4));
    assert_true(known(held, 5));
    held_free(held);
}

static void a_key_that_is_resolved_before_its_row_comes_again_stays_free(void **state)
{
    struct held *held = make(ample);

    (void)state;
    load(held, "a", 5, true, true);
    held_remove(held, S("orders"), S("a"));
    assert_int_equal(held_keys(held), 0);
    assert_false(holds(held, "a", 4));
    assert_true(known(held, 5));
    assert_false(holds(held, "a", 6));
    assert_true(held_is_empty(held));
    held_free(held);
}

static void a_key_that_waits_for_its_row_holds_when_another_event_is_refused(void **state)
{
    struct held *held = make(ample);

    (void)state;
    load(held, "a", 5, true, true);
    add(held, "a", 3);
    assert_true(holds(held, "a", 4));
    assert_true(known(held, 5));
    assert_true(holds(held, "a", 4));
    assert_int_equal(held_events(held), 2);
    held_free(held);
}

static void limits_stop_what_is_new_and_not_what_is_in_the_table(void **state)
{
    struct held *held = make((struct held_limits){2, 4, 20, false});

    (void)state;
    add(held, "a", 1);
    add(held, "a", 2);
    assert_int_equal(held_add(held, S("orders"), S("a"), 3), HELD_KEY_FULL);
    add(held, "b", 4);
    assert_int_equal(held_add(held, S("orders"), S("c"), 5), HELD_NO_MEMORY);
    add(held, "b", 6);
    assert_int_equal(held_add(held, S("orders"), S("c"), 7), HELD_TOTAL_FULL);
    assert_int_equal(held_events(held), 4);
    for (unsigned i = 0; i < 3; i++)
        load(held, "c", i, true, false);
    assert_int_equal(held_events(held), 7);
    assert_int_equal(held_keys(held), 3);
    held_free(held);
}

static void clearing_forgets_all(void **state)
{
    struct held *held = make(ample);

    (void)state;
    load(held, "a", 1, true, true);
    add(held, "b", 2);
    held_clear(held);
    assert_true(held_is_empty(held));
    assert_int_equal(held_events(held), 0);
    assert_false(known(held, 1));
    held_free(held);
}

static void a_recount_frees_the_keys_that_somebody_has_resolved(void **state)
{
    struct held *held = make(ample);

    (void)state;
    for (unsigned n = 0; n < 3; n++)
        load(held, (const char *[]){"a", "a", "b"}[n], n, true, false);
    load(held, "c", 3, true, true);
    add(held, "d", 4);
    held_recount_begin(held);
    held_recount(held, S("orders"), S("a"), 1);
    held_recount(held, S("orders"), S("of another"), 9);
    held_recount(held, none, none, 5);
    held_recount_end(held);
    assert_true(holds(held, "a", 9));
    assert_false(holds(held, "b", 9));
    assert_false(holds(held, "of another", 9));
    assert_true(holds(held, "d", 9)); /* not written yet */
    assert_int_equal(held_keys(held), 2);
    assert_int_equal(held_events(held), 2);
    assert_true(known(held, 3));
    resolve(held, "d");
    held_remove(held, S("orders"), S("a"));
    assert_true(held_is_empty(held));
    held_free(held);
}

/* ---- beside a model that only counts ------------------------------------------- */

enum { MODEL_KEYS = 300, MODEL_STEPS = 20000 };

static void any_sequence_holds_as_a_count_for_each_key_does(void **state)
{
    struct held *held = make((struct held_limits){5, 600, 1 << 20, false});
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
        assert_int_equal(holds(held, key, step), counts[k] > 0);
        if (random % 5 < 3) {
            enum held_room room = held_add(held, S("orders"), S(key), step);

            assert_int_equal(room, total >= 600     ? HELD_TOTAL_FULL
                                   : counts[k] >= 5 ? HELD_KEY_FULL
                                                    : HELD_TAKEN);
            counts[k] += room == HELD_TAKEN;
            total += room == HELD_TAKEN;
        } else if (counts[k] > 0) {
            resolve(held, key);
            counts[k]--;
            total--;
        }
        assert_int_equal(held_events(held), total);
    }
    held_free(held);
}

static void many_rows_that_come_again_are_all_found(void **state)
{
    struct held *held = make(ample);
    char key[16];

    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        (void)snprintf(key, sizeof(key), "key-%u", i % 700);
        load(held, key, i, i % 3 == 0, true);
    }
    for (unsigned i = 0; i < 5000; i++) {
        assert_true(known(held, i));
        assert_false(known(held, i));
    }
    held_free(held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_key_of_a_refused_event_is_held),
        cmocka_unit_test(what_stands_before_a_refused_event_is_not_held),
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
            a_key_that_waits_for_its_row_holds_when_another_event_is_refused),
        cmocka_unit_test(limits_stop_what_is_new_and_not_what_is_in_the_table),
        cmocka_unit_test(clearing_forgets_all),
        cmocka_unit_test(a_recount_frees_the_keys_that_somebody_has_resolved),
        cmocka_unit_test(any_sequence_holds_as_a_count_for_each_key_does),
        cmocka_unit_test(many_rows_that_come_again_are_all_found),
    };

    return cmocka_run_group_tests_name("held", tests, NULL, NULL);
}
