/* pg_params.h - the parameters of a connection: the dsn's, and what is added to them. */
#ifndef WALRELAY_IO_PG_PARAMS_H
#define WALRELAY_IO_PG_PARAMS_H

#include "base/err.h"
#include "io/pg.h"

#include <stddef.h>

struct pg_conn; /* libpq's PGconn */

enum { PG_PARAMS_MAX = 96 };

/* Parallel arrays that end with NULL, as PQconnectStartParams takes them. */
struct pg_params {
    void *parsed; /* libpq's PQconninfoOption; owns what the arrays point to */
    const char *names[PG_PARAMS_MAX + 1];
    const char *values[PG_PARAMS_MAX + 1];
    size_t n;
};

/* As pg_connect says.  -1 with err set if libpq cannot read dsn. */
int pg_params_init(struct pg_params *params, const char *dsn, enum pg_kind kind,
                   struct err *err) __attribute__((warn_unused_result));
void pg_params_done(struct pg_params *params);

/* Connects and waits for it, as PQconnectdbParams does, which names the result. */
struct pg_conn *pg_params_connect(const struct pg_params *params);

#endif
