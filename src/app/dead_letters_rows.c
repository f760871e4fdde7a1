#include "app/dead_letters_rows.h"

#include "base/hex.h"
#include "base/utf8.h"

#include <jansson.h>

#include <stdlib.h>
#include <string.h>

enum kind { TEXT, NUMBER, BOOLEAN, TIME, BYTES, PAYLOAD, HEADERS };

static const struct field {
    const char *name;
    enum kind kind;
} fields[] = {
    {"id", NUMBER},        {"state", TEXT},           {"attempts", NUMBER},
    {"retry_after", TIME}, {"reason", TEXT},          {"error_code", TEXT},
    {"error", TEXT},       {"first_failed_at", TIME}, {"last_failed_at", TIME},
    {"note", TEXT},        {"outbox_table", TEXT},    {"event_id", TEXT},
    {"event_type", TEXT},  {"aggregate_type", TEXT},  {"aggregate_id", TEXT},
    {"row_lsn", TEXT},     {"row_number", NUMBER},    {"committed_at", TIME},
    {"commit_lsn", TEXT},  {"topic", TEXT},           {"key", BYTES},
    {"partition", NUMBER}, {"record_time", TIME},     {"headers", HEADERS},
    {"payload", PAYLOAD},  {"replaced", BOOLEAN},     {"replacement", PAYLOAD},
};

enum { NFIELDS = sizeof(fields) / sizeof(fields[0]), CELL_MAX = 40 };

static void select_field(struct buf *sql, const struct field *field, bool payloads)
{
    switch (field->kind) {
    case TIME:
        buf_printf(sql,
                   "to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
                   field->name);
        break;
    case PAYLOAD:
        buf_add_str(sql, payloads ? field->name : "NULL");
        break;
    case HEADERS: /* values as hexadecimal digits */
        buf_add_str(sql, "(SELECT coalesce(json_agg(json_build_array(name,"
                         " encode(value, 'hex')) ORDER BY place), '[]')"
                         " FROM unnest(header_names, header_values)"
                         " WITH ORDINALITY AS header (name, value, place))");
        break;
    default:
        buf_add_str(sql, field->name);
    }
}

void letters_select(struct buf *sql, bool payloads)
{
    for (size_t i = 0; i < NFIELDS; i++) {
        buf_add_str(sql, i > 0 ? ", " : "");
        select_field(sql, &fields[i], payloads);
    }
}

static const char *value_of(const struct pg_result *rows, int row, const char *name)
{
    for (size_t i = 0; i < NFIELDS; i++) {
        if (strcmp(fields[i].name, name) == 0)
            return pg_value(rows, row, (int)i);
    }
    return NULL;
}

/* ---- bytes ---------------------------------------------------------------------- */

/* What hexadecimal digits stand for, with a NUL behind it.  False without memory.  To be
 * done with in both cases. */
static bool read_hex(const char *digits, struct buf *bytes)
{
    buf_init(bytes, strlen(digits) + 1);
    return hex_add(bytes, slice_of(digits));
}

/* Of a bytea, which the session gives as \x and digits. */
static const char *digits_of(const char *value)
{
    return value + strlen("\\x");
}

/* No byte that a terminal would obey. */
static bool is_harmless(struct slice bytes, const char *allowed)
{
    for (size_t i = 0; i < bytes.len; i++) {
        unsigned char c = (unsigned char)bytes.ptr[i];

        if ((c < 0x20 && !(c && strchr(allowed, c))) || c == 0x7f)
            return false;
    }
    return utf8_valid(bytes);
}

/* As text if it is one, else as digits. */
static void print_bytes(FILE *out, const char *digits, const char *allowed)
{
    struct buf bytes;

    if (read_hex(digits, &bytes) && is_harmless(buf_slice(&bytes), allowed))
        (void)fwrite(buf_str(&bytes), 1, bytes.len, out);
    else
        (void)fprintf(out, "\\x%s", digits);
    buf_done(&bytes);
}

static void print_text(FILE *out, const char *text)
{
    for (; *text; text++)
        (void)fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, out);
}

/* ---- lines ---------------------------------------------------------------------- */

static const char line_format[] = "%8s  %-9s  %8s  %-27s  %-*s  %-*s  %-*s  %s\n";

void letters_print_heading(FILE *out)
{
    (void)fprintf(out, line_format, "ID", "STATE", "ATTEMPTS", "RETRY AFTER",
                  CELL_MAX / 2, "TOPIC", CELL_MAX / 2, "KEY", CELL_MAX, "EVENT",
                  "REASON");
}

/* A value for one cell, harmless and not too long.  Returns cell. */
static const char *cell(char text[CELL_MAX + 4], const char *value)
{
    size_t len = value ? strlen(value) : 1;

    (void)snprintf(text, CELL_MAX + 1, "%s", value ? value : "-");
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    }
    if (len > CELL_MAX) {
        while (len > 0 && !utf8_valid((struct slice){text, strlen(text)}))
            text[strlen(text) - 1] = '\0';
        memcpy(text + strlen(text), "...", sizeof("..."));
    }
    return text;
}

