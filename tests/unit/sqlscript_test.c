#include "app/sqlfile.h"
#include "app/sqlscript.h"

#include "unit.h"

#include <string.h>

static const struct sql_variable variables[] = {
    {"role", "we\"ird"}, {"slot", "it's"}, {NULL, NULL}};

static void assert_filled(const char *script, const char *wanted)
{
    struct err err = {0};
    struct buf out;

    buf_init(&out, 1000);
    assert_int_equal(sqlscript_fill(&out, script, variables, &err), 0);
    assert_string_equal(buf_str(&out), wanted);
    buf_done(&out);
}

static void variables_are_quoted_as_names_or_texts(void **state)
{
    (void)state;
    assert_filled("ALTER ROLE :\"role\" -- :'role'\n",
                  "ALTER ROLE \"we\"\"ird\" -- 'we\"ird'\n");
    assert_filled("SELECT :'slot';\n", "SELECT 'it''s';\n");
}

static void other_colons_are_text(void **state)
{
    (void)state;
    assert_filled("SELECT 1::int, '{\"a\": \"b\"}';\n",
                  "SELECT 1::int, '{\"a\": \"b\"}';\n");
}

static void lines_that_set_defaults_are_left_out(void **state)
{
    (void)state;
    assert_filled(
        "-- a\n\\if :{?role}\n\\else\n\\set role x\n\\endif\n\\set a :role\nb;\n",
        "-- a\nb;\n");
    assert_filled("SELECT 1\n\\gexec\n", "SELECT 1\n\\gexec\n");
}

static void an_unknown_variable_is_an_error(void **state)
{
    struct err err = {0};
    struct buf out;

    (void)state;
    buf_init(&out, 1000);
    assert_int_equal(sqlscript_fill(&out, "SELECT :'nobody';\n", variables, &err), -1);
    assert_int_equal(err.class, ERR_INTERNAL);
    err_clear(&err);
    assert_int_equal(sqlscript_fill(&out, "SELECT :'slot", variables, &err), -1);
    buf_done(&out);
}

static void a_script_beyond_the_ceiling_is_an_error(void **state)
{
    struct err err = {0};
    struct buf out;

    (void)state;
    buf_init(&out, 4);
    assert_int_equal(sqlscript_fill(&out, "SELECT 1;\n", variables, &err), -1);
    buf_done(&out);
}

static void the_files_of_sql_need_no_other_variables(void **state)
{
    static const struct sql_variable all[] = {{"role", "r"},   {"slot", "s"},
                                              {"schema", "c"}, {"table", "t"},
                                              {"index", "i"},  {NULL, NULL}};
    const char *const files[] = {sql_role, sql_plugin, sql_outbox_events, sql_slot};

    (void)state;
    for (size_t i = 0; i < COUNT(files); i++) {
        struct err err = {0};
        struct buf out;

        buf_init(&out, 1 << 16);
        assert_int_equal(sqlscript_fill(&out, files[i], all, &err), 0);
        assert_null(strstr(buf_str(&out), "\\if"));
        buf_done(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(variables_are_quoted_as_names_or_texts),
        cmocka_unit_test(other_colons_are_text),
        cmocka_unit_test(lines_that_set_defaults_are_left_out),
        cmocka_unit_test(an_unknown_variable_is_an_error),
        cmocka_unit_test(a_script_beyond_the_ceiling_is_an_error),
        cmocka_unit_test(the_files_of_sql_need_no_other_variables),
    };

    return cmocka_run_group_tests_name("sqlscript", tests, NULL, NULL);
}
