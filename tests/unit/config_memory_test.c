/* Every allocation of our own code fails once.  The linker leads them here (--wrap in
 * tests/CMakeLists.txt); those inside of libraries are left alone. */
#include "core/config.h"

#include "unit.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t n);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t n);

/* How many allocations still succeed before one fails; negative: all do. */
static int left = -1;

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return fails() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t n)
{
    return fails() ? NULL : __real_strndup(text, n);
}

static const char text[] =
    "[postgres]\ndsn = host=db\n[kafka]\nbootstrap.servers = k:9092\nclient.id = c\n"
    "[table outbox_events]\nheaders = a, b:c\nkey = k\n[table \"B\"]\nkey =\n"
    "[relay]\nmemory = 32MB\n";

static struct config *parse(int successes, struct err *err)
{
    const char *const env[] = {"WALRELAY_POSTGRES_DSN=host=other",
                               "WALRELAY_KAFKA_SASL_PASSWORD_FILE=/dev/null", NULL};
    struct config *config;

    left = successes;
    config = config_parse("f", slice_of(text), env, err);
    return config;
}

static void each_failed_allocation_is_an_error_and_nothing_leaks(void **state)
{
    int n = 0;

    (void)state;
    for (;; n++) {
        struct err err = {0};
        struct config *config = parse(n, &err);
        bool failed = left < 0;

        left = -1;
        if (!failed) {
            assert_non_null(config);
            config_free(config);
            break;
        }
        assert_null(config);
        assert_int_equal(err.class, ERR_INTERNAL);
        assert_non_null(strstr(err.text, "out of memory"));
    }
    assert_in_range(n, 100, 1000);
}

static void an_unknown_variable_is_refused_without_memory_too(void **state)
{
    const char *const env[] = {"WALRELAY_RELAY_MEMRY=1MB", NULL};

    (void)state;
    for (int n = 0;; n++) {
        struct err err = {0};
        bool failed;

        left = n;
        assert_null(config_parse("f", slice_of(text), env, &err));
        failed = left < 0;
        left = -1;
        assert_int_equal(err.class, failed ? ERR_INTERNAL : ERR_CONFIG);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_failed_allocation_is_an_error_and_nothing_leaks),
        cmocka_unit_test(an_unknown_variable_is_refused_without_memory_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
