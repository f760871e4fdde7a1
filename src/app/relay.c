/* relay.c - see relay.h.
 *
 *   CONNECTING ──> STREAMING ──> DRAINING ──> ENDING ──> STOPPED
 *     │   ^ │          │        signal, or     flush LSN told,
 *     │   │ └─STANDBY  │        a poisoned     CopyDone sent
 *     v   │   slot     v        event
 *     WAITING <────────┘ connection lost
 *
 * Signals and the sink are served in every phase. */
#include "app/relay.h"

#include "app/connection.h"
#include "app/publish.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "core/backoff.h"
#include "core/history.h"
#include "core/ledger.h"
#include "core/route.h"
#include "io/job.h"
#include "io/signals.h"
#include "io/sink.h"
#include "io/slot.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>

enum {
    MAX_TRANSACTIONS = 32768, /* with messages, in flight */
    CHANGES_PER_TURN = 512,
    CONNECT_MS = 100,
    CONNECT_MAX_MS = 10000,
    STANDBY_LOOK_MS = 1000,
    SETTLE_MS =
        2000, /* for acknowledgements, before a new stream repeats what lacks one */
    PING_EVERY_MS = 2000,
    REJECTED_WAIT_MS = 1000,
    END_MS = 1000,     /* for the server's CopyDone, when shutdown_timeout is used up */
    REPEAT_MS = 60000, /* the same trouble is logged again after that */
    BEHIND_US =
        1000000, /* a commit that old when the server sends it: we are catching up */
};

enum phase { CONNECTING, STANDBY, WAITING, STREAMING, DRAINING, ENDING, STOPPED };

struct ping {
    struct job *job;
    const char *dsn;
    bool rejected;
    int64_t at_ms;
};

struct relay {
    const struct config *config;
    enum phase phase;
    int signal_fd;
    struct sink *sink;
    struct ledger *ledger;
    struct publisher publisher;

    /* connecting */
    struct connection connection;
    struct job *job;
    struct backoff backoff;
    int64_t wait_until_ms;
    int64_t look_ms;
    struct history history; /* of the connection before */
    bool typed;             /* a payload was ambiguous without types */

    /* streaming */
    struct source *source;
    struct change change; /* in hand */
    bool has_change;
    bool drained; /* the last turn read nothing */
    bool behind;  /* catching up: latency is lost already, batches are worth more */
    bool acked;   /* since the position was handed to the source */
    struct ping ping;

    /* stopping */
    bool stop;
    int64_t stop_by_ms;
    struct err failure; /* why, if not by signal */

    char told[ERR_TEXT_MAX]; /* the last trouble */
    int64_t told_ms;
    int64_t now_ms;
};

/* ---- telling ------------------------------------------------------------------- */

static void notice(void *arg, enum log_level level, const struct log_field *fields,
                   const char *text)
{
    (void)arg;
    log_event(level, fields, "%s", text);
}

/* One line per change of state, and one a minute while it lasts. */
static void tell_trouble(struct relay *relay, const struct err *err)
{
    if (strcmp(relay->told, err->text) == 0 && relay->now_ms - relay->told_ms < REPEAT_MS)
        return;
    (void)memcpy(relay->told, err->text, sizeof(relay->told));
    relay->told_ms = relay->now_ms;
    log_err(LOG_WARNING, err);
}

/* ---- phases -------------------------------------------------------------------- */

static void stop_with(struct relay *relay, const struct err *err);

static void connect_now(struct relay *relay)
{
    struct err err = {0};

    relay->job = connection_begin(&relay->connection, relay->config, &err);
    if (relay->job) {
        relay->phase = CONNECTING;
        return;
    }
    tell_trouble(relay, &err);
    relay->phase = WAITING;
    relay->wait_until_ms = relay->now_ms + CONNECT_MAX_MS;
}

static uint64_t random_bits(const struct relay *relay)
{
    /* Jitter needs no better source than the low bits of the clock, mixed. */
    return ((uint64_t)clock_wall_us() + (uint64_t)relay->now_ms) *
           UINT64_C(0x9E3779B97F4A7C15);
}

static void wait_then_connect(struct relay *relay, int64_t at_least_ms)
{
    int64_t delay = backoff_next(&relay->backoff, random_bits(relay));

    relay->phase = WAITING;
    relay->wait_until_ms = relay->now_ms + (delay > at_least_ms ? delay : at_least_ms);
}

