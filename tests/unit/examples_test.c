/* The configurations in docs/examples, as their readers get them. */
#include "base/buf.h"

#include "route_fixture.h"

struct example {
    struct config *config;
    struct bench bench;
    struct row row;
};

static struct config *load(const char *name)
{
    static const char *const no_environment[] = {NULL};
    char path[4096];
    char chunk[4096];
    struct config *config;
    struct err err = {0};
    struct buf text;
    FILE *file;
    size_t n;

    (void)snprintf(path, sizeof(path), "%s/%s", WALRELAY_EXAMPLES_DIR, name);
    file = fopen(path, "r");
    assert_non_null(file);
    buf_init(&text, 1 << 20);
    while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buf_add(&text, (struct slice){chunk, n});
    (void)fclose(file);
    config = config_parse(path, buf_slice(&text), no_environment, &err);
    if (!config)
        fail_msg("%s", err.text);
    buf_done(&text);
    return config;
}

/* A table of the example's name with columns, and a row of it with values. */
static void example_init(struct example *e, const char *file, char *const columns[],
                         const char *const values[], size_t n)
{
    static char text[] = "text";
    struct bench *b = &e->bench;

    bench_init(b);
    e->config = load(file);
    assert_int_equal(e->config->ntables, 1);
    b->config = *e->config;
    b->leaf.schema = e->config->tables[0].schema;
    b->leaf.name = e->config->tables[0].name;
    b->table.ncolumns = 0;
    for (size_t i = 0; i < n; i++)
        bench_add_column(b, columns[i], text, COLUMN_TEXT);
    bench_start(b);
    row_init(&e->row, b->leaf.schema, b->leaf.name);
    for (size_t i = 0; i < n; i++)
        row_add(&e->row, columns[i], values[i]);
}

static void example_done(struct example *e)
{
    row_done(&e->row);
    bench_done(&e->bench);
    config_free(e->config);
}

static void the_default_example_does_what_its_comment_says(void **state)
{
    char *const columns[] = {
        STR("id"),      STR("aggregate_type"), STR("aggregate_id"), STR("event_type"),
        STR("payload"), STR("attempts"),       STR("created_at"),   STR("processed_at")};
    const char *const values[] = {"6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10",
                                  "order",
                                  "42",
                                  "OrderPlaced",
                                  "{\"total\": 12.5}",
                                  "0",
                                  "2026-11-30 09:15:02.114523+00",
                                  NULL};
    struct example e;

    (void)state;
    example_init(&e, "default.conf", columns, values, COUNT(columns));
    assert_int_equal(route(&e.bench, &e.row), ROUTE_MESSAGE);
    assert_bytes(e.bench.message.topic, "outbox.event.order");
    assert_bytes(e.bench.message.key, "42");
    assert_bytes(e.bench.message.payload, "{\"total\": 12.5}");
    assert_headers(&e.bench.message,
                   "id=6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10 type=OrderPlaced");
    assert_bytes(e.bench.message.table, "public.outbox_events");
    example_done(&e);
}

static void debeziums_table_gives_the_record_that_debezium_makes(void **state)
{
    char *const columns[] = {STR("id"), STR("aggregatetype"), STR("aggregateid"),
                             STR("type"), STR("payload")};
    const char *const values[] = {"406c07f3-26f0-4eea-a50c-109940064b8f", "Order", "1",
                                  "OrderCreated", "{\"id\": 1}"};
    struct example e;

    (void)state;
    example_init(&e, "debezium.conf", columns, values, COUNT(columns));
    assert_int_equal(route(&e.bench, &e.row), ROUTE_MESSAGE);
    assert_bytes(e.bench.message.topic, "outbox.event.Order");
    assert_bytes(e.bench.message.key, "1");
    assert_bytes(e.bench.message.payload, "{\"id\": 1}");
    assert_headers(&e.bench.message,
                   "id=406c07f3-26f0-4eea-a50c-109940064b8f type=OrderCreated");
    assert_bytes(e.bench.message.aggregate_id, "1");
    example_done(&e);
}

static void the_small_table_names_its_topics_and_has_no_key(void **state)
{
    char *const columns[] = {STR("id"), STR("topic"), STR("payload"),
                             STR("published_at")};
    const char *const values[] = {"9223372036854775807", "invoices", "[1, 2]", NULL};
    struct example e;

    (void)state;
    example_init(&e, "small.conf", columns, values, COUNT(columns));
    assert_int_equal(route(&e.bench, &e.row), ROUTE_MESSAGE);
    assert_bytes(e.bench.message.topic, "invoices");
    assert_null(e.bench.message.key.ptr);
    assert_null(e.bench.message.aggregate_id.ptr);
    assert_null(e.bench.message.event_type.ptr);
    assert_headers(&e.bench.message, "id=9223372036854775807");
    example_done(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_example_does_what_its_comment_says),
        cmocka_unit_test(debeziums_table_gives_the_record_that_debezium_makes),
        cmocka_unit_test(the_small_table_names_its_topics_and_has_no_key),
    };

    return cmocka_run_group_tests_name("examples", tests, NULL, NULL);
}
