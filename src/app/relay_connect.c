/* relay_connect.c - from nothing to a stream, and back; see relay_state.h. */
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"
#include "io/slot.h"

enum {
    NO_THREAD_MS = 10000,
    STANDBY_LOOK_MS = 1000,
    SETTLE_MS =
        2000, /* for acknowledgements, before a new stream repeats what lacks one */
    SETTLE_LOOK_MS = 100,
    PATIENCE_MS = 30000,
    PATIENCE_MAX_MS = 3600000,
};

void relay_forgive(struct relay *relay)
{
    relay->told[0] = '\0'; /* the next trouble is news */
    relay->patience_ms = PATIENCE_MS;
    backoff_reset(&relay->backoff);
}

/* While the server decodes a large transaction, or a large row, it answers nothing.  A
 * new stream makes it begin again, so it must get more time then. */
void relay_be_patient(struct relay *relay)
{
    relay->patience_ms *= 2;
    if (relay->patience_ms > PATIENCE_MAX_MS)
        relay->patience_ms = PATIENCE_MAX_MS;
}

void relay_connect(struct relay *relay)
{
    struct err err = {0};

    relay->connection = (struct connection){.config = relay->config,
                                            .then = relay->history,
                                            .reached = ledger_flushed(relay->ledger)};
    relay->job = connection_begin(&relay->connection, &err);
    if (relay->job) {
        relay->phase = CONNECTING;
        return;
    }
    relay_tell(relay, &err);
    relay->phase = WAITING;
    relay->wait_until_ms = relay->now_ms + NO_THREAD_MS;
}

/* Jitter needs no better source than the low bits of the clock, mixed. */
uint64_t relay_random(const struct relay *relay)
{
    uint64_t bits = (uint64_t)clock_wall_us() + (uint64_t)relay->now_ms;

    return bits * UINT64_C(0x9E3779B97F4A7C15);
}

static void wait_then_connect(struct relay *relay, int64_t at_least_ms)
{
    int64_t delay = backoff_next(&relay->backoff, relay_random(relay));

    relay->phase = WAITING;
    relay->wait_until_ms = relay->now_ms + (delay > at_least_ms ? delay : at_least_ms);
}

void relay_close_stream(struct relay *relay)
{
    source_free(relay->source);
    relay->source = NULL;
    relay->has_change = false;
    relay->ping.awaited = false;
    relay->inquiry.awaited = false;
    relay->watch.awaited = false;
    relay->memo.kept = false;
    relay_letters_end(relay);
    publish_forget(&relay->publisher);
    if (relay->publisher.router)
        relay->timestamps_replaced += router_timestamps_replaced(relay->publisher.router);
    router_free(relay->publisher.router);
    relay->publisher.router = NULL;
    connection_done(&relay->connection);
}

void relay_lost(struct relay *relay, const struct err *err, int64_t at_least_ms)
{
    if (relay->source) {
        if (source_is_silent(relay->source))
            relay_be_patient(relay);
        sink_ebb(relay->sink);
    }
    relay_close_stream(relay);
    if (err->class != ERR_RETRY) {
        relay_stop_with(relay, err);
        return;
    }
    relay_tell(relay, err);
    relay->reconnects++;
    if (relay->stop)
        relay->phase = STOPPED; /* nothing can be confirmed any more */
    else
        wait_then_connect(relay, at_least_ms);
}

/* ---- the stream ----------------------------------------------------------------- */

static int open_source(struct relay *relay, lsn_t start, struct err *err)
{
    struct connection *c = &relay->connection;
    bool typed = relay->typed || c->server->types_needed;
    struct router_options routing = {typed, c->server->encoding.kind == ENCODING_UNKNOWN};
    struct slot_options options = {
        .name = relay->config->postgres.slot,
        .start = start,
        .answer_within_ms = relay->patience_ms,
        .typed = typed,
        .catalog = c->server->catalog,
        .encoding = &c->server->encoding,
    };

    relay->publisher.router = router_new(relay->config, c->server->catalog, routing, err);
    if (!relay->publisher.router)
        return -1;
    relay->source = slot_open(c->replication, &options, relay->now_ms, err);
    c->replication = NULL; /* taken */
    return relay->source ? 0 : -1;
}

static void stream(struct relay *relay)
{
    struct connection *c = &relay->connection;
    lsn_t start =
        history_start(&relay->history, &c->history, ledger_flushed(relay->ledger));
    int pid = pg_backend_pid(c->replication);
    lsn_t from = start > c->server->confirmed_flush ? start : c->server->confirmed_flush;
    struct err err = {0};

    /* What Kafka has not acknowledged by now comes again from PostgreSQL. */
    sink_drop(relay->sink);
    if (open_source(relay, start, &err) != 0) {
        relay_lost(relay, &err, 0);
        return;
    }
    relay->history = c->history;
    relay->reached = from;
    ledger_restart(relay->ledger, from);
    relay->phase = STREAMING;
    relay->drained = false;
    relay_warn(c->server);
    relay_watch_later(relay);
    relay_memo_begin(relay);
    relay_letters_begin(relay, pid, from);
    log_event(LOG_INFO, NULL, "streaming from slot %s at %" LSN_FMT,
              relay->config->postgres.slot, LSN_ARG(from));
}

/* ---- connecting ------------------------------------------------------------------ */

static void stand_by(struct relay *relay)
{
    if (relay->phase != STANDBY)
        log_event(LOG_INFO, NULL, "slot %s is active for PID %d: standing by",
                  relay->config->postgres.slot,
                  (int)relay->connection.server->active_pid);
    relay->phase = STANDBY;
    relay->look_ms = relay->now_ms + STANDBY_LOOK_MS;
}

static void connected(struct relay *relay)
{
    struct connection *c = &relay->connection;
    struct err err = c->err;

    job_finish(relay->job);
    relay->job = NULL;
    if (err.class != ERR_NONE ||
        (c->replication && relay_letters_look(relay, &err) != 0)) {
        relay_lost(relay, &err, 0);
    } else if (c->server->active_pid != 0) {
        stand_by(relay);
    } else if (c->replication) {
        stream(relay);
    } else { /* the slot became free while we stood by: check everything again */
        connection_done(c);
        relay_connect(relay);
    }
}

static void look_again(struct relay *relay)
{
    struct err err = {0};

    relay->job = connection_look_again(&relay->connection, &err);
    if (!relay->job)
        relay_lost(relay, &err, 0);
}

/* Acknowledgements that still come in save repetitions: wait for them, for a while. */
static bool settled(const struct relay *relay)
{
    return sink_travelling(relay->sink) == 0 || !sink_is_up(relay->sink) ||
           relay->now_ms >= relay->wait_until_ms + SETTLE_MS;
}

void relay_serve_connecting(struct relay *relay)
{
    if (relay->job) {
        if (job_is_done(relay->job))
            connected(relay);
        return;
    }
    if (relay->phase == STANDBY && relay->now_ms >= relay->look_ms)
        look_again(relay);
    else if (relay->phase == WAITING && relay->now_ms >= relay->wait_until_ms &&
             settled(relay))
        relay_connect(relay);
}

int64_t relay_connect_deadline(const struct relay *relay)
{
    if (relay->job)
        return CLOCK_NEVER;
    if (relay->phase == STANDBY)
        return relay->look_ms;
    if (relay->phase == WAITING && relay->now_ms < relay->wait_until_ms)
        return relay->wait_until_ms;
    return relay->now_ms + SETTLE_LOOK_MS;
}
