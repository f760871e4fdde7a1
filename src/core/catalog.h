/* catalog.h - what the server says about the configured tables. */
#ifndef WALRELAY_CORE_CATALOG_H
#define WALRELAY_CORE_CATALOG_H

#include <stdbool.h>
#include <stddef.h>

/* How wal2json writes a value of the column's type.  It goes by the type's oid, so a
 * domain over bytea keeps the \x that a bytea column loses. */
enum column_class {
    COLUMN_TEXT,         /* the value is the text */
    COLUMN_BYTEA,        /* hexadecimal without \x */
    COLUMN_BYTEA_DOMAIN, /* hexadecimal with \x */
};

struct catalog_column {
    char *name;
    char *type; /* format_type(atttypid, atttypmod): as the stream writes it */
    enum column_class class;
};

/* A table that holds rows: the configured one, or a partition or child of it. */
struct catalog_leaf {
    char *schema;
    char *name;
};

/* The table of the configuration section with the same index. */
struct catalog_table {
    struct catalog_column *columns;
    size_t ncolumns;
    struct catalog_leaf *leaves;
    size_t nleaves;
};

struct catalog {
    struct catalog_table *tables;
    size_t ntables;
};

void catalog_free(struct catalog *catalog); /* NULL is allowed; frees catalog itself */

#endif
