#include "io/pg.h"

#include "base/clock.h"
#include "base/must.h"
#include "io/pg_error.h"
#include "io/pg_params.h"

#include <libpq-fe.h>

#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    ANSWER_MS = 30000,
    STATEMENT_PARAMS_MAX = 65535, /* the protocol counts them in 16 bits */
};

struct pg {
    PGconn *conn;
    enum pg_kind kind;
    int64_t answer_ms; /* so long pg_query waits; CLOCK_NEVER: for ever */
    PGresult *answer;  /* the first of the statement under way */
};

/* A struct pg_result is libpq's PGresult under another name; nothing looks inside. */
static struct pg_result *wrap(PGresult *result)
{
    return (struct pg_result *)result;
}

static const PGresult *unwrap(const struct pg_result *result)
{
    return (const PGresult *)result;
}

/* ---- errors -------------------------------------------------------------------- */

static const char *kind_name(enum pg_kind kind)
{
    return kind == PG_REPLICATION ? "replication connection" : "SQL connection";
}

/* One part of the server's words with its label, or nothing. */
static const char *part(const PGresult *result, int field)
{
    const char *text = PQresultErrorField(result, field);

    return text ? text : "";
}

/* The class, the SQLSTATE and all the words of a result that is an error. */
static int fail_result(const struct pg *pg, const PGresult *result, struct err *err)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = part(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = part(result, PG_DIAG_MESSAGE_HINT);
    const char *context = part(result, PG_DIAG_CONTEXT);

    if (!message) /* libpq itself made this result: the connection broke */
        return err_set(err, ERR_RETRY, "PostgreSQL %s: %s", kind_name(pg->kind),
                       PQresultErrorMessage(result));
    return err_set_code(err, pg_class_of(sqlstate, message), sqlstate,
                        "PostgreSQL %s: %s%s%s%s%s%s%s%s", kind_name(pg->kind), message,
                        *detail ? " DETAIL: " : "", detail, *hint ? " HINT: " : "", hint,
                        *context ? " CONTEXT: " : "", context,
                        pg_cure_of(sqlstate, message));
}

/* libpq has no code for its own failures, only these words (fe-misc.c, fe-protocol3.c);
 * a message too large for the memory left shows as a lost synchronization. */
static bool is_out_of_memory(const char *text)
{
    return strstr(text, "out of memory") || strstr(text, "cannot allocate memory") ||
           strstr(text, "lost synchronization");
}

static int fail_connection(const struct pg *pg, struct err *err)
{
    const char *text = PQerrorMessage(pg->conn);

    if (is_out_of_memory(text))
        return err_set(err, ERR_INTERNAL, "PostgreSQL %s: no memory for a message: %s",
                       kind_name(pg->kind), text);
    return err_set(err, ERR_RETRY, "PostgreSQL %s: %s", kind_name(pg->kind),
                   *text ? text : "the connection was closed");
}

/* ---- connecting ---------------------------------------------------------------- */

/* Whatever the role, the database or the user's options say, values in the stream
 * and names in queries look the same (the output plugin formats with the settings of
 * its session).  libpqwalreceiver clears search_path likewise. */
static const char session_settings[] =
    "SELECT pg_catalog.set_config('search_path', '', false),"
    " pg_catalog.set_config('bytea_output', 'hex', false),"
    " pg_catalog.set_config('DateStyle', 'ISO', false),"
    " pg_catalog.set_config('IntervalStyle', 'postgres', false),"
    " pg_catalog.set_config('TimeZone', 'UTC', false),"
    " pg_catalog.set_config('extra_float_digits', '3', false)";

/* The server should notice soon that this host died, so that another relay can take over
 * the slot; the relay speaks every second.  What somebody has set for this connection,
 * its role or its database stands. */
static const char sender_setting[] =
    "SELECT pg_catalog.set_config('wal_sender_timeout', '10s', false)"
    " FROM pg_catalog.pg_settings WHERE name = 'wal_sender_timeout'"
    " AND source NOT IN ('client', 'user', 'database', 'database user')"
    " AND NOT setting::pg_catalog.int4 BETWEEN 1 AND 10000";

