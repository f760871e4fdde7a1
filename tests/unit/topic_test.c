#include "core/topic.h"

#include "unit.h"

#include <stdio.h>
#include <string.h>

/* "outbox.event." then [aggregate_type]: columns in brackets, parts joined by a bar. */
static void parses(const char *text, const char *expected, bool is_constant)
{
    struct topic_template t;
    struct err err = {0};
    char got[512] = "";
    size_t len = 0;

    if (topic_parse(text, &t, &err) < 0)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < t.nparts; i++) {
        const struct topic_part *p = &t.parts[i];

        len += (size_t)snprintf(got + len, sizeof(got) - len,
                                p->is_column ? "%s[%.*s]" : "%s%.*s", i > 0 ? "|" : "",
                                SLICE_ARG(p->text));
    }
    assert_string_equal(got, expected);
    assert_int_equal(t.is_constant, is_constant);
    topic_done(&t);
}

static void refused(const char *text, const char *part_of_reason)
{
    struct topic_template t;
    struct err err = {0};

    assert_int_equal(topic_parse(text, &t, &err), -1);
    assert_int_equal(err.class, ERR_CONFIG);
    assert_non_null(strstr(err.text, part_of_reason));
    assert_non_null(strstr(err.text, text));
}

static void text_and_columns_alternate(void **state)
{
    (void)state;
    parses("outbox.event.{aggregate_type}", "outbox.event.|[aggregate_type]", false);
    parses("{topic}", "[topic]", false);
    parses("{a}{b}", "[a]|[b]", false);
    parses("{a}.{b}-x", "[a]|.|[b]|-x", false);
    parses("{we\"ird col}", "[we\"ird col]", false);
}

static void a_template_without_columns_is_one_name(void **state)
{
    (void)state;
    parses("events", "events", true);
    parses("...", "...", true);
}

static void a_brace_alone_is_refused(void **state)
{
    (void)state;
    refused("a.{b", "braces");
    refused("a}b", "braces");
    refused("a.{}", "braces");
    refused("{a{b}}", "braces");
    refused("{", "braces");
    refused("}", "braces");
    refused("{a}}", "braces");
    refused("a{{b", "braces");
    refused("{{a}}", "braces");
}

static void text_that_no_topic_may_have_is_refused(void **state)
{
    char longest[TOPIC_MAX + 2];

    (void)state;
    refused("", "no name");
    refused(".", "no name");
    refused("..", "no name");
    refused("a b", "letters, digits");
    refused("a/{b}", "letters, digits");
    refused("caf\xC3\xA9.{b}", "letters, digits");
    memset(longest, 'x', sizeof(longest));
    longest[TOPIC_MAX] = '\0';
    parses(longest, longest, true);
    longest[TOPIC_MAX] = 'x';
    longest[TOPIC_MAX + 1] = '\0';
    refused(longest, "up to 249");
}

static void names_are_judged_as_kafka_judges_them(void **state)
{
    char bytes[256];

    (void)state;
    for (int c = 0; c < 256; c++) {
        char byte = (char)c;
        bool right = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                     (c >= 'A' && c <= 'Z') || c == '_' || c == '-';

        /* A dot is legal, but not alone. */
        assert_int_equal(topic_legal((struct slice){&byte, 1}), right);
        bytes[0] = 'x';
        bytes[1] = byte;
        assert_int_equal(topic_legal((struct slice){bytes, 2}), right || c == '.');
    }
    memset(bytes, 'x', sizeof(bytes));
    assert_false(topic_legal((struct slice){bytes, 0}));
    assert_true(topic_legal((struct slice){bytes, 249}));
    assert_false(topic_legal((struct slice){bytes, 250}));
    assert_false(topic_legal(slice_of("..")));
    assert_true(topic_legal(slice_of("...")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_columns_alternate),
        cmocka_unit_test(a_template_without_columns_is_one_name),
        cmocka_unit_test(a_brace_alone_is_refused),
        cmocka_unit_test(text_that_no_topic_may_have_is_refused),
        cmocka_unit_test(names_are_judged_as_kafka_judges_them),
    };

    return cmocka_run_group_tests_name("topic", tests, NULL, NULL);
}
