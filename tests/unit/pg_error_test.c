#include "io/pg.h"
#include "io/pg_error.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void a_missing_slot_is_not_an_outage(void **state)
{
    (void)state;
    assert_int_equal(pg_class_of("42704", "replication slot \"x\" does not exist"),
                     ERR_SLOT);
}

static void the_words_of_55000_decide(void **state)
{
    (void)state;
    assert_int_equal(
        pg_class_of("55000", "cannot read from logical replication slot \"x\""),
        ERR_SLOT);
    assert_int_equal(
        pg_class_of("55000", "can no longer get changes from replication slot \"x\""),
        ERR_SLOT);
    assert_int_equal(
        pg_class_of("55000", "replication slot \"x\" was not created in this database"),
        ERR_SLOT);
    assert_int_equal(
        pg_class_of("55000", "logical decoding requires wal_level >= logical"),
        ERR_CONFIG);
    assert_int_equal(pg_class_of("55000", "something else"), ERR_RETRY);
    assert_int_equal(pg_class_of("55000", NULL), ERR_RETRY);
}

static void rights_are_denied_and_settings_are_configuration(void **state)
{
    (void)state;
    assert_int_equal(pg_class_of("28P01", ""), ERR_DENIED);
    assert_int_equal(pg_class_of("28000", ""), ERR_DENIED);
    assert_int_equal(pg_class_of("42501", ""), ERR_DENIED);
    assert_int_equal(pg_class_of("58P01", ""), ERR_CONFIG);
    assert_int_equal(pg_class_of("22023", ""), ERR_CONFIG);
    assert_int_equal(pg_class_of("42602", ""), ERR_CONFIG);
    assert_int_equal(pg_class_of("0A000", ""), ERR_CONFIG);
}

static void all_else_may_pass(void **state)
{
    (void)state;
    assert_int_equal(pg_class_of(NULL, NULL), ERR_RETRY);
    assert_int_equal(pg_class_of("", ""), ERR_RETRY);
    assert_int_equal(pg_class_of("55006", "replication slot \"x\" is active for PID 1"),
                     ERR_RETRY);
    assert_int_equal(pg_class_of("57P01", ""), ERR_RETRY);
    assert_int_equal(pg_class_of("53300", ""), ERR_RETRY);
    assert_int_equal(pg_class_of("XX000", ""), ERR_RETRY);
}

#define AT(host) "connection to server at \"" host "\", port 5432 failed: "

static struct err failure(const char *text)
{
    struct err err = {0};

    assert_int_equal(pg_fail_connect("SQL connection", text, &err), -1);
    return err;
}

static void a_wrong_password_is_denied_with_its_code(void **state)
{
    struct err err =
        failure(AT("a") "FATAL:  28P01: password authentication failed for user \"u\"\n"
                        "LOCATION:  auth_failed, auth.c:335\n");

    (void)state;
    assert_int_equal(err.class, ERR_DENIED);
    assert_string_equal(err.code, "28P01");
    assert_null(strstr(err.text, "auth.c"));
    assert_non_null(strstr(err.text, "SQL connection"));
    assert_non_null(strstr(err.text, "password authentication failed"));
}

static void the_code_is_read_in_any_language(void **state)
{
    struct err err =
        failure(AT("a") "SCHWERWIEGEND:  28P01: Passwort-Authentifizierung\n");

    (void)state;
    assert_int_equal(err.class, ERR_DENIED);
}

static void one_host_that_is_away_may_come_back(void **state)
{
    const char *denied = "FATAL:  28P01: password authentication failed\n";
    char text[512];

    (void)state;
    (void)snprintf(text, sizeof(text), "%s%s%s", AT("a"), denied,
                   AT("b") "Connection refused\n");
    assert_int_equal(failure(text).class, ERR_RETRY);
    (void)snprintf(text, sizeof(text), "%s%s%s", AT("b") "Connection refused\n", AT("a"),
                   denied);
    assert_int_equal(failure(text).class, ERR_RETRY);
    (void)snprintf(text, sizeof(text), "%s%s%s%s", AT("a"), denied, AT("b"), denied);
    assert_int_equal(failure(text).class, ERR_DENIED);
}

static void a_server_that_starts_or_is_full_is_waited_for(void **state)
{
    (void)state;
    assert_int_equal(
        failure(AT("a") "FATAL:  57P03: the database system is starting up\n").class,
        ERR_RETRY);
    assert_int_equal(
        failure(AT("a") "FATAL:  53300: number of requested standby connections "
                        "exceeds max_wal_senders (currently 1)\n")
            .class,
        ERR_RETRY);
    assert_int_equal(failure("").class, ERR_RETRY);
}

static void what_libpq_itself_refuses_is_configuration(void **state)
{
    (void)state;
    assert_int_equal(failure("invalid sslmode value: \"bogus\"\n").class, ERR_CONFIG);
    assert_int_equal(failure(AT("a") "SSL error: certificate verify failed\n").class,
                     ERR_CONFIG);
    assert_int_equal(
        failure(AT("a") "received invalid response to SSL negotiation: H\n").class,
        ERR_RETRY);
    assert_int_equal(failure(AT("a") "fe_sendauth: no password supplied\n").class,
                     ERR_DENIED);
}

static void a_role_without_replication_is_told_the_statement(void **state)
{
    struct err err =
        failure(AT("a") "FATAL:  42501: must be superuser or replication role "
                        "to start walsender\n");

    (void)state;
    assert_int_equal(err.class, ERR_DENIED);
    assert_non_null(strstr(err.text, "ALTER ROLE"));
}

static void assert_quoted(char *quoted, const char *wanted)
{
    assert_non_null(quoted);
    assert_string_equal(quoted, wanted);
    free(quoted);
}

static void a_row_of_a_gigabyte_is_explained(void **state)
{
    (void)state;
    assert_non_null(strstr(pg_cure_of("54000", "out of memory"), "larger than 1 GB"));
    assert_non_null(
        strstr(pg_cure_of("XX000", "invalid memory alloc request size 1080000003"),
               "larger than 1 GB"));
    assert_string_equal(pg_cure_of("53200", "out of memory"), "");
    assert_string_equal(pg_cure_of(NULL, "server closed the connection"), "");
}

static void quoting_doubles_quotes(void **state)
{
    (void)state;
    assert_quoted(pg_quote_identifier("we\"ird"), "\"we\"\"ird\"");
    assert_quoted(pg_quote_identifier(""), "\"\"");
    assert_quoted(pg_quote_literal("it's"), "'it''s'");
    assert_quoted(pg_quote_literal("a\\'b"), "E'a\\\\''b'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_slot_is_not_an_outage),
        cmocka_unit_test(the_words_of_55000_decide),
        cmocka_unit_test(rights_are_denied_and_settings_are_configuration),
        cmocka_unit_test(all_else_may_pass),
        cmocka_unit_test(a_wrong_password_is_denied_with_its_code),
        cmocka_unit_test(the_code_is_read_in_any_language),
        cmocka_unit_test(one_host_that_is_away_may_come_back),
        cmocka_unit_test(a_server_that_starts_or_is_full_is_waited_for),
        cmocka_unit_test(what_libpq_itself_refuses_is_configuration),
        cmocka_unit_test(a_role_without_replication_is_told_the_statement),
        cmocka_unit_test(a_row_of_a_gigabyte_is_explained),
        cmocka_unit_test(quoting_doubles_quotes),
    };

    return cmocka_run_group_tests_name("pg_error", tests, NULL, NULL);
}
