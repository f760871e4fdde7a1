#include "base/hex.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

static void every_byte_comes_back_from_its_digits(void **state)
{
    char digits[2 * 256 + 1];

    (void)state;
    for (size_t i = 0; i < 256; i++)
        (void)snprintf(digits + 2 * i, 3, "%02zx", i);
    assert_true(hex_valid((struct slice){digits, 512}));
    assert_true(hex_decode(digits, 512));
    for (unsigned i = 0; i < 256; i++)
        assert_int_equal((unsigned char)digits[i], i);
}

static void only_lower_case_digits_in_pairs_are_valid(void **state)
{
    static const char *const bad[] = {"a",  "abc",  "AB",   "0g",
                                      "g0", "0x00", "a b ", "\xFF\xFF"};

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        char bytes[8];

        memcpy(bytes, bad[i], strlen(bad[i]));
        assert_false(hex_valid((struct slice){bytes, strlen(bad[i])}));
        assert_false(hex_decode(bytes, strlen(bad[i])));
    }
}

static void no_digits_are_no_bytes(void **state)
{
    char nothing = 'x';

    (void)state;
    assert_true(hex_valid((struct slice){&nothing, 0}));
    assert_true(hex_decode(&nothing, 0));
    assert_int_equal(nothing, 'x');
}

static void bytes_are_added_behind_what_is_there(void **state)
{
    struct buf out;

    (void)state;
    buf_init(&out, 8);
    assert_true(hex_add(&out, slice_of("")));
    assert_string_equal(buf_str(&out), "");
    assert_true(hex_add(&out, slice_of("6162")));
    assert_true(hex_add(&out, slice_of("63")));
    assert_string_equal(buf_str(&out), "abc");
    assert_int_equal(out.len, 3);
    assert_false(hex_add(&out, slice_of("636")));
    buf_done(&out);
    buf_init(&out, 8);
    assert_false(hex_add(&out, slice_of("616263646566")));
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_comes_back_from_its_digits),
        cmocka_unit_test(only_lower_case_digits_in_pairs_are_valid),
        cmocka_unit_test(no_digits_are_no_bytes),
        cmocka_unit_test(bytes_are_added_behind_what_is_there),
    };

    return cmocka_run_group_tests_name("hex", tests, NULL, NULL);
}
