/* The window: messages that wait for Kafka, in order, under one budget. */
#include "core/window.h"

#include "unit.h"

#include <string.h>

enum { BUDGET = 1 << 20 };

static char payload[4 * BUDGET];

static bool add(struct window *window, size_t len)
{
    struct message message = {.payload = {payload, len}};

    return window_add(window, &message, 0);
}

static struct window *new_window(void)
{
    struct window *window = window_new(64, BUDGET);

    assert_non_null(window);
    memset(payload, 'x', sizeof(payload));
    return window;
}

static void messages_beyond_the_budget_have_to_wait(void **state)
{
    struct window *window = new_window();

    (void)state;
    assert_true(add(window, BUDGET / 2));
    assert_false(add(window, BUDGET / 2));
    window_mark_done(window, window_begin(window));
    assert_true(add(window, BUDGET / 2));
    window_free(window);
}

static void a_message_beyond_the_budget_travels_alone(void **state)
{
    struct window *window = new_window();

    (void)state;
    assert_true(add(window, 10));
    assert_false(add(window, sizeof(payload)));
    window_mark_done(window, window_begin(window));
    assert_true(add(window, sizeof(payload)));
    assert_memory_equal(window_entry(window, 1)->payload.ptr, payload, sizeof(payload));
    assert_false(add(window, 10));
    window_mark_done(window, window_begin(window));
    assert_true(add(window, 10));
    assert_true(add(window, 10));
    assert_int_equal(window_pending(window), 2);
    window_free(window);
}

static void the_place_of_a_message_that_left_is_used_again(void **state)
{
    struct window *window = new_window();

    (void)state;
    for (int i = 0; i < 1000; i++) {
        assert_true(add(window, BUDGET / 8 + (size_t)i));
        if (i > 0)
            window_mark_done(window, window_begin(window));
    }
    assert_int_equal(window_pending(window), 1);
    window_free(window);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_beyond_the_budget_have_to_wait),
        cmocka_unit_test(a_message_beyond_the_budget_travels_alone),
        cmocka_unit_test(the_place_of_a_message_that_left_is_used_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
