/* route_fixture.h - tables and rows for tests of the router. */
#ifndef WALRELAY_TESTS_ROUTE_FIXTURE_H
#define WALRELAY_TESTS_ROUTE_FIXTURE_H

#include "core/route.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A string that may be written to, as the configuration's are. */
#define STR(literal)                                                                     \
    (char[])                                                                             \
    {                                                                                    \
        literal                                                                          \
    }

#define NOW_MS    INT64_C(1796030102500) /* 2026-11-30 09:15:02.5 UTC */
#define COMMIT_US (INT64_C(1796030102114) * 1000 + 523)

/* ---- a row -------------------------------------------------------------------- */

struct row {
    struct change change;
    struct column columns[24];
    char *at; /* in the frame */
};

static inline struct slice row_store(struct row *row, const char *bytes, size_t len)
{
    struct slice ret = {row->at, len};

    assert_true(len <=
                row->change.frame.len - (size_t)(row->at - row->change.frame.bytes));
    memcpy(row->at, bytes, len);
    row->at += len;
    return ret;
}

static inline void row_init(struct row *row, const char *schema, const char *table)
{
    enum { ROOM = 3 << 20 };

    *row = (struct row){.change = {.kind = CHANGE_INSERT,
                                   .lsn = 0x1600000A8,
                                   .number = 1,
                                   .commit_us = COMMIT_US,
                                   .frame = {malloc(ROOM), ROOM}}};
    assert_non_null(row->change.frame.bytes);
    row->at = row->change.frame.bytes;
    row->change.schema = row_store(row, schema, strlen(schema));
    row->change.table = row_store(row, table, strlen(table));
    row->change.columns = row->columns;
}

static inline void row_done(struct row *row)
{
    free(row->change.frame.bytes);
}

/* value NULL: SQL NULL; type NULL: the stream has no types. */
static inline void row_add_bytes(struct row *row, const char *name, const char *value,
                                 size_t len, const char *type)
{
    struct column *c = &row->columns[row->change.ncolumns++];

    assert_true(row->change.ncolumns <= COUNT(row->columns));
    *c = (struct column){.name = row_store(row, name, strlen(name))};
    if (value)
        c->value = row_store(row, value, len);
    if (type)
        c->type = row_store(row, type, strlen(type));
}

static inline void row_add(struct row *row, const char *name, const char *value)
{
    row_add_bytes(row, name, value, value ? strlen(value) : 0, NULL);
}

static inline void row_add_typed(struct row *row, const char *name, const char *value,
                                 const char *type)
{
    row_add_bytes(row, name, value, value ? strlen(value) : 0, type);
}

/* A row of the default table, without types. */
static inline void default_row(struct row *row, const char *payload)
{
    row_init(row, "public", "outbox_events");
    row_add(row, "id", "6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10");
    row_add(row, "aggregate_type", "order");
    row_add(row, "aggregate_id", "42");
    row_add(row, "event_type", "OrderPlaced");
    row_add(row, "payload", payload);
    row_add(row, "attempts", "0");
    row_add(row, "created_at", "2026-11-30 09:15:02.114523+00");
    row_add(row, "processed_at", NULL);
}

/* Another value for the column called name. */
static inline void row_set(struct row *row, const char *name, const char *value)
{
    for (size_t i = 0; i < row->change.ncolumns; i++) {
        struct column *c = &row->columns[i];

        if (slice_eq(c->name, slice_of(name)))
            c->value =
                value ? row_store(row, value, strlen(value)) : (struct slice){NULL, 0};
    }
}

/* ---- a table, its settings and its router --------------------------------------- */

struct bench {
    struct table_settings settings;
    struct config config;
    struct catalog_column columns[24];
    struct catalog_leaf leaf;
    struct catalog_table table;
    struct catalog catalog;
    struct router_options options;
    struct router *router;
    struct message message;
    struct err err;
};

static inline void bench_add_column(struct bench *b, char *name, char *type,
                                    enum column_class class)
{
    assert_true(b->table.ncolumns < COUNT(b->columns));
    b->columns[b->table.ncolumns++] = (struct catalog_column){name, type, class};
}

static char *default_columns[][2] = {
    {STR("id"), STR("uuid")},
    {STR("aggregate_type"), STR("text")},
    {STR("aggregate_id"), STR("text")},
    {STR("event_type"), STR("text")},
    {STR("payload"), STR("jsonb")},
    {STR("attempts"), STR("integer")},
    {STR("created_at"), STR("timestamp with time zone")},
    {STR("processed_at"), STR("timestamp with time zone")},
};

/* The relay's own default table and settings. */
static inline void bench_init(struct bench *b)
{
    static char schema[] = "public", name[] = "outbox_events";
    static char topic[] = "outbox.event.{aggregate_type}";
    static char id[] = "id", type[] = "type";

    *b = (struct bench){.settings = {.schema = schema,
                                     .name = name,
                                     .line = 7,
                                     .topic = topic,
                                     .key = default_columns[2][0],
                                     .payload = default_columns[4][0],
                                     .id = {default_columns[0][0], id},
                                     .type = {default_columns[3][0], type}},
                        .leaf = {schema, name}};
    for (size_t i = 0; i < COUNT(default_columns); i++)
        bench_add_column(b, default_columns[i][0], default_columns[i][1], COLUMN_TEXT);
    b->table.columns = b->columns;
    b->table.leaves = &b->leaf;
    b->table.nleaves = 1;
    b->catalog = (struct catalog){.tables = &b->table, .ntables = 1};
    b->config.tables = &b->settings;
    b->config.ntables = 1;
}

static inline void bench_start(struct bench *b)
{
    b->router = router_new(&b->config, &b->catalog, b->options, &b->err);
    if (!b->router)
        fail_msg("%s", b->err.text);
}

static inline void bench_done(struct bench *b)
{
    router_free(b->router);
}

static inline enum route_verdict route(struct bench *b, struct row *row)
{
    err_clear(&b->err);
    memset(&b->message, 0xA5, sizeof(b->message)); /* nothing is left unset */
    return router_message(b->router, &row->change, NOW_MS, &b->message, &b->err);
}

/* ---- what came out --------------------------------------------------------------- */

#define assert_bytes(slice, literal) assert_slice(slice, literal, sizeof(literal) - 1)

static inline void assert_slice(struct slice got, const char *bytes, size_t len)
{
    assert_non_null(got.ptr);
    assert_int_equal(got.len, len);
    assert_memory_equal(got.ptr, bytes, len);
}

/* "id=1 type=created", for a list of headers without spaces. */
static inline void assert_headers(const struct message *m, const char *expected)
{
    char text[4096] = "";
    size_t len = 0;

    for (size_t i = 0; i < m->nheaders; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%.*s=%.*s",
                                i > 0 ? " " : "", SLICE_ARG(m->headers[i].name),
                                SLICE_ARG(m->headers[i].value));
    assert_string_equal(text, expected);
}

#endif
