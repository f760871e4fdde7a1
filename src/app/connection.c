#include "app/connection.h"

#include "app/judge.h"

#include <stdlib.h>

static int judge(struct connection *c)
{
    const struct judge judge = {.sql = c->sql,
                                .replication = c->replication,
                                .config = c->config,
                                .server = c->server,
                                .then = c->then,
                                .reached = c->reached};

    if (judge_identify(c->replication, &c->history, &c->err) != 0)
        return -1;
    return judge_slot(&judge, &c->history, &c->err);
}

static void open_connection(void *arg)
{
    struct connection *c = arg;

    c->sql = pg_connect(c->config->postgres.dsn, PG_SQL, &c->err);
    if (c->sql)
        c->server = check_server(c->sql, c->config, &c->err);
    if (!c->server || c->server->active_pid != 0)
        return;
    c->replication = pg_connect(c->config->postgres.dsn, PG_REPLICATION, &c->err);
    if (c->replication && judge(c) != 0)
        return; /* c->err says why */
    pg_close(c->sql);
    c->sql = NULL;
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

struct job *connection_begin(struct connection *connection, struct err *err)
{
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
