#include "io/pg_params.h"

#include "unit.h"

#include <stdlib.h>
#include <string.h>

/* The value that libpq takes: the last one. */
static const char *value_of(const struct pg_params *params, const char *name)
{
    const char *value = NULL;

    for (size_t i = 0; i < params->n; i++) {
        if (strcmp(params->names[i], name) == 0)
            value = params->values[i];
    }
    return value;
}

static void assert_value(const char *dsn, const char *name, const char *value)
{
    struct pg_params params;
    struct err err = {0};
    const char *found;

    assert_int_equal(pg_params_init(&params, dsn, PG_SQL, &err), 0);
    found = value_of(&params, name);
    if (value)
        assert_string_equal(found ? found : "nothing", value);
    else
        assert_null(found);
    pg_params_done(&params);
}

static void a_dead_host_is_noticed_unless_the_dsn_says_otherwise(void **state)
{
    (void)state;
    assert_value("host=a", "connect_timeout", "10");
    assert_value("host=a", "tcp_user_timeout", "20000");
    assert_value("host=a", "keepalives_idle", "5");
    assert_value("host=a connect_timeout=3", "connect_timeout", "3");
    assert_value("host=a keepalives_idle=60", "keepalives_idle", "60");
    assert_value("postgresql://a/db?tcp_user_timeout=0", "tcp_user_timeout", "0");
}

static void the_file_of_a_service_is_not_overridden(void **state)
{
    (void)state;
    assert_value("service=shop", "tcp_user_timeout", NULL);
    assert_value("service=shop", "connect_timeout", NULL);
}

static void the_environment_is_not_overridden(void **state)
{
    (void)state;
    (void)setenv("PGCONNECT_TIMEOUT", "3", 1);
    assert_value("host=a", "connect_timeout", NULL);
    assert_value("host=a", "tcp_user_timeout", "20000");
    (void)unsetenv("PGCONNECT_TIMEOUT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dead_host_is_noticed_unless_the_dsn_says_otherwise),
        cmocka_unit_test(the_file_of_a_service_is_not_overridden),
        cmocka_unit_test(the_environment_is_not_overridden),
    };

    return cmocka_run_group_tests_name("pg_params", tests, NULL, NULL);
}
