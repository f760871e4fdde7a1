/* pg_error.h - what PostgreSQL's and libpq's words mean; knows no libpq. */
#ifndef WALRELAY_IO_PG_ERROR_H
#define WALRELAY_IO_PG_ERROR_H

#include "base/err.h"

/* Fills err from the text of a connection that failed, as PQerrorMessage gives it with
 * PQERRORS_VERBOSE: one "connection to server at ... failed: " for each host and
 * attempt, the server's words with the SQLSTATE ("FATAL:  28P01: ...").  A failure
 * that ends the relay is one that every host gave: a single host that was merely away
 * makes it ERR_RETRY.  connection says which one it was.  Returns -1. */
int pg_fail_connect(const char *connection, const char *text, struct err *err);

/* What mends a failure of an SQLSTATE (may be NULL), as the end of a sentence; empty
 * where the server's own words say it. */
const char *pg_cure_of(const char *sqlstate, const char *message);

#endif
