/* wal2json.c - see wal2json.h.
 *
 * A message is one JSON object.  What wal2json 2.5 writes (format 2):
 *
 *   B, C   {"action":"B","timestamp":"2026-11-30 09:15:02.114523+00"}
 *   I      {"action":"I","timestamp":…,"schema":"public","table":"outbox_events",
 *           "columns":[{"name":"id","type":"bigint","value":1},…]}
 *   U, D   the same with "columns" and/or "identity", two arrays of columns
 *   T      the same without columns
 *   M {"action":"M","timestamp":…|null,"transactional":true,"prefix":"…","content":"…"}
 *
 * "timestamp", "schema" and "type" depend on the options of the stream, as do fields
 * that are skipped here: xid, lsn, nextlsn, origin, pk; in a column typeoid, optional,
 * position.  Fields may come in any order; the usual one is the fastest.
 *
 * Strings are written by escape_json: \" \\ \b \f \n \r \t and \u00XX for the other
 * control characters.  A value is a string, null, true, false, or the bare text of a
 * number, which is kept to the digit.  One construct is not JSON: see read_type. */
#include "core/wal2json.h"

#include "core/jsonscan.h"
#include "core/timestamp.h"

#include <stdbool.h>
#include <stdlib.h>

enum {
    MAX_COLUMNS = 1664, /* MaxTupleAttributeNumber */
    MAX_TIMESTAMP = 40, /* "294276-12-31 23:59:59.999999+15:59:59 BC" */
};

struct wal2json {
    /* All messages of a transaction carry the same timestamp: it is parsed once. */
    struct slice timestamp; /* lies in timestamp_text; absent before the first */
    char timestamp_text[MAX_TIMESTAMP];
    int64_t timestamp_us;
    struct column columns[MAX_COLUMNS];
};

/* The message as far as it has been read. */
struct event {
    char action;
    bool has_time;
    int64_t commit_us;
    struct slice schema;
    struct slice table;
    size_t ncolumns;
    unsigned seen; /* a bit for each key */
};

enum key {
    KEY_OTHER,
    KEY_ACTION,
    KEY_TIMESTAMP,
    KEY_SCHEMA,
    KEY_TABLE,
    KEY_COLUMNS,
    KEY_OLD_COLUMNS, /* "identity" and "pk" */
    KEY_NAME,
    KEY_TYPE,
    KEY_VALUE,
    KEY_NONE, /* there is none; jsonscan_fail() was called */
};

/* ---- type names --------------------------------------------------------------- */

/* One part of a type name in SQL's spelling, quoted or plain; NULL if there is none. */
static char *name_end(char *p, char *end)
{
    char *start = p;

    if (p < end && *p == '"') {
        for (p++; (p = memchr(p, '"', (size_t)(end - p))) != NULL; p += 2) {
            if (p + 1 == end || p[1] != '"')
                return p + 1;
        }
        return NULL;
    }
    while (p < end && ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_'))
        p++;
    return p > start ? p : NULL;
}

/* The end of a type name in SQL's spelling that begins with a quoted part:
 * "part"[.part][(modifier)], with what follows it in a column; NULL if this is none. */
static char *sql_type_end(char *p, char *end)
{
    p = name_end(p, end);
    if (p && p < end && *p == '.')
        p = name_end(p + 1, end);
    if (p && p < end && *p == '(') {
        while (p < end && *p != ')' && *p != '"')
            p++;
        p = p < end && *p == ')' ? p + 1 : NULL;
    }
    if (!p || end - p < 2)
        return NULL;
    if (p[0] == ',' && p[1] == '"')
        return p;
    return p[0] == '}' && p[-2] != '\\' ? p : NULL;
}

/* format_type() quotes a name that needs it.  wal2json takes these quotes for those of
 * the string and writes the name as it is, unless it is an array's: "we""ird" for the
 * type we"ird, "My Schema".domain, "a\b".  In what escape_json wrote, each quote inside
 * stands behind a backslash, so `,"` cannot follow one: what reads as SQL up to there
 * is SQL. */
static bool read_type(struct jsonscan *c, struct slice *ret)
{
    char *start;
    char *p;

    jsonscan_skip_space(c);
    start = c->p;
    if (c->p == c->end || *c->p != '"')
        return jsonscan_fail(c, "no type where one belongs");
    p = jsonscan_find_special(start + 1, c->end);
    if (c->end - p >= 2 && *p == '"' && p[1] != '"' && p[1] != '.' && p[1] != '(') {
        *ret = (struct slice){start + 1, (size_t)(p - start - 1)};
        c->p = p + 1;
        return true;
    }
    p = sql_type_end(start, c->end);
    if (!p)
        return jsonscan_string(c, ret);
    c->p = p;
    *ret = p[-1] == '"' ? (struct slice){start + 1, (size_t)(p - start - 2)}
                        : (struct slice){start, (size_t)(p - start)};
    return true;
}

/* ---- columns ------------------------------------------------------------------ */

static bool once(struct jsonscan *c, unsigned *seen, enum key key)
{
    unsigned bit = 1U << key;

    if (*seen & bit)
        return jsonscan_fail(c, "the same field twice");
    *seen |= bit;
    return true;
}

static bool has(unsigned seen, enum key key)
{
    return (seen & 1U << key) != 0;
}

struct known_key {
    struct slice name;
    enum key key;
};

#define KNOWN(name, key)                                                                 \
    {                                                                                    \
        {name, sizeof(name) - 1}, key                                                    \
    }

/* A field name, however it is spelled, and its colon. */
static enum key spelled_key(struct jsonscan *c, const struct known_key *known, size_t n)
{
    struct slice name;

    if (!jsonscan_key(c, &name))
        return KEY_NONE;
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(name, known[i].name))
            return known[i].key;
    }
    return KEY_OTHER;
}

