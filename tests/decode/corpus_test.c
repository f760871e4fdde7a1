/* Messages that wal2json 2.5 wrote on PostgreSQL 15; record.sh made them. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_MUTATED = 450 }; /* longer messages would only cost time */

static const char *const files[] = {"plain.jsonl", "types.jsonl", "everything.jsonl"};

struct counts {
    struct wal2json *decoder;
    int messages;
    int inserts;
    int no_json;
};

static void check_message(struct slice line, void *context)
{
    struct counts *counts = context;
    struct decoded d;

    decoded_init(&d, counts->decoder, line);
    if (d.rc != 0)
        fail_msg("%s: %.*s", d.err.text, SLICE_ARG(line));
    if (!same_as_jansson(&d, line, true)) {
        /* the one construct that is no JSON */
        assert_true(slice_eq(d.change.table, slice_of("quoted_types")));
        counts->no_json++;
    }
    counts->messages++;
    counts->inserts += d.change.kind == CHANGE_INSERT;
    decoded_done(&d);
}

static void recorded_messages_are_read_as_jansson_reads_them(void **state)
{
    struct counts counts[COUNT(files)] = {{0}};

    for (size_t i = 0; i < COUNT(files); i++) {
        counts[i].decoder = *state;
        for_each_line(files[i], check_message, &counts[i]);
        assert_true(counts[i].messages > 80);
        assert_true(counts[i].inserts > 40);
    }
    assert_int_equal(counts[0].no_json, 0);
    assert_int_equal(counts[1].no_json, 2);
    assert_int_equal(counts[2].no_json, 2);
}

/* The decoded inserts of one file. */
struct rows {
    struct wal2json *decoder[128];
    struct decoded decoded[128];
    size_t n;
};

static void keep_insert(struct slice line, void *context)
{
    struct rows *rows = context;
    struct decoded *d = &rows->decoded[rows->n];

    assert_true(rows->n < COUNT(rows->decoded));
    rows->decoder[rows->n] = wal2json_new();
    assert_non_null(rows->decoder[rows->n]);
    decoded_init(d, rows->decoder[rows->n++], line);
    if (d->change.kind != CHANGE_INSERT) {
        decoded_done(d);
        wal2json_free(rows->decoder[--rows->n]);
    }
}

static void free_rows(struct rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        decoded_done(&rows->decoded[i]);
        wal2json_free(rows->decoder[i]);
    }
}

static void assert_same_row(const struct change *a, const struct change *b)
{
    assert_true(slice_eq(a->table, b->table));
    assert_true(a->commit_us == b->commit_us);
    assert_int_equal(a->ncolumns, b->ncolumns);
    for (size_t i = 0; i < a->ncolumns; i++) {
        assert_true(slice_eq(a->columns[i].name, b->columns[i].name));
        assert_true(slice_eq(a->columns[i].value, b->columns[i].value));
    }
}

static void options_of_the_stream_do_not_change_a_row(void **state)
{
    struct rows *rows = calloc(COUNT(files), sizeof(*rows));

    (void)state;
    assert_non_null(rows);
    for (size_t i = 0; i < COUNT(files); i++)
        for_each_line(files[i], keep_insert, &rows[i]);
    assert_int_equal(rows[1].n, rows[0].n);
    assert_int_equal(rows[2].n, rows[0].n);
    for (size_t i = 0; i < rows[0].n; i++) {
        assert_same_row(&rows[0].decoded[i].change, &rows[1].decoded[i].change);
        assert_same_row(&rows[0].decoded[i].change, &rows[2].decoded[i].change);
    }
    for (size_t i = 0; i < COUNT(files); i++)
        free_rows(&rows[i]);
    free(rows);
}