static const char *key_cell(char text[CELL_MAX + 4], const char *value)
{
    struct buf bytes;

    if (!value)
        return cell(text, NULL);
    if (read_hex(digits_of(value), &bytes) && is_harmless(buf_slice(&bytes), ""))
        (void)cell(text, buf_str(&bytes));
    else
        (void)cell(text, value);
    buf_done(&bytes);
    return text;
}

void letters_print_line(FILE *out, const struct pg_result *rows, int row)
{
    char topic[CELL_MAX + 4];
    char key[CELL_MAX + 4];
    char event[CELL_MAX + 4];
    const char *after = value_of(rows, row, "retry_after");

    (void)fprintf(
        out, line_format, value_of(rows, row, "id"), value_of(rows, row, "state"),
        value_of(rows, row, "attempts"), after ? after : "-", CELL_MAX / 2,
        cell(topic, value_of(rows, row, "topic")), CELL_MAX / 2,
        key_cell(key, value_of(rows, row, "key")), CELL_MAX,
        cell(event, value_of(rows, row, "event_id")), value_of(rows, row, "reason"));
}

/* ---- all of one ----------------------------------------------------------------- */

static int out_of_memory(struct err *err)
{
    return err_set(err, ERR_INTERNAL, "out of memory for a dead letter");
}

/* Pairs of a name and digits. */
static json_t *headers_of(const char *value, struct err *err)
{
    json_t *pairs = json_loads(value, 0, NULL);

    if (!pairs)
        (void)out_of_memory(err);
    return pairs;
}

static int print_headers(FILE *out, const char *value, struct err *err)
{
    json_t *pairs = headers_of(value, err);
    json_t *pair;
    size_t i;

    if (!pairs)
        return -1;
    json_array_foreach(pairs, i, pair)
    {
        (void)fprintf(out, "%-16s ", "header");
        print_text(out, json_string_value(json_array_get(pair, 0)));
        (void)fputs(": ", out);
        print_bytes(out, json_string_value(json_array_get(pair, 1)), "");
        (void)fputc('\n', out);
    }
    json_decref(pairs);
    return 0;
}

static void print_payload(FILE *out, const char *name, const char *value)
{
    const char *digits = digits_of(value);

    (void)fprintf(out, "%-16s %zu bytes\n", name, strlen(digits) / 2);
    print_bytes(out, digits, "\n\t");
    (void)fputc('\n', out);
}

static int print_value(FILE *out, const struct field *field, const char *value,
                       struct err *err)
{
    if (!value || (field->kind == BOOLEAN && *value == 'f'))
        return 0;
    if (field->kind == HEADERS)
        return print_headers(out, value, err);
    if (field->kind == PAYLOAD) {
        print_payload(out, field->name, value);
        return 0;
    }
    (void)fprintf(out, "%-16s ", field->name);
    if (field->kind == BYTES)
        print_bytes(out, digits_of(value), "");
    else
        print_text(out, field->kind == BOOLEAN ? "yes" : value);
    (void)fputc('\n', out);
    return 0;
}

int letters_print_whole(FILE *out, const struct pg_result *rows, int row, struct err *err)
{
    for (size_t i = 0; i < NFIELDS; i++) {
        if (print_value(out, &fields[i], pg_value(rows, row, (int)i), err) < 0)
            return -1;
    }
    return 0;
}

/* ---- JSON ----------------------------------------------------------------------- */

static json_t *json_of_bytes(const char *digits)
{
    struct buf bytes;
    json_t *ret = NULL;

    if (read_hex(digits, &bytes) && utf8_valid(buf_slice(&bytes)))
        ret = json_stringn(buf_str(&bytes), bytes.len);
    else if (!bytes.failed)
        ret = json_pack("{s:s}", "hex", digits);
    buf_done(&bytes);
    return ret;
}

/* A new array of {"name": ..., "value": ...}. */
static json_t *json_of_headers(const char *value, struct err *err)
{
    json_t *pairs = headers_of(value, err);
    json_t *ret = json_array();
    json_t *pair;
    size_t i;

    json_array_foreach(pairs, i, pair)
    {
        json_t *header =
            json_pack("{s:O,s:o}", "name", json_array_get(pair, 0), "value",
                      json_of_bytes(json_string_value(json_array_get(pair, 1))));

        (void)json_array_append_new(ret, header);
    }
    json_decref(pairs);
    return ret;
}

static json_t *json_of(const struct field *field, const char *value, struct err *err)
{
    if (!value)
        return json_null();
    switch (field->kind) {
    case NUMBER:
        return json_integer(strtoll(value, NULL, 10));
    case BOOLEAN:
        return json_boolean(*value == 't');
    case BYTES:
    case PAYLOAD:
        return json_of_bytes(digits_of(value));
    case HEADERS:
        return json_of_headers(value, err);
    default:
        return json_string(value);
    }
}

int letters_print_json(FILE *out, const struct pg_result *rows, int row, struct err *err)
{
    json_t *object = json_object();
    int rc = 0;

    for (size_t i = 0; i < NFIELDS && rc == 0; i++)
        rc = json_object_set_new(object, fields[i].name,
                                 json_of(&fields[i], pg_value(rows, row, (int)i), err));
    if (rc == 0)
        rc = json_dumpf(object, out, JSON_COMPACT);
    json_decref(object);
    (void)fputc('\n', out);
    return rc == 0 ? 0 : out_of_memory(err);
}
