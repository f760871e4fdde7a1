#include "core/catalog.h"
#include "core/start_replication.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* An ordinary table, and one that may get more partitions in two schemas. */
struct tables {
    struct catalog_leaf own[1];
    struct catalog_leaf partitions[2];
    char *schemas[2];
    struct catalog_table tables[2];
    struct catalog catalog;
};

static void init(struct tables *t)
{
    static char names[][16] = {"public", "outbox", "p 1", "p2", "arch'ive"};

    *t = (struct tables){
        .own = {{names[0], names[1]}},
        .partitions = {{names[0], names[2]}, {names[4], names[3]}},
        .schemas = {names[0], names[4]},
    };
    t->tables[0] = (struct catalog_table){.leaves = t->own, .nleaves = 1};
    t->tables[1] = (struct catalog_table){
        .leaves = t->partitions, .nleaves = 2, .schemas = t->schemas, .nschemas = 2};
    t->catalog = (struct catalog){
        .tables = t->tables, .ntables = 2, .dead_letters_schema = "elsewhere"};
}

static void an_ordinary_table_is_asked_for_by_name_and_others_by_schema(void **state)
{
    struct tables t;
    struct buf command;

    (void)state;
    init(&t);
    buf_init(&command, 1 << 16);
    start_replication(&command, "s", 0x16B3748, &t.catalog, false);
    assert_non_null(strstr(buf_str(&command), "\"add-tables\" 'public.outbox,public.*,"
                                              "arch\\''ive.*')"));
    buf_done(&command);
}

static void dead_letters_are_left_out_of_a_schema_that_is_asked_for(void **state)
{
    static const char filter[] =
        ", \"filter-tables\" 'arch\\''ive.walrelay_dead_letters')";
    struct tables t;
    struct buf command;

    (void)state;
    init(&t);
    buf_init(&command, 1 << 16);
    start_replication(&command, "s", 1, &t.catalog, false);
    assert_null(strstr(buf_str(&command), "filter-tables"));
    buf_reset(&command);
    t.catalog.dead_letters_schema = "arch'ive";
    start_replication(&command, "s", 1, &t.catalog, false);
    assert_non_null(strstr(buf_str(&command), filter));
    buf_done(&command);
}

static void a_leaf_in_a_schema_that_was_asked_for_is_no_surprise(void **state)
{
    struct tables asked;
    struct tables now;

    (void)state;
    init(&asked);
    init(&now);
    assert_null(catalog_unasked(&asked.catalog, &now.catalog));
    now.partitions[0].name = now.own[0].name; /* new there */
    assert_null(catalog_unasked(&asked.catalog, &now.catalog));
    now.partitions[1].schema = now.own[0].name; /* a schema called outbox */
    assert_ptr_equal(catalog_unasked(&asked.catalog, &now.catalog), &now.partitions[1]);
}

static void a_child_of_a_table_that_had_none_is_one(void **state)
{
    struct tables asked;
    struct tables now;
    struct catalog_leaf two[2];

    (void)state;
    init(&asked);
    init(&now);
    two[0] = now.own[0];
    two[1] = now.partitions[0];
    now.tables[0].leaves = two;
    now.tables[0].nleaves = 2;
    assert_ptr_equal(catalog_unasked(&asked.catalog, &now.catalog), &two[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_ordinary_table_is_asked_for_by_name_and_others_by_schema),
        cmocka_unit_test(dead_letters_are_left_out_of_a_schema_that_is_asked_for),
        cmocka_unit_test(a_leaf_in_a_schema_that_was_asked_for_is_no_surprise),
        cmocka_unit_test(a_child_of_a_table_that_had_none_is_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
