/* encoding.h - from the database's encoding to UTF-8.
 *
 * wal2json writes the database's encoding; client_encoding has no effect on it. */
#ifndef WALRELAY_CORE_ENCODING_H
#define WALRELAY_CORE_ENCODING_H

#include "base/err.h"
#include "base/slice.h"
#include "core/change.h"

enum encoding_kind {
    ENCODING_UTF8,        /* they are UTF-8 */
    ENCODING_SINGLE_BYTE, /* each byte stands for to_utf8[byte] */
    ENCODING_UNKNOWN,     /* SQL_ASCII: accepted while each value is valid UTF-8 */
};

struct encoding {
    enum encoding_kind kind;
    char name[32];        /* the server's name for it */
    char to_utf8[256][5]; /* NUL-terminated; "" for a byte that the encoding lacks.
                           * Asked from the server (convert_from), not from tables here */
};

/* ENCODING_SINGLE_BYTE: *ret becomes a new block with the UTF-8 of bytes; one byte
 * beyond ret->len is readable.  -1 with err set: ERR_POISON for a byte that the encoding
 * lacks, ERR_INTERNAL without memory. */
int encoding_convert(const struct encoding *encoding, struct slice bytes,
                     struct frame *ret, struct err *err)
    __attribute__((warn_unused_result));

#endif
