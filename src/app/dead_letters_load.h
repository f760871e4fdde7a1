/* dead_letters_load.h - what the table of dead letters holds, before a stream begins. */
#ifndef WALRELAY_APP_DEAD_LETTERS_LOAD_H
#define WALRELAY_APP_DEAD_LETTERS_LOAD_H

#include "base/err.h"
#include "core/config.h"
#include "core/held.h"
#include "io/pg.h"

/* Fills held with the rows of the configured slot that are unresolved or that a stream
 * from start brings again.  Blocks.  -1 with err set: held is not to be used. */
int letters_load(struct pg *pg, const struct config *config, lsn_t start,
                 struct held *held, struct err *err) __attribute__((warn_unused_result));

#endif
