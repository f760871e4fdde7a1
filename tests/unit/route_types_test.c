#include "route_fixture.h"

/* Rows of a stream with types: table and key as in the default table. */
static void typed_row(struct row *row, const char *payload, size_t len, const char *type)
{
    row_init(row, "public", "outbox_events");
    row_add_typed(row, "id", "6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10", "uuid");
    row_add_typed(row, "aggregate_type", "order", "text");
    row_add_typed(row, "aggregate_id", "42", "text");
    row_add_typed(row, "event_type", "OrderPlaced", "text");
    row_add_bytes(row, "payload", payload, len, type);
}

/* The default table with a payload column of that type. */
static void payload_bench(struct bench *b, char *type, enum column_class class,
                          bool typed)
{
    bench_init(b);
    b->columns[4].type = type;
    b->columns[4].class = class;
    b->options.typed = typed;
    bench_start(b);
}

static enum route_verdict route_payload(struct bench *b, struct row *row,
                                        const char *payload, const char *type)
{
    typed_row(row, payload, payload ? strlen(payload) : 0, type);
    return route(b, row);
}

static void a_bytea_payload_becomes_its_bytes(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    payload_bench(&b, STR("bytea"), COLUMN_BYTEA, true);
    assert_int_equal(route_payload(&b, &row, "deadbeef00", "bytea"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "\xDE\xAD\xBE\xEF\x00");
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, "", "bytea"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, ""); /* empty, not a tombstone */
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, NULL, "bytea"), ROUTE_MESSAGE);
    assert_null(b.message.payload.ptr);
    row_done(&row);
    bench_done(&b);
}

static void a_megabyte_of_zeros_is_a_megabyte(void **state)
{
    static const size_t megabyte = 1 << 20;
    char *digits = malloc(2 * megabyte);
    struct bench b;
    struct row row;

    (void)state;
    assert_non_null(digits);
    memset(digits, '0', 2 * megabyte);
    payload_bench(&b, STR("bytea"), COLUMN_BYTEA, true);
    typed_row(&row, digits, 2 * megabyte, "bytea");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_int_equal(b.message.payload.len, megabyte);
    for (size_t i = 0; i < megabyte; i++)
        assert_int_equal(b.message.payload.ptr[i], 0);
    row_done(&row);
    bench_done(&b);
    free(digits);
}

static void a_domain_over_bytea_becomes_its_bytes(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    payload_bench(&b, STR("avro"), COLUMN_BYTEA_DOMAIN, true);
    assert_int_equal(route_payload(&b, &row, "\\xdeadbeef", "avro"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "\xDE\xAD\xBE\xEF");
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, "\\x", "avro"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "");
    row_done(&row);
    bench_done(&b);
}

static void what_should_be_hexadecimal_and_is_not_is_refused(void **state)
{
    static const char *const bad[] = {"abc", "xy", "DEAD", "\\xdead", "36\\255", "0"};
    struct bench b;
    struct row row;

    (void)state;
    payload_bench(&b, STR("bytea"), COLUMN_BYTEA, true);
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(route_payload(&b, &row, bad[i], "bytea"), ROUTE_POISON);
        assert_string_equal(b.err.text,
                            "table public.outbox_events, event "
                            "6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10, LSN 1/600000A8: the "
                            "value of bytea column payload is not hexadecimal");
        row_done(&row);
    }
    bench_done(&b);
    payload_bench(&b, STR("avro"), COLUMN_BYTEA_DOMAIN, true);
    assert_int_equal(route_payload(&b, &row, "dead", "avro"), ROUTE_POISON);
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, "\\xdea", "avro"), ROUTE_POISON);
    row_done(&row);
    bench_done(&b);
}

static void text_that_looks_like_bytes_stays_text_when_the_type_says_so(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    payload_bench(&b, STR("text"), COLUMN_TEXT, true);
    assert_int_equal(route_payload(&b, &row, "deadbeef", "text"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "deadbeef");
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, "\\xdeadbeef", "text"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "\\xdeadbeef");
    row_done(&row);
    bench_done(&b);
}

static void a_bytea_key_and_header_are_bytes_too_and_decoded_once(void **state)
{
    struct header_setting headers[] = {{STR("aggregate_id"), STR("k")}};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    b.columns[2].type = STR("bytea");
    b.columns[2].class = COLUMN_BYTEA;
    b.settings.headers = headers;
    b.settings.nheaders = 1;
    b.options = (struct router_options){.typed = true, .check_utf8 = true};
    bench_start(&b);
    row_init(&row, "public", "outbox_events");
    row_add_typed(&row, "id", "1", "bigint");
    row_add_typed(&row, "aggregate_type", "order", "text");
    row_add_typed(&row, "aggregate_id", "ff00", "bytea");
    row_add_typed(&row, "event_type", NULL, "text");
    row_add_typed(&row, "payload", "{}", "jsonb");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_bytes(b.message.key, "\xFF\x00");
    assert_bytes(b.message.aggregate_id, "\xFF\x00");
    assert_int_equal(b.message.nheaders, 2);
    assert_bytes(b.message.headers[1].value, "\xFF\x00");
    row_done(&row);
    bench_done(&b);
}

