#include "core/route_table.h"

#include "core/nearest.h"
#include "core/sqlname.h"

#include <limits.h>
#include <stdlib.h>

static const struct catalog_column *find(const struct catalog_table *catalog,
                                         const char *name)
{
    for (size_t i = 0; i < catalog->ncolumns; i++) {
        if (strcmp(catalog->columns[i].name, name) == 0)
            return &catalog->columns[i];
    }
    return NULL;
}

static int no_column(const struct route_table *table, const char *setting,
                     const char *name, struct err *err)
{
    const char **names = calloc(table->catalog->ncolumns + 1, sizeof(*names));
    const char *nearest;
    int ret;

    if (!names)
        return err_set(err, ERR_INTERNAL, "out of memory for a list of columns");
    for (size_t i = 0; i < table->catalog->ncolumns; i++)
        names[i] = table->catalog->columns[i].name;
    nearest = nearest_name(name, names, table->catalog->ncolumns);
    ret = err_set(err, ERR_CONFIG,
                  "[table %s] (line %d), %s: the table has no column \"%s\"%s%s%s",
                  table->name, table->settings->line, setting, name,
                  nearest ? "; the nearest is \"" : "", nearest ? nearest : "",
                  nearest ? "\"" : "");
    free(names);
    return ret;
}

/* The field of the column called name, made when it is new; *ret stays NULL if name
 * is.  There is room: see init_fields. */
static int add_field(struct route_table *table, const char *setting, const char *name,
                     bool required, struct route_field **ret, struct err *err)
{
    struct route_field *field = table->fields;
    struct route_field *end = table->fields + table->nfields;

    if (!name)
        return 0;
    while (field < end && !slice_eq(field->name, slice_of(name)))
        field++;
    if (field == end) {
        const struct catalog_column *column = find(table->catalog, name);

        if (!column)
            return no_column(table, setting, name, err);
        *field = (struct route_field){.name = slice_of(column->name), .catalog = column};
        table->nfields++;
    }
    field->required |= required;
    *ret = field;
    return 0;
}

static int add_topic_field(struct route_table *table, size_t part, struct err *err)
{
    struct slice text = table->topic.parts[part].text;
    char *name = strndup(text.ptr, text.len);
    struct route_field *field = NULL;
    int ret;

    if (!name)
        return err_set(err, ERR_INTERNAL, "out of memory for a topic template");
    ret = add_field(table, "topic", name, true, &field, err);
    table->topic_fields[part] = field;
    free(name);
    return ret;
}

static int add_header(struct route_table *table, const char *setting,
                      const struct header_setting *header, bool required,
                      struct route_field **field, struct err *err)
{
    if (!header->column)
        return 0;
    if (add_field(table, setting, header->column, required, field, err) < 0)
        return -1;
    table->headers[table->nheaders++] =
        (struct route_header){slice_of(header->header), *field};
    return 0;
}

static int add_headers(struct route_table *table, struct err *err)
{
    const struct table_settings *s = table->settings;

    if (add_header(table, "id", &s->id, true, &table->id, err) < 0 ||
        add_header(table, "type", &s->type, false, &table->type, err) < 0)
        return -1;
    for (size_t i = 0; i < s->nheaders; i++) {
        struct route_field *field = NULL;

        if (add_header(table, "headers", &s->headers[i], false, &field, err) < 0)
            return -1;
    }
    return 0;
}

/* A missing timestamp column is no reason to hold an event back: the commit time
 * stands in.  A missing partition column is: the event would go elsewhere. */
static int add_columns(struct route_table *table, struct err *err)
{
    const struct table_settings *s = table->settings;

    if (add_field(table, "key", s->key, true, &table->key, err) < 0 ||
        add_field(table, "payload", s->payload, true, &table->payload, err) < 0 ||
        add_field(table, "partition", s->partition, true, &table->partition, err) < 0 ||
        add_field(table, "timestamp", s->timestamp, false, &table->timestamp, err) < 0 ||
        add_field(table, "aggregate_id", s->aggregate_id, false, &table->aggregate_id,
                  err) < 0)
        return -1;
    if (!s->aggregate_id)
        table->aggregate_id = table->key;
    return 0;
}

static int add_topic_fields(struct route_table *table, struct err *err)
{
    for (size_t i = 0; i < table->topic.nparts; i++) {
        if (table->topic.parts[i].is_column && add_topic_field(table, i, err) < 0)
            return -1;
    }
    return 0;
}

/* Room for every setting to name a column of its own, so that fields never move. */
static int init_arrays(struct route_table *table, struct err *err)
{
    enum { OTHERS = 7 }; /* key, payload, id, type, aggregate_id, partition, timestamp */
    size_t nheaders = table->settings->nheaders;

    table->fields =
        calloc(table->topic.nparts + OTHERS + nheaders, sizeof(*table->fields));
    table->topic_fields = calloc(table->topic.nparts, sizeof(struct route_field *));
    table->headers = calloc(nheaders + 2, sizeof(*table->headers));
    if (!table->fields || !table->topic_fields || !table->headers)
        return err_set(err, ERR_INTERNAL, "out of memory for a table's columns");
    return 0;
}

static int init_name(struct route_table *table, struct err *err)
{
    struct buf name;

    buf_init(&name, INT_MAX);
    sqlname_add(&name, table->settings->schema, table->settings->name);
    if (name.failed) {
        buf_done(&name);
        return err_set(err, ERR_INTERNAL, "out of memory for a table's name");
    }
    table->name = name.ptr; /* it owns the bytes now */
    table->name_len = name.len;
    return 0;
}

int route_table_init(struct route_table *ret, const struct table_settings *settings,
                     const struct catalog_table *catalog, struct err *err)
{
    *ret = (struct route_table){.settings = settings, .catalog = catalog};
    if (init_name(ret, err) < 0 || topic_parse(settings->topic, &ret->topic, err) < 0 ||
        init_arrays(ret, err) < 0 || add_topic_fields(ret, err) < 0 ||
        add_columns(ret, err) < 0 || add_headers(ret, err) < 0) {
        route_table_done(ret);
        return -1;
    }
    return 0;
}

static bool has_column(const struct change *row, struct slice name)
{
    for (size_t i = 0; i < row->ncolumns; i++) {
        if (slice_eq(row->columns[i].name, name))
            return true;
    }
    return false;
}

/* A partition has all columns of its parent. */
bool route_table_may_own(const struct route_table *table, const struct change *row)
{
    if (table->catalog->nschemas == 0)
        return false;
    for (size_t i = 0; i < table->nfields; i++) {
        if (table->fields[i].required && !has_column(row, table->fields[i].name))
            return false;
    }
    return true;
}

void route_table_done(struct route_table *table)
{
    topic_done(&table->topic);
    free(table->topic_fields);
    free(table->fields);
    free(table->headers);
    free(table->name);
    *table = (struct route_table){0};
}
