#include "core/start_replication.h"

#include <inttypes.h>
#include <string.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || (unsigned char)c >= 0x80;
}

/* A string literal of the replication grammar knows '' and no backslashes; bytes beyond
 * ASCII stay together, so that the server can convert them. */
static void add_name(struct buf *out, const char *name)
{
    for (; *name; name++) {
        if (!is_word(*name))
            buf_add_char(out, '\\');
        if (*name == '\'')
            buf_add_char(out, '\'');
        buf_add_char(out, *name);
    }
}

/* name NULL: all tables of the schema. */
static void add_table(struct buf *out, const char **separator, const char *schema,
                      const char *name)
{
    buf_add_str(out, *separator);
    *separator = ",";
    add_name(out, schema);
    buf_add_char(out, '.');
    if (name)
        add_name(out, name);
    else
        buf_add_char(out, '*');
}

/* The filter decides for the life of the stream, and a row that it drops is gone when
 * the position has moved past it.  So where a partition may be made meanwhile, nothing
 * is filtered. */
static void add_tables(struct buf *out, const struct catalog *catalog)
{
    const char *separator = "";

    for (size_t i = 0; i < catalog->ntables; i++) {
        const struct catalog_table *table = &catalog->tables[i];

        for (size_t k = 0; k < table->nschemas; k++)
            add_table(out, &separator, table->schemas[k], NULL);
        for (size_t k = 0; table->nschemas == 0 && k < table->nleaves; k++)
            add_table(out, &separator, table->leaves[k].schema, table->leaves[k].name);
    }
}

/* Of a schema that is streamed as a whole, the table of dead letters is left out: what
 * the relay writes need not come back to it. */
static void add_filter(struct buf *out, const struct catalog *catalog)
{
    const char *separator = ", \"filter-tables\" '";

    for (size_t i = 0; i < catalog->ntables; i++) {
        for (size_t k = 0; k < catalog->tables[i].nschemas; k++) {
            if (strcmp(catalog->tables[i].schemas[k], catalog->dead_letters_schema) ==
                0) {
                add_table(out, &separator, catalog->dead_letters_schema,
                          DEAD_LETTERS_TABLE);
                buf_add_char(out, '\'');
                return;
            }
        }
    }
}

void start_replication(struct buf *out, const char *slot, lsn_t start,
                       const struct catalog *catalog, bool typed)
{
    buf_add_str(out, "START_REPLICATION SLOT \"");
    for (; *slot; slot++) {
        if (*slot == '"')
            buf_add_char(out, '"');
        buf_add_char(out, *slot);
    }
    buf_printf(out,
               "\" LOGICAL %" LSN_FMT " (\"format-version\" '2', \"actions\" 'insert', "
               "\"include-timestamp\" 'true', \"include-types\" '%s', \"add-tables\" '",
               LSN_ARG(start), typed ? "true" : "false");
    add_tables(out, catalog);
    buf_add_char(out, '\'');
    add_filter(out, catalog);
    buf_add_char(out, ')');
}
