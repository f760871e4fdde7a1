#include "oracle.h"

#include "base/must.h"

#include <jansson.h>

#include <stdio.h>
#include <stdlib.h>

enum { MAX_LINE = 65536 };

static void assert_inside(const struct decoded *d, struct slice s)
{
    if (!s.ptr)
        return;
    assert_true(s.ptr >= d->bytes && s.ptr <= d->bytes + d->len);
    assert_true(s.len <= (size_t)(d->bytes + d->len - s.ptr));
}

void decoded_init(struct decoded *d, struct wal2json *decoder, struct slice message)
{
    *d = (struct decoded){.len = message.len};
    d->bytes = malloc(message.len ? message.len : 1);
    assert_non_null(d->bytes);
    memcpy(d->bytes, message.ptr, message.len);
    d->rc = wal2json_decode(decoder, d->bytes, d->len, &d->change, &d->err);
    assert_true((d->rc == 0) == (d->err.class == ERR_NONE));
    assert_inside(d, d->change.schema);
    assert_inside(d, d->change.table);
    for (size_t i = 0; i < d->change.ncolumns; i++) {
        assert_inside(d, d->change.columns[i].name);
        assert_inside(d, d->change.columns[i].value);
        assert_inside(d, d->change.columns[i].type);
    }
}

void decoded_done(struct decoded *d)
{
    free(d->bytes);
}

static void assert_string(struct slice got, const json_t *want, struct slice message)
{
    struct slice wanted = {json_string_value(want), json_string_length(want)};

    if (!slice_eq(got, wanted))
        fail_msg("got \"%.*s\", jansson \"%.*s\", in %.*s", SLICE_ARG(got),
                 SLICE_ARG(wanted), SLICE_ARG(message));
}

/* jansson gives no text of a number: its value must be the same, and the text is the
 * message's own. */
static void assert_number(const struct decoded *d, struct slice got, const json_t *want,
                          struct slice message)
{
    char text[512];
    size_t at = (size_t)(got.ptr - d->bytes);

    assert_non_null(got.ptr);
    assert_true(got.len < sizeof(text));
    assert_memory_equal(got.ptr, message.ptr + at, got.len);
    memcpy(text, got.ptr, got.len);
    text[got.len] = '\0';
    assert_true(strtod(text, NULL) == json_real_value(want));
}

static void assert_value(const struct decoded *d, struct slice got, const json_t *want,
                         struct slice message)
{
    if (json_is_string(want))
        assert_string(got, want, message);
    else if (json_is_null(want))
        assert_null(got.ptr);
    else if (json_is_boolean(want))
        assert_true(slice_eq(got, slice_of(json_is_true(want) ? "true" : "false")));
    else
        assert_number(d, got, want, message);
}

static enum change_kind kind_of(const json_t *root)
{
    switch (json_string_value(json_object_get(root, "action"))[0]) {
    case 'B':
        return CHANGE_BEGIN;
    case 'C':
        return CHANGE_COMMIT;
    case 'I':
        return CHANGE_INSERT;
    case 'M':
        return CHANGE_MESSAGE;
    default:
        return CHANGE_IGNORED;
    }
}

static void assert_same(const struct decoded *d, const json_t *root, struct slice message)
{
    const json_t *columns = json_object_get(root, "columns");

    assert_int_equal(d->change.kind, kind_of(root));
    if (d->change.kind != CHANGE_INSERT) {
        assert_int_equal(d->change.ncolumns, 0);
        return;
    }
    assert_string(d->change.schema, json_object_get(root, "schema"), message);
    assert_string(d->change.table, json_object_get(root, "table"), message);
    assert_int_equal(d->change.ncolumns, json_array_size(columns));
    for (size_t i = 0; i < d->change.ncolumns; i++) {
        const struct column *column = &d->change.columns[i];
        const json_t *want = json_array_get(columns, i);

        assert_string(column->name, json_object_get(want, "name"), message);
        assert_string(column->type, json_object_get(want, "type"), message);
        assert_value(d, column->value, json_object_get(want, "value"), message);
    }
}

bool same_as_jansson(const struct decoded *d, struct slice message, bool must_decode)
{
    json_t *root = json_loadb(message.ptr, message.len, JSON_DECODE_INT_AS_REAL, NULL);

    if (!root)
        return false;
    if (must_decode && d->rc != 0)
        fail_msg("%s: %.*s", d->err.text, SLICE_ARG(message));
    if (d->rc == 0)
        assert_same(d, root, message);
    json_decref(root);
    return true;
}

void for_each_line(const char *file, void (*each)(struct slice line, void *context),
                   void *context)
{
    char path[1024];
    char *line = malloc(MAX_LINE);
    FILE *stream;

    (void)snprintf(path, sizeof(path), "%s/%s", WALRELAY_DECODE_DIR, file);
    stream = fopen(path, "r");
    assert_non_null(line);
    assert_non_null(stream);
    while (fgets(line, MAX_LINE, stream)) {
        size_t len = strlen(line);

        must(len > 0 && line[len - 1] == '\n');
        each((struct slice){line, len - 1}, context);
    }
    (void)fclose(stream);
    free(line);
}
