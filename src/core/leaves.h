/* leaves.h - which section a row's table belongs to. */
#ifndef WALRELAY_CORE_LEAVES_H
#define WALRELAY_CORE_LEAVES_H

#include "base/slice.h"
#include "core/catalog.h"

#include <stddef.h>

/* A table that holds rows, and the section (the index of its table in the catalog). */
struct leaf {
    struct slice schema;
    struct slice name;
    const struct catalog_leaf *catalog;
    size_t section;
};

struct leaves {
    struct leaf *all; /* sorted by name and schema */
    size_t n;
    const struct leaf *last; /* found last: rows come in runs */
};

/* All leaves of catalog, which is borrowed.  0, or -1 without memory. */
int leaves_init(struct leaves *leaves, const struct catalog *catalog)
    __attribute__((warn_unused_result));
void leaves_done(struct leaves *leaves);

/* NULL: no section has that table. */
const struct leaf *leaves_find(struct leaves *leaves, struct slice schema,
                               struct slice name);

/* The first of two leaves, side by side, that are one table in two sections; NULL: none.
 */
const struct leaf *leaves_duplicate(const struct leaves *leaves);

#endif
