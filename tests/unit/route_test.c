#include "route_fixture.h"

static void a_row_of_the_default_table_becomes_a_record(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    default_row(&row, "{\"total\": 9.90}");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_bytes(b.message.topic, "outbox.event.order");
    assert_bytes(b.message.key, "42");
    assert_bytes(b.message.payload, "{\"total\": 9.90}");
    assert_headers(&b.message,
                   "id=6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10 type=OrderPlaced");
    assert_int_equal(b.message.partition, PARTITION_ANY);
    assert_int_equal(b.message.timestamp_ms, COMMIT_US / 1000);
    assert_int_equal(b.message.commit_ms, COMMIT_US / 1000);
    assert_null(b.message.given_timestamp.ptr);
    assert_bytes(b.message.table, "public.outbox_events");
    assert_bytes(b.message.event_id, "6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10");
    assert_bytes(b.message.event_type, "OrderPlaced");
    assert_bytes(b.message.aggregate_id, "42");
    assert_int_equal(b.message.place.lsn, 0x1600000A8);
    row_done(&row);
    bench_done(&b);
}

/* ---- values ---------------------------------------------------------------------- */

static void bytes_pass_exactly_as_they_are(void **state)
{
    static const char odd[] =
        "q\"'\\ \t\x01\x7f \xC3\xA9 \xF0\x9F\x98\x80 \xE2\x80\xA8 \xEF\xBF\xBF";
    static const char json[] =
        "{ \"b\":1.10,  \"a\":123456789012345678901234567890.123456789, \"a\":2, "
        "\"z\":-0, \"e\":1e400, \"x\":\"a\\u0000b\", \"s\":\"\\u0001\\\"\\\\/\" }";
    struct header_setting headers[] = {{STR("we\"ird\\col"), STR("we\"ird\\col")}};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_add_column(&b, headers[0].column, STR("text"), COLUMN_TEXT);
    b.settings.headers = headers;
    b.settings.nheaders = 1;
    bench_start(&b);
    default_row(&row, json);
    row_set(&row, "aggregate_id", odd);
    row_add(&row, "we\"ird\\col", odd);
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_bytes(b.message.key, odd);
    assert_bytes(b.message.payload, json);
    assert_int_equal(b.message.nheaders, 3);
    assert_bytes(b.message.headers[2].name, "we\"ird\\col");
    assert_bytes(b.message.headers[2].value, odd);
    row_done(&row);
    bench_done(&b);
}

static void null_empty_and_json_null_payloads_differ(void **state)
{
    static const char *const payloads[] = {"null", "", "{}"};
    struct bench b;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    for (size_t i = 0; i < COUNT(payloads); i++) {
        struct row row;

        default_row(&row, payloads[i]);
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        assert_slice(b.message.payload, payloads[i], strlen(payloads[i]));
        row_done(&row);
    }
    {
        struct row row;

        default_row(&row, NULL);
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        assert_null(b.message.payload.ptr); /* a tombstone, with all the rest */
        assert_bytes(b.message.key, "42");
        assert_int_equal(b.message.nheaders, 2);
        row_done(&row);
    }
    bench_done(&b);
}

static void a_null_key_is_null_and_an_empty_key_is_empty(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    default_row(&row, "{}");
    row_set(&row, "aggregate_id", NULL);
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_null(b.message.key.ptr);
    row_set(&row, "aggregate_id", "");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_bytes(b.message.key, "");
    row_done(&row);
    bench_done(&b);
}

static void headers_come_in_order_and_null_ones_are_left_out(void **state)
{
    struct header_setting headers[] = {
        {STR("tenant"), STR("tenant")},
        {STR("trace_id"), STR("x-trace-id")},
        {STR("score"), STR("score")},
        {STR("tags"), STR("tags")},
    };
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    for (size_t i = 0; i < COUNT(headers); i++)
        bench_add_column(&b, headers[i].column, STR("text"), COLUMN_TEXT);
    b.settings.headers = headers;
    b.settings.nheaders = COUNT(headers);
    b.settings.timestamp = STR("created_at");
    bench_start(&b);
    default_row(&row, "{}");
    row_set(&row, "id", "1");
    row_set(&row, "event_type", NULL);
    row_set(&row, "created_at", "infinity");
    row_add(&row, "tags", "{1,NULL,3}");
    row_add(&row, "trace_id", "");
    row_add(&row, "score", "-0");
    row_add(&row, "tenant", NULL);
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_headers(
        &b.message,
        "id=1 x-trace-id= score=-0 tags={1,NULL,3} walrelay.timestamp=infinity");
    assert_non_null(b.message.headers[1].value.ptr);
    row_set(&row, "id", NULL);
    row_set(&row, "created_at", NULL);
    row_set(&row, "tenant", "acme");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_headers(&b.message, "tenant=acme x-trace-id= score=-0 tags={1,NULL,3}");
    row_done(&row);
    bench_done(&b);
}

