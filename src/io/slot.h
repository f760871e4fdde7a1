/* slot.h - the source that reads a logical replication slot through wal2json. */
#ifndef WALRELAY_IO_SLOT_H
#define WALRELAY_IO_SLOT_H

#include "base/err.h"
#include "base/lsn.h"
#include "core/catalog.h"
#include "core/encoding.h"
#include "io/pg.h"
#include "io/source.h"

struct slot_options {
    const char *name;
    lsn_t start;              /* LSN_NONE: where the slot stands */
    bool typed;               /* ask for column types */
    int64_t answer_within_ms; /* or the stream fails: the server is wedged */
    const struct catalog *catalog;
    const struct encoding *encoding; /* borrowed for the source's life */
};

/* Asks pg, a replication connection which the source takes (also on failure), to stream.
 * NULL with err set.  That the server refuses comes later, from source_next. */
struct source *slot_open(struct pg *pg, const struct slot_options *options,
                         int64_t now_ms, struct err *err)
    __attribute__((warn_unused_result));

#endif