static int settle(struct pg *pg, struct err *err)
{
    if (!pg->conn)
        return err_set(err, ERR_RETRY, "PostgreSQL: out of memory for a connection");
    if (PQstatus(pg->conn) != CONNECTION_OK)
        return pg_fail_connect(kind_name(pg->kind), PQerrorMessage(pg->conn), err);
    if (pg_execute(pg, session_settings, 0, NULL, err) != 0)
        return -1;
    return pg->kind == PG_REPLICATION ? pg_execute(pg, sender_setting, 0, NULL, err) : 0;
}

struct pg *pg_connect(const char *dsn, enum pg_kind kind, struct err *err)
{
    struct pg *pg = calloc(1, sizeof(*pg));
    struct pg_params params;

    if (!pg) {
        (void)err_set(err, ERR_RETRY, "PostgreSQL: out of memory for a connection");
        return NULL;
    }
    pg->kind = kind;
    pg->answer_ms = ANSWER_MS;
    if (pg_params_init(&params, dsn, kind, err) == 0) {
        pg->conn = pg_params_connect(&params);
        pg_params_done(&params);
        if (settle(pg, err) == 0)
            return pg;
    }
    pg_close(pg);
    return NULL;
}

void pg_close(struct pg *pg)
{
    if (!pg)
        return;
    PQclear(pg->answer);
    PQfinish(pg->conn);
    free(pg);
}

bool pg_ping_rejected(const char *dsn)
{
    struct pg_params params;
    PGPing ping;

    if (pg_params_init(&params, dsn, PG_SQL, NULL) < 0)
        return false;
    ping = PQpingParams(params.names, params.values, 0);
    pg_params_done(&params);
    return ping == PQPING_REJECT;
}

int pg_server_version(const struct pg *pg)
{
    return PQserverVersion(pg->conn);
}

const char *pg_parameter(const struct pg *pg, const char *name)
{
    return PQparameterStatus(pg->conn, name);
}

/* ---- one statement, blocking --------------------------------------------------- */

void pg_wait_for_ever(struct pg *pg)
{
    pg->answer_ms = CLOCK_NEVER;
}

/* Waits for bytes.  Only threads that may block come here; the loop has its own poll().
 */
static bool wait_readable(const struct pg *pg, int64_t until_ms)
{
    struct pollfd fd = {PQsocket(pg->conn), POLLIN, 0};
    int64_t left = until_ms - clock_mono_ms();

    if (fd.fd < 0)
        return true; /* PQconsumeInput will say so */
    if (until_ms == CLOCK_NEVER)
        return poll(&fd, 1, -1) != 0;
    return left > 0 && poll(&fd, 1, (int)left) != 0;
}

/* 1: libpq has the whole answer, or knows that there will be none; 0: too late. */
static int wait_for_answer(const struct pg *pg)
{
    int64_t until_ms =
        pg->answer_ms == CLOCK_NEVER ? CLOCK_NEVER : clock_mono_ms() + pg->answer_ms;

    while (PQisBusy(pg->conn)) {
        if (!wait_readable(pg, until_ms))
            return 0;
        if (!PQconsumeInput(pg->conn))
            break; /* PQgetResult says what is wrong */
    }
    return 1;
}

/* As PQexecParams, which waits for ever: the last result, NULL without one. */
static PGresult *answer(struct pg *pg, const char *sql, int nparams,
                        const char *const *params, struct err *err)
{
    PGresult *last = NULL;
    int sent;

    if (pg->kind == PG_REPLICATION) /* a walsender knows only the simple protocol */
        sent = PQsendQuery(pg->conn, sql);
    else
        sent = PQsendQueryParams(pg->conn, sql, nparams, NULL, params, NULL, NULL, 0);
    while (sent) {
        PGresult *result = wait_for_answer(pg) ? PQgetResult(pg->conn) : NULL;

        if (!result)
            break;
        PQclear(last);
        last = result;
    }
    if (sent && PQisBusy(pg->conn)) {
        (void)err_set(err, ERR_RETRY,
                      "PostgreSQL %s: the server has not answered for %d s",
                      kind_name(pg->kind), (int)(pg->answer_ms / 1000));
        PQclear(last);
        last = NULL;
    }
    return last;
}

