#include "core/value.h"

#include "base/hex.h"

static const size_t prefix_len = 2; /* of \x */

static bool has_prefix(const char *bytes, size_t len)
{
    return len >= prefix_len && bytes[0] == '\\' && bytes[1] == 'x';
}

/* \x and nothing but digits. */
static bool prefixed_hex(struct slice value)
{
    return has_prefix(value.ptr, value.len) &&
           hex_valid((struct slice){value.ptr + prefix_len, value.len - prefix_len});
}

/* The types whose own values may begin with \x, as format_type() writes them:
 * "character" and "character varying" have a length behind them. */
static bool is_text_type(struct slice type)
{
    const struct slice character = slice_of("character");

    return slice_eq(type, slice_of("text")) || slice_eq(type, slice_of("name")) ||
           slice_eq(type, slice_of("\"char\"")) ||
           (type.len >= character.len &&
            memcmp(type.ptr, character.ptr, character.len) == 0);
}

static enum value_kind typed_kind(const struct column *column,
                                  const struct catalog_column *catalog)
{
    if (slice_eq(column->type, slice_of("bytea")))
        return VALUE_HEX;
    if (slice_eq(column->type, slice_of(catalog->type)))
        return catalog->class == COLUMN_BYTEA_DOMAIN ? VALUE_PREFIXED_HEX : VALUE_TEXT;
    if (!column->type.ptr)
        return VALUE_UNKNOWN;
    /* The column was altered after the row was written.  Its type then may have been
     * a domain over bytea that nobody can ask about any more. */
    if (prefixed_hex(column->value) && !is_text_type(column->type))
        return VALUE_UNKNOWN;
    return VALUE_TEXT;
}

enum value_kind value_kind(const struct column *column,
                           const struct catalog_column *catalog, bool typed)
{
    if (typed)
        return typed_kind(column, catalog);
    return catalog->class == COLUMN_TEXT ? VALUE_TEXT : VALUE_UNKNOWN;
}

bool value_ambiguous(struct slice value)
{
    return value.len > 0 && (hex_valid(value) || prefixed_hex(value));
}

bool value_read(enum value_kind kind, char *bytes, size_t len, struct slice *ret)
{
    if (kind == VALUE_PREFIXED_HEX) {
        if (!has_prefix(bytes, len))
            return false;
        bytes += prefix_len;
        len -= prefix_len;
    }
    if (kind != VALUE_TEXT) {
        if (!hex_decode(bytes, len))
            return false;
        len /= 2;
    }
    *ret = (struct slice){bytes, len};
    return true;
}
