#include "app/probe.h"
#include "core/mapped.h"
#include "core/nearest.h"
#include "core/route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table itself ---------------------------------------------------------- */

/* Always one row; without such a table all but the first column are NULL. */
const char table_query[] =
    "SELECT format('%I.%I', $1::text, $2::text), c.oid, c.relkind, c.relpersistence"
    " FROM (SELECT) one LEFT JOIN (pg_class c JOIN pg_namespace n"
    " ON n.oid = c.relnamespace) ON n.nspname = $1 AND c.relname = $2";

enum table_column { TABLE_NAME, TABLE_OID, TABLE_KIND, TABLE_PERSISTENCE };

/* Names as SQL writes them, so that a difference in case is seen in the quotes. */
static const char all_tables_query[] =
    "SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN pg_namespace n"
    " ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p')"
    " AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
    " AND n.nspname !~ '^pg_(toast|temp)'";

static int fail_missing(struct check *check, const char *name, struct err *err)
{
    struct pg_result *tables = pg_query(check->pg, all_tables_query, 0, NULL, err);
    size_t n = tables ? (size_t)pg_rows(tables) : 0;
    const char **names = calloc(n ? n : 1, sizeof(*names));
    const char *nearest = NULL;

    for (size_t i = 0; names && i < n; i++)
        names[i] = pg_value(tables, (int)i, 0);
    if (names)
        nearest = nearest_name(name, names, n);
    (void)err_set(err, ERR_CONFIG,
                  "table %s does not exist in this database%s%s; walrelay setup prints "
                  "the statement that makes it",
                  name, nearest ? ", the nearest name is " : "", nearest ? nearest : "");
    free(names);
    pg_result_free(tables);
    return -1;
}

static int fail_kind(const char *name, char kind, struct err *err)
{
    const char *what = "no table";

    if (kind == 'v')
        what = "a view";
    else if (kind == 'm')
        what = "a materialized view";
    else if (kind == 'f')
        what = "a foreign table";
    else if (kind == 'S')
        what = "a sequence";
    return err_set(err, ERR_CONFIG,
                   "%s is %s; its rows are not in this server's WAL: name the table that "
                   "the rows are inserted into",
                   name, what);
}

/* Only rows of permanent tables are written to the WAL. */
static int judge_persistence(const char *name, char persistence, struct err *err)
{
    if (persistence == 'u')
        return err_set(err, ERR_CONFIG,
                       "table %s is UNLOGGED, its rows are never in the WAL: ALTER TABLE "
                       "%s SET LOGGED",
                       name, name);
    if (persistence == 't')
        return err_set(err, ERR_CONFIG,
                       "table %s is TEMPORARY, its rows are never in the WAL: make it an "
                       "ordinary table",
                       name);
    return 0;
}

int verdict_table(struct check *check, const struct pg_result *found, struct err *err)
{
    const char *name = pg_value(found, 0, TABLE_NAME);
    const char *oid = pg_value(found, 0, TABLE_OID);
    char kind;

    (void)snprintf(check->table_name, sizeof(check->table_name), "%s", name);
    if (!oid)
        return fail_missing(check, name, err);
    (void)snprintf(check->table_oid, sizeof(check->table_oid), "%s", oid);
    kind = *pg_value(found, 0, TABLE_KIND);
    if (kind != 'r' && kind != 'p')
        return fail_kind(name, kind, err);
    if (kind == 'p')
        check_note(check, "partitioned");
    return judge_persistence(name, *pg_value(found, 0, TABLE_PERSISTENCE), err);
}

/* ---- its columns --------------------------------------------------------------- */

/* base: the type below all domains.  altered: the row of pg_attribute is not older
 * than the oldest catalog state that the slot may still need.  ALTER TABLE ... TYPE
 * writes a new one, so then the backlog may hold rows of both types.  (A negative age
 * is that of a frozen row after a wraparound.) */
const char columns_query[] =
    "SELECT a.attname, format_type(a.atttypid, a.atttypmod),"
    " a.atttypid = 'pg_catalog.bytea'::regtype, format_type(base.oid, NULL),"
    " coalesce(age(a.xmin) BETWEEN 0 AND age(s.catalog_xmin), false)"
    " FROM pg_attribute a LEFT JOIN pg_replication_slots s ON s.slot_name = $2,"
    " LATERAL (WITH RECURSIVE below(oid, next) AS ("
    "SELECT t.oid, t.typbasetype FROM pg_type t WHERE t.oid = a.atttypid"
    " UNION ALL SELECT t.oid, t.typbasetype FROM pg_type t JOIN below"
    " ON t.oid = below.next) SELECT oid FROM below WHERE next = 0) base"
    " WHERE a.attrelid = $1::oid AND a.attnum > 0 AND NOT a.attisdropped"
    " ORDER BY a.attnum";