static void close_stream(struct relay *relay)
{
    source_free(relay->source);
    relay->source = NULL;
    relay->has_change = false;
    publish_forget(&relay->publisher);
    router_free(relay->publisher.router);
    relay->publisher.router = NULL;
    connection_done(&relay->connection);
}

/* The stream, or the attempt to open one, failed. */
static void lost(struct relay *relay, const struct err *err, int64_t at_least_ms)
{
    close_stream(relay);
    if (err->class != ERR_RETRY) {
        stop_with(relay, err);
        return;
    }
    tell_trouble(relay, err);
    if (relay->stop)
        relay->phase = STOPPED; /* nothing can be confirmed any more */
    else
        wait_then_connect(relay, at_least_ms);
}

/* No more changes are taken; what is under way gets its time. */
static void drain(struct relay *relay)
{
    if (!relay->stop) {
        relay->stop = true;
        relay->stop_by_ms = relay->now_ms + relay->config->relay.shutdown_timeout_ms;
    }
    relay->phase = relay->phase == STREAMING ? DRAINING : STOPPED;
}

static void stop_with(struct relay *relay, const struct err *err)
{
    relay->failure = *err;
    drain(relay);
}

/* ---- connecting ------------------------------------------------------------------ */

static void stand_by(struct relay *relay)
{
    struct err err = {0};

    if (relay->phase != STANDBY)
        log_event(LOG_INFO, NULL, "slot %s is active for PID %d: standing by",
                  relay->config->postgres.slot,
                  (int)relay->connection.server->active_pid);
    relay->phase = STANDBY;
    relay->look_ms = relay->now_ms + STANDBY_LOOK_MS;
    (void)err;
}

static int open_source(struct relay *relay, lsn_t start, struct err *err)
{
    struct connection *c = &relay->connection;
    bool typed = relay->typed || c->server->types_needed;
    struct router_options routing = {typed, c->server->encoding.kind == ENCODING_UNKNOWN};
    struct slot_options options = {
        .name = relay->config->postgres.slot,
        .start = start,
        .typed = typed,
        .catalog = c->server->catalog,
        .encoding = &c->server->encoding,
    };

    relay->publisher.router = router_new(relay->config, c->server->catalog, routing, err);
    if (!relay->publisher.router)
        return -1;
    relay->source = slot_open(c->replication, &options, relay->now_ms, err);
    c->replication = NULL;
    return relay->source ? 0 : -1;
}

static void stream(struct relay *relay)
{
    struct connection *c = &relay->connection;
    lsn_t start =
        history_start(&relay->history, &c->history, ledger_flushed(relay->ledger));
    lsn_t from = start > c->server->confirmed_flush ? start : c->server->confirmed_flush;
    struct err err = {0};

    /* What Kafka has not acknowledged by now comes again from PostgreSQL. */
    if (sink_pending(relay->sink) > 0)
        sink_drop(relay->sink);
    if (open_source(relay, start, &err) != 0) {
        lost(relay, &err, 0);
        return;
    }
    relay->history = c->history;
    ledger_restart(relay->ledger, from);
    relay->phase = STREAMING;
    relay->drained = false;
    relay->ping.at_ms = relay->now_ms + PING_EVERY_MS;
    log_event(LOG_INFO, NULL, "streaming from slot %s at %" LSN_FMT,
              relay->config->postgres.slot, LSN_ARG(from));
}

static void connected(struct relay *relay)
{
    struct connection *c = &relay->connection;

    job_finish(relay->job);
    relay->job = NULL;
    if (c->err.class != ERR_NONE) {
        struct err err = c->err;

        lost(relay, &err, 0);
        return;
    }
    if (c->server->active_pid != 0)
        stand_by(relay);
    else if (c->replication)
        stream(relay);
    else { /* the slot became free while we stood by: check everything again */
        connection_done(c);
        connect_now(relay);
    }
}

static void serve_connecting(struct relay *relay)
{
    struct err err = {0};

    if (relay->job && job_is_done(relay->job))
        connected(relay);
    if (relay->phase == STANDBY && !relay->job && relay->now_ms >= relay->look_ms) {
        relay->job = connection_look_again(&relay->connection, &err);
        if (!relay->job)
            lost(relay, &err, 0);
    }
    if (relay->phase == WAITING && relay->now_ms >= relay->wait_until_ms &&
        (sink_pending(relay->sink) == 0 || !sink_is_up(relay->sink) ||
         relay->now_ms >= relay->wait_until_ms + SETTLE_MS))
        connect_now(relay);
}

