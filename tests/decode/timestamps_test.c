/* Timestamps as PostgreSQL 15 wrote and counted them; record.sh made the table. */
#include "core/timestamp.h"

#include "oracle.h"

#include <errno.h>
#include <stdlib.h>

struct counts {
    int parsed;
    int too_late;
};

static void check_line(struct slice line, void *context)
{
    struct counts *counts = context;
    const char *tab = memchr(line.ptr, '\t', line.len);
    long long want;
    int64_t us = 0;
    bool ok;

    assert_non_null(tab);
    errno = 0;
    want = strtoll(tab + 1, NULL, 10);
    ok = timestamp_parse((struct slice){line.ptr, (size_t)(tab - line.ptr)}, &us);
    if (ok ? us != want : errno != ERANGE)
        fail_msg("%.*s gave %lld", SLICE_ARG(line), (long long)us);
    counts->parsed += ok;
    counts->too_late += !ok;
}

static void timestamps_are_counted_as_postgresql_counts_them(void **state)
{
    struct counts counts = {0};

    (void)state;
    for_each_line("timestamps.tsv", check_line, &counts);
    assert_true(counts.parsed >= 500);
    assert_int_equal(counts.too_late, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timestamps_are_counted_as_postgresql_counts_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