enum columns_column {
    COLUMNS_NAME,
    COLUMNS_TYPE,
    COLUMNS_IS_BYTEA,
    COLUMNS_BASE,
    COLUMNS_ALTERED,
};

static bool same(const char *setting, const char *column)
{
    return setting && strcmp(setting, column) == 0;
}

static bool is_one_of(const char *type, const char *a, const char *b, const char *c)
{
    return strcmp(type, a) == 0 || strcmp(type, b) == 0 || strcmp(type, c) == 0;
}

static int judge_type(const struct check *check, const struct mapped *mapped,
                      const char *column, const char *base, struct err *err)
{
    const struct table_settings *table = check_table(check);
    const char *want = NULL;

    if (same(table->partition, column) &&
        !is_one_of(base, "smallint", "integer", "bigint"))
        want = "the partition needs smallint, integer or bigint";
    if (same(table->timestamp, column) &&
        !is_one_of(base, "timestamp with time zone", "timestamp without time zone",
                   "bigint"))
        want = "the timestamp needs timestamp with or without time zone, or bigint "
               "(milliseconds since 1970)";
    if (mapped_in_topic(mapped, column) && strcmp(base, "bytea") == 0)
        want = "the name of a topic needs text";
    if (!want)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "column %s of table %s is %s, but %s: set another column in section "
                   "[table %s], or ALTER TABLE %s ALTER COLUMN … TYPE …",
                   column, check->table_name, base, want, check->table_name,
                   check->table_name);
}

static enum column_class class_of(const struct pg_result *found, int row)
{
    if (pg_is_true(found, row, COLUMNS_IS_BYTEA))
        return COLUMN_BYTEA;
    if (strcmp(pg_value(found, row, COLUMNS_BASE), "bytea") == 0)
        return COLUMN_BYTEA_DOMAIN;
    return COLUMN_TEXT;
}

static int add_column(struct check *check, const struct mapped *mapped,
                      const struct pg_result *found, int row, struct err *err)
{
    struct catalog_table *table = check_catalog(check);
    struct catalog_column *column = &table->columns[table->ncolumns++];
    const char *name = pg_value(found, row, COLUMNS_NAME);

    column->name = strdup(name);
    column->type = strdup(pg_value(found, row, COLUMNS_TYPE));
    column->class = class_of(found, row);
    if (!column->name || !column->type)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (!mapped_has(mapped, name))
        return 0;
    if (column->class != COLUMN_TEXT || pg_is_true(found, row, COLUMNS_ALTERED))
        check->server->types_needed = true;
    return judge_type(check, mapped, name, pg_value(found, row, COLUMNS_BASE), err);
}

int verdict_columns(struct check *check, const struct pg_result *found, struct err *err)
{
    struct catalog_table *table = check_catalog(check);
    int n = pg_rows(found);
    struct mapped mapped;
    int rc = 0;

    if (mapped_init(&mapped, check_table(check), err) < 0)
        return -1;
    table->columns = calloc(n > 0 ? (size_t)n : 1, sizeof(*table->columns));
    if (!table->columns)
        rc = err_set(err, ERR_INTERNAL, "out of memory");
    for (int i = 0; rc == 0 && i < n; i++)
        rc = add_column(check, &mapped, found, i, err);
    mapped_done(&mapped);
    check_note(check, "%d", n);
    return rc;
}

/* ---- where its rows are -------------------------------------------------------- */

/* The table and all partitions or children below it that can hold rows. */
const char leaves_query[] =
    "WITH RECURSIVE tree(oid) AS (SELECT $1::oid UNION"
    " SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid)"
    " SELECT n.nspname, c.relname, c.relkind, c.relpersistence,"
    " format('%I.%I', n.nspname, c.relname) FROM tree JOIN pg_class c USING (oid)"
    " JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind <> 'p'"
    " ORDER BY 1, 2";

enum leaves_column {
    LEAVES_SCHEMA,
    LEAVES_NAME,
    LEAVES_KIND,
    LEAVES_PERSISTENCE,
    LEAVES_SQL_NAME,
};

