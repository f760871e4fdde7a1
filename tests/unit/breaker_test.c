#include "core/breaker.h"

#include "unit.h"

static struct breaker *make(size_t limit, int64_t window_ms)
{
    struct breaker *breaker = breaker_new(limit, window_ms);

    assert_non_null(breaker);
    return breaker;
}

static void one_more_than_the_limit_within_the_window_opens_it(void **state)
{
    struct breaker *breaker = make(3, 1000);

    (void)state;
    for (int64_t t = 0; t < 3; t++) {
        breaker_count(breaker, 5000 + t * 300);
        assert_false(breaker_is_open(breaker));
    }
    breaker_count(breaker, 5999);
    assert_true(breaker_is_open(breaker));
    breaker_free(breaker);
}

static void as_many_in_a_longer_time_do_not(void **state)
{
    struct breaker *breaker = make(3, 1000);

    (void)state;
    for (int64_t t = 0; t < 50; t++)
        breaker_count(breaker, t / 3 * 1000);
    assert_false(breaker_is_open(breaker));
    breaker_free(breaker);
}

static void any_window_counts_and_not_those_of_a_clock(void **state)
{
    struct breaker *breaker = make(3, 1000);
    static const int64_t times[] = {0, 900, 950, 990, 1850};

    (void)state;
    for (size_t i = 0; i < COUNT(times); i++)
        breaker_count(breaker, i == 0 ? -500 : times[i]);
    assert_true(breaker_is_open(breaker)); /* 900, 950, 990 and 1850 */
    breaker_free(breaker);
}

static void it_stays_open_until_it_is_reset(void **state)
{
    struct breaker *breaker = make(1, 1000);

    (void)state;
    breaker_count(breaker, 0);
    breaker_count(breaker, 0);
    breaker_count(breaker, 100000);
    assert_true(breaker_is_open(breaker));
    breaker_reset(breaker);
    assert_false(breaker_is_open(breaker));
    breaker_count(breaker, 100001);
    assert_false(breaker_is_open(breaker));
    breaker_free(breaker);
}

static void without_a_limit_it_never_opens(void **state)
{
    struct breaker *breaker = make(0, 1000);

    (void)state;
    for (int i = 0; i < 1000; i++)
        breaker_count(breaker, 0);
    assert_false(breaker_is_open(breaker));
    breaker_free(breaker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_more_than_the_limit_within_the_window_opens_it),
        cmocka_unit_test(as_many_in_a_longer_time_do_not),
        cmocka_unit_test(any_window_counts_and_not_those_of_a_clock),
        cmocka_unit_test(it_stays_open_until_it_is_reset),
        cmocka_unit_test(without_a_limit_it_never_opens),
    };

    return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