struct pg_result *pg_query(struct pg *pg, const char *sql, int nparams,
                           const char *const *params, struct err *err)
{
    PGresult *result;
    ExecStatusType status;

    must(pg->kind == PG_SQL || nparams == 0);
    result = answer(pg, sql, nparams, params, err);
    status = PQresultStatus(result);
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK)
        return wrap(result);
    if (result)
        (void)fail_result(pg, result, err);
    else
        (void)fail_connection(pg, err);
    PQclear(result);
    return NULL;
}

void pg_result_free(struct pg_result *result)
{
    PQclear((PGresult *)result);
}

int pg_rows(const struct pg_result *result)
{
    return PQntuples(unwrap(result));
}

int pg_columns(const struct pg_result *result)
{
    return PQnfields(unwrap(result));
}

const char *pg_value(const struct pg_result *result, int row, int column)
{
    if (PQgetisnull(unwrap(result), row, column))
        return NULL;
    return PQgetvalue(unwrap(result), row, column);
}

void pg_cancel(struct pg *pg)
{
    PGcancel *cancel = PQgetCancel(pg->conn);
    char why[256];

    (void)PQcancel(cancel, why, (int)sizeof(why));
    PQfreeCancel(cancel);
}

/* ---- statements, never blocking -------------------------------------------------- */

/* libpq takes parallel arrays. */
struct arrays {
    const char **values;
    int *lengths;
    int *formats;
};

static bool arrays_init(struct arrays *arrays, size_t n, const struct pg_param *params)
{
    arrays->values = calloc(n + 1, sizeof(*arrays->values));
    arrays->lengths = calloc(n + 1, sizeof(*arrays->lengths));
    arrays->formats = calloc(n + 1, sizeof(*arrays->formats));
    if (!arrays->values || !arrays->lengths || !arrays->formats)
        return false;
    for (size_t i = 0; i < n; i++) {
        must(params[i].value.len <= INT_MAX);
        arrays->values[i] = params[i].value.ptr;
        arrays->lengths[i] = (int)params[i].value.len;
        arrays->formats[i] = params[i].binary;
    }
    return true;
}

static void arrays_done(struct arrays *arrays)
{
    free(arrays->values);
    free(arrays->lengths);
    free(arrays->formats);
}

int pg_ask(struct pg *pg, const char *sql, size_t nparams, const struct pg_param *params,
           struct err *err)
{
    struct arrays arrays = {0};
    int rc = 0;

    must(nparams <= STATEMENT_PARAMS_MAX);
    if (!arrays_init(&arrays, nparams, params))
        rc = err_set(err, ERR_INTERNAL, "out of memory for a statement");
    else if (PQsetnonblocking(pg->conn, 1) != 0 ||
             !PQsendQueryParams(pg->conn, sql, (int)nparams, NULL, arrays.values,
                                arrays.lengths, arrays.formats, 0))
        rc = fail_connection(pg, err);
    arrays_done(&arrays);
    return rc;
}

/* 1: *ret is the result of the answer that is complete. */
static int take_answer(struct pg *pg, struct pg_result **ret, struct err *err)
{
    PGresult *result = pg->answer;
    ExecStatusType status = PQresultStatus(result);

    pg->answer = NULL;
    if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
        *ret = wrap(result);
        return 1;
    }
    if (result)
        (void)fail_result(pg, result, err);
    else
        (void)fail_connection(pg, err);
    PQclear(result);
    return -1;
}

int pg_answer(struct pg *pg, struct pg_result **ret, struct err *err)
{
    while (!PQisBusy(pg->conn)) {
        PGresult *result = PQgetResult(pg->conn);

        if (!result) /* the server is ready for the next one */
            return take_answer(pg, ret, err);
        if (pg->answer)
            PQclear(result);
        else
            pg->answer = result;
    }
    return 0;
}

