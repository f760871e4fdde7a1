/* sqlscript.h - as much of psql as the files of sql/ need.
 *
 * The variables :"name" and :'name', statements that end with a semicolon at the end
 * of a line, and queries that end with a line \gexec: each value of their result is
 * a statement.  Not more: neither quotes nor comments are looked at. */
#ifndef WALRELAY_APP_SQLSCRIPT_H
#define WALRELAY_APP_SQLSCRIPT_H

#include "base/buf.h"
#include "base/err.h"
#include "io/pg.h"

struct sql_variable {
    const char *name;
    const char *value;
};

/* Appends the script with its variables filled in, without the lines that give
 * variables their defaults (\if \else \endif \set).  variables ends with a NULL name.
 * -1 with err set without memory or for a variable that is not among them. */
int sqlscript_fill(struct buf *out, const char *script,
                   const struct sql_variable *variables, struct err *err)
    __attribute__((warn_unused_result));

/* Runs a script that has been filled in.  *changes grows by the statements that \gexec
 * ran and by the rows that other statements returned.  -1 with err set by the first
 * statement that fails; those before it have been run. */
int sqlscript_run(struct pg *pg, const char *script, int *changes, struct err *err)
    __attribute__((warn_unused_result));

#endif
