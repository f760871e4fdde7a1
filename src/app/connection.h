/* connection.h - everything that must be true and open before a stream can start. */
#ifndef WALRELAY_APP_CONNECTION_H
#define WALRELAY_APP_CONNECTION_H

#include "app/check.h"
#include "core/config.h"
#include "core/history.h"
#include "io/job.h"
#include "io/pg.h"

/* The work and the result of one attempt to connect, made in a job because it blocks. */
struct connection {
    const struct config *config; /* read only while the job runs */
    struct history then;         /* of the connection before, */
    lsn_t reached;               /* and how far that came */

    struct err err;         /* ERR_NONE, or why it failed */
    struct server *server;  /* what the checks found */
    struct pg *sql;         /* an ordinary session, while somebody else streams */
    struct pg *replication; /* NULL then */
    struct history history;
};

/* Checks the server; then, if nobody streams from the slot, opens a replication
 * connection and judges the slot.  config, then and reached are set.  NULL with err set
 * if no job can be started. */
struct job *connection_begin(struct connection *connection, struct err *err)
    __attribute__((warn_unused_result));

/* Looks again, on connection->sql, whether somebody streams: sets server->active_pid. */
struct job *connection_look_again(struct connection *connection, struct err *err)
    __attribute__((warn_unused_result));

/* Closes what is open and empties it. */
void connection_done(struct connection *connection);

#endif
