/* Rows of tables that are younger than the catalog. */
#include "route_fixture.h"

static char *schemas[] = {STR("public")};

static void bench_start_partitioned(struct bench *b)
{
    bench_init(b);
    b->table.schemas = schemas;
    b->table.nschemas = 1;
    bench_start(b);
}

static void unknown_row(struct row *row)
{
    default_row(row, "{}");
    row->change.table = slice_of("outbox_2027_01");
}

static void a_table_with_all_the_columns_may_be_a_partition(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_start_partitioned(&b);
    unknown_row(&row);
    assert_int_equal(route(&b, &row), ROUTE_UNKNOWN);
    assert_int_equal(route(&b, &row), ROUTE_UNKNOWN);
    row.change.columns = row.columns + 1; /* no id */
    row.change.ncolumns--;
    assert_int_equal(route(&b, &row), ROUTE_OTHER);
    row_done(&row);
    bench_done(&b);
}

static void a_column_that_may_be_missing_in_an_event_may_be_missing(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_start_partitioned(&b);
    unknown_row(&row);
    row.columns[3].name = slice_of("renamed"); /* event_type */
    assert_int_equal(route(&b, &row), ROUTE_UNKNOWN);
    row_done(&row);
    bench_done(&b);
}

static void an_ordinary_table_has_no_unknown_partitions(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_init(&b);
    bench_start(&b);
    unknown_row(&row);
    assert_int_equal(route(&b, &row), ROUTE_OTHER);
    row_done(&row);
    bench_done(&b);
}

static void a_table_that_is_passed_is_asked_for_again_by_later_transactions(void **state)
{
    struct bench b;
    struct row row;

    (void)state;
    bench_start_partitioned(&b);
    unknown_row(&row);
    assert_int_equal(
        router_pass(b.router, row.change.schema, row.change.table, COMMIT_US + 1), 0);
    assert_int_equal(route(&b, &row), ROUTE_OTHER);
    row.change.commit_us = COMMIT_US + 1;
    assert_int_equal(route(&b, &row), ROUTE_UNKNOWN);
    row_done(&row);
    bench_done(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_with_all_the_columns_may_be_a_partition),
        cmocka_unit_test(a_column_that_may_be_missing_in_an_event_may_be_missing),
        cmocka_unit_test(an_ordinary_table_has_no_unknown_partitions),
        cmocka_unit_test(a_table_that_is_passed_is_asked_for_again_by_later_transactions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
