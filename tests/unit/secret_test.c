#include "core/secret.h"

#include "unit.h"

static void shows(const char *dsn, const char *expected)
{
    struct buf out;

    buf_init(&out, 4096);
    secret_add_dsn(&out, dsn);
    assert_string_equal(buf_str(&out), expected);
    buf_done(&out);
}

static void a_password_in_a_key_value_string_is_hidden(void **state)
{
    (void)state;
    shows("host=db password=hunter2 user=w", "host=db password=******** user=w");
    shows("password = 'hun\\'ter 2' host=db", "password = ******** host=db");
    shows("password=hun\\ ter host=db", "password=******** host=db");
    shows("password='' host=db", "password=******** host=db");
    shows("password=", "password=********");
    shows("sslpassword=x scram_client_key=y oauth_client_secret=z",
          "sslpassword=******** scram_client_key=******** oauth_client_secret=********");
}

static void what_is_no_secret_is_shown_as_it_is(void **state)
{
    (void)state;
    shows(" host = 'a b'  dbname=shop ", " host = 'a b'  dbname=shop ");
    shows("service=shop passfile=/etc/pgpass", "service=shop passfile=/etc/pgpass");
    shows("", "");
}

static void a_string_that_libpq_would_refuse_is_hidden_as_a_whole(void **state)
{
    (void)state;
    shows("password='open host=db", "********");
    shows("password=two words host=db", "********");
    shows("hunter2", "********");
    shows("=x", "********");
}

static void a_password_in_a_uri_is_hidden(void **state)
{
    (void)state;
    shows("postgresql://w:hunter2@db:5432/shop", "postgresql://w:********@db:5432/shop");
    shows("postgres://w:p%40ss@db/shop?sslmode=require",
          "postgres://w:********@db/shop?sslmode=require");
    shows("postgresql:///shop?host=db&password=x&user=w",
          "postgresql:///shop?host=db&password=********&user=w");
    shows("postgresql:///shop?pass%77ord=x", "postgresql:///shop?pass%77ord=********");
    shows("postgresql://:x@", "postgresql://:********@");
}

static void an_unescaped_password_in_a_uri_is_hidden_to_its_end(void **state)
{
    (void)state;
    shows("postgresql://w:p@ss:w/ord@db/shop?sslmode=require",
          "postgresql://w:********@db/shop?sslmode=require");
    shows("postgresql://w:p@ss:w/o?rd@db/shop", "postgresql://********");
    shows("postgresql://db:5432/shop?password=se:cr@et", "postgresql://********");
    shows("postgresql:///shop?password=se:cr@et&user=w", "postgresql://********");
}

static void a_uri_without_password_is_shown_as_it_is(void **state)
{
    (void)state;
    shows("postgresql://w@db:5432/shop", "postgresql://w@db:5432/shop");
    shows("postgresql://[::1]:5432,other:5433/shop?connect_timeout=3&",
          "postgresql://[::1]:5432,other:5433/shop?connect_timeout=3&");
    shows("postgresql://", "postgresql://");
}

static void a_connection_string_as_database_name_is_hidden(void **state)
{
    (void)state;
    shows("dbname='host=db password=x'", "dbname=********");
}

static void secret_properties_are_known_by_their_names(void **state)
{
    const char *const secrets[] = {"sasl.password",
                                   "SASL.Password",
                                   "ssl.key.password",
                                   "ssl.keystore.password",
                                   "ssl.key.pem",
                                   "sasl.oauthbearer.client.secret",
                                   "sasl.oauthbearer.config",
                                   "sasl.oauthbearer.assertion.private.key.passphrase"};
    const char *const others[] = {"bootstrap.servers", "sasl.username",
                                  "ssl.key.location",
                                  "sasl.oauthbearer.token.endpoint.url", ""};

    (void)state;
    for (size_t i = 0; i < COUNT(secrets); i++)
        assert_true(secret_is_property(secrets[i]));
    for (size_t i = 0; i < COUNT(others); i++)
        assert_false(secret_is_property(others[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_password_in_a_key_value_string_is_hidden),
        cmocka_unit_test(what_is_no_secret_is_shown_as_it_is),
        cmocka_unit_test(a_string_that_libpq_would_refuse_is_hidden_as_a_whole),
        cmocka_unit_test(a_password_in_a_uri_is_hidden),
        cmocka_unit_test(an_unescaped_password_in_a_uri_is_hidden_to_its_end),
        cmocka_unit_test(a_uri_without_password_is_shown_as_it_is),
        cmocka_unit_test(a_connection_string_as_database_name_is_hidden),
        cmocka_unit_test(secret_properties_are_known_by_their_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