static int add_leaf(struct check *check, const struct pg_result *found, int row,
                    struct err *err)
{
    struct catalog_table *table = check_catalog(check);
    struct catalog_leaf *leaf = &table->leaves[table->nleaves++];
    const char *sql_name = pg_value(found, row, LEAVES_SQL_NAME);

    leaf->schema = strdup(pg_value(found, row, LEAVES_SCHEMA));
    leaf->name = strdup(pg_value(found, row, LEAVES_NAME));
    if (!leaf->schema || !leaf->name)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (*pg_value(found, row, LEAVES_KIND) != 'r')
        return fail_kind(sql_name, *pg_value(found, row, LEAVES_KIND), err);
    return judge_persistence(sql_name, *pg_value(found, row, LEAVES_PERSISTENCE), err);
}

static int add_schema(struct catalog_table *table, const char *schema, struct err *err)
{
    char *copy;

    for (size_t i = 0; i < table->nschemas; i++) {
        if (same(table->schemas[i], schema))
            return 0;
    }
    copy = strdup(schema);
    if (!copy)
        return err_set(err, ERR_INTERNAL, "out of memory");
    table->schemas[table->nschemas++] = copy;
    return 0;
}

static bool is_ordinary(const struct table_settings *settings,
                        const struct catalog_table *table)
{
    return table->nleaves == 1 && strcmp(table->leaves[0].name, settings->name) == 0 &&
           strcmp(table->leaves[0].schema, settings->schema) == 0;
}

/* Where the table's next partitions may be expected: beside it and beside the others. */
static int add_schemas(struct check *check, struct err *err)
{
    const struct table_settings *settings = check_table(check);
    struct catalog_table *table = check_catalog(check);

    if (is_ordinary(settings, table))
        return 0;
    table->schemas = calloc(table->nleaves + 1, sizeof(*table->schemas));
    if (!table->schemas)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (add_schema(table, settings->schema, err) < 0)
        return -1;
    for (size_t i = 0; i < table->nleaves; i++) {
        if (add_schema(table, table->leaves[i].schema, err) < 0)
            return -1;
    }
    return 0;
}

int verdict_leaves(struct check *check, const struct pg_result *found, struct err *err)
{
    struct catalog_table *table = check_catalog(check);
    int n = pg_rows(found);

    table->leaves = calloc(n > 0 ? (size_t)n : 1, sizeof(*table->leaves));
    if (!table->leaves)
        return err_set(err, ERR_INTERNAL, "out of memory");
    for (int i = 0; i < n; i++) {
        if (add_leaf(check, found, i, err) < 0)
            return -1;
    }
    check_note(check, "%d table%s", n, n == 1 ? "" : "s");
    if (n == 0)
        server_warn(check->server, "table %s is partitioned and has no partition yet",
                    check->table_name);
    return add_schemas(check, err);
}

/* ---- all tables together ------------------------------------------------------- */

static bool share_a_leaf(const struct catalog_table *a, const struct catalog_table *b,
                         const struct catalog_leaf **ret)
{
    for (size_t i = 0; i < a->nleaves; i++) {
        for (size_t k = 0; k < b->nleaves; k++) {
            if (strcmp(a->leaves[i].schema, b->leaves[k].schema) == 0 &&
                strcmp(a->leaves[i].name, b->leaves[k].name) == 0) {
                *ret = &a->leaves[i];
                return true;
            }
        }
    }
    return false;
}

/* A row has one table section, not two. */
static int judge_overlap(const struct check *check, struct err *err)
{
    const struct catalog *catalog = check->server->catalog;
    const struct table_settings *tables = check->config->tables;
    const struct catalog_leaf *leaf;

    for (size_t i = 0; i < catalog->ntables; i++) {
        for (size_t k = i + 1; k < catalog->ntables; k++) {
            if (share_a_leaf(&catalog->tables[i], &catalog->tables[k], &leaf))
                return err_set(err, ERR_CONFIG,
                               "the rows of %s.%s belong to two sections, [table %s.%s] "
                               "and [table %s.%s]: remove one of them",
                               leaf->schema, leaf->name, tables[i].schema, tables[i].name,
                               tables[k].schema, tables[k].name);
        }
    }
    return 0;
}

int verdict_settings(struct check *check, const struct pg_result *found, struct err *err)
{
    struct router_options options = {.typed = check->server->types_needed};
    struct router *router;

    (void)found;
    router = router_new(check->config, check->server->catalog, options, err);
    router_free(router);
    check_note(check, "rows come %s types", options.typed ? "with their" : "without");
    return router ? judge_overlap(check, err) : -1;
}
