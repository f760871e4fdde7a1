/* Random rows, written as wal2json writes them, decoded beside jansson. */
#include "base/buf.h"

#include "oracle.h"

#include <stdio.h>

enum { MESSAGES = 5000, MAX_MESSAGE = 1 << 20 };

/* xorshift64* */
static unsigned below(uint64_t *state, unsigned n)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (unsigned)((*state * UINT64_C(2685821657736338717)) >> 33) % n;
}

/* escape_json() of src/backend/utils/adt/json.c, and now and then what it could
 * have written as well. */
static void put_char(struct buf *out, char c, uint64_t *random)
{
    static const char letters[] = "\"\\\b\f\n\r\t";
    const char *special = c ? strchr(letters, c) : NULL;

    if (special)
        buf_printf(out, "\\%c", "\"\\bfnrt"[special - letters]);
    else if ((unsigned char)c < ' ' || (c > 0 && below(random, 50) == 0))
        buf_printf(out, below(random, 2) ? "\\u%04x" : "\\u%04X", (unsigned)c);
    else
        buf_add_char(out, c);
}

static void put_run(struct buf *out, uint64_t *random)
{
    static const char *const pieces[] = {"é",       "€",       "😀",
                                         "\\u00e9", "\\u20ac", "\\uD83D\\ude00",
                                         "\\/",     "\x7f",    "\xef\xbf\xbf"};
    unsigned n = below(random, 20);

    switch (below(random, 4)) {
    case 0:
        while (n-- > 0)
            put_char(out, (char)(1 + below(random, 127)), random);
        break;
    case 1:
        while (n-- > 0)
            put_char(out, (char)('a' + below(random, 26)), random);
        break;
    case 2:
        while (n-- > 0)
            put_char(out, below(random, 2) ? '"' : '\\', random);
        break;
    default:
        buf_add_str(out, pieces[below(random, COUNT(pieces))]);
    }
}

static void put_string(struct buf *out, uint64_t *random)
{
    unsigned runs = below(random, 8) == 0 ? below(random, 60) : below(random, 4);

    buf_add_char(out, '"');
    while (runs-- > 0)
        put_run(out, random);
    buf_add_char(out, '"');
}

static void put_number(struct buf *out, uint64_t *random)
{
    if (below(random, 2))
        buf_add_char(out, '-');
    buf_printf(out, "%u", below(random, 1000000000));
    if (below(random, 2))
        buf_printf(out, ".%u", below(random, 100000));
    if (below(random, 4) == 0)
        buf_printf(out, "e%c%02u", "+-"[below(random, 2)], below(random, 200));
}

static void put_scalar(struct buf *out, uint64_t *random)
{
    static const char *const words[] = {"null", "true", "false"};

    switch (below(random, 5)) {
    case 0:
        put_number(out, random);
        break;
    case 1:
        buf_add_str(out, words[below(random, COUNT(words))]);
        break;
    default:
        put_string(out, random);
    }
}

static void put_space(struct buf *out, uint64_t *random)
{
    if (below(random, 20) == 0)
        buf_add_char(out, " \t\r\n"[below(random, 4)]);
}

/* A field that no version of wal2json is known to write. */
static void put_unknown(struct buf *out, uint64_t *random)
{
    unsigned depth = below(random, 10);

    buf_printf(out, "\"new_%u\":", below(random, 1000000));
    for (unsigned i = 0; i < depth; i++)
        buf_add_str(out, i % 2 ? "{\"k\":" : "[1,");
    put_scalar(out, random);
    while (depth-- > 0)
        buf_add_str(out, depth % 2 ? "}" : ",\"]\"]");
}

typedef void (*put_field)(struct buf *out, uint64_t *random);