static void a_column_may_serve_several_settings(void **state)
{
    struct header_setting headers[] = {{STR("aggregate_id"), STR("order")},
                                       {STR("aggregate_id"), STR("again")}};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    b.settings.topic = STR("{aggregate_id}.{aggregate_id}");
    b.settings.headers = headers;
    b.settings.nheaders = COUNT(headers);
    bench_start(&b);
    default_row(&row, "{}");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_bytes(b.message.topic, "42.42");
    assert_headers(
        &b.message,
        "id=6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10 type=OrderPlaced order=42 again=42");
    row_done(&row);
    bench_done(&b);
}

static void aggregate_id_for_people_may_be_a_column_of_its_own(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    b.settings.aggregate_id = STR("attempts");
    bench_start(&b);
    default_row(&row, "{}");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_bytes(b.message.key, "42");
    assert_bytes(b.message.aggregate_id, "0");
    row_done(&row);
    bench_done(&b);
}

static void only_a_database_that_vouches_for_its_bytes_is_trusted(void **state)
{
    static const char *const columns[] = {"id", "aggregate_id", "event_type", "payload"};
    struct bench b;

    (void)state;
    bench_init(&b);
    b.options.check_utf8 = true;
    bench_start(&b);
    for (size_t i = 0; i < COUNT(columns); i++) {
        struct row row;

        default_row(&row, "{}");
        row_set(&row, columns[i], "caf\xC3\xA9");
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        row_set(&row, columns[i], "caf\xE9");
        assert_int_equal(route(&b, &row), ROUTE_POISON);
        assert_non_null(strstr(b.err.text, "not valid UTF-8"));
        assert_non_null(strstr(b.err.text, columns[i]));
        assert_non_null(strstr(b.err.text, "table public.outbox_events"));
        row_done(&row);
    }
    bench_done(&b);
}

/* ---- tables ---------------------------------------------------------------------- */

static void a_row_of_another_table_is_not_ours(void **state)
{
    static const char *const others[][2] = {
        {"public", "outbox"}, {"shop", "outbox_events"}, {"public", "outbox_events2"}};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    for (size_t i = 0; i < COUNT(others); i++) {
        row_init(&row, others[i][0], others[i][1]);
        assert_int_equal(route(&b, &row), ROUTE_OTHER);
        row_done(&row);
    }
    default_row(&row, "{}"); /* and these did not disturb */
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    row_done(&row);
    bench_done(&b);
}

static void a_partitions_rows_take_the_parents_routing(void **state)
{
    struct catalog_leaf leaves[] = {{STR("public"), STR("outbox_2026_12")},
                                    {STR("Archive"), STR("outbox 2026")},
                                    {STR("public"), STR("outbox_2026_11")}};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    b.table.leaves = leaves;
    b.table.nleaves = COUNT(leaves);
    bench_start(&b);
    for (size_t i = 0; i < COUNT(leaves); i++) {
        default_row(&row, "{}");
        row.change.schema = slice_of(leaves[i].schema);
        row.change.table = slice_of(leaves[i].name);
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        assert_bytes(b.message.table, "public.outbox_events");
        row_done(&row);
    }
    default_row(&row, "{}");
    row.change.schema = slice_of("Archive");
    row.change.table = slice_of("outbox 2026");
    row_set(&row, "aggregate_type", NULL);
    assert_int_equal(route(&b, &row), ROUTE_POISON);
    assert_string_equal(
        b.err.text, "table public.outbox_events (rows in \"Archive\".\"outbox 2026\"), "
                    "event 6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10, LSN 1/600000A8: "
                    "column aggregate_type is NULL, and the topic is named after it");
    row_done(&row);
    default_row(&row, "{}"); /* the parent itself holds no rows */
    assert_int_equal(route(&b, &row), ROUTE_OTHER);
    row_done(&row);
    bench_done(&b);
}

