/* relay_watch.c - the checks of the server, from time to time while we stream; see
 * relay_state.h.
 *
 * What they find does not end the stream, as it still carries what it can, but for one
 * thing: rows that it does not carry. */
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"

enum { WATCH_EVERY_MS = 60000 };

void relay_warn(const struct server *server)
{
    for (size_t i = 0; i < server->nwarnings; i++)
        log_event(LOG_WARNING, NULL, "%s", server->warnings[i]);
}

static void look(void *arg)
{
    struct watch *watch = arg;
    struct pg *pg = pg_connect(watch->config->postgres.dsn, PG_SQL, &watch->err);

    if (pg)
        watch->server = check_server(pg, watch->config, &watch->err);
    pg_close(pg);
}

static void begin(struct relay *relay)
{
    struct watch *watch = &relay->watch;

    *watch = (struct watch){.config = relay->config,
                            .at_ms = relay->now_ms + WATCH_EVERY_MS,
                            .awaited = true};
    watch->job = job_start(look, watch, &watch->err);
    if (!watch->job)
        log_err(LOG_WARNING, &watch->err);
}

static void stream_all(struct relay *relay, const struct catalog_leaf *leaf)
{
    struct err err = {0};

    (void)err_set(&err, ERR_RETRY,
                  "table %s.%s is a new partition or child where none was expected: "
                  "streaming again; rows that were inserted into it before now may be "
                  "missing from Kafka",
                  leaf->schema, leaf->name);
    relay_lost(relay, &err, 0);
}

static void judge(struct relay *relay, const struct watch *watch)
{
    const struct catalog_leaf *leaf;

    if (!watch->server) {
        log_err(LOG_WARNING, &watch->err);
        return;
    }
    relay_warn(watch->server);
    leaf = catalog_unasked(relay->connection.server->catalog, watch->server->catalog);
    if (leaf)
        stream_all(relay, leaf);
}

static void end(struct relay *relay)
{
    struct watch *watch = &relay->watch;

    job_finish(watch->job);
    watch->job = NULL;
    if (watch->awaited && relay->phase != ENDING)
        judge(relay, watch);
    server_free(watch->server);
    watch->server = NULL;
}

void relay_serve_watch(struct relay *relay)
{
    if (relay->watch.job && job_is_done(relay->watch.job))
        end(relay);
    else if (relay->source && relay->phase != ENDING && !relay->watch.job &&
             relay->now_ms >= relay->watch.at_ms)
        begin(relay);
}

int64_t relay_watch_deadline(const struct relay *relay)
{
    return relay->watch.job ? CLOCK_NEVER : relay->watch.at_ms;
}

void relay_watch_now(struct relay *relay)
{
    relay->watch.at_ms = relay->now_ms;
}

void relay_watch_later(struct relay *relay)
{
    relay->watch.at_ms = relay->now_ms + WATCH_EVERY_MS;
}
