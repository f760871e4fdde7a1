/* check.h - is everything on the server as this configuration needs it?
 *
 * A table of probes: name, query, verdict, cure.  `walrelay check` prints them all,
 * `walrelay run` stops at the first that fails, each time it connects. */
#ifndef WALRELAY_APP_CHECK_H
#define WALRELAY_APP_CHECK_H

#include "base/err.h"
#include "base/lsn.h"
#include "core/catalog.h"
#include "core/config.h"
#include "core/encoding.h"
#include "core/memo.h"
#include "io/pg.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { SERVER_WARNINGS_MAX = 8, SERVER_WARNING_BYTES = 512 };

/* What the probes found out, as the relay needs it. */
struct server {
    struct catalog *catalog;
    struct encoding encoding;
    lsn_t confirmed_flush;  /* the slot's */
    int32_t active_pid;     /* of whoever streams from the slot; 0: nobody */
    bool types_needed;      /* a mapped column is bytea, or was altered since the slot's
                             * catalog_xmin: only a stream with types can tell the values */
    bool dead_letters;      /* there is a table for them */
    int version;            /* 150020 */
    struct memo memo;       /* what was written down of the slot, if anything was */
    char memo_trouble[256]; /* why nothing can be written down; empty: it can */
    char warnings[SERVER_WARNINGS_MAX][SERVER_WARNING_BYTES]; /* a line each */
    size_t nwarnings;
};

/* One line for server->warnings; beyond the last free one it is dropped. */
void server_warn(struct server *server, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Runs all probes over one ordinary connection (PG_SQL).  NULL with err set at the first
 * that fails: one line that names the thing and holds the statement that mends it.  A
 * slot that is active is not a failure: see active_pid. */
struct server *check_server(struct pg *pg, const struct config *config, struct err *err)
    __attribute__((warn_unused_result));
void server_free(struct server *server);

/* `walrelay check`: connects in both ways and prints every probe with its verdict to
 * out.  0 if all passed, else -1 with err set by the first that did not. */
int check_print(const struct config *config, FILE *out, struct err *err)
    __attribute__((warn_unused_result));

#endif
