/* identifier.h - names of tables and columns as people type them. */
#ifndef WALRELAY_CORE_IDENTIFIER_H
#define WALRELAY_CORE_IDENTIFIER_H

#include "base/err.h"

#include <stddef.h>

enum { IDENTIFIER_MAX = 63 }; /* NAMEDATALEN - 1 */

/* A name as it stands in the catalog, NUL-terminated. */
typedef char identifier_t[IDENTIFIER_MAX + 1];

/* Reads a table's name as SQL writes it: orders, public.orders, "Sales Dept"."Out box".
 * What is not quoted is folded to lower case, ASCII letters only, as PostgreSQL does
 * for UTF-8 (downcase_identifier); the schema is public when there is none.  0, or -1
 * with err set (ERR_CONFIG) and the outputs untouched. */
int identifier_table(const char *text, identifier_t schema, identifier_t name,
                     struct err *err) __attribute__((warn_unused_result));

/* Reads a column's name from *text and moves *text behind it: everything up to one of
 * the bytes in `stops` or the end, without the blanks around it, case and all; or, if it
 * begins with a double quote, a quoted SQL identifier.  Same results. */
int identifier_column(const char **text, const char *stops, identifier_t name,
                      struct err *err) __attribute__((warn_unused_result));

#endif
