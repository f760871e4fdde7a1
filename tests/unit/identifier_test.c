#include "core/identifier.h"

#include "unit.h"

#include <string.h>

static void table(const char *text, const char *schema, const char *name)
{
    identifier_t got_schema = "untouched";
    identifier_t got_name = "untouched";
    struct err err = {0};

    if (identifier_table(text, got_schema, got_name, &err) < 0)
        fail_msg("%s: %s", text, err.text);
    assert_string_equal(got_schema, schema);
    assert_string_equal(got_name, name);
}

static void no_table(const char *text, const char *why)
{
    identifier_t schema = "untouched";
    identifier_t name = "untouched";
    struct err err = {0};

    assert_int_equal(identifier_table(text, schema, name, &err), -1);
    assert_int_equal(err.class, ERR_CONFIG);
    if (!strstr(err.text, why))
        fail_msg("\"%s\" does not say \"%s\"", err.text, why);
    assert_string_equal(schema, "untouched");
    assert_string_equal(name, "untouched");
}

static void a_name_without_schema_is_in_public(void **state)
{
    (void)state;
    table("outbox_events", "public", "outbox_events");
    table("sales.outbox", "sales", "outbox");
}

static void without_quotes_a_name_is_folded_as_sql_folds_it(void **state)
{
    (void)state;
    table("Sales.OutBox_1$", "sales", "outbox_1$");
    /* downcase_identifier leaves other letters alone in a multi-byte encoding */
    table("\xc3\x84pfel", "public", "\xc3\x84pfel");
}

static void in_quotes_a_name_is_taken_as_it_is(void **state)
{
    (void)state;
    table("\"Sales Dept\".\"Out box.v1\"", "Sales Dept", "Out box.v1");
    table("\"a,b\".\"c*d\"", "a,b", "c*d");
    table("\"quo'te\".\"back\\slash\"", "quo'te", "back\\slash");
    table("\"\xe6\x97\xa5\xe6\x9c\xac\".\"\xe8\xa1\xa8\"", "\xe6\x97\xa5\xe6\x9c\xac",
          "\xe8\xa1\xa8");
    table("\"do\"\"uble\".\"\"\"\"", "do\"uble", "\"");
    table("Mixed.\"Mixed\"", "mixed", "Mixed");
}

static void blanks_around_the_parts_do_not_matter(void **state)
{
    (void)state;
    table("  sales . \"Out box\"  ", "sales", "Out box");
}

static void what_sql_would_not_take_is_refused(void **state)
{
    (void)state;
    no_table("", "a name is empty");
    no_table("public.", "a name is empty");
    no_table(".outbox", "is no SQL name");
    no_table("\"\"", "a name is empty");
    no_table("out-box", "unexpected \"-box\" after the name; put a name");
    no_table("1outbox", "is no SQL name; put a name");
    no_table("out box", "unexpected \"box\"");
    no_table("\"a\"b", "unexpected \"b\"");
    no_table("\"open", "a double quote is not closed");
    no_table("\"open\"\"", "a double quote is not closed");
    no_table("db.public.outbox", "more parts than schema and table");
}

static void a_name_has_at_most_63_bytes(void **state)
{
    char name[80] = "";

    (void)state;
    memset(name, 'x', 63);
    table(name, "public", name);
    name[63] = 'x';
    no_table(name, "64 bytes is longer");
    name[0] = '"';
    name[64] = 'x';
    name[65] = '"';
    no_table(name, "64 bytes is longer");
}

static void column(const char *text, const char *stops, const char *name,
                   const char *rest)
{
    identifier_t got = "untouched";
    struct err err = {0};

    if (identifier_column(&text, stops, got, &err) < 0)
        fail_msg("%s", err.text);
    assert_string_equal(got, name);
    assert_string_equal(text, rest);
}

static void no_column(const char *text, const char *why)
{
    const char *before = text;
    identifier_t name = "untouched";
    struct err err = {0};

    assert_int_equal(identifier_column(&text, ":,", name, &err), -1);
    assert_string_equal(err.text, why);
    assert_string_equal(name, "untouched");
    assert_ptr_equal(text, before);
}

static void a_column_is_named_as_in_the_catalog(void **state)
{
    (void)state;
    column("Tenant", "", "Tenant", "");
    column(" we\"ird\\col : x", ":,", "we\"ird\\col", ": x");
    column("two words ,next", ":,", "two words", ",next");
    column("a:b,c", "", "a:b,c", "");
}

static void a_column_in_quotes_may_hold_anything(void **state)
{
    (void)state;
    column("\"a:b,c\" : x", ":,", "a:b,c", ": x");
    column("\"\"\"q\"", "", "\"q", "");
    no_column("\"a\" b", "unexpected \"b\" after a quoted name");
    no_column("\"a", "a double quote is not closed");
    no_column(" , b", "a name is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_without_schema_is_in_public),
        cmocka_unit_test(without_quotes_a_name_is_folded_as_sql_folds_it),
        cmocka_unit_test(in_quotes_a_name_is_taken_as_it_is),
        cmocka_unit_test(blanks_around_the_parts_do_not_matter),
        cmocka_unit_test(what_sql_would_not_take_is_refused),
        cmocka_unit_test(a_name_has_at_most_63_bytes),
        cmocka_unit_test(a_column_is_named_as_in_the_catalog),
        cmocka_unit_test(a_column_in_quotes_may_hold_anything),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
