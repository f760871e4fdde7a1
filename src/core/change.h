/* change.h - what every source produces. */
#ifndef WALRELAY_CORE_CHANGE_H
#define WALRELAY_CORE_CHANGE_H

#include "base/lsn.h"
#include "base/slice.h"

#include <stddef.h>
#include <stdint.h>

enum change_kind {
    CHANGE_BEGIN,   /* a transaction that committed; its changes follow */
    CHANGE_INSERT,  /* a row was inserted into a table */
    CHANGE_COMMIT,  /* end of that transaction */
    CHANGE_MESSAGE, /* pg_logical_emit_message; also between transactions */
    CHANGE_IGNORED, /* an update, delete or truncate; nothing to publish */
    CHANGE_IDLE,    /* the source has read up to lsn and found nothing more */
};

/* One column of an inserted row. */
struct column {
    struct slice name;  /* as in pg_attribute */
    struct slice value; /* PostgreSQL's text form, decoded from the stream's quoting;
                         * absent for SQL NULL, and for NaN and infinities of number
                         * columns, which wal2json cannot tell from NULL */
    struct slice type;  /* absent unless the stream carries types */
};

/* Memory that a change borrows from: one malloc'ed block, freed with free(). */
struct frame {
    char *bytes;
    size_t len;
};

/* All slices borrow from frame, which may be written to and belongs to the source;
 * columns belongs to the decoder.  Both live until the next change is asked for. */
struct change {
    enum change_kind kind;
    lsn_t lsn;       /* BEGIN: first record of the transaction; INSERT: the row's record;
                      * COMMIT: end of the commit record; IDLE: end of what was read */
    uint32_t number; /* INSERT: 1, 2, ... among the rows of its record, see place.h */
    int64_t commit_us;   /* BEGIN, INSERT, COMMIT: commit time, microseconds since 1970 */
    int64_t sent_us;     /* the server's clock when it sent this, the same unit */
    struct slice schema; /* INSERT */
    struct slice table;  /* INSERT */
    const struct column *columns; /* INSERT */
    size_t ncolumns;
    struct frame frame;
};

#endif
