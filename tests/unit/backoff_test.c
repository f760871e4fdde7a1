#include "core/backoff.h"

#include "unit.h"

static void delays_double_up_to_the_maximum(void **state)
{
    static const int64_t steps[] = {100, 200, 400, 800, 1000, 1000, 1000};
    struct backoff b;

    (void)state;
    backoff_init(&b, 100, 1000);
    for (size_t i = 0; i < COUNT(steps); i++) {
        /* random = step / 2 is the largest remainder: the whole step */
        assert_int_equal(backoff_next(&b, (uint64_t)steps[i] / 2), steps[i]);
    }
}

static void each_delay_lies_between_half_and_all_of_its_step(void **state)
{
    uint64_t random = 88172645463325252u;

    (void)state;
    for (int round = 0; round < 1000; round++) {
        struct backoff b;
        int64_t step = 7;

        backoff_init(&b, step, 1000);
        for (int i = 0; i < 12; i++) {
            int64_t delay;

            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            delay = backoff_next(&b, random);
            assert_true(delay >= step / 2 && delay > 0 && delay <= step);
            step = step * 2 > 1000 ? 1000 : step * 2;
        }
    }
}

static void different_random_bits_give_different_delays(void **state)
{
    struct backoff a;
    struct backoff b;

    (void)state;
    backoff_init(&a, 100, 10000);
    backoff_init(&b, 100, 10000);
    assert_int_equal(backoff_next(&a, 0), 50);
    assert_int_equal(backoff_next(&b, 50), 100);
}

static void a_success_begins_at_the_smallest_delay_again(void **state)
{
    struct backoff b;

    (void)state;
    backoff_init(&b, 100, 10000);
    for (int i = 0; i < 20; i++)
        (void)backoff_next(&b, 0);
    assert_int_equal(backoff_next(&b, 0), 5000);
    backoff_reset(&b);
    assert_int_equal(backoff_next(&b, 0), 50);
}

static void a_count_from_elsewhere_goes_on_where_the_delays_were(void **state)
{
    struct backoff a;
    struct backoff b;

    (void)state;
    backoff_init(&a, 100, 10000);
    backoff_init(&b, 100, 10000);
    for (unsigned n = 0; n < 20; n++) {
        backoff_resume(&b, n);
        assert_int_equal(backoff_next(&b, 0), backoff_next(&a, 0));
    }
    backoff_resume(&b, 4000000000u);
    assert_int_equal(backoff_next(&b, 0), 5000);
}

static void the_extremes_neither_overflow_nor_reach_zero(void **state)
{
    struct backoff b;

    (void)state;
    backoff_init(&b, 1, INT64_MAX);
    for (int i = 0; i < 70; i++)
        assert_true(backoff_next(&b, UINT64_MAX) > 0);
    assert_true(backoff_next(&b, 0) > INT64_MAX / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delays_double_up_to_the_maximum),
        cmocka_unit_test(each_delay_lies_between_half_and_all_of_its_step),
        cmocka_unit_test(different_random_bits_give_different_delays),
        cmocka_unit_test(a_success_begins_at_the_smallest_delay_again),
        cmocka_unit_test(a_count_from_elsewhere_goes_on_where_the_delays_were),
        cmocka_unit_test(the_extremes_neither_overflow_nor_reach_zero),
    };

    return cmocka_run_group_tests_name("backoff", tests, NULL, NULL);
}