bool pg_notified(struct pg *pg)
{
    bool ret = false;
    PGnotify *notify;

    while ((notify = PQnotifies(pg->conn))) {
        if (notify->be_pid != PQbackendPID(pg->conn))
            ret = true;
        PQfreemem(notify);
    }
    return ret;
}

int pg_backend_pid(const struct pg *pg)
{
    return PQbackendPID(pg->conn);
}

/* ---- CopyBoth, never blocking -------------------------------------------------- */

int pg_send(struct pg *pg, const char *sql, struct err *err)
{
    if (PQsetnonblocking(pg->conn, 1) != 0 || !PQsendQuery(pg->conn, sql))
        return fail_connection(pg, err);
    return 0;
}

int pg_socket(const struct pg *pg)
{
    return PQsocket(pg->conn);
}

/* After the end of the copy, or on a broken connection whose last bytes may hold the
 * server's reason: -1 with err set if it gave one, else 0.  PQisBusy parses what has
 * arrived, so PQgetResult does not wait. */
static int server_said(struct pg *pg, struct err *err)
{
    PGresult *result = PQisBusy(pg->conn) ? NULL : PQgetResult(pg->conn);
    int rc = 0;

    if (PQresultStatus(result) == PGRES_FATAL_ERROR && result)
        rc = fail_result(pg, result, err);
    PQclear(result);
    return rc;
}

int pg_consume(struct pg *pg, struct err *err)
{
    char *bytes;

    if (PQconsumeInput(pg->conn))
        return 0;
    if (is_out_of_memory(PQerrorMessage(pg->conn)))
        return fail_connection(pg, err);
    /* the server's last words stand behind changes that nobody will read */
    while (PQgetCopyData(pg->conn, &bytes, 1) > 0)
        PQfreemem(bytes);
    if (server_said(pg, err) == 0)
        (void)fail_connection(pg, err);
    return -1;
}

int pg_copy_begun(struct pg *pg, struct err *err)
{
    PGresult *result;
    ExecStatusType status;

    if (PQisBusy(pg->conn))
        return 0;
    result = PQgetResult(pg->conn);
    status = PQresultStatus(result);
    if (!result)
        return fail_connection(pg, err);
    if (status == PGRES_FATAL_ERROR)
        (void)fail_result(pg, result, err);
    else if (status != PGRES_COPY_BOTH)
        (void)err_set(err, ERR_INTERNAL, "PostgreSQL answered %s instead of a stream",
                      PQresStatus(status));
    PQclear(result);
    return status == PGRES_COPY_BOTH ? 1 : -1;
}

int pg_copy_get(struct pg *pg, struct frame *ret, struct err *err)
{
    char *bytes = NULL;
    int n = PQgetCopyData(pg->conn, &bytes, 1);

    if (n > 0) { /* malloc'ed by libpq; PQfreemem is free() but on Windows */
        *ret = (struct frame){bytes, (size_t)n};
        return 1;
    }
    if (n == 0)
        return 0;
    if (n == -1)
        return server_said(pg, err) < 0 ? -1 : 2;
    return fail_connection(pg, err);
}

int pg_copy_put(struct pg *pg, struct slice bytes, struct err *err)
{
    /* 0, "would block", comes only when libpq's buffer cannot grow */
    if (PQputCopyData(pg->conn, bytes.ptr, (int)bytes.len) != 1)
        return fail_connection(pg, err);
    return pg_flush(pg, err) < 0 ? -1 : 0;
}

int pg_copy_end(struct pg *pg, struct err *err)
{
    if (PQputCopyEnd(pg->conn, NULL) != 1)
        return fail_connection(pg, err);
    return pg_flush(pg, err) < 0 ? -1 : 0;
}

int pg_flush(struct pg *pg, struct err *err)
{
    int rc = PQflush(pg->conn);

    return rc < 0 ? fail_connection(pg, err) : rc;
}
