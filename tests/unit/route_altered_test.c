/* Columns come, go and move while the relay runs: each row is read by names, whatever
 * the row before it looked like. */
#include "route_fixture.h"

/* What the settings below use, and two columns that they do not. */
enum { ID, AGGREGATE_TYPE, AGGREGATE_ID, PAYLOAD, EVENT_TYPE, TENANT, TRACE, OTHERS };
enum { NCOLUMNS = OTHERS + 2 };
static char names[NCOLUMNS][16] = {"id",      "aggregate_type", "aggregate_id",
                                   "payload", "event_type",     "tenant",
                                   "trace",   "attempts",       "processed_at"};

static void altered_bench(struct bench *b)
{
    static char text[] = "text", x_trace[] = "x-trace";
    static struct header_setting headers[] = {{names[TENANT], names[TENANT]},
                                              {names[TRACE], x_trace}};

    bench_init(b);
    b->table.ncolumns = 0;
    for (size_t i = 0; i < NCOLUMNS; i++)
        bench_add_column(b, names[i], text, COLUMN_TEXT);
    b->settings.headers = headers;
    b->settings.nheaders = COUNT(headers);
    bench_start(b);
}

/* ---- rows with any columns in any order ------------------------------------------- */

/* One row as it should be understood: whether it has the column, and the value. */
struct expected {
    bool has[NCOLUMNS];
    char value[NCOLUMNS][24];
    bool null[NCOLUMNS];
};

static uint64_t next(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

static void shuffle(size_t order[NCOLUMNS], uint64_t *random)
{
    for (size_t i = 0; i < NCOLUMNS; i++)
        order[i] = i;
    for (size_t i = NCOLUMNS - 1; i > 0; i--) {
        size_t j = next(random) % (i + 1);
        size_t swapped = order[i];

        order[i] = order[j];
        order[j] = swapped;
    }
}

static void random_row(struct row *row, struct expected *e, uint64_t *random)
{
    size_t order[NCOLUMNS];

    shuffle(order, random);
    row_init(row, "public", "outbox_events");
    for (size_t i = 0; i < NCOLUMNS; i++) {
        size_t c = order[i];

        e->has[c] = next(random) % 16 != 0;
        e->null[c] = next(random) % 8 == 0;
        (void)snprintf(e->value[c], sizeof(e->value[c]), "v%zu-%u", c,
                       (unsigned)(next(random) % 1000));
        if (e->has[c])
            row_add(row, names[c], e->null[c] ? NULL : e->value[c]);
    }
}

static bool is_null(const struct expected *e, size_t c)
{
    return !e->has[c] || e->null[c];
}

static void add_header(char *text, size_t size, const char *name,
                       const struct expected *e, size_t c)
{
    size_t len = strlen(text);

    if (!is_null(e, c))
        (void)snprintf(text + len, size - len, "%s%s=%s", len > 0 ? " " : "", name,
                       e->value[c]);
}

static void assert_value(struct slice got, const struct expected *e, size_t c)
{
    if (is_null(e, c))
        assert_null(got.ptr);
    else
        assert_slice(got, e->value[c], strlen(e->value[c]));
}

static void assert_record(const struct message *m, const struct expected *e)
{
    char topic[64];
    char headers[256] = "";

    (void)snprintf(topic, sizeof(topic), "outbox.event.%s", e->value[AGGREGATE_TYPE]);
    assert_slice(m->topic, topic, strlen(topic));
    assert_value(m->key, e, AGGREGATE_ID);
    assert_value(m->payload, e, PAYLOAD);
    add_header(headers, sizeof(headers), "id", e, ID);
    add_header(headers, sizeof(headers), "type", e, EVENT_TYPE);
    add_header(headers, sizeof(headers), "tenant", e, TENANT);
    add_header(headers, sizeof(headers), "x-trace", e, TRACE);
    assert_headers(m, headers);
}

static void rows_are_read_by_names_whatever_their_order(void **state)
{
    unsigned published = 0;
    uint64_t random = 88172645463325252u;
    struct bench b;

    (void)state;
    altered_bench(&b);
    for (int i = 0; i < 2000; i++) {
        struct expected e;
        struct row row;
        enum route_verdict verdict;

        random_row(&row, &e, &random);
        verdict = route(&b, &row);
        if (!e.has[ID] || !e.has[AGGREGATE_TYPE] || !e.has[AGGREGATE_ID] ||
            !e.has[PAYLOAD]) {
            assert_int_equal(verdict, ROUTE_POISON);
            assert_non_null(strstr(b.err.text, "the row has no column "));
        } else if (e.null[AGGREGATE_TYPE]) {
            assert_int_equal(verdict, ROUTE_POISON);
            assert_non_null(strstr(b.err.text, "column aggregate_type is NULL"));
        } else {
            assert_int_equal(verdict, ROUTE_MESSAGE);
            assert_record(&b.message, &e);
            published++;
        }
        row_done(&row);
    }
    assert_in_range(published, 1000, 1900);
    bench_done(&b);
}

/* ---- the same as a story: ALTER TABLE between the rows of one transaction --------- */

static void story_row(struct row *row)
{
    row_init(row, "public", "outbox_events");
    row_add(row, "id", "1");
    row_add(row, "aggregate_type", "order");
    row_add(row, "aggregate_id", "42");
    row_add(row, "event_type", NULL);
}

static void a_column_added_between_two_rows_is_found(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    altered_bench(&b);
    story_row(&row);
    row_add(&row, "payload", "{}");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_headers(&b.message, "id=1");
    row_add(&row, "trace", "d");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_headers(&b.message, "id=1 x-trace=d");
    row_done(&row);
    bench_done(&b);
}

static void a_dropped_payload_is_refused_and_no_tombstone(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    altered_bench(&b);
    story_row(&row);
    row_add(&row, "trace", "d");
    assert_int_equal(route(&b, &row), ROUTE_POISON);
    assert_string_equal(
        b.err.text, "table public.outbox_events, event 1, LSN 1/600000A8: the row has "
                    "no column payload; it had none when it was written");
    row_done(&row);
    story_row(&row); /* and the next row that has one is fine */
    row_add(&row, "payload", "{}");
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    row_done(&row);
    bench_done(&b);
}

static void a_row_without_any_column_is_refused(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    altered_bench(&b);
    row_init(&row, "public", "outbox_events");
    assert_int_equal(route(&b, &row), ROUTE_POISON);
    assert_null(b.message.event_id.ptr);
    row_done(&row);
    bench_done(&b);
}

static void a_missing_partition_column_is_refused(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_add_column(&b, STR("shard"), STR("integer"), COLUMN_TEXT);
    b.settings.partition = STR("shard");
    bench_start(&b);
    default_row(&row, "{}");
    assert_int_equal(route(&b, &row), ROUTE_POISON);
    assert_non_null(strstr(b.err.text, "the row has no column shard"));
    row_done(&row);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_read_by_names_whatever_their_order),
        cmocka_unit_test(a_column_added_between_two_rows_is_found),
        cmocka_unit_test(a_dropped_payload_is_refused_and_no_tombstone),
        cmocka_unit_test(a_row_without_any_column_is_refused),
        cmocka_unit_test(a_missing_partition_column_is_refused),
    };

    return cmocka_run_group_tests_name("route_altered", tests, NULL, NULL);
}
