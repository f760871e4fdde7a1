/* value.h - what the stream says of a column to the bytes that Kafka gets. */
#ifndef WALRELAY_CORE_VALUE_H
#define WALRELAY_CORE_VALUE_H

#include "base/slice.h"
#include "core/catalog.h"
#include "core/change.h"

#include <stdbool.h>

enum value_kind {
    VALUE_TEXT,         /* the bytes are the text */
    VALUE_HEX,          /* a bytea: hexadecimal digits */
    VALUE_PREFIXED_HEX, /* of a domain over bytea: \x and the digits */
    VALUE_UNKNOWN,      /* cannot be told */
};

/* How column's value is to be read.  The row may be older than the catalog: when the
 * stream has types (typed), the row's own type decides, and the catalog only tells
 * whether a type of that name is a domain over bytea.  UNKNOWN is then a value that
 * looks like such a domain's, of a type that the catalog does not have any more.
 *
 * Without types, text and bytea look alike: VALUE_TEXT unless the catalog knows
 * otherwise, which is then VALUE_UNKNOWN. */
enum value_kind value_kind(const struct column *column,
                           const struct catalog_column *catalog, bool typed);

/* Without types: could the value be a bytea, or of a domain over bytea?  A column may
 * have been one when the row was written: pg_attribute tells today's type only. */
bool value_ambiguous(struct slice value);

/* Reads value, which lies at bytes, as kind (not UNKNOWN); hexadecimal becomes bytes
 * where it lies.  False, and *ret untouched, if it is not what kind says. */
bool value_read(enum value_kind kind, char *bytes, size_t len, struct slice *ret)
    __attribute__((warn_unused_result));

#endif
