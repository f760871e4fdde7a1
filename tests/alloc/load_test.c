/* A configuration that is longer than one read, while memory lacks. */
#include "app/load.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void failing_next(long n); /* in failing.c */

enum { TABLES = 300 };

static void write_configuration(char *path)
{
    int fd = mkstemp(path);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

    assert_non_null(file);
    (void)fputs("[postgres]\ndsn = host=db\n[kafka]\nbootstrap.servers = k\n", file);
    for (int i = 0; i < TABLES; i++)
        (void)fprintf(file, "[table outbox_%d]\n", i);
    assert_int_equal(fclose(file), 0);
}

/* The tables that were cut off would not be published, and their events confirmed. */
static void
a_file_that_memory_does_not_suffice_for_is_not_taken_for_a_shorter_one(void **state)
{
    const char *const env[] = {NULL};
    char path[] = "configuration-XXXXXX";
    enum { FIRST = 30 }; /* the file itself is read by then */

    (void)state;
    write_configuration(path);
    for (long n = 1; n <= FIRST; n++) {
        struct err err = {0};
        struct config *config;

        failing_next(n);
        config = config_load(path, env, &err);
        assert_null(config);
        assert_int_equal(err.class, ERR_INTERNAL);
    }
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_file_that_memory_does_not_suffice_for_is_not_taken_for_a_shorter_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
