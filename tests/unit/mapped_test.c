#include "core/mapped.h"

#include "unit.h"

/* Settings are not const; -Wwrite-strings makes literals so. */
#define TEXT(literal) ((char[]){literal})

static struct mapped map(const struct table_settings *table)
{
    struct mapped mapped;
    struct err err = {0};

    assert_int_equal(mapped_init(&mapped, table, &err), 0);
    return mapped;
}

static void every_setting_maps_its_column_once(void **state)
{
    struct header_setting headers[] = {{TEXT("tenant"), TEXT("x-tenant")},
                                       {TEXT("id"), TEXT("copy")}};
    const struct table_settings table = {.topic = TEXT("t.{kind}.{tenant}"),
                                         .key = TEXT("k"),
                                         .payload = TEXT("p"),
                                         .id = {TEXT("id"), TEXT("id")},
                                         .headers = headers,
                                         .nheaders = 2,
                                         .aggregate_id = TEXT("k"),
                                         .partition = TEXT("part"),
                                         .timestamp = TEXT("at")};
    struct mapped mapped = map(&table);

    (void)state;
    assert_int_equal(mapped.n, 7); /* kind tenant k p id part at */
    assert_true(mapped_has(&mapped, "kind"));
    assert_true(mapped_has(&mapped, "tenant"));
    assert_true(mapped_has(&mapped, "at"));
    assert_false(mapped_has(&mapped, "type"));
    mapped_done(&mapped);
}

static void only_columns_in_braces_are_in_the_topic(void **state)
{
    const struct table_settings table = {.topic = TEXT("a.{kind}.{{k}}"),
                                         .key = TEXT("k")};
    struct mapped mapped = {0};
    struct err err = {0};

    (void)state;
    /* no topic may hold a brace, so a template with one is refused */
    assert_int_equal(mapped_init(&mapped, &table, &err), -1);
    assert_int_equal(err.class, ERR_CONFIG);

    const struct table_settings good = {.topic = TEXT("a.{kind}"), .key = TEXT("k")};

    mapped = map(&good);
    assert_true(mapped_in_topic(&mapped, "kind"));
    assert_false(mapped_in_topic(&mapped, "k"));
    mapped_done(&mapped);
}

static void a_constant_topic_maps_nothing(void **state)
{
    const struct table_settings table = {.topic = TEXT("orders")};
    struct mapped mapped = map(&table);

    (void)state;
    assert_int_equal(mapped.n, 0);
    mapped_done(&mapped);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_setting_maps_its_column_once),
        cmocka_unit_test(only_columns_in_braces_are_in_the_topic),
        cmocka_unit_test(a_constant_topic_maps_nothing),
    };

    return cmocka_run_group_tests_name("mapped", tests, NULL, NULL);
}
