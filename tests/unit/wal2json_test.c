#include "core/wal2json.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#define TIME    "\"timestamp\":\"2026-11-30 09:15:02.114523+00\""
#define TIME_US INT64_C(1796030102114523)

/* One decoder and one message, in memory of exactly its size, so that the address
 * sanitizer sees any step beyond. */
struct decoded {
    struct wal2json *decoder;
    char *bytes;
    int rc;
    struct change change;
    struct err err;
};

static struct decoded decode(const char *message)
{
    size_t len = strlen(message);
    struct decoded d = {.decoder = wal2json_new(), .bytes = malloc(len ? len : 1)};

    assert_non_null(d.decoder);
    assert_non_null(d.bytes);
    memcpy(d.bytes, message, len);
    d.rc = wal2json_decode(d.decoder, d.bytes, len, &d.change, &d.err);
    return d;
}

static void done(struct decoded *d)
{
    wal2json_free(d->decoder);
    free(d->bytes);
}

static void assert_slice(struct slice got, const char *want)
{
    if (!slice_eq(got, slice_of(want)))
        fail_msg("got \"%.*s\", want \"%s\"", SLICE_ARG(got), want ? want : "NULL");
}

static void assert_kind(const char *message, enum change_kind kind)
{
    struct decoded d = decode(message);

    if (d.rc != 0)
        fail_msg("%s: %s", message, d.err.text);
    assert_int_equal(d.change.kind, kind);
    done(&d);
}

static void assert_refused(const char *message)
{
    struct decoded d = decode(message);

    if (d.rc == 0)
        fail_msg("accepted: %s", message);
    assert_int_equal(d.err.class, ERR_POISON);
    done(&d);
}

/* An insert into s.t with these columns. */
static struct decoded decode_columns(const char *columns)
{
    char message[1024];
    struct decoded d;

    (void)snprintf(message, sizeof(message),
                   "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":[%s]}",
                   columns);
    d = decode(message);
    if (d.rc != 0)
        fail_msg("%s: %s", message, d.err.text);
    return d;
}

static void assert_value(const char *json, const char *want)
{
    char column[512];
    struct decoded d;

    (void)snprintf(column, sizeof(column), "{\"name\":\"c\",\"value\":%s}", json);
    d = decode_columns(column);
    assert_int_equal(d.change.ncolumns, 1);
    assert_slice(d.change.columns[0].value, want);
    done(&d);
}

static void assert_type(const char *written, const char *want)
{
    char column[512];
    struct decoded d;

    (void)snprintf(column, sizeof(column),
                   "{\"name\":\"c\",\"type\":%s,\"value\":\"v,\\\"\"},"
                   "{\"name\":\"d\",\"type\":\"text\",\"value\":\"w)}\"}",
                   written);
    d = decode_columns(column);
    assert_int_equal(d.change.ncolumns, 2);
    assert_slice(d.change.columns[0].type, want);
    assert_slice(d.change.columns[0].value, "v,\"");
    assert_slice(d.change.columns[1].name, "d");
    assert_slice(d.change.columns[1].value, "w)}");
    done(&d);
}

static void a_row_gives_table_names_values_and_commit_time(void **state)
{
    struct decoded d =
        decode("{\"action\":\"I\"," TIME ",\"schema\":\"public\",\"table\":\"outbox\","
               "\"columns\":["
               "{\"name\":\"id\",\"type\":\"bigint\",\"value\":9223372036854775807},"
               "{\"name\":\"ok\",\"type\":\"boolean\",\"value\":true},"
               "{\"name\":\"none\",\"type\":\"text\",\"value\":null},"
               "{\"name\":\"empty\",\"value\":\"\"}]}");

    (void)state;
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.change.kind, CHANGE_INSERT);
    assert_true(d.change.commit_us == TIME_US);
    assert_slice(d.change.schema, "public");
    assert_slice(d.change.table, "outbox");
    assert_int_equal(d.change.ncolumns, 4);
    assert_slice(d.change.columns[0].name, "id");
    assert_slice(d.change.columns[0].type, "bigint");
    assert_slice(d.change.columns[0].value, "9223372036854775807");
    assert_slice(d.change.columns[1].value, "true");
    assert_slice(d.change.columns[2].value, NULL);
    assert_slice(d.change.columns[3].value, "");
    assert_slice(d.change.columns[3].type, NULL);
    done(&d);
}

static void begin_and_commit_carry_the_commit_time(void **state)
{
    struct decoded d =
        decode("{\"action\":\"B\",\"xid\":745," TIME
               ",\"origin\":0,\"lsn\":\"0/1573340\",\"nextlsn\":\"0/1573368\"}");

    (void)state;
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.change.kind, CHANGE_BEGIN);
    assert_true(d.change.commit_us == TIME_US);
    assert_slice(d.change.table, NULL);
    assert_int_equal(d.change.ncolumns, 0);
    done(&d);
    assert_kind("{\"action\":\"C\"," TIME "}", CHANGE_COMMIT);
}

