/* memo_row.h - the row of public.walrelay_state: reading and writing core/memo.h. */
#ifndef WALRELAY_APP_MEMO_ROW_H
#define WALRELAY_APP_MEMO_ROW_H

#include "core/config.h"
#include "core/memo.h"
#include "io/job.h"
#include "io/pg.h"

/* Reads the row of slot; memo->system_id is empty if there is none.  -1 with err set.
 * Waits 2 s for a lock, not longer. */
int memo_row_read(struct pg *pg, const char *slot, struct memo *ret, struct err *err)
    __attribute__((warn_unused_result));

/* One line about how many rows the outbox tables have of those that transactions wrote
 * that began after the memo was written; that they cannot be counted, if so. */
void memo_row_count(struct pg *pg, const struct config *config, char *text, size_t size);

/* A writer, with a connection of its own. */
struct memo_writer {
    struct pg *pg;
    const struct config *config;
    struct memo memo; /* to be written */
    struct err err;   /* ERR_NONE: it was */
};

/* Writes memo in a job.  NULL with err set if there is no thread for it. */
struct job *memo_row_write(struct memo_writer *writer, const struct memo *memo,
                           struct err *err) __attribute__((warn_unused_result));
void memo_writer_done(struct memo_writer *writer);

#endif