/* The fields in random order, with unknown ones between them. */
static void put_object(struct buf *out, uint64_t *random, const put_field *fields,
                       size_t n)
{
    unsigned todo = (1U << n) - 1;

    buf_add_char(out, '{');
    while (todo) {
        unsigned next = below(random, 3) ? 0 : below(random, (unsigned)n);

        while (!(todo & 1U << next))
            next = (next + 1) % (unsigned)n;
        todo &= ~(1U << next);
        put_space(out, random);
        fields[next](out, random);
        put_space(out, random);
        if (below(random, 10) == 0) {
            buf_add_char(out, ',');
            put_unknown(out, random);
        }
        if (todo)
            buf_add_char(out, ',');
    }
    buf_add_char(out, '}');
}

static void put_name(struct buf *out, uint64_t *random)
{
    buf_add_str(out, "\"name\":");
    put_string(out, random);
}

static void put_type(struct buf *out, uint64_t *random)
{
    static const char *const types[] = {"\"text\"", "\"\\\"W\\\"[]\"",
                                        "\"s.\\\"a\\\\b\\\"\"", "\"numeric(10,2)\""};

    buf_printf(out, "\"type\":%s", types[below(random, COUNT(types))]);
}

static void put_value(struct buf *out, uint64_t *random)
{
    buf_add_str(out, below(random, 10) ? "\"value\":" : "\"value\" : ");
    put_scalar(out, random);
}

static void put_action(struct buf *out, uint64_t *random)
{
    (void)random;
    buf_add_str(out, "\"action\":\"I\"");
}

static void put_timestamp(struct buf *out, uint64_t *random)
{
    buf_printf(out, "\"timestamp\":\"2026-11-30 09:15:02.%06u+00\"",
               below(random, 1000000));
}

static void put_schema(struct buf *out, uint64_t *random)
{
    buf_add_str(out, "\"schema\":");
    put_string(out, random);
}

static void put_table(struct buf *out, uint64_t *random)
{
    buf_add_str(out, "\"table\":");
    put_string(out, random);
}

static void put_columns(struct buf *out, uint64_t *random)
{
    static const put_field fields[] = {put_name, put_value, put_type};
    unsigned n = below(random, 12);
    size_t typed = below(random, 2);

    buf_add_str(out, "\"columns\":[");
    for (unsigned i = 0; i < n; i++) {
        if (i > 0)
            buf_add_char(out, ',');
        put_object(out, random, fields, 2 + typed);
    }
    buf_add_char(out, ']');
}

static void put_row(struct buf *out, uint64_t *random)
{
    static const put_field fields[] = {put_action, put_timestamp, put_schema, put_table,
                                       put_columns};

    put_object(out, random, fields, COUNT(fields));
}

static void generated_rows_are_read_as_jansson_reads_them(void **state)
{
    uint64_t random = 88172645463325252U;
    struct buf message;

    buf_init(&message, MAX_MESSAGE);
    for (int i = 0; i < MESSAGES; i++) {
        struct decoded d;

        buf_reset(&message);
        put_row(&message, &random);
        assert_false(message.failed);
        decoded_init(&d, *state, buf_slice(&message));
        if (!same_as_jansson(&d, buf_slice(&message), true))
            fail_msg("jansson refuses what was generated: %s", buf_str(&message));
        assert_int_equal(d.rc, 0);
        decoded_done(&d);
    }
    buf_done(&message);
}

static void generated_rows_cut_anywhere_are_refused(void **state)
{
    uint64_t random = 4101842887655102017U;
    struct buf message;

    buf_init(&message, MAX_MESSAGE);
    for (int i = 0; i < MESSAGES / 100; i++) {
        buf_reset(&message);
        put_row(&message, &random);
        for (size_t len = 0; len < message.len; len++) {
            struct decoded d;

            decoded_init(&d, *state, (struct slice){message.ptr, len});
            assert_int_equal(d.rc, -1);
            decoded_done(&d);
        }
    }
    buf_done(&message);
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
        cmocka_unit_test(generated_rows_are_read_as_jansson_reads_them),
        cmocka_unit_test(generated_rows_cut_anywhere_are_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
