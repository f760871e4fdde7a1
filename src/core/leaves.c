#include "core/leaves.h"

#include <stdlib.h>

static int compare_slices(struct slice a, struct slice b)
{
    int c = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);

    return c != 0 ? c : (a.len > b.len) - (a.len < b.len);
}

static int compare_leaves(const void *a, const void *b)
{
    const struct leaf *x = a;
    const struct leaf *y = b;
    int c = compare_slices(x->name, y->name);

    return c != 0 ? c : compare_slices(x->schema, y->schema);
}

static size_t count(const struct catalog *catalog)
{
    size_t n = 0;

    for (size_t i = 0; i < catalog->ntables; i++)
        n += catalog->tables[i].nleaves;
    return n;
}

static void add(struct leaves *leaves, const struct catalog_table *table, size_t section)
{
    for (size_t i = 0; i < table->nleaves; i++) {
        const struct catalog_leaf *leaf = &table->leaves[i];

        leaves->all[leaves->n++] =
            (struct leaf){slice_of(leaf->schema), slice_of(leaf->name), leaf, section};
    }
}

int leaves_init(struct leaves *leaves, const struct catalog *catalog)
{
    *leaves = (struct leaves){.all = calloc(count(catalog) + 1, sizeof(*leaves->all))};
    if (!leaves->all)
        return -1;
    for (size_t i = 0; i < catalog->ntables; i++)
        add(leaves, &catalog->tables[i], i);
    qsort(leaves->all, leaves->n, sizeof(*leaves->all), compare_leaves);
    return 0;
}

void leaves_done(struct leaves *leaves)
{
    free(leaves->all);
    *leaves = (struct leaves){0};
}

const struct leaf *leaves_find(struct leaves *leaves, struct slice schema,
                               struct slice name)
{
    struct leaf key = {.schema = schema, .name = name};
    const struct leaf *found = leaves->last;

    if (!schema.ptr || !name.ptr)
        return NULL;
    if (found && slice_eq(found->name, name) && slice_eq(found->schema, schema))
        return found;
    found = bsearch(&key, leaves->all, leaves->n, sizeof(key), compare_leaves);
    if (found)
        leaves->last = found;
    return found;
}

const struct leaf *leaves_duplicate(const struct leaves *leaves)
{
    for (size_t i = 1; i < leaves->n; i++) {
        if (compare_leaves(&leaves->all[i - 1], &leaves->all[i]) == 0)
            return &leaves->all[i - 1];
    }
    return NULL;
}
