/* pg.h - one connection to PostgreSQL; the only files that know libpq are pg.c and
 * pg_params.c.
 *
 * Two ways to use one.  pg_connect, pg_query and pg_ping block: for threads of
 * io/job and for the commands that people type.  The pg_copy functions never
 * block: for the loop. */
#ifndef WALRELAY_IO_PG_H
#define WALRELAY_IO_PG_H

#include "base/err.h"
#include "base/slice.h"
#include "core/change.h"

#include <stdbool.h>
#include <stddef.h>

struct pg;
struct pg_result;

enum pg_kind {
    PG_SQL,         /* an ordinary session */
    PG_REPLICATION, /* replication=database: a walsender of the dsn's database */
};

/* dsn in any form libpq takes (key=value, URI, a service, environment, password
 * file); the rest is added through the parsed options, never by pasting strings:
 * application_name (walrelay unless the dsn has one), client_encoding=UTF8, and, unless
 * they are set, connect_timeout=10 (seconds, for each host) and what makes a dead host be
 * noticed within 20 s: keepalives_idle, _interval, _count and tcp_user_timeout.  A
 * replication connection has wal_sender_timeout=10s unless it is shorter or was set for
 * this connection, role or database.  Then the session
 * pins what values in the stream depend on, over whatever role, database and dsn say:
 * bytea_output=hex, DateStyle=ISO, IntervalStyle=postgres, TimeZone=UTC,
 * extra_float_digits=3 and an empty search_path.  Notices of the server are dropped.
 *
 * What blocks waits 30 s for an answer of the server, unless pg_wait_for_ever.
 *
 * NULL with err set, code = SQLSTATE where the server gave one.  ERR_DENIED for
 * wrong password, role, pg_hba or a role without REPLICATION; ERR_CONFIG for a dsn
 * that libpq cannot read or a database that does not exist; ERR_RETRY for all that
 * may pass.  The text says which of the two connections failed, in the server's or
 * libpq's own words, and never holds the password. */
struct pg *pg_connect(const char *dsn, enum pg_kind kind, struct err *err)
    __attribute__((warn_unused_result));
void pg_close(struct pg *pg); /* NULL is allowed */

/* For statements that may take any time. */
void pg_wait_for_ever(struct pg *pg);

/* The role that dsn connects as, to be freed with free().  NULL with err set: dsn
 * cannot be read, no memory.  Looks at dsn, the environment and the system's user, not
 * into the file of a service that dsn names. */
char *pg_dsn_user(const char *dsn, struct err *err) __attribute__((warn_unused_result));

/* Is the server shutting down or starting (PQping says REJECT)?  Blocks. */
bool pg_ping_rejected(const char *dsn);

int pg_server_version(const struct pg *pg);                      /* 150020 */
const char *pg_parameter(const struct pg *pg, const char *name); /* PQparameterStatus */

/* One statement; params are text, NULL is SQL NULL.  On a replication connection
 * nparams must be 0.  NULL with err set: code = SQLSTATE, class by pg_class_of; a server
 * that does not answer in time is ERR_RETRY, and pg is of no more use. */
struct pg_result *pg_query(struct pg *pg, const char *sql, int nparams,
                           const char *const *params, struct err *err)
    __attribute__((warn_unused_result));
void pg_result_free(struct pg_result *result); /* NULL is allowed */
int pg_rows(const struct pg_result *result);
int pg_columns(const struct pg_result *result);
/* NULL for SQL NULL; borrowed from result. */
const char *pg_value(const struct pg_result *result, int row, int column);
/* Is it the boolean true?  False for SQL NULL. */
static inline bool pg_is_true(const struct pg_result *result, int row, int column)
{
    const char *value = pg_value(result, row, column);

    return value && *value == 't';
}

/* pg_query of a statement whose result nobody looks at.  0, or -1 with err set. */
static inline int pg_execute(struct pg *pg, const char *sql, int nparams,
                             const char *const *params, struct err *err)
{
    struct pg_result *result = pg_query(pg, sql, nparams, params, err);

    pg_result_free(result);
    return result ? 0 : -1;
}

/* Asks the server to give up the statement that another thread is waiting for in
 * pg_query, which then fails with 57014.  Nothing if there is none, or no server. */
void pg_cancel(struct pg *pg);

/* What to do about an SQLSTATE (may be NULL: the connection broke).  42704 (slot
 * missing) is ERR_SLOT; 28xxx and 42501 ERR_DENIED; 58P01, 22023, 42602, 0A000, 3D000
 * ERR_CONFIG; all else ERR_RETRY.  55000 is ERR_SLOT when the text says that the slot
 * cannot be read or was made in another database, ERR_CONFIG when it names wal_level. */
enum err_class pg_class_of(const char *sqlstate, const char *message);

/* "…" quoted as an SQL identifier or literal; to be freed with free(); NULL: no memory.
 */
char *pg_quote_identifier(const char *name);
char *pg_quote_literal(const char *text);

/* ---- statements, never blocking; for PG_SQL -------------------------------------- */

struct pg_param {
    struct slice
        value;   /* absent: SQL NULL; a text ends with a NUL, which does not count */
    bool binary; /* bytes as they are, for a bytea */
};

/* Sends one statement and returns at once; pg_flush until it is 0, pg_consume when the
 * socket is readable, until pg_answer has something.  One at a time. */
int pg_ask(struct pg *pg, const char *sql, size_t nparams, const struct pg_param *params,
           struct err *err) __attribute__((warn_unused_result));

/* 1: *ret is the result, the caller's; 0: not yet; -1: err is set as by pg_query. */
int pg_answer(struct pg *pg, struct pg_result **ret, struct err *err)
    __attribute__((warn_unused_result));

/* Has anybody else notified, on any channel that is listened to, since the last call? */
bool pg_notified(struct pg *pg);

/* The server process that serves this connection, as in pg_stat_activity. */
int pg_backend_pid(const struct pg *pg);

/* ---- CopyBoth, never blocking; for PG_REPLICATION ------------------------------ */

/* Sends START_REPLICATION (or any other query) and returns at once. */
int pg_send(struct pg *pg, const char *sql, struct err *err)
    __attribute__((warn_unused_result));

/* The socket, for poll(2), or -1. */
int pg_socket(const struct pg *pg);

/* Reads what the socket has.  -1 with err set (ERR_RETRY) when the connection is gone. */
int pg_consume(struct pg *pg, struct err *err) __attribute__((warn_unused_result));

/* After pg_send: 1 the server is in CopyBoth mode; 0 not yet; -1 refused, with err set
 * as by pg_query. */
int pg_copy_begun(struct pg *pg, struct err *err) __attribute__((warn_unused_result));

/* 1: *ret is the next CopyData, malloc'ed and the caller's; 0: nothing complete has
 * arrived, see pg_consume; 2: the server ended the copy (CopyDone); -1: err is set,
 * with the server's words if it said why (57P01 ...). */
int pg_copy_get(struct pg *pg, struct frame *ret, struct err *err)
    __attribute__((warn_unused_result));

/* Queues one CopyData and sends what goes without waiting. */
int pg_copy_put(struct pg *pg, struct slice bytes, struct err *err)
    __attribute__((warn_unused_result));

/* Queues CopyDone. */
int pg_copy_end(struct pg *pg, struct err *err) __attribute__((warn_unused_result));

/* Sends what is queued: 0 all is sent, 1 wait for POLLOUT, -1 err is set. */
int pg_flush(struct pg *pg, struct err *err) __attribute__((warn_unused_result));

#endif