/* ---- streaming --------------------------------------------------------------------- */

static void take_signals(struct relay *relay)
{
    int signal = signals_take(relay->signal_fd);

    if (signal == 0)
        return;
    if (signal == SIGHUP) {
        log_event(LOG_INFO, NULL,
                  "SIGHUP: settings are read at start only; restart to "
                  "change them");
        return;
    }
    if (relay->stop) {
        log_event(LOG_WARNING, NULL, "stopping at once; up to %zu events may be repeated",
                  sink_pending(relay->sink));
        relay->phase = STOPPED;
        return;
    }
    log_event(LOG_INFO, NULL, "stopping: %zu events wait for Kafka",
              sink_pending(relay->sink));
    drain(relay);
}

static void take_acks(struct relay *relay)
{
    struct err err = {0};
    ticket_t ticket;
    int rc = sink_serve(relay->sink, relay->now_ms, &err);

    while (sink_done(relay->sink, &ticket)) {
        ledger_ack(relay->ledger, ticket);
        relay->acked = true;
    }
    if (rc != 0 && relay->failure.class == ERR_NONE)
        stop_with(relay, &err);
}

/* The stream is read while there is room, and, when stopping, to the end of the open
 * transaction, so that a restart does not publish its beginning twice. */
static bool is_reading(const struct relay *relay)
{
    if (relay->has_change)
        return false;
    if (relay->phase == STREAMING)
        return true;
    return relay->phase == DRAINING && relay->failure.class == ERR_NONE &&
           ledger_open(relay->ledger);
}

static void note_age(struct relay *relay, const struct change *change)
{
    if (change->kind == CHANGE_BEGIN)
        relay->behind = change->sent_us - change->commit_us > BEHIND_US;
}

/* 1: dealt with; 0: stays in hand; -1: the stream is over. */
static int publish_change(struct relay *relay)
{
    struct err err = {0};

    switch (publish(&relay->publisher, &relay->change, clock_wall_us() / 1000, &err)) {
    case PUBLISHED:
        relay->has_change = false;
        return 1;
    case PUBLISH_FULL:
        return 0;
    case PUBLISH_NEED_TYPES:
        relay->typed = true;
        (void)err_set(&err, ERR_RETRY,
                      "a payload at %" LSN_FMT " is hexadecimal text or bytea: streaming "
                      "again with column types to tell",
                      LSN_ARG(relay->change.lsn));
        lost(relay, &err, 0);
        return -1;
    case PUBLISH_FAILED:
        relay->has_change = false;
        stop_with(relay, &err);
        return -1;
    }
    return -1;
}

/* 1: a change is in hand; 0: nothing complete has arrived; -1: the stream is over. */
static int get_change(struct relay *relay)
{
    struct err err = {0};
    int rc = source_next(relay->source, relay->now_ms, &relay->change, &err);

    if (rc < 0) {
        lost(relay, &err, 0);
        return -1;
    }
    if (rc == 0)
        return 0;
    relay->has_change = true;
    relay->told[0] = '\0'; /* it works: the next trouble is news */
    backoff_reset(&relay->backoff);
    note_age(relay, &relay->change);
    return 1;
}

static bool read_source(struct relay *relay)
{
    struct err err = {0};

    if (source_read(relay->source, &err) == 0)
        return true;
    /* What came before the end is still in libpq's buffer; its reason, too. */
    if (relay->phase == ENDING)
        relay->phase = STOPPED;
    else
        lost(relay, &err, 0);
    return false;
}

static void take_changes(struct relay *relay)
{
    int taken = 0;

    relay->drained = false;
    if (relay->has_change && publish_change(relay) != 1)
        return;
    if (!is_reading(relay) || !read_source(relay))
        return;
    while (taken < CHANGES_PER_TURN && is_reading(relay)) {
        int rc = get_change(relay);

        if (rc < 0 || (rc == 1 && publish_change(relay) != 1))
            return;
        if (rc == 0)
            break;
        taken++;
    }
    relay->drained = taken == 0;
}

/* Under load batches fill while others travel; a quiet stream does not wait for more. */
static void push(struct relay *relay)
{
    if ((relay->drained && !relay->behind) || relay->phase == DRAINING)
        sink_push(relay->sink);
}

