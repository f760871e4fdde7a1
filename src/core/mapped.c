#include "core/mapped.h"

#include <stdlib.h>

static bool has(const struct mapped *mapped, size_t n, struct slice column)
{
    for (size_t i = 0; i < n; i++) {
        if (slice_eq(mapped->columns[i], column))
            return true;
    }
    return false;
}

/* Absent: the setting is not used. */
static void add(struct mapped *mapped, struct slice column)
{
    if (column.ptr && !has(mapped, mapped->n, column))
        mapped->columns[mapped->n++] = column;
}

static void add_settings(struct mapped *mapped, const struct table_settings *table)
{
    add(mapped, slice_of(table->key));
    add(mapped, slice_of(table->payload));
    add(mapped, slice_of(table->id.column));
    add(mapped, slice_of(table->type.column));
    add(mapped, slice_of(table->aggregate_id));
    add(mapped, slice_of(table->partition));
    add(mapped, slice_of(table->timestamp));
    for (size_t i = 0; i < table->nheaders; i++)
        add(mapped, slice_of(table->headers[i].column));
}

int mapped_init(struct mapped *mapped, const struct table_settings *table,
                struct err *err)
{
    struct mapped made = {0};

    if (topic_parse(table->topic, &made.topic, err) < 0)
        return -1;
    made.columns = calloc(made.topic.nparts + 7 + table->nheaders, sizeof(*made.columns));
    if (!made.columns) {
        topic_done(&made.topic);
        return err_set(err, ERR_INTERNAL, "out of memory");
    }
    for (size_t i = 0; i < made.topic.nparts; i++) {
        if (made.topic.parts[i].is_column)
            add(&made, made.topic.parts[i].text);
    }
    made.ntopic = made.n;
    add_settings(&made, table);
    *mapped = made;
    return 0;
}

void mapped_done(struct mapped *mapped)
{
    topic_done(&mapped->topic);
    free(mapped->columns);
    *mapped = (struct mapped){0};
}

bool mapped_has(const struct mapped *mapped, const char *column)
{
    return has(mapped, mapped->n, slice_of(column));
}

bool mapped_in_topic(const struct mapped *mapped, const char *column)
{
    return has(mapped, mapped->ntopic, slice_of(column));
}
