#include "route_fixture.h"

#define EVENT                                                                            \
    "table public.outbox_events, event 6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10, LSN "       \
    "1/600000A8: "

static void poison(struct bench *b, struct row *row, const char *expected)
{
    assert_int_equal(route(b, row), ROUTE_POISON);
    assert_int_equal(b->err.class, ERR_POISON);
    assert_string_equal(b->err.text, expected);
}

/* ---- the topic -------------------------------------------------------------------- */

static void a_null_in_the_topic_is_refused(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    default_row(&row, "{}");
    row_set(&row, "aggregate_type", NULL);
    poison(&b, &row,
           EVENT "column aggregate_type is NULL, and the topic is named after it");
    row_done(&row);
    bench_done(&b);
}

static void a_name_that_kafka_does_not_take_is_refused(void **state)
{
    static const char *const bad[] = {"a b", "a/b", "a:b", "caf\xC3\xA9", "a\nb", ".",
                                      "..",  "",    "*",   "a,b",         "{x}"};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    b.settings.topic = STR("{aggregate_type}");
    bench_start(&b);
    for (size_t i = 0; i < COUNT(bad); i++) {
        default_row(&row, "{}");
        row_set(&row, "aggregate_type", bad[i]);
        assert_int_equal(route(&b, &row), ROUTE_POISON);
        assert_non_null(strstr(b.err.text, EVENT));
        assert_non_null(strstr(b.err.text, "is no name for a topic"));
        row_done(&row);
    }
    default_row(&row, "{}");
    row_set(&row, "aggregate_type", "a b");
    poison(&b, &row,
           EVENT
           "\"a b\" is no name for a topic: Kafka takes ASCII letters, digits, '.', "
           "'_' and '-', and neither \".\" nor \"..\"");
    row_done(&row);
    bench_done(&b);
}

static void a_name_of_249_bytes_is_the_longest(void **state)
{
    char name[251];
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    b.settings.topic = STR("{aggregate_type}");
    bench_start(&b);
    memset(name, 'x', sizeof(name));
    name[249] = '\0';
    default_row(&row, "{}");
    row_set(&row, "aggregate_type", name);
    assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
    assert_slice(b.message.topic, name, 249);
    name[249] = 'x';
    name[250] = '\0';
    row_set(&row, "aggregate_type", name);
    poison(&b, &row, EVENT "the topic's name would be longer than 249 bytes");
    row_done(&row);
    bench_done(&b);
}

static void dots_within_a_longer_name_are_taken(void **state)
{
    static const char *const good[] = {"...", "-", "_", ".a", "A.b_C-9"};
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    b.settings.topic = STR("{aggregate_type}");
    bench_start(&b);
    for (size_t i = 0; i < COUNT(good); i++) {
        default_row(&row, "{}");
        row_set(&row, "aggregate_type", good[i]);
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        assert_slice(b.message.topic, good[i], strlen(good[i]));
        row_done(&row);
    }
    bench_done(&b);
}

/* ---- the partition ------------------------------------------------------------------
 */

static void partition_bench(struct bench *b)
{
    static char shard[] = "shard", integer[] = "integer";

    bench_init(b);
    bench_add_column(b, shard, integer, COLUMN_TEXT);
    b->settings.partition = shard;
    bench_start(b);
}

static void a_number_is_the_partition_and_null_leaves_it_to_the_key(void **state)
{
    static const struct {
        const char *text;
        int32_t partition;
    } good[] = {
        {"0", 0}, {"7", 7}, {"007", 7}, {"99999", PARTITION_MAX}, {NULL, PARTITION_ANY}};
    struct bench b;
    struct row row;

    (void)state;
    partition_bench(&b);
    for (size_t i = 0; i < COUNT(good); i++) {
        default_row(&row, "{}");
        row_add(&row, "shard", good[i].text);
        assert_int_equal(route(&b, &row), ROUTE_MESSAGE);
        assert_int_equal(b.message.partition, good[i].partition);
        row_done(&row);
    }
    bench_done(&b);
}

static void anything_else_as_a_partition_is_refused(void **state)
{
    static const char *const bad[] = {
        "-1",  "100000", "2147483647", "2147483648", "99999999999999999999",
        "1.0", "",       "x",          "1 ",         "-"};
    struct bench b;
    struct row row;

    (void)state;
    partition_bench(&b);
    for (size_t i = 0; i < COUNT(bad); i++) {
        char expected[256];

        default_row(&row, "{}");
        row_add(&row, "shard", bad[i]);
        (void)snprintf(expected, sizeof(expected),
                       EVENT "column shard holds \"%s\", which is no number of a "
                             "partition (0 to 99999, or NULL to go by the key)",
                       bad[i]);
        poison(&b, &row, expected);
        row_done(&row);
    }
    bench_done(&b);
}

/* ---- what errors say ------------------------------------------------------------------
 */

static void people_learn_which_event_it_was(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    default_row(&row, "secret");
    row_set(&row, "aggregate_type", "no topic");
    assert_int_equal(route(&b, &row), ROUTE_POISON);
    assert_bytes(b.message.table, "public.outbox_events");
    assert_bytes(b.message.event_id, "6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10");
    assert_bytes(b.message.event_type, "OrderPlaced");
    assert_bytes(b.message.aggregate_id, "42");
    assert_int_equal(b.message.place.lsn, 0x1600000A8);
    assert_null(strstr(b.err.text, "secret"));
    row_set(&row, "id", NULL);
    assert_int_equal(route(&b, &row), ROUTE_POISON);
    assert_null(b.message.event_id.ptr);
    assert_non_null(strstr(b.err.text, "table public.outbox_events, LSN 1/600000A8: "));
    row_done(&row);
    bench_done(&b);
}

static void an_endless_value_is_cut_in_an_error(void **state)
{
    char id[4000];
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    memset(id, 'i', sizeof(id));
    id[sizeof(id) - 1] = '\0';
    default_row(&row, "{}");
    row_set(&row, "id", id);
    row_set(&row, "aggregate_type", NULL);
    assert_int_equal(route(&b, &row), ROUTE_POISON);
    assert_non_null(strstr(b.err.text, "column aggregate_type is NULL"));
    row_done(&row);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_null_in_the_topic_is_refused),
        cmocka_unit_test(a_name_that_kafka_does_not_take_is_refused),
        cmocka_unit_test(a_name_of_249_bytes_is_the_longest),
        cmocka_unit_test(dots_within_a_longer_name_are_taken),
        cmocka_unit_test(a_number_is_the_partition_and_null_leaves_it_to_the_key),
        cmocka_unit_test(anything_else_as_a_partition_is_refused),
        cmocka_unit_test(people_learn_which_event_it_was),
        cmocka_unit_test(an_endless_value_is_cut_in_an_error),
    };

    return cmocka_run_group_tests_name("route_refused", tests, NULL, NULL);
}