static void check_quoted_types(struct slice line, void *context)
{
    struct counts *counts = context;

    /* format_type()'s text, without quotes at both ends */
    static const char *const types[] = {"Weird",
                                        "we\"\"ird",
                                        "back\\slash",
                                        "back\\",
                                        "comma\"\",\"\"value\"\":1",
                                        "}",
                                        "Sales Dept\".\"My Type",
                                        "\"Sales Dept\".plain",
                                        "Domain X",
                                        "text"};
    struct decoded d;

    decoded_init(&d, counts->decoder, line);
    if (slice_eq(d.change.table, slice_of("quoted_types"))) {
        assert_int_equal(d.change.ncolumns, COUNT(types));
        for (size_t i = 0; i < COUNT(types); i++)
            assert_true(slice_eq(d.change.columns[i].type, slice_of(types[i])));
        counts->inserts++;
    }
    decoded_done(&d);
}

static void quoted_type_names_come_as_postgresql_writes_them(void **state)
{
    struct counts counts = {.decoder = *state};

    for_each_line("types.jsonl", check_quoted_types, &counts);
    assert_int_equal(counts.inserts, 2);
}

static void check_prefixes(struct slice line, void *context)
{
    for (size_t len = 0; len < line.len; len++) {
        struct decoded d;

        decoded_init(&d, context, (struct slice){line.ptr, len});
        if (d.rc == 0)
            fail_msg("accepted: %.*s", (int)len, line.ptr);
        decoded_done(&d);
    }
}

static void every_truncated_message_is_refused(void **state)
{
    for (size_t i = 0; i < COUNT(files); i++)
        for_each_line(files[i], check_prefixes, *state);
}

/* What decodes after a change of one byte must be what jansson reads, if it reads
 * the message at all. */
static void check_mutations(struct wal2json *decoder, struct slice line,
                            struct slice bytes, bool compare)
{
    char *copy = malloc(line.len);
    struct slice message = {copy, line.len};

    assert_non_null(copy);
    memcpy(copy, line.ptr, line.len);
    for (size_t at = 0; at < line.len; at++) {
        for (size_t i = 0; i < bytes.len; i++) {
            struct decoded d;

            copy[at] = bytes.ptr[i];
            decoded_init(&d, decoder, message);
            if (d.rc == 0 && compare)
                (void)same_as_jansson(&d, message, false);
            decoded_done(&d);
        }
        copy[at] = line.ptr[at];
    }
    free(copy);
}

static void mutate_with_telling_bytes(struct slice line, void *context)
{
    static const char telling[] = "\"\\{}[],:u0-n \0\n\xff";

    if (line.len < MAX_MUTATED)
        check_mutations(context, line, (struct slice){telling, sizeof(telling) - 1},
                        false);
}

static void a_changed_byte_never_leads_out_of_the_message(void **state)
{
    for (size_t i = 0; i < COUNT(files); i++)
        for_each_line(files[i], mutate_with_telling_bytes, *state);
}

static void a_changed_byte_is_read_as_jansson_reads_it(void **state)
{
    static const char row[] =
        "{\"action\":\"I\",\"timestamp\":\"2026-11-30 09:15:02.1+00\",\"schema\":\"s\","
        "\"table\":\"t\",\"columns\":[{\"name\":\"id\",\"value\":-12."
        "5e3},"
        "{\"name\":\"a\",\"value\":\"{\\\"b\\\": "
        "\\\"\\u0001\\ud83d\\ude00\\n"
        "\\\"}\"},{\"name\":\"c\",\"type\":\"\\\"T\\\"[]\",\"value\":null},"
        "{\"name\":\"d\",\"value\":true,\"x\":[{\"y\":[]},1,\"z\"]}]}";
    char all[256];

    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)i;
    check_mutations(*state, slice_of(row), (struct slice){all, sizeof(all)}, true);
}

static int setup(void **state)
{
    *state = wal2json_new();
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    wal2json_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_messages_are_read_as_jansson_reads_them),
        cmocka_unit_test(options_of_the_stream_do_not_change_a_row),
        cmocka_unit_test(quoted_type_names_come_as_postgresql_writes_them),
        cmocka_unit_test(every_truncated_message_is_refused),
        cmocka_unit_test(a_changed_byte_never_leads_out_of_the_message),
        cmocka_unit_test(a_changed_byte_is_read_as_jansson_reads_it),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
