/* wal2json.h - one message of wal2json's format 2 to a change.
 *
 * One pass, in place: strings are unescaped where they lie, so slices borrow from
 * the message.  No length and no quoting is trusted.  The grammar is what wal2json
 * 2.5 writes (pg_decode_*_v2 in wal2json.c), which is JSON but for one construct;
 * see wal2json.c. */
#ifndef WALRELAY_CORE_WAL2JSON_H
#define WALRELAY_CORE_WAL2JSON_H

#include "base/err.h"
#include "core/change.h"

struct wal2json;

struct wal2json *wal2json_new(void); /* NULL: out of memory */
void wal2json_free(struct wal2json *decoder);

/* Reads len bytes at bytes, which it overwrites, and nothing behind them.  Sets kind,
 * schema, table, columns, ncolumns and, where the message has a timestamp, commit_us;
 * leaves the rest of *ret as it is.
 *
 * A column's type is format_type()'s text, but a name that begins and ends with a
 * quote comes without these two: wal2json takes them for the quotes of the string.
 *
 * 0, or -1 with err set (ERR_POISON: not what wal2json writes) and *ret untouched.
 * columns lives until the next call. */
int wal2json_decode(struct wal2json *decoder, char *bytes, size_t len, struct change *ret,
                    struct err *err) __attribute__((warn_unused_result));

#endif
