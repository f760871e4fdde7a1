#include "core/dead_letter.h"

#include "base/must.h"
#include "base/utf8.h"

#include <inttypes.h>

/* The columns that are written, and what becomes of a row's parameter, a text unless it
 * is bytes. */
static const struct {
    const char *column;
    const char *expression; /* of v.column; NULL: as it is */
    bool is_bytes;
} columns[] = {
    {"row_lsn", "v.row_lsn::pg_lsn", false},
    {"row_number", "v.row_number::int", false},
    {"committed_at", "'epoch'::timestamptz + v.committed_at::bigint * interval '1 us'",
     false},
    {"begin_lsn", "v.begin_lsn::pg_lsn", false},
    {"commit_lsn", "v.commit_lsn::pg_lsn", false},
    {"outbox_table", NULL, false},
    {"event_id", NULL, false},
    {"event_type", NULL, false},
    {"aggregate_type", NULL, false},
    {"aggregate_id", NULL, false},
    {"topic", NULL, false},
    {"key", NULL, true},
    {"payload", NULL, true},
    {"header_names", "v.header_names::text[]", false},
    {"header_values", "v.header_values::bytea[]", false},
    {"partition", "v.partition::int", false},
    {"record_time", "'epoch'::timestamptz + v.record_time::bigint * interval '1 ms'",
     false},
    {"given_time", NULL, false},
    {"reason", NULL, false},
    {"error_code", NULL, false},
    {"error", NULL, false},
    {"attempts", "v.attempts::int", false},
    {"retry_after", "now() + v.retry_after::bigint * interval '1 ms'", false},
    {"state", NULL, false},
};

_Static_assert(sizeof(columns) / sizeof(columns[0]) == DEAD_LETTER_PARAMS,
               "a parameter for each column");

/* ---- the statement --------------------------------------------------------------- */

static void add_columns(struct buf *sql)
{
    for (size_t i = 0; i < DEAD_LETTER_PARAMS; i++)
        buf_printf(sql, ", %s", columns[i].column);
}

static void add_row(struct buf *sql, size_t row)
{
    size_t first = DEAD_LETTER_FIRST + row * DEAD_LETTER_PARAMS;

    buf_printf(sql, "%s(%zu", row > 0 ? ", " : "", row);
    for (size_t i = 0; i < DEAD_LETTER_PARAMS; i++)
        buf_printf(sql, ", $%zu::%s", first + i, columns[i].is_bytes ? "bytea" : "text");
    buf_add_char(sql, ')');
}

static void add_expressions(struct buf *sql)
{
    for (size_t i = 0; i < DEAD_LETTER_PARAMS; i++) {
        if (columns[i].expression)
            buf_printf(sql, ", %s", columns[i].expression);
        else
            buf_printf(sql, ", v.%s", columns[i].column);
    }
}

void dead_letter_insert(struct buf *sql, const char *table, size_t n)
{
    must(n > 0);
    buf_add_str(sql, DEAD_LETTER_OURS "v (place");
    add_columns(sql);
    buf_add_str(sql, ") AS (VALUES ");
    for (size_t row = 0; row < n; row++)
        add_row(sql, row);
    buf_printf(sql, "), done AS (INSERT INTO %s AS d (slot", table);
    add_columns(sql);
    buf_add_str(sql, ") SELECT $1::text");
    add_expressions(sql);
    buf_add_str(sql, " FROM v, ours ORDER BY place ON CONFLICT"
                     " (slot, row_lsn, row_number, committed_at) DO UPDATE"
                     " SET commit_lsn = excluded.commit_lsn"
                     " WHERE d.commit_lsn IS NULL AND excluded.commit_lsn IS NOT NULL)"
                     " SELECT EXISTS (SELECT FROM ours)");
}

/* ---- the parameters -------------------------------------------------------------- */

/* Parameters in the order of the columns. */
struct binder {
    struct buf *text;
    struct dead_letter_param *next;
};

static void bind_null(struct binder *binder)
{
    *binder->next++ = (struct dead_letter_param){0};
}

/* Ends the text that begins at start. */
static void bind_made(struct binder *binder, size_t start)
{
    *binder->next++ = (struct dead_letter_param){
        .value = {NULL, binder->text->len - start}, .made = true, .from = start};
    buf_add_char(binder->text, '\0');
}

static void bind_number(struct binder *binder, int64_t n)
{
    size_t start = binder->text->len;

    buf_printf(binder->text, "%" PRId64, n);
    bind_made(binder, start);
}

static void bind_lsn(struct binder *binder, lsn_t lsn)
{
    size_t start = binder->text->len;

    buf_printf(binder->text, "%" LSN_FMT, LSN_ARG(lsn));
    bind_made(binder, start);
}