/* Just as wal2json spells it. */
#define TAKE_KEY(c, name) JSONSCAN_TAKE(c, "\"" name "\":")

static enum key column_key(struct jsonscan *c)
{
    static const struct known_key known[] = {
        KNOWN("name", KEY_NAME),
        KNOWN("type", KEY_TYPE),
        KNOWN("value", KEY_VALUE),
    };

    if (TAKE_KEY(c, "name"))
        return KEY_NAME;
    if (TAKE_KEY(c, "value"))
        return KEY_VALUE;
    if (TAKE_KEY(c, "type"))
        return KEY_TYPE;
    return spelled_key(c, known, sizeof(known) / sizeof(known[0]));
}

static bool read_column_field(struct jsonscan *c, struct column *column, unsigned *seen)
{
    enum key key = column_key(c);

    switch (key) {
    case KEY_NAME:
        return once(c, seen, key) && jsonscan_string(c, &column->name);
    case KEY_TYPE:
        return once(c, seen, key) && read_type(c, &column->type);
    case KEY_VALUE:
        return once(c, seen, key) && jsonscan_scalar(c, &column->value);
    case KEY_OTHER:
        return jsonscan_skip(c);
    default:
        return false;
    }
}

/* {"name":…,"value":… is how a column begins in a stream without types: as much of it as
 * is there. */
static bool read_usual_fields(struct jsonscan *c, struct column *column, unsigned *seen)
{
    if (!jsonscan_string(c, &column->name))
        return false;
    *seen = 1U << KEY_NAME;
    if (!JSONSCAN_TAKE(c, ",\"value\":"))
        return true;
    *seen |= 1U << KEY_VALUE;
    return jsonscan_scalar(c, &column->value);
}

static bool read_column(struct jsonscan *c, struct column *column, unsigned *seen)
{
    *column = (struct column){{0}, {0}, {0}};
    *seen = 0;
    if (JSONSCAN_TAKE(c, "{\"name\":")) {
        if (!read_usual_fields(c, column, seen))
            return false;
    } else if (!jsonscan_take(c, '{') || !read_column_field(c, column, seen)) {
        return jsonscan_fail(c, "no column where one belongs");
    }
    while (jsonscan_take(c, ',')) {
        if (!read_column_field(c, column, seen))
            return false;
    }
    if (!jsonscan_take(c, '}'))
        return jsonscan_fail(c, "no comma between the fields of a column");
    return true;
}

static bool read_columns(struct wal2json *decoder, struct jsonscan *c, size_t *n)
{
    unsigned seen;

    *n = 0;
    if (!jsonscan_take(c, '['))
        return jsonscan_fail(c, "no array of columns");
    if (jsonscan_take(c, ']'))
        return true;
    do {
        if (*n == MAX_COLUMNS)
            return jsonscan_fail(c, "more columns than a table can have");
        if (!read_column(c, &decoder->columns[*n], &seen))
            return false;
        if (!has(seen, KEY_NAME) || !has(seen, KEY_VALUE))
            return jsonscan_fail(c, "a column without name or value");
        (*n)++;
    } while (jsonscan_take(c, ','));
    if (!jsonscan_take(c, ']'))
        return jsonscan_fail(c, "no comma between two columns");
    return true;
}

/* The values that identify the old row of an update or delete, and the primary key:
 * read as columns, for the sake of their types. */
static bool skip_columns(struct jsonscan *c)
{
    struct column unused;
    unsigned seen;

    if (!jsonscan_take(c, '['))
        return jsonscan_fail(c, "no array of columns");
    if (jsonscan_take(c, ']'))
        return true;
    do {
        if (!read_column(c, &unused, &seen))
            return false;
    } while (jsonscan_take(c, ','));
    if (!jsonscan_take(c, ']'))
        return jsonscan_fail(c, "no comma between two columns");
    return true;
}

/* ---- the message -------------------------------------------------------------- */

static enum key event_key(struct jsonscan *c)
{
    static const struct known_key known[] = {
        KNOWN("action", KEY_ACTION),   KNOWN("timestamp", KEY_TIMESTAMP),
        KNOWN("schema", KEY_SCHEMA),   KNOWN("table", KEY_TABLE),
        KNOWN("columns", KEY_COLUMNS), KNOWN("identity", KEY_OLD_COLUMNS),
        KNOWN("pk", KEY_OLD_COLUMNS),
    };