static void confirm(struct relay *relay)
{
    struct err err = {0};
    bool all = ledger_in_flight(relay->ledger) == 0 && !ledger_open(relay->ledger);
    enum confirm_urgency urgency = !relay->acked ? CONFIRM_OTHERS
                                   : all         ? CONFIRM_DRAINED
                                                 : CONFIRM_OWN;

    relay->acked = false;
    if (source_confirm(relay->source, ledger_flushed(relay->ledger), urgency,
                       is_reading(relay), relay->now_ms, &err) != 0)
        lost(relay, &err, 0);
}

/* ---- a server that shuts down and waits for us ----------------------------------------
 */

static void ping_work(void *arg)
{
    struct ping *ping = arg;

    ping->rejected = pg_ping_rejected(ping->dsn);
}

static void begin_ping(struct relay *relay)
{
    relay->ping.dsn = relay->config->postgres.dsn;
    relay->ping.at_ms = relay->now_ms + PING_EVERY_MS;
    relay->ping.job = job_start(ping_work, &relay->ping, NULL);
}

/* A fast shutdown waits for ever for a client that cannot confirm everything, because
 * Kafka is away (WalSndDone in walsender.c).  New connections are refused meanwhile, and
 * that is how we know.  What is not confirmed comes again. */
static void watch_for_shutdown(struct relay *relay)
{
    struct err err = {0};

    if (!relay->ping.job) {
        bool stuck = !is_reading(relay) && relay->now_ms >= relay->ping.at_ms;

        if (is_reading(relay))
            relay->ping.at_ms = relay->now_ms + PING_EVERY_MS;
        if (source_suspect(relay->source) || stuck)
            begin_ping(relay);
        return;
    }
    if (!job_is_done(relay->ping.job))
        return;
    job_finish(relay->ping.job);
    relay->ping.job = NULL;
    if (!relay->ping.rejected)
        return;
    (void)err_set(&err, ERR_RETRY,
                  "PostgreSQL is shutting down: leaving it, %zu events "
                  "are not confirmed",
                  sink_pending(relay->sink));
    lost(relay, &err, REJECTED_WAIT_MS);
}

/* ---- stopping
 * --------------------------------------------------------------------------- */

static void end_stream(struct relay *relay)
{
    struct err err = {0};

    relay->phase = ENDING;
    relay->has_change = false;
    if (relay->stop_by_ms < relay->now_ms + END_MS)
        relay->stop_by_ms = relay->now_ms + END_MS;
    if (source_end(relay->source, ledger_flushed(relay->ledger), relay->now_ms, &err) ==
        0)
        return;
    log_err(LOG_WARNING, &err);
    relay->phase = STOPPED;
}

static void serve_draining(struct relay *relay)
{
    bool open = ledger_open(relay->ledger) && relay->failure.class == ERR_NONE;
    bool late = relay->now_ms >= relay->stop_by_ms;

    if (!late &&
        (open || (sink_pending(relay->sink) > 0 && relay->failure.class != ERR_POISON)))
        return;
    if (late)
        log_event(
            LOG_WARNING, NULL,
            "shutdown_timeout is over: %zu events are not acknowledged by Kafka and "
            "may be repeated after the next start",
            sink_pending(relay->sink));
    end_stream(relay);
}

/* Discards what still comes, until the server has read our last word. */
static void serve_ending(struct relay *relay)
{
    struct err err = {0};
    struct change change;
    int rc = 1;

    if (source_end(relay->source, ledger_flushed(relay->ledger), relay->now_ms, &err) !=
            0 ||
        relay->now_ms >= relay->stop_by_ms || !read_source(relay)) {
        relay->phase = STOPPED;
        return;
    }
    while (rc == 1)
        rc = source_next(relay->source, relay->now_ms, &change, &err);
    if (rc < 0 || source_ended(relay->source))
        relay->phase = STOPPED;
}

/* ---- the loop -------------------------------------------------------------------------
 */

static int64_t next_deadline(const struct relay *relay)
{
    int64_t deadline = sink_deadline(relay->sink);

    if (relay->stop)
        deadline = clock_min(deadline, relay->stop_by_ms);
    if (relay->phase == WAITING)
        deadline = clock_min(deadline, relay->wait_until_ms > relay->now_ms
                                           ? relay->wait_until_ms
                                           : relay->now_ms + STANDBY_LOOK_MS / 10);
    if (relay->phase == STANDBY && !relay->job)
        deadline = clock_min(deadline, relay->look_ms);
    if (!relay->source)
        return deadline;
    deadline = clock_min(deadline, source_deadline(relay->source));
    if (relay->phase == STREAMING && !is_reading(relay) && !relay->ping.job)
        deadline = clock_min(deadline, relay->ping.at_ms);
    if (is_reading(relay) && !relay->drained)
        deadline = relay->now_ms; /* there may be more, even if the socket looks empty */
    return deadline;
}

