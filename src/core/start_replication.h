/* start_replication.h - the command that opens the stream. */
#ifndef WALRELAY_CORE_START_REPLICATION_H
#define WALRELAY_CORE_START_REPLICATION_H

#include "base/buf.h"
#include "base/lsn.h"
#include "core/catalog.h"

/* START_REPLICATION SLOT ... LOGICAL start (options of wal2json): format 2, inserts
 * only, of the leaves of catalog's tables (of all tables in the schemas of one that may
 * get more leaves, but for that of dead letters), with commit timestamps, with types if
 * typed. Option names need quotes in the grammar of the command, and every special
 * character of a table's name a backslash (string_to_SelectTable in wal2json.c). */
void start_replication(struct buf *out, const char *slot, lsn_t start,
                       const struct catalog *catalog, bool typed);

#endif