    if (TAKE_KEY(c, "action"))
        return KEY_ACTION;
    if (TAKE_KEY(c, "timestamp"))
        return KEY_TIMESTAMP;
    if (TAKE_KEY(c, "schema"))
        return KEY_SCHEMA;
    if (TAKE_KEY(c, "table"))
        return KEY_TABLE;
    if (TAKE_KEY(c, "columns"))
        return KEY_COLUMNS;
    return spelled_key(c, known, sizeof(known) / sizeof(known[0]));
}

static bool read_action(struct jsonscan *c, char *ret)
{
    struct slice text;

    if (!jsonscan_string(c, &text))
        return false;
    if (text.len != 1)
        return jsonscan_fail(c, "an action that is not one letter");
    *ret = text.ptr[0];
    return true;
}

/* null: a message outside any transaction. */
static bool read_timestamp(struct wal2json *decoder, struct jsonscan *c,
                           struct event *event)
{
    struct slice text;
    int64_t us;

    if (!jsonscan_scalar(c, &text))
        return false;
    if (!text.ptr)
        return true;
    if (!slice_eq(text, decoder->timestamp)) {
        if (text.len > MAX_TIMESTAMP || !timestamp_parse(text, &us))
            return jsonscan_fail(c, "a timestamp that is none");
        memcpy(decoder->timestamp_text, text.ptr, text.len);
        decoder->timestamp = (struct slice){decoder->timestamp_text, text.len};
        decoder->timestamp_us = us;
    }
    event->commit_us = decoder->timestamp_us;
    event->has_time = true;
    return true;
}

static bool read_field(struct wal2json *decoder, struct jsonscan *c, struct event *event)
{
    enum key key = event_key(c);

    if (key == KEY_NONE)
        return false;
    if (key == KEY_OTHER)
        return jsonscan_skip(c);
    if (key == KEY_OLD_COLUMNS)
        return skip_columns(c);
    if (!once(c, &event->seen, key))
        return false;
    switch (key) {
    case KEY_ACTION:
        return read_action(c, &event->action);
    case KEY_TIMESTAMP:
        return read_timestamp(decoder, c, event);
    case KEY_SCHEMA:
        return jsonscan_string(c, &event->schema);
    case KEY_TABLE:
        return jsonscan_string(c, &event->table);
    default:
        return read_columns(decoder, c, &event->ncolumns);
    }
}

static bool read_event(struct wal2json *decoder, struct jsonscan *c, struct event *event)
{
    if (!jsonscan_take(c, '{'))
        return jsonscan_fail(c, "no object");
    do {
        if (!read_field(decoder, c, event))
            return false;
    } while (jsonscan_take(c, ','));
    if (!jsonscan_take(c, '}'))
        return jsonscan_fail(c, "no comma between two fields");
    jsonscan_skip_space(c);
    if (c->p != c->end)
        return jsonscan_fail(c, "bytes behind its end");
    return true;
}

/* An action nobody has heard of might be a row: it is an error, never ignored. */
static bool kind_of(struct jsonscan *c, const struct event *event, enum change_kind *ret)
{
    switch (event->action) {
    case 'B':
        *ret = CHANGE_BEGIN;
        return true;
    case 'C':
        *ret = CHANGE_COMMIT;
        return true;
    case 'M':
        *ret = CHANGE_MESSAGE;
        return true;
    case 'U':
    case 'D':
    case 'T':
        *ret = CHANGE_IGNORED;
        return true;
    case 'I':
        if (!has(event->seen, KEY_SCHEMA) || !has(event->seen, KEY_TABLE) ||
            !has(event->seen, KEY_COLUMNS))
            return jsonscan_fail(c, "an insert without schema, table or columns");
        *ret = CHANGE_INSERT;
        return true;
    case '\0':
        return jsonscan_fail(c, "no action");
    default:
        return jsonscan_fail(c, "an unknown action");
    }
}

struct wal2json *wal2json_new(void)
{
    struct wal2json *decoder = malloc(sizeof(*decoder));

    if (decoder)
        decoder->timestamp = (struct slice){0};
    return decoder;
}

void wal2json_free(struct wal2json *decoder)
{
    free(decoder);
}

int wal2json_decode(struct wal2json *decoder, char *bytes, size_t len, struct change *ret,
                    struct err *err)
{
    struct jsonscan c = {bytes, bytes + len, NULL};
    struct event event = {0};
    enum change_kind kind;

    if (!read_event(decoder, &c, &event) || !kind_of(&c, &event, &kind))
        return err_set(
            err, ERR_POISON,
            "a message of %zu bytes is not what wal2json 2.5 writes in format 2: "
            "%s, before byte %zu; is the plugin newer than this relay?",
            len, c.wrong, (size_t)(c.p - bytes));
    ret->kind = kind;
    ret->schema = kind == CHANGE_INSERT ? event.schema : (struct slice){0};
    ret->table = kind == CHANGE_INSERT ? event.table : (struct slice){0};
    ret->columns = kind == CHANGE_INSERT ? decoder->columns : NULL;
    ret->ncolumns = kind == CHANGE_INSERT ? event.ncolumns : 0;
    if (event.has_time)
        ret->commit_us = event.commit_us;
    return 0;
}
