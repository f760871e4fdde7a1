#include "core/catalog.h"

#include <stdlib.h>
#include <string.h>

static void table_done(struct catalog_table *table)
{
    for (size_t i = 0; i < table->ncolumns; i++) {
        free(table->columns[i].name);
        free(table->columns[i].type);
    }
    for (size_t i = 0; i < table->nleaves; i++) {
        free(table->leaves[i].schema);
        free(table->leaves[i].name);
    }
    for (size_t i = 0; i < table->nschemas; i++)
        free(table->schemas[i]);
    free(table->columns);
    free(table->leaves);
    free(table->schemas);
}

void catalog_free(struct catalog *catalog)
{
    if (!catalog)
        return;
    for (size_t i = 0; i < catalog->ntables; i++)
        table_done(&catalog->tables[i]);
    free(catalog->tables);
    free(catalog);
}

static bool is_asked(const struct catalog_table *asked, const struct catalog_leaf *leaf)
{
    for (size_t i = 0; i < asked->nschemas; i++) {
        if (strcmp(asked->schemas[i], leaf->schema) == 0)
            return true;
    }
    for (size_t i = 0; i < asked->nleaves; i++) {
        if (strcmp(asked->leaves[i].schema, leaf->schema) == 0 &&
            strcmp(asked->leaves[i].name, leaf->name) == 0)
            return true;
    }
    return false;
}

const struct catalog_leaf *catalog_unasked(const struct catalog *asked,
                                           const struct catalog *now)
{
    for (size_t i = 0; i < now->ntables; i++) {
        for (size_t k = 0; k < now->tables[i].nleaves; k++) {
            if (!is_asked(&asked->tables[i], &now->tables[i].leaves[k]))
                return &now->tables[i].leaves[k];
        }
    }
    return NULL;
}