static void without_a_timestamp_the_commit_time_stays(void **state)
{
    struct wal2json *decoder = wal2json_new();
    struct change change = {.commit_us = 7, .lsn = 8, .number = 9, .sent_us = 10};
    struct err err = {0};
    char message[] = "{\"action\":\"B\"}";
    char outside[] = "{\"action\":\"M\",\"xid\":null,\"timestamp\":null,\"origin\":null,"
                     "\"transactional\":false,\"prefix\":\"p\",\"content\":\"c\"}";

    (void)state;
    assert_non_null(decoder);
    assert_int_equal(
        wal2json_decode(decoder, message, sizeof(message) - 1, &change, &err), 0);
    assert_int_equal(
        wal2json_decode(decoder, outside, sizeof(outside) - 1, &change, &err), 0);
    assert_int_equal(change.kind, CHANGE_MESSAGE);
    assert_true(change.commit_us == 7 && change.lsn == 8 && change.number == 9 &&
                change.sent_us == 10);
    wal2json_free(decoder);
}

static void each_message_has_its_own_commit_time(void **state)
{
    struct wal2json *decoder = wal2json_new();
    struct err err = {0};

    (void)state;
    assert_non_null(decoder);
    for (int i = 0; i < 20; i++) {
        char message[] = "{\"action\":\"B\",\"timestamp\":\"1970-01-01 00:00:00+00\"}";
        struct change change = {.commit_us = -1};
        int second = i / 2;

        message[sizeof("{\"action\":\"B\",\"timestamp\":\"1970-01-01 00:00:0") - 1] =
            (char)('0' + second);
        assert_int_equal(
            wal2json_decode(decoder, message, sizeof(message) - 1, &change, &err), 0);
        assert_true(change.commit_us == second * INT64_C(1000000));
    }
    wal2json_free(decoder);
}

static void what_is_not_an_insert_publishes_nothing(void **state)
{
    (void)state;
    assert_kind(
        "{\"action\":\"U\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
        "[{\"name\":\"a\",\"value\":1}],\"identity\":[{\"name\":\"a\",\"value\":1}],"
        "\"pk\":[{\"name\":\"a\",\"type\":\"we\"\"ird\"}]}",
        CHANGE_IGNORED);
    assert_kind("{\"action\":\"D\",\"schema\":\"s\",\"table\":\"t\",\"identity\":[]}",
                CHANGE_IGNORED);
    assert_kind("{\"action\":\"T\",\"schema\":\"s\",\"table\":\"t\"}", CHANGE_IGNORED);
    assert_kind("{\"action\":\"M\",\"transactional\":true,\"prefix\":\"a\\\"b\","
                "\"content\":\"{\\\"action\\\":\\\"I\\\"}\"}",
                CHANGE_MESSAGE);
}

static void an_action_nobody_knows_is_an_error(void **state)
{
    (void)state;
    assert_refused("{\"action\":\"X\"}");
    assert_refused("{\"action\":\"II\"}");
    assert_refused("{\"action\":\"\"}");
    assert_refused("{\"action\":null}");
    assert_refused("{}");
    assert_refused("{\"schema\":\"s\",\"table\":\"t\",\"columns\":[]}");
}

static void an_insert_without_table_or_columns_is_an_error(void **state)
{
    (void)state;
    assert_refused("{\"action\":\"I\",\"table\":\"t\",\"columns\":[]}");
    assert_refused("{\"action\":\"I\",\"schema\":\"s\",\"columns\":[]}");
    assert_refused("{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\"}");
    assert_refused("{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
                   "[{\"name\":\"a\"}]}");
    assert_refused("{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
                   "[{\"value\":1}]}");
    assert_refused(
        "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":[{}]}");
    assert_kind("{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":[]}",
                CHANGE_INSERT);
}

static void a_field_that_comes_twice_is_an_error(void **state)
{
    (void)state;
    assert_refused("{\"action\":\"B\",\"action\":\"B\"}");
    assert_refused("{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":[],"
                   "\"columns\":[]}");
    assert_refused("{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
                   "[{\"name\":\"a\",\"value\":1,\"value\":2}]}");
}

