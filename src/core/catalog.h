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
    char **schemas;  /* of a partitioned table, or one with children, which may get more
                      * leaves at any time: where these are expected */
    size_t nschemas; /* 0: an ordinary table */
};

/* The table of what Kafka did not take; of no interest to the stream. */
#define DEAD_LETTERS_TABLE "walrelay_dead_letters"

struct catalog {
    struct catalog_table *tables;
    size_t ntables;
    const char *dead_letters_schema; /* borrowed from the configuration */
};

void catalog_free(struct catalog *catalog); /* NULL is allowed; frees catalog itself */

/* The first leaf in now whose rows a stream that was opened with asked does not carry:
 * neither it nor its schema was asked for.  NULL: there is none.  Both come from the
 * same configuration. */
const struct catalog_leaf *catalog_unasked(const struct catalog *asked,
                                           const struct catalog *now)
    __attribute__((warn_unused_result));

#endif