/* ---- a column that was altered after the row was written ------------------------- */

static void the_rows_own_type_decides_not_the_catalogs(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    payload_bench(&b, STR("bytea"), COLUMN_BYTEA, true);
    assert_int_equal(route_payload(&b, &row, "abcd", "text"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "abcd"); /* was text, is bytea */
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, "{\"n\": 1}", "jsonb"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "{\"n\": 1}");
    row_done(&row);
    bench_done(&b);
    payload_bench(&b, STR("text"), COLUMN_TEXT, true);
    assert_int_equal(route_payload(&b, &row, "abcd", "bytea"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "\xAB\xCD"); /* was bytea, is text */
    row_done(&row);
    bench_done(&b);
    payload_bench(&b, STR("avro"), COLUMN_BYTEA_DOMAIN, true);
    assert_int_equal(route_payload(&b, &row, "\\xabcd", "character varying(80)"),
                     ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "\\xabcd"); /* was text, is a domain over bytea */
    row_done(&row);
    bench_done(&b);
}

static void bytes_of_a_type_that_is_gone_are_not_guessed(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    payload_bench(&b, STR("jsonb"), COLUMN_TEXT, true);
    assert_int_equal(route_payload(&b, &row, "\\xdead", "old_avro"), ROUTE_POISON);
    assert_non_null(strstr(b.err.text,
                           "column payload had type old_avro when the row was "
                           "written and has jsonb now"));
    assert_null(strstr(b.err.text, "dead")); /* no payload in an error */
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, "\\xdead", "text.blob"), ROUTE_POISON);
    row_done(&row);
    assert_int_equal(route_payload(&b, &row, "\\xno", "old_name"), ROUTE_MESSAGE);
    assert_bytes(b.message.payload, "\\xno");
    row_done(&row);
    bench_done(&b);
}

static void a_column_whose_type_the_stream_omits_is_refused(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    payload_bench(&b, STR("jsonb"), COLUMN_TEXT, true);
    assert_int_equal(route_payload(&b, &row, "{}", NULL), ROUTE_POISON);
    row_done(&row);
    bench_done(&b);
}

/* ---- a stream without types -------------------------------------------------------- */

static void only_a_payload_of_hexadecimal_digits_needs_types(void **state)
{
    static const char *const ambiguous[] = {"00", "deadbeef", "1234", "\\xdead", "\\x"};
    static const char *const clear[] = {"",    "{}",        "[]",     "null",   "true",
                                        "abc", "DEAD",      "dead b", "\"ab\"", "1.25",
                                        "-42", "deadbeefg", "\\xab0"};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    for (size_t i = 0; i < COUNT(ambiguous); i++) {
        default_row(&row, ambiguous[i]);
        assert_int_equal(route(&b, &row), ROUTE_NEED_TYPES);
        row_done(&row);
    }
    for (size_t i = 0; i < COUNT(clear); i++) {
        default_row(&row, clear[i]);
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        assert_slice(b.message.payload, clear[i], strlen(clear[i]));
        row_done(&row);
    }
    default_row(&row, "{}"); /* other columns may look as they like */
    row_set(&row, "aggregate_id", "deadbeef");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    row_done(&row);
    bench_done(&b);
}

static void a_bytea_column_needs_types(void **state)
{
    static const enum column_class classes[] = {COLUMN_BYTEA, COLUMN_BYTEA_DOMAIN};
    struct bench b;
    struct row row;

    (void)state;
    for (size_t i = 0; i < COUNT(classes); i++) {
        payload_bench(&b, STR("bytea"), classes[i], false);
        default_row(&row, "{}");
        assert_int_equal(route(&b, &row), ROUTE_NEED_TYPES);
        row_set(&row, "payload", NULL); /* NULL is NULL in any type */
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        row_done(&row);
        bench_done(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bytea_payload_becomes_its_bytes),
        cmocka_unit_test(a_megabyte_of_zeros_is_a_megabyte),
        cmocka_unit_test(a_domain_over_bytea_becomes_its_bytes),
        cmocka_unit_test(what_should_be_hexadecimal_and_is_not_is_refused),
        cmocka_unit_test(text_that_looks_like_bytes_stays_text_when_the_type_says_so),
        cmocka_unit_test(a_bytea_key_and_header_are_bytes_too_and_decoded_once),
        cmocka_unit_test(the_rows_own_type_decides_not_the_catalogs),
        cmocka_unit_test(bytes_of_a_type_that_is_gone_are_not_guessed),
        cmocka_unit_test(a_column_whose_type_the_stream_omits_is_refused),
        cmocka_unit_test(only_a_payload_of_hexadecimal_digits_needs_types),
        cmocka_unit_test(a_bytea_column_needs_types),
    };

    return cmocka_run_group_tests_name("route_types", tests, NULL, NULL);
}