static void escapes_become_the_bytes_they_stand_for(void **state)
{
    (void)state;
    assert_value("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t");
    assert_value("\"\\u0001x\\u001f\"", "\x01x\x1f");
    assert_value("\"\\u00e9\\u20AC\\ud83d\\ude00\"", "é€😀");
    assert_value("\"é€😀\x7f\"", "é€😀\x7f");
    assert_value("\"12345678\\n12345678\\n1234567\"", "12345678\n12345678\n1234567");
    assert_value("\"\\\\n\"", "\\n");
    assert_refused("{\"action\":\"B\",\"x\":\"\\u0000\"}");
    assert_refused("{\"action\":\"B\",\"x\":\"\\ud83d\"}");
    assert_refused("{\"action\":\"B\",\"x\":\"\\ud83d\\n\"}");
    assert_refused("{\"action\":\"B\",\"x\":\"\\ude00\\ud83d\"}");
    assert_refused("{\"action\":\"B\",\"x\":\"\\ud83d\\ud83d\"}");
    assert_refused("{\"action\":\"B\",\"x\":\"\\u00g0\"}");
    assert_refused("{\"action\":\"B\",\"x\":\"\\x41\"}");
}

static void a_number_keeps_its_exact_text(void **state)
{
    (void)state;
    assert_value("0", "0");
    assert_value("-0", "-0");
    assert_value("9007199254740993", "9007199254740993");
    assert_value("1.10", "1.10");
    assert_value("-1.7976931348623157e+308", "-1.7976931348623157e+308");
    assert_value("false", "false");
    assert_refused("{\"action\":\"B\",\"x\":-}");
    assert_refused("{\"action\":\"B\",\"x\":}");
    assert_refused("{\"action\":\"B\",\"x\":12a}");
    assert_refused("{\"action\":\"B\",\"x\":nul}");
    assert_refused("{\"action\":\"B\",\"x\":nullx}");
    assert_refused("{\"action\":\"B\",\"x\":NaN}");
}

/* format_type() quotes what is no plain lower-case word; wal2json 2.5 writes a name
 * that begins with a quote as it is, unless it ends with a bracket. */
static void quoted_type_names_are_read_though_they_are_no_json(void **state)
{
    (void)state;
    assert_type("\"Weird\"", "Weird");
    assert_type("\"we\"\"ird\"", "we\"\"ird");
    assert_type("\"\"\"\"", "\"\"");
    assert_type("\"a\\b\"", "a\\b");
    assert_type("\"a\\\"", "a\\");
    assert_type("\"a\\\"\",\"\"value\"\":1\"", "a\\\"\",\"\"value\"\":1");
    assert_type("\"},{\"", "},{");
    assert_type("\"line\nbreak\"", "line\nbreak");
    assert_type("\"My Schema\".\"My Type\"", "My Schema\".\"My Type");
    assert_type("\"My Schema\".plain_1", "\"My Schema\".plain_1");
    assert_type("\"Weird\"(10,2)", "\"Weird\"(10,2)");
    assert_type("\"My Schema\".t(3)", "\"My Schema\".t(3)");
}

static void other_type_names_are_json(void **state)
{
    (void)state;
    assert_type("\"character varying(20)\"", "character varying(20)");
    assert_type("\"\\\"Weird\\\"[]\"", "\"Weird\"[]");
    assert_type("\"\\\",\\\"[]\"", "\",\"[]");
    assert_type("\"\\\"}\\\"[]\"", "\"}\"[]");
    assert_type("\"\\\"a\\\\b\\\"[]\"", "\"a\\b\"[]");
    assert_type("\"s.\\\"My Type\\\"\"", "s.\"My Type\"");
    assert_type("\"s.\\\"(\\\"\"", "s.\"(\"");
    assert_type("\"s.\\\".x\\\"\"", "s.\".x\"");
    assert_type("\"s.\\\"we\\\"\\\"ird\\\"\"", "s.\"we\"\"ird\"");
}

static void the_order_of_fields_does_not_matter(void **state)
{
    struct decoded d = decode(
        " { \"columns\" : [ { \"value\" : \"v\" , \"new\":[{\"a\":[1,{}]},\"]\"],"
        "\"optional\":false,\"position\":1,\"typeoid\":-5,\"type\" : \"text\" ,\r\n"
        "\"name\" : \"c\" } ] , \"table\":\"t\",\"\\u0073chema\":\"s\"," TIME
        ",\"later\":{\"deep\":[[[{\"action\":\"U\"}]]]},\t\"action\":\"I\" } ");

    (void)state;
    assert_int_equal(d.rc, 0);
    assert_int_equal(d.change.kind, CHANGE_INSERT);
    assert_true(d.change.commit_us == TIME_US);
    assert_slice(d.change.schema, "s");
    assert_slice(d.change.table, "t");
    assert_int_equal(d.change.ncolumns, 1);
    assert_slice(d.change.columns[0].name, "c");
    assert_slice(d.change.columns[0].value, "v");
    assert_slice(d.change.columns[0].type, "text");
    done(&d);
}

static void nested(char *message, size_t size, int depth)
{
    static const char open[] = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
                               "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";
    static const char close[] = "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"
                                "]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]";

    (void)snprintf(message, size, "{\"action\":\"B\",\"x\":%.*s%.*s}", depth, open, depth,
                   close);
}