static void add_hex(struct buf *text, struct slice bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        buf_printf(text, "%02x", (unsigned)(unsigned char)bytes.ptr[i]);
}

/* What is no text of PostgreSQL becomes \x and digits: the column of an event's id may
 * be a bytea. */
static void bind_text(struct binder *binder, struct slice value)
{
    size_t start = binder->text->len;

    if (!value.ptr) {
        bind_null(binder);
        return;
    }
    if (utf8_valid(value) && !memchr(value.ptr, '\0', value.len)) {
        buf_add(binder->text, value);
    } else {
        buf_add_str(binder->text, "\\x");
        add_hex(binder->text, value);
    }
    bind_made(binder, start);
}

static void bind_bytes(struct binder *binder, struct slice value)
{
    *binder->next++ = (struct dead_letter_param){.value = value, .binary = true};
}

/* An array's element in quotes. */
static void add_element(struct buf *text, struct slice value)
{
    buf_add_char(text, '"');
    for (size_t i = 0; i < value.len; i++) {
        if (value.ptr[i] == '"' || value.ptr[i] == '\\')
            buf_add_char(text, '\\');
        buf_add_char(text, value.ptr[i]);
    }
    buf_add_char(text, '"');
}

static void bind_headers(struct binder *binder, const struct message *m)
{
    size_t start = binder->text->len;

    for (size_t i = 0; i < m->nheaders; i++) {
        buf_add_char(binder->text, i > 0 ? ',' : '{');
        add_element(binder->text, m->headers[i].name);
    }
    buf_add_str(binder->text, m->nheaders > 0 ? "}" : "{}");
    bind_made(binder, start);
    start = binder->text->len;
    for (size_t i = 0; i < m->nheaders; i++) {
        buf_add_str(binder->text, i > 0 ? ",\"\\\\x" : "{\"\\\\x");
        add_hex(binder->text, m->headers[i].value);
        buf_add_char(binder->text, '"');
    }
    buf_add_str(binder->text, m->nheaders > 0 ? "}" : "{}");
    bind_made(binder, start);
}

static void bind_place(struct binder *binder, const struct dead_letter *letter)
{
    bind_lsn(binder, letter->place.lsn);
    bind_number(binder, letter->place.number);
    bind_number(binder, letter->place.commit_us);
    bind_lsn(binder, letter->begin);
    if (letter->end == LSN_NONE)
        bind_null(binder);
    else
        bind_lsn(binder, letter->end);
}

static void bind_message(struct binder *binder, const struct dead_letter *letter)
{
    const struct message *m = letter->message;

    bind_text(binder, m->table);
    bind_text(binder, m->event_id);
    bind_text(binder, m->event_type);
    bind_text(binder, letter->aggregate_type);
    bind_text(binder, m->aggregate_id);
    bind_text(binder, m->topic);
    bind_bytes(binder, m->key);
    bind_bytes(binder, m->payload);
    bind_headers(binder, m);
    if (m->partition == PARTITION_ANY)
        bind_null(binder);
    else
        bind_number(binder, m->partition);
    if (m->given_timestamp.ptr)
        bind_number(binder, m->timestamp_ms);
    else
        bind_null(binder);
    bind_text(binder, m->given_timestamp);
}

static void bind_failure(struct binder *binder, const struct dead_letter *letter)
{
    bind_text(binder, letter->reason);
    bind_text(binder, letter->error_code);
    bind_text(binder, letter->error);
    bind_number(binder, letter->attempts);
    if (letter->held || letter->dead)
        bind_null(binder);
    else
        bind_number(binder, letter->retry_ms);
    bind_text(binder, slice_of(letter->held   ? "held"
                               : letter->dead ? "dead"
                                              : "waiting"));
}

/* Now that text does not move any more. */
static void settle(const struct buf *text, struct dead_letter_param *params, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (params[i].made)
            params[i].value.ptr = text->ptr + params[i].from;
    }
}

bool dead_letter_bind(const struct dead_letter *letters, size_t n, struct buf *text,
                      struct dead_letter_param *params)
{
    for (size_t row = 0; row < n && !text->failed; row++) {
        struct binder binder = {text, params + row * DEAD_LETTER_PARAMS};

        bind_place(&binder, &letters[row]);
        bind_message(&binder, &letters[row]);
        bind_failure(&binder, &letters[row]);
        must(binder.next == params + (row + 1) * DEAD_LETTER_PARAMS);
    }
    if (text->failed)
        return false;
    settle(text, params, n * DEAD_LETTER_PARAMS);
    return true;
}