static int timeout_of(const struct relay *relay)
{
    int64_t left = next_deadline(relay) - relay->now_ms;

    if (left <= 0)
        return 0;
    return left < 60000 ? (int)left : 60000;
}

static void wait_for_any(struct relay *relay)
{
    struct pollfd fds[4 + SINK_FDS];
    nfds_t n = 0;

    fds[n++] = (struct pollfd){relay->signal_fd, POLLIN, 0};
    n += sink_fds(relay->sink, fds + n);
    if (relay->source)
        fds[n++] = source_fd(relay->source, is_reading(relay));
    if (relay->job)
        fds[n++] = (struct pollfd){job_fd(relay->job), POLLIN, 0};
    if (relay->ping.job)
        fds[n++] = (struct pollfd){job_fd(relay->ping.job), POLLIN, 0};
    must(poll(fds, n, timeout_of(relay)) >= 0 || errno == EINTR);
    relay->now_ms = clock_mono_ms();
}

static void serve_stream(struct relay *relay)
{
    take_changes(relay);
    push(relay);
    if (relay->source)
        confirm(relay);
    if (relay->source && relay->phase == STREAMING)
        watch_for_shutdown(relay);
    if (relay->phase == DRAINING)
        serve_draining(relay);
}

static void turn(struct relay *relay)
{
    wait_for_any(relay);
    take_signals(relay);
    take_acks(relay); /* first make room, then read */
    switch (relay->phase) {
    case CONNECTING:
    case STANDBY:
    case WAITING:
        serve_connecting(relay);
        break;
    case STREAMING:
    case DRAINING:
        serve_stream(relay);
        break;
    case ENDING:
        serve_ending(relay);
        break;
    case STOPPED:
        break;
    }
}

/* ---- life
 * ---------------------------------------------------------------------------------- */

static int open_relay(struct relay *relay, struct err *err)
{
    struct sink_options options = {
        .properties = relay->config->kafka,
        .nproperties = relay->config->nkafka,
        .memory_bytes = relay->config->relay.memory_bytes,
        .notice = notice,
        .notice_arg = relay,
    };

    relay->signal_fd = signals_open(err);
    if (relay->signal_fd < 0)
        return -1;
    relay->sink = sink_new(&options, err);
    if (!relay->sink)
        return -1;
    relay->ledger = ledger_new(MAX_TRANSACTIONS, LSN_NONE);
    if (!relay->ledger)
        return err_set(err, ERR_INTERNAL, "out of memory for %d transactions",
                       MAX_TRANSACTIONS);
    relay->publisher = (struct publisher){.ledger = relay->ledger, .sink = relay->sink};
    backoff_init(&relay->backoff, CONNECT_MS, CONNECT_MAX_MS);
    return 0;
}

/* False: a job still runs and may look at the configuration. */
static bool close_relay(struct relay *relay)
{
    bool left = relay->job && !job_is_done(relay->job);

    if (relay->ping.job)
        left = left || !job_is_done(relay->ping.job);
    if (!left) {
        if (relay->job)
            job_finish(relay->job);
        if (relay->ping.job)
            job_finish(relay->ping.job);
        close_stream(relay);
    }
    sink_free(relay->sink);
    ledger_free(relay->ledger);
    if (relay->signal_fd >= 0)
        signals_close(relay->signal_fd);
    return !left;
}

int relay_run(const struct config *config, const char *config_path, struct err *err)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    int rc;

    (void)config_path;
    if (!relay)
        return err_set(err, ERR_INTERNAL, "out of memory");
    relay->config = config;
    relay->now_ms = clock_mono_ms();
    rc = open_relay(relay, err);
    if (rc == 0) {
        connect_now(relay);
        while (relay->phase != STOPPED)
            turn(relay);
    }
    if (relay->failure.class != ERR_NONE) {
        *err = relay->failure;
        rc = -1;
    }
    if (!close_relay(relay))
        return rc == 0 ? 1 : rc; /* the job's thread still uses relay */
    free(relay);
    return rc;
}