static void skipped_values_nest_at_most_64_deep(void **state)
{
    char message[512];

    (void)state;
    nested(message, sizeof(message), 64);
    assert_kind(message, CHANGE_BEGIN);
    nested(message, sizeof(message), 65);
    assert_refused(message);
    assert_refused("{\"action\":\"B\",\"x\":[}");
    assert_refused("{\"action\":\"B\",\"x\":{]}");
    assert_refused("{\"action\":\"B\",\"x\":[\"]}");
}

/* MaxTupleAttributeNumber in access/htup_details.h */
static void a_row_has_at_most_1664_columns(void **state)
{
    enum { MOST = 1664 };
    static const char column[] = "{\"name\":\"c\",\"value\":1}";
    char *message = malloc((MOST + 2) * sizeof(column) + 100);
    struct decoded d;

    (void)state;
    assert_non_null(message);
    for (int n = MOST; n <= MOST + 1; n++) {
        char *p = message;

        p += sprintf(p,
                     "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":[");
        for (int i = 0; i < n; i++)
            p += sprintf(p, "%s%s", i ? "," : "", column);
        (void)sprintf(p, "]}");
        d = decode(message);
        assert_int_equal(d.rc, n > MOST ? -1 : 0);
        assert_int_equal(d.change.ncolumns, n > MOST ? 0 : MOST);
        done(&d);
    }
    free(message);
}

static void malformed_messages_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "null",
        "[]",
        "{",
        "{\"action\":\"B\"",
        "{\"action\":\"B\"}}",
        "{\"action\":\"B\"} x",
        "{\"action\":\"B\",}",
        "{,\"action\":\"B\"}",
        "{\"action\" \"B\"}",
        "{\"action\":\"B\" \"x\":1}",
        "{action:\"B\"}",
        "{\"action\":\"B\",\"timestamp\":\"\"}",
        "{\"action\":\"B\",\"timestamp\":\"infinity\"}",
        "{\"action\":\"B\",\"timestamp\":5}",
        "{\"action\":\"B\",\"timestamp\":"
        "\"0000000000000000000000000000000000000000000000000000000000\"}",
        "{\"action\":\"I\",\"schema\":null,\"table\":\"t\",\"columns\":[]}",
        "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":null}",
        "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":[1]}",
        "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
        "[{\"name\":\"a\",\"value\":[]}]}",
        "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
        "[{\"name\":null,\"value\":1}]}",
        "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
        "[{\"name\":\"a\",\"type\":null,\"value\":1}]}",
        "{\"action\":\"I\",\"schema\":\"s\",\"table\":\"t\",\"columns\":"
        "[{\"name\":\"a\",\"value\":1},]}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_refused(bad[i]);
}

static void an_error_says_where_and_why_and_leaves_the_change(void **state)
{
    struct wal2json *decoder = wal2json_new();
    struct change change = {.kind = CHANGE_IDLE, .commit_us = 7, .ncolumns = 3};
    struct err err = {0};
    char message[] = "{\"action\":\"I\"," TIME ",\"schema\":\"secret\"}";

    (void)state;
    assert_non_null(decoder);
    assert_int_equal(
        wal2json_decode(decoder, message, sizeof(message) - 1, &change, &err), -1);
    assert_int_equal(change.kind, CHANGE_IDLE);
    assert_true(change.commit_us == 7 && change.ncolumns == 3);
    assert_int_equal(err.class, ERR_POISON);
    assert_non_null(strstr(err.text, "an insert without schema, table or columns"));
    assert_null(strstr(err.text, "secret"));
    wal2json_free(decoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_gives_table_names_values_and_commit_time),
        cmocka_unit_test(begin_and_commit_carry_the_commit_time),
        cmocka_unit_test(without_a_timestamp_the_commit_time_stays),
        cmocka_unit_test(each_message_has_its_own_commit_time),
        cmocka_unit_test(what_is_not_an_insert_publishes_nothing),
        cmocka_unit_test(an_action_nobody_knows_is_an_error),
        cmocka_unit_test(an_insert_without_table_or_columns_is_an_error),
        cmocka_unit_test(a_field_that_comes_twice_is_an_error),
        cmocka_unit_test(escapes_become_the_bytes_they_stand_for),
        cmocka_unit_test(a_number_keeps_its_exact_text),
        cmocka_unit_test(quoted_type_names_are_read_though_they_are_no_json),
        cmocka_unit_test(other_type_names_are_json),
        cmocka_unit_test(the_order_of_fields_does_not_matter),
        cmocka_unit_test(skipped_values_nest_at_most_64_deep),
        cmocka_unit_test(a_row_has_at_most_1664_columns),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(an_error_says_where_and_why_and_leaves_the_change),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
