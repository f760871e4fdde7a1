/* Tokens for brokers in development. */
#include "core/unsecured_jwt.h"

#include "unit.h"

static void a_token_names_the_principal_and_its_life(void **state)
{
    struct unsecured_jwt jwt;
    struct err err = {0};

    (void)state;
    assert_int_equal(
        unsecured_jwt(" principal=relay  lifeSeconds=3 ", 1700000000250, &jwt, &err), 0);
    /* {"alg":"none"} and {"sub":"relay","iat":1700000000.250,"exp":1700000003.250} */
    assert_string_equal(jwt.token, "eyJhbGciOiJub25lIn0."
                                   "eyJzdWIiOiJyZWxheSIsImlhdCI6MTcwMDAwMDAwMC4yNTAsImV4c"
                                   "CI6MTcwMDAwMDAwMy4yNTB9.");
    assert_string_equal(jwt.principal, "relay");
    assert_int_equal(jwt.expires_ms, 1700000003250);
}

static void what_is_not_understood_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "principal=",
        "lifeSeconds=3",
        "principal=relay lifeSeconds=0",
        "principal=relay lifeSeconds=3s",
        "principal=re\"lay",
        "principal=relay extension_a=b",
    };
    struct unsecured_jwt jwt;

    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        struct err err = {0};

        assert_int_equal(unsecured_jwt(wrong[i], 0, &jwt, &err), -1);
        assert_int_equal(err.class, ERR_CONFIG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_names_the_principal_and_its_life),
        cmocka_unit_test(what_is_not_understood_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
