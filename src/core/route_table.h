/* route_table.h - one [table] section, made ready for the rows of its table.
 *
 * The router's own; see route.h for what the rest of the program uses. */
#ifndef WALRELAY_CORE_ROUTE_TABLE_H
#define WALRELAY_CORE_ROUTE_TABLE_H

#include "base/err.h"
#include "base/slice.h"
#include "core/catalog.h"
#include "core/change.h"
#include "core/config.h"
#include "core/topic.h"

#include <stdbool.h>
#include <stddef.h>

/* A column that the settings name, once however often they name it. */
struct route_field {
    struct slice name;
    const struct catalog_column *catalog;
    bool required; /* a row without this column cannot be published */
    size_t place;  /* where the last row had it: a hint */

    /* of the row at hand */
    const struct column *column; /* NULL: the row has no such column */
    struct slice value;          /* ready for Kafka */
};

/* A header in the making; the fields of a table never move. */
struct route_header {
    struct slice name;
    const struct route_field *field;
};

struct route_table {
    const struct table_settings *settings;
    const struct catalog_table *catalog;
    char *name; /* schema.table as SQL writes it */
    size_t name_len;
    struct topic_template topic;
    const struct route_field **topic_fields; /* one a part of topic; NULL for text */
    struct route_field *fields;
    size_t nfields;
    struct route_header *headers; /* in the order in which a record has them */
    size_t nheaders;

    /* into fields; NULL: not set */
    struct route_field *key;
    struct route_field *payload;
    struct route_field *id;
    struct route_field *type;
    struct route_field *aggregate_id;
    struct route_field *partition;
    struct route_field *timestamp;
};

/* Borrows both.  0, or -1 with err set as by router_new; ret needs route_table_done
 * only after 0. */
int route_table_init(struct route_table *ret, const struct table_settings *settings,
                     const struct catalog_table *catalog, struct err *err)
    __attribute__((warn_unused_result));
/* Could a row that has these columns lie in a partition or child of the table that is
 * younger than the catalog? */
bool route_table_may_own(const struct route_table *table, const struct change *row);

void route_table_done(struct route_table *table);

#endif