static void two_tables_keep_their_own_settings_however_their_rows_mix(void **state)
{
    struct table_settings settings[2];
    struct catalog_table tables[2];
    struct catalog_leaf leaf = {STR("shop"), STR("Outbox\"2")};
    struct bench b;
    struct row ours;
    struct row theirs;

    (void)state;
    bench_init(&b);
    settings[0] = b.settings;
    settings[1] = b.settings;
    settings[1].schema = leaf.schema;
    settings[1].name = leaf.name;
    settings[1].topic = STR("shop");
    settings[1].key = NULL;
    tables[0] = b.table;
    tables[1] = b.table;
    tables[1].leaves = &leaf;
    b.config.tables = settings;
    b.config.ntables = 2;
    b.catalog = (struct catalog){.tables = tables, .ntables = 2};
    bench_start(&b);
    default_row(&ours, "{}");
    default_row(&theirs, "{}");
    theirs.change.schema = slice_of(leaf.schema);
    theirs.change.table = slice_of(leaf.name);
    for (int i = 0; i < 20; i++) {
        bool second = i % 3 == 0;

        assert_int_equal(route(&b, second ? &theirs : &ours), ROUTE_MESSAGE);
        assert_slice(b.message.topic, second ? "shop" : "outbox.event.order",
                     second ? 4 : 18);
        assert_int_equal(b.message.key.ptr == NULL, second);
        if (second)
            assert_bytes(b.message.table, "shop.\"Outbox\"\"2\"");
    }
    row_done(&ours);
    row_done(&theirs);
    bench_done(&b);
}

/* ---- what router_new refuses ----------------------------------------------------- */

static void refused(struct bench *b, const char *expected)
{
    err_clear(&b->err);
    assert_null(router_new(&b->config, &b->catalog, b->options, &b->err));
    assert_int_equal(b->err.class, ERR_CONFIG);
    assert_string_equal(b->err.text, expected);
}

static void a_setting_that_names_no_column_is_refused_with_the_nearest(void **state)
{
    struct header_setting header = {STR("Attempts"), STR("n")};
    struct bench b;

    (void)state;
    bench_init(&b);
    b.settings.key = STR("agregate_id");
    refused(&b, "[table public.outbox_events] (line 7), key: the table has no column "
                "\"agregate_id\"; the nearest is \"aggregate_id\"");
    bench_init(&b);
    b.settings.topic = STR("x.{agg_type}");
    refused(&b, "[table public.outbox_events] (line 7), topic: the table has no column "
                "\"agg_type\"; the nearest is \"event_type\"");
    bench_init(&b);
    b.settings.headers = &header;
    b.settings.nheaders = 1;
    refused(&b, "[table public.outbox_events] (line 7), headers: the table has no column "
                "\"Attempts\"; the nearest is \"attempts\"");
    bench_init(&b);
    b.table.ncolumns = 0;
    b.settings.topic = STR("x");
    refused(&b, "[table public.outbox_events] (line 7), key: the table has no column "
                "\"aggregate_id\"");
}

static void a_table_in_two_sections_is_refused(void **state)
{
    struct table_settings settings[2];
    struct catalog_table tables[2];
    struct bench b;

    (void)state;
    bench_init(&b);
    settings[0] = b.settings;
    settings[1] = b.settings;
    settings[1].name = STR("outbox_all");
    tables[0] = b.table;
    tables[1] = b.table;
    b.config.tables = settings;
    b.config.ntables = 2;
    b.catalog = (struct catalog){.tables = tables, .ntables = 2};
    err_clear(&b.err);
    assert_null(router_new(&b.config, &b.catalog, b.options, &b.err));
    assert_int_equal(b.err.class, ERR_CONFIG);
    assert_non_null(strstr(b.err.text, "public.outbox_events belong to two sections"));
    assert_non_null(strstr(b.err.text, "[table public.outbox_all]"));
}

static void a_bad_template_is_refused(void **state)
{
    struct bench b;

    (void)state;
    bench_init(&b);
    b.settings.topic = STR("outbox.{aggregate_type");
    err_clear(&b.err);
    assert_null(router_new(&b.config, &b.catalog, b.options, &b.err));
    assert_int_equal(b.err.class, ERR_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_of_the_default_table_becomes_a_record),
        cmocka_unit_test(bytes_pass_exactly_as_they_are),
        cmocka_unit_test(null_empty_and_json_null_payloads_differ),
        cmocka_unit_test(a_null_key_is_null_and_an_empty_key_is_empty),
        cmocka_unit_test(headers_come_in_order_and_null_ones_are_left_out),
        cmocka_unit_test(a_column_may_serve_several_settings),
        cmocka_unit_test(aggregate_id_for_people_may_be_a_column_of_its_own),
        cmocka_unit_test(only_a_database_that_vouches_for_its_bytes_is_trusted),
        cmocka_unit_test(a_row_of_another_table_is_not_ours),
        cmocka_unit_test(a_partitions_rows_take_the_parents_routing),
        cmocka_unit_test(two_tables_keep_their_own_settings_however_their_rows_mix),
        cmocka_unit_test(a_setting_that_names_no_column_is_refused_with_the_nearest),
        cmocka_unit_test(a_table_in_two_sections_is_refused),
        cmocka_unit_test(a_bad_template_is_refused),
    };

    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
