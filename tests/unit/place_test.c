#include "core/place.h"

#include "unit.h"

static void the_rows_of_a_record_are_numbered_and_each_record_begins_anew(void **state)
{
    static const lsn_t lsns[] = {0x10, 0x20, 0x20, 0x20, 0x18, 0x20};
    static const uint32_t numbers[] = {1, 1, 2, 3, 1, 1};
    struct place place = {0};

    (void)state;
    for (size_t i = 0; i < COUNT(lsns); i++) {
        place = place_after(&place, lsns[i], 7);
        assert_true(place.lsn == lsns[i] && place.commit_us == 7);
        assert_int_equal(place.number, numbers[i]);
    }
}

static void places_differ_in_each_part(void **state)
{
    struct place a = {1, 2, 3};
    struct place others[] = {{2, 2, 3}, {1, 3, 3}, {1, 2, 4}};

    (void)state;
    assert_true(place_eq(&a, &(struct place){1, 2, 3}));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(place_eq(&a, &others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rows_of_a_record_are_numbered_and_each_record_begins_anew),
        cmocka_unit_test(places_differ_in_each_part),
    };

    return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
