/* setup_slot.h - making the slot, which may have to wait for old transactions. */
#ifndef WALRELAY_APP_SETUP_SLOT_H
#define WALRELAY_APP_SETUP_SLOT_H

#include "base/err.h"
#include "io/pg.h"

#include <stdbool.h>
#include <stdio.h>

/* Runs script (sql/slot.sql, filled in) on a connection of its own to dsn.  After 3 s,
 * and then twice a minute, a line on out says which transactions it waits for; pg is
 * used to ask.  SIGINT and SIGTERM end the wait.  *made: there was no such slot before.
 * -1 with err set: no half of a slot is left behind. */
int setup_slot(struct pg *pg, const char *dsn, const char *script, FILE *out, bool *made,
               struct err *err) __attribute__((warn_unused_result));

#endif
