#include "base/utf8.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* In a block of exactly its size, so that a read too far is seen by the sanitizer. */
static bool valid(const char *bytes, size_t len)
{
    char *exact = malloc(len ? len : 1);
    bool ret;

    assert_non_null(exact);
    memcpy(exact, bytes, len);
    ret = utf8_valid((struct slice){exact, len});
    free(exact);
    return ret;
}

#define VALID(literal) valid(literal, sizeof(literal) - 1)

/* The bytes of a code point as if every number were allowed; their count. */
static size_t encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xC0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xE0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code & 0x3F));
    return 4;
}

static void every_code_point_but_surrogates_is_valid(void **state)
{
    (void)state;
    for (uint32_t code = 0; code < 0x1FFFFF; code++) {
        char bytes[4];
        size_t len = encode(code, bytes);
        bool right = code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);

        assert_int_equal(utf8_valid((struct slice){bytes, len}), right);
    }
}

static void overlong_forms_are_refused(void **state)
{
    (void)state;
    assert_false(VALID("\xC0\x80"));
    assert_false(VALID("\xC0\xAF"));
    assert_false(VALID("\xC1\xBF"));
    assert_false(VALID("\xE0\x80\xAF"));
    assert_false(VALID("\xE0\x9F\xBF"));
    assert_false(VALID("\xF0\x80\x80\xAF"));
    assert_false(VALID("\xF0\x8F\xBF\xBF"));
}

static void other_encodings_are_refused(void **state)
{
    (void)state;
    assert_false(VALID("caf\xE9"));          /* LATIN1 */
    assert_false(VALID("\xE9t\xE9 indien")); /* more ASCII behind it */
    assert_false(VALID("\x80"));
    assert_false(VALID("\xFE\xFF"));
    assert_false(VALID("\xED\xA0\xBD\xED\xB8\x80")); /* CESU-8 */
}

static void a_sequence_cut_short_is_refused(void **state)
{
    static const char *const whole[] = {"\xC3\xA9", "\xE6\x97\xA5", "\xF0\x9F\x98\x80"};

    (void)state;
    for (size_t i = 0; i < COUNT(whole); i++) {
        size_t len = strlen(whole[i]);

        assert_true(valid(whole[i], len));
        for (size_t n = 1; n < len; n++)
            assert_false(valid(whole[i], n));
    }
}

static void a_bad_byte_is_found_at_every_place(void **state)
{
    char text[40];

    (void)state;
    for (size_t at = 0; at < sizeof(text); at++) {
        memset(text, 'x', sizeof(text));
        assert_true(valid(text, sizeof(text)));
        text[at] = '\xFF';
        assert_false(valid(text, sizeof(text)));
    }
}

static void nothing_is_valid(void **state)
{
    (void)state;
    assert_true(utf8_valid((struct slice){"", 0}));
    assert_true(utf8_valid((struct slice){NULL, 0}));
}

static void mixed_text_is_valid(void **state)
{
    (void)state;
    assert_true(
        VALID("q\"\\ \t\x01\x7f \xC3\xA9 \xF0\x9F\x98\x80 \xE2\x80\xA8 \xEF\xBF\xBF"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_point_but_surrogates_is_valid),
        cmocka_unit_test(overlong_forms_are_refused),
        cmocka_unit_test(other_encodings_are_refused),
        cmocka_unit_test(a_sequence_cut_short_is_refused),
        cmocka_unit_test(a_bad_byte_is_found_at_every_place),
        cmocka_unit_test(nothing_is_valid),
        cmocka_unit_test(mixed_text_is_valid),
    };

    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
