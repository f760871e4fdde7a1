#include "app/connection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int identify(struct pg *pg, struct history *ret, struct err *err)
{
    struct pg_result *result = pg_query(pg, "IDENTIFY_SYSTEM", 0, NULL, err);
    int rc = -1;

    if (!result)
        return -1;
    /* systemid, timeline, xlogpos, dbname */
    if (pg_rows(result) == 1 && lsn_parse(pg_value(result, 0, 2), &ret->wal_end)) {
        (void)snprintf(ret->system_id, sizeof(ret->system_id), "%s",
                       pg_value(result, 0, 0));
        ret->timeline = (uint32_t)strtoul(pg_value(result, 0, 1), NULL, 10);
        rc = 0;
    } else {
        rc = err_set(err, ERR_RETRY, "IDENTIFY_SYSTEM: unexpected answer of the server");
    }
    pg_result_free(result);
    return rc;
}

static void open_connection(void *arg)
{
    struct connection *c = arg;

    c->sql = pg_connect(c->config->postgres.dsn, PG_SQL, &c->err);
    if (c->sql)
        c->server = check_server(c->sql, c->config, &c->err);
    if (!c->server || c->server->active_pid != 0)
        return;
    pg_close(c->sql);
    c->sql = NULL;
    c->replication = pg_connect(c->config->postgres.dsn, PG_REPLICATION, &c->err);
    if (c->replication)
        (void)identify(c->replication, &c->history, &c->err);
}

static void look_again(void *arg)
{
    struct connection *c = arg;
    const char *slot = c->config->postgres.slot;
    struct pg_result *result = pg_query(
        c->sql,
        "SELECT active_pid FROM pg_catalog.pg_replication_slots WHERE slot_name = $1", 1,
        &slot, &c->err);

    if (!result)
        return;
    /* A slot that is gone is no longer active either; the checks will say so. */
    c->server->active_pid = 0;
    if (pg_rows(result) == 1 && pg_value(result, 0, 0))
        c->server->active_pid = (int32_t)strtol(pg_value(result, 0, 0), NULL, 10);
    pg_result_free(result);
}

struct job *connection_begin(struct connection *connection, const struct config *config,
                             struct err *err)
{
    *connection = (struct connection){.config = config};
    return job_start(open_connection, connection, err);
}

struct job *connection_look_again(struct connection *connection, struct err *err)
{
    return job_start(look_again, connection, err);
}

void connection_done(struct connection *connection)
{
    server_free(connection->server);
    pg_close(connection->sql);
    pg_close(connection->replication);
    *connection = (struct connection){0};
}
