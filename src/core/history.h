/* history.h - may the ledger's position be used on this server? */
#ifndef WALRELAY_CORE_HISTORY_H
#define WALRELAY_CORE_HISTORY_H

#include "base/lsn.h"

#include <stdint.h>

/* What IDENTIFY_SYSTEM answers. */
struct history {
    char system_id[24];
    uint32_t timeline; /* 0: not known yet */
    lsn_t wal_end;
};

/* Where to start streaming: flushed, what the ledger has reached on the server `then`, or
 * LSN_NONE for where the slot stands.  flushed counts only on the same system and
 * timeline, and not above the end of that server's WAL: PostgreSQL accepts any start
 * position without an error and silently skips what commits below it. */
lsn_t history_start(const struct history *then, const struct history *now, lsn_t flushed);

#endif
