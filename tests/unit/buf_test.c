#include "base/buf.h"

#include "unit.h"

#include <string.h>

static void bytes_are_appended_one_after_the_other(void **state)
{
    struct buf buf;

    (void)state;
    buf_init(&buf, 100);
    buf_add(&buf, (struct slice){"a\0b", 3});
    buf_add_str(&buf, "cd");
    buf_add_char(&buf, 'e');
    buf_printf(&buf, "%d%s", 12, "f");
    assert_int_equal(buf.len, 9);
    assert_memory_equal(buf_slice(&buf).ptr, "a\0bcde12f", 10);
    assert_false(buf.failed);
    buf_done(&buf);
}

static void an_empty_buffer_is_an_empty_string(void **state)
{
    struct buf buf;

    (void)state;
    buf_init(&buf, 10);
    assert_string_equal(buf_str(&buf), "");
    assert_non_null(buf_slice(&buf).ptr);
    assert_int_equal(buf_slice(&buf).len, 0);
    buf_add(&buf, (struct slice){NULL, 0});
    assert_string_equal(buf_str(&buf), "");
    assert_false(buf.failed);
    buf_done(&buf);
}

static void a_buffer_grows_to_its_ceiling_and_not_beyond(void **state)
{
    struct buf buf;

    (void)state;
    buf_init(&buf, 1000);
    for (int i = 0; i < 1000; i++)
        buf_add_char(&buf, 'x');
    assert_false(buf.failed);
    assert_int_equal(buf.len, 1000);
    buf_add_char(&buf, 'y');
    assert_true(buf.failed);
    assert_int_equal(buf.len, 1000);
    buf_done(&buf);
}

static void nothing_of_a_refused_append_is_stored(void **state)
{
    struct buf buf;

    (void)state;
    buf_init(&buf, 5);
    buf_add_str(&buf, "abc");
    buf_add_str(&buf, "def");
    assert_true(buf.failed);
    assert_string_equal(buf_str(&buf), "abc");
    buf_add_char(&buf, 'd'); /* would fit, but something is missing before it */
    assert_string_equal(buf_str(&buf), "abc");
    buf_printf(&buf, "%s", "d");
    assert_string_equal(buf_str(&buf), "abc");
    buf_done(&buf);
}

static void a_length_near_the_limit_of_size_t_is_refused(void **state)
{
    struct buf buf;

    (void)state;
    buf_init(&buf, 100);
    buf_add_str(&buf, "abc");
    buf_add(&buf, (struct slice){"", SIZE_MAX - 1});
    assert_true(buf.failed);
    assert_string_equal(buf_str(&buf), "abc");
    buf_done(&buf);
}

static void a_reset_buffer_is_empty_and_sound(void **state)
{
    struct buf buf;

    (void)state;
    buf_init(&buf, 3);
    buf_add_str(&buf, "abcd");
    buf_reset(&buf);
    assert_false(buf.failed);
    buf_add_str(&buf, "xyz");
    assert_string_equal(buf_str(&buf), "xyz");
    buf_reset(&buf);
    assert_string_equal(buf_str(&buf), "");
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_appended_one_after_the_other),
        cmocka_unit_test(an_empty_buffer_is_an_empty_string),
        cmocka_unit_test(a_buffer_grows_to_its_ceiling_and_not_beyond),
        cmocka_unit_test(nothing_of_a_refused_append_is_stored),
        cmocka_unit_test(a_length_near_the_limit_of_size_t_is_refused),
        cmocka_unit_test(a_reset_buffer_is_empty_and_sound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
