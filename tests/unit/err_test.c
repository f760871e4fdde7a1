#include "base/err.h"

#include "unit.h"

#include <string.h>

static void an_error_has_class_and_text(void **state)
{
    struct err err = {0};

    (void)state;
    assert_int_equal(err_set(&err, ERR_SLOT, "slot %s is missing", "w"), -1);
    assert_int_equal(err.class, ERR_SLOT);
    assert_string_equal(err.code, "");
    assert_string_equal(err.text, "slot w is missing");
}

static void an_error_may_have_the_peers_code(void **state)
{
    struct err err = {0};
    struct err other = {0};

    (void)state;
    assert_int_equal(err_set_code(&err, ERR_SLOT, "42704", "no slot"), -1);
    assert_string_equal(err.code, "42704");
    assert_int_equal(err_set_code(&other, ERR_SLOT, NULL, "no slot"), -1);
    assert_string_equal(other.code, "");
}

static void the_first_error_wins(void **state)
{
    struct err err = {0};

    (void)state;
    (void)err_set(&err, ERR_RETRY, "first");
    (void)err_set_code(&err, ERR_SLOT, "42704", "second");
    assert_int_equal(err.class, ERR_RETRY);
    assert_string_equal(err.code, "");
    assert_string_equal(err.text, "first");
}

static void a_cleared_error_can_be_set_again(void **state)
{
    struct err err = {0};

    (void)state;
    (void)err_set_code(&err, ERR_RETRY, "57P01", "first");
    err_clear(&err);
    assert_int_equal(err.class, ERR_NONE);
    (void)err_set(&err, ERR_SLOT, "second");
    assert_string_equal(err.code, "");
    assert_string_equal(err.text, "second");
}

static void nobody_has_to_listen(void **state)
{
    (void)state;
    assert_int_equal(err_set(NULL, ERR_RETRY, "x"), -1);
    assert_int_equal(err_set_code(NULL, ERR_RETRY, "x", "x"), -1);
}

static void a_text_of_several_lines_becomes_one(void **state)
{
    struct err err = {0};

    (void)state;
    (void)err_set(&err, ERR_RETRY, "\n %s", "FATAL:  no\r\n\tHINT:  try\n\n");
    assert_string_equal(err.text, "FATAL: no HINT: try");
}

static void a_long_text_is_cut(void **state)
{
    char text[2 * ERR_TEXT_MAX];
    struct err err = {0};

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    (void)err_set_code(&err, ERR_RETRY, text, "%s", text);
    assert_int_equal(strlen(err.text), ERR_TEXT_MAX - 1);
    assert_int_equal(strlen(err.code), sizeof(err.code) - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_has_class_and_text),
        cmocka_unit_test(an_error_may_have_the_peers_code),
        cmocka_unit_test(the_first_error_wins),
        cmocka_unit_test(a_cleared_error_can_be_set_again),
        cmocka_unit_test(nobody_has_to_listen),
        cmocka_unit_test(a_text_of_several_lines_becomes_one),
        cmocka_unit_test(a_long_text_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
