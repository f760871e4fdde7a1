/* setup.h - `walrelay setup`: the SQL for the role, the tables and the slot that a
 * configuration needs. */
#ifndef WALRELAY_APP_SETUP_H
#define WALRELAY_APP_SETUP_H

#include "base/err.h"
#include "core/config.h"

#include <stdbool.h>
#include <stdio.h>

/* Prints the statements, or with apply runs them one by one over config's dsn and
 * says what each did.  Repeatable: what exists is left alone.  The slot comes last. */
int setup_run(const struct config *config, bool apply, FILE *out, struct err *err)
    __attribute__((warn_unused_result));

#endif
