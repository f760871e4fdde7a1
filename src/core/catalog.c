#include "core/catalog.h"

#include <stdlib.h>

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
    free(table->columns);
    free(table->leaves);
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
