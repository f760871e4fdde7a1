#include "core/ini.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT(literal) ((struct slice){literal, sizeof(literal) - 1})

static void expect(struct slice text, const char *sections, const char *entries)
{
    struct ini ini = {0};
    struct err err = {0};
    char got_sections[1024] = "";
    char got_entries[1024] = "";
    char one[256];

    if (ini_read("f", text, &ini, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < ini.nsections; i++) {
        (void)snprintf(one, sizeof(one), "%d[%s]", ini.sections[i].line,
                       ini.sections[i].name);
        strcat(got_sections, one);
    }
    for (size_t i = 0; i < ini.nentries; i++) {
        (void)snprintf(one, sizeof(one), "%d:%zu.%s=<%s>", ini.entries[i].line,
                       ini.entries[i].section, ini.entries[i].key, ini.entries[i].value);
        strcat(got_entries, one);
    }
    assert_string_equal(got_sections, sections);
    assert_string_equal(got_entries, entries);
    ini_done(&ini);
}

static void refuse(struct slice text, const char *why)
{
    struct ini ini = {0};
    struct err err = {0};

    assert_int_equal(ini_read("f", text, &ini, &err), -1);
    assert_int_equal(err.class, ERR_CONFIG);
    assert_string_equal(err.text, why);
    assert_null(ini.sections);
}

static void sections_and_keys_come_with_their_lines(void **state)
{
    (void)state;
    expect(TEXT("# a comment\n\n[a]\n; another\nx = 1\n\n[b]\n[c]\n\n\ny=2\nz=3"),
           "3[a]7[b]8[c]", "5:0.x=<1>11:2.y=<2>12:2.z=<3>");
}

static void nothing_and_comments_alone_are_an_empty_file(void **state)
{
    (void)state;
    expect(TEXT(""), "", "");
    expect(TEXT("\n\n# x\n   \n"), "", "");
}

static void names_of_sections_are_taken_as_they_are(void **state)
{
    (void)state;
    expect(
        TEXT(
            "[table \"Sales Dept\".\"Out box.v1\"]\n[a]b]\n[#;=!]\n[  two  words  ]\n[]"),
        "1[table \"Sales Dept\".\"Out box.v1\"]2[a]b]3[#;=!]4[two  words]5[]", "");
}

static void sections_that_differ_in_case_are_two(void **state)
{
    (void)state;
    expect(TEXT("[table \"A\"]\nx=1\n[table \"a\"]\nx=2\n"),
           "1[table \"A\"]3[table \"a\"]", "2:0.x=<1>4:1.x=<2>");
}

static void a_section_may_come_twice(void **state)
{
    (void)state;
    expect(TEXT("[a]\nx=1\n[a]\nx=2\n"), "1[a]3[a]", "2:0.x=<1>4:1.x=<2>");
}

static void a_value_keeps_everything_but_the_blanks_around_it(void **state)
{
    (void)state;
    expect(TEXT("[a]\nx =  a = b # c ; d 'e' \"f\" \\ [g]\t \n"), "1[a]",
           "2:0.x=<a = b # c ; d 'e' \"f\" \\ [g]>");
    expect(TEXT("[a]\nx = \" y \"\n"), "1[a]", "2:0.x=<\" y \">");
    expect(TEXT("[a]\nx=\ny=  \n"), "1[a]", "2:0.x=<>3:0.y=<>");
    expect(TEXT("[a]\nx=caf\xc3\xa9 \xf0\x9f\x98\x80\n"), "1[a]",
           "2:0.x=<caf\xc3\xa9 \xf0\x9f\x98\x80>");
}

static void a_key_may_hold_dots_blanks_and_other_signs(void **state)
{
    (void)state;
    expect(TEXT("[a]\nbootstrap.servers=1\na b=2\nk#=3\n\"q\"=4\n"), "1[a]",
           "2:0.bootstrap.servers=<1>3:0.a b=<2>4:0.k#=<3>5:0.\"q\"=<4>");
}

static void indented_lines_are_lines_of_their_own(void **state)
{
    (void)state;
    expect(TEXT("  [a]\n  x = 1\n\ty = 2\n  # comment = no\n ; nor this\n"), "1[a]",
           "2:0.x=<1>3:0.y=<2>");
    refuse(TEXT("[a]\nx = 1,\n  2\n"), "f:3: there is no = in this line");
}

static void a_c_comment_is_no_comment(void **state)
{
    (void)state;
    expect(TEXT("[a]\n/* x = 1\n*/ y = 2\n"), "1[a]", "2:0./* x=<1>3:0.*/ y=<2>");
}

static void carriage_returns_and_a_byte_order_mark_do_not_matter(void **state)
{
    (void)state;
    expect(TEXT("\xef\xbb\xbf[a]\r\nx = 1\r\n\r\n[b]\r\ny=\r\n"), "1[a]4[b]",
           "2:0.x=<1>5:1.y=<>");
}

static void a_value_may_have_any_length(void **state)
{
    struct ini ini = {0};
    struct err err = {0};
    size_t len = 100000;
    char *text = malloc(len + 16);

    (void)state;
    memcpy(text, "[a]\nx=", 6);
    memset(text + 6, 'v', len);
    memcpy(text + 6 + len, "\ny=1", 4);
    assert_int_equal(ini_read("f", (struct slice){text, len + 10}, &ini, &err), 0);
    assert_int_equal(strlen(ini.entries[0].value), len);
    assert_int_equal(ini.entries[1].line, 3);
    ini_done(&ini);
    free(text);
}

static void a_section_may_have_a_long_name(void **state)
{
    struct ini ini = {0};
    struct err err = {0};
    char text[5000];

    (void)state;
    memset(text, 'n', sizeof(text));
    text[0] = '[';
    text[sizeof(text) - 1] = ']';
    assert_int_equal(ini_read("f", (struct slice){text, sizeof(text)}, &ini, &err), 0);
    assert_int_equal(strlen(ini.sections[0].name), sizeof(text) - 2);
    ini_done(&ini);
}

static void a_line_that_says_nothing_is_an_error(void **state)
{
    (void)state;
    refuse(TEXT("[a]\nx\n"), "f:2: there is no = in this line");
    refuse(TEXT("[a]\nx: 1\n"), "f:2: there is no = in this line");
    refuse(TEXT("[a]\n\n= 1\n"), "f:3: there is no key before =");
    refuse(TEXT("[a\nx=1\n"), "f:1: a [section] must end with ]");
    refuse(TEXT("[a] # why\nx=1\n"), "f:1: a [section] must end with ]");
    refuse(TEXT("\nx=1\n[a]\n"), "f:2: this line stands before the first [section]");
    refuse(TEXT("[a]\nx!y=1\n"), "f:2: a key cannot hold !");
    refuse(TEXT("["), "f:1: a [section] must end with ]");
}

static void a_key_that_comes_twice_is_an_error(void **state)
{
    (void)state;
    refuse(TEXT("[a]\nx=1\ny=2\n\n  x = 3\n"), "f:5: x stands twice in this section");
    refuse(TEXT("[a]\nx=1\nX=2\n"), "f:3: X stands twice in this section");
}

static void a_key_of_endless_length_is_an_error(void **state)
{
    char text[5000];
    struct ini ini = {0};
    struct err err = {0};

    (void)state;
    memset(text, 'k', sizeof(text));
    memcpy(text, "[a]\n", 4);
    text[sizeof(text) - 1] = '=';
    assert_int_equal(ini_read("f", (struct slice){text, sizeof(text)}, &ini, &err), -1);
    assert_string_equal(err.text, "f:2: the key is too long");
}

static void bytes_that_are_no_text_are_an_error(void **state)
{
    (void)state;
    refuse(TEXT("[a]\nx=caf\xe9\n"), "f:2: the line is not UTF-8");
    refuse(TEXT("[a]\nx=1\0y=2\n"), "f:2: the line holds the control character 0x00");
    refuse(TEXT("[a]\nx=1\ry=2\n"), "f:2: the line holds the control character 0x0d");
    refuse(TEXT("# \x1b[31m\n"), "f:1: the line holds the control character 0x1b");
    refuse(TEXT("\xff\xfe[\0a\0]\0\n\0"), "f:1: the line is not UTF-8");
    refuse(TEXT("\0\0\xfe\xff"), "f:1: the line is not UTF-8");
}

static void a_file_that_is_no_configuration_is_refused_early(void **state)
{
    struct slice huge = {"", (size_t)17 << 20};

    (void)state;
    refuse(huge, "f: over 16 MB, this is no configuration");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_and_keys_come_with_their_lines),
        cmocka_unit_test(nothing_and_comments_alone_are_an_empty_file),
        cmocka_unit_test(names_of_sections_are_taken_as_they_are),
        cmocka_unit_test(sections_that_differ_in_case_are_two),
        cmocka_unit_test(a_section_may_come_twice),
        cmocka_unit_test(a_value_keeps_everything_but_the_blanks_around_it),
        cmocka_unit_test(a_key_may_hold_dots_blanks_and_other_signs),
        cmocka_unit_test(indented_lines_are_lines_of_their_own),
        cmocka_unit_test(a_c_comment_is_no_comment),
        cmocka_unit_test(carriage_returns_and_a_byte_order_mark_do_not_matter),
        cmocka_unit_test(a_value_may_have_any_length),
        cmocka_unit_test(a_section_may_have_a_long_name),
        cmocka_unit_test(a_line_that_says_nothing_is_an_error),
        cmocka_unit_test(a_key_that_comes_twice_is_an_error),
        cmocka_unit_test(a_key_of_endless_length_is_an_error),
        cmocka_unit_test(bytes_that_are_no_text_are_an_error),
        cmocka_unit_test(a_file_that_is_no_configuration_is_refused_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
