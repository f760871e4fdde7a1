/* relay.c - the loop; see relay_state.h. */
#include "app/relay.h"

#include "app/letters.h"
#include "app/load.h"
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "io/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

enum {
    MAX_TRANSACTIONS = 32768, /* with messages, in flight */
    CONNECT_MS = 100,
    CONNECT_MAX_MS = 10000,
    TELL_EVERY_MS = 60000,
    LONGEST_POLL_MS = 60000,
    JOBS = 6,
    PAUSE_PART =
        3, /* of the patience with the server: 10 s at first, wal_sender_timeout */
};

void relay_tell(struct relay *relay, const struct err *err)
{
    if (strcmp(relay->told, err->text) == 0 &&
        relay->now_ms - relay->told_ms < TELL_EVERY_MS)
        return;
    memcpy(relay->told, err->text, sizeof(relay->told));
    relay->told_ms = relay->now_ms;
    log_err(LOG_WARNING, err);
}

void relay_notice(void *arg, enum log_level level, const struct log_field *fields,
                  const char *text)
{
    (void)arg;
    log_event(level, fields, "%s", text);
}

/* ---- signals -------------------------------------------------------------------- */

static void reload(struct relay *relay)
{
    struct err err = {0};
    struct config *config = config_load(relay->config_path, (config_env_t)environ, &err);

    if (!config) {
        log_err(LOG_ERROR, &err);
        log_event(LOG_WARNING, NULL, "the settings stay as they were");
        return;
    }
    relay_watch_now(relay);
    relay_letters_reset(relay);
    log_init(config->relay.log_level, config->relay.log_format);
    relay->shutdown_timeout_ms = config->relay.shutdown_timeout_ms;
    config_free(config);
    log_event(LOG_INFO, NULL,
              "log_level, log_format and shutdown_timeout are read again, and the server "
              "is checked again; all other settings need a restart");
}

static void take_signals(struct relay *relay)
{
    int signal = signals_take(relay->signal_fd);

    if (signal == 0)
        return;
    if (signal == SIGHUP) {
        reload(relay);
    } else if (relay->stop) {
        log_event(LOG_WARNING, NULL, "stopping at once: %zu events may be repeated",
                  sink_pending(relay->sink));
        relay->phase = STOPPED;
    } else {
        log_event(LOG_INFO, NULL, "stopping: %zu events wait for Kafka",
                  sink_pending(relay->sink));
        relay_drain(relay);
    }
}

/* ---- the loop ------------------------------------------------------------------- */

static void take_acks(struct relay *relay)
{
    struct err err = {0};
    ticket_t ticket;
    int rc = sink_serve(relay->sink, relay->now_ms, &err);

    while (sink_done(relay->sink, &ticket)) {
        relay->published++;
        if (ticket_is_retry(ticket)) {
            relay_letters_arrived(relay, ticket);
            continue;
        }
        ledger_ack(relay->ledger, ticket);
        relay->acked = true;
    }
    if (rc == 0 || relay->sink_failed)
        return;
    relay->sink_failed = true;
    relay_stop_with(relay, &err);
}

static int timeout_of(const struct relay *relay)
{
    int64_t deadline =
        clock_min(sink_deadline(relay->sink), relay_metrics_deadline(relay));
    int64_t left;

    if (relay->stop)
        deadline = clock_min(deadline, relay->stop_by_ms);
    deadline = clock_min(deadline, relay->source ? relay_stream_deadline(relay)
                                                 : relay_connect_deadline(relay));
    left = deadline - relay->now_ms;
    if (left <= 0)
        return 0;
    return left < LONGEST_POLL_MS ? (int)left : LONGEST_POLL_MS;
}

/* All that may run beside the loop; NULL where nothing does. */
struct jobs {
    struct job *all[JOBS];
};

static struct jobs jobs_of(const struct relay *relay)
{
    return (struct jobs){{relay->job, relay->ping.job, relay->inquiry.job,
                          relay->watch.job, relay->memo.job,
                          relay->letters ? relay->letters->job : NULL}};
}

static nfds_t job_fds(const struct relay *relay, struct pollfd *ret)
{
    struct jobs jobs = jobs_of(relay);
    nfds_t n = 0;

    for (size_t i = 0; i < JOBS; i++) {
        if (jobs.all[i])
            ret[n++] = (struct pollfd){job_fd(jobs.all[i]), POLLIN, 0};
    }
    return n;
}

/* A process that was stopped, or a machine that was, comes back to a slot that another
 * relay may have: it must not go on as if nothing had happened.  patience_ms grows, so a
 * single turn that takes that long is possible in the end. */
static void note_pause(struct relay *relay, int64_t late_ms)
{
    struct err err = {0};

    if (relay->phase != STREAMING || late_ms < relay->patience_ms / PAUSE_PART)
        return;
    (void)err_set(&err, ERR_RETRY,
                  "this process stood still for %d s, and another one may stream by now: "
                  "connecting again",
                  (int)(late_ms / 1000));
    relay_be_patient(relay);
    relay_lost(relay, &err, 0);
}

static void wait_for_any(struct relay *relay)
{
    int64_t before = relay->now_ms;
    int timeout = timeout_of(relay);
    struct pollfd fds[2 + SINK_FDS + LETTERS_FDS + METRICS_FDS + JOBS];
    nfds_t n = 0;
    nfds_t letters;
    nfds_t metrics;
    nfds_t after;

    fds[n++] = (struct pollfd){relay->signal_fd, POLLIN, 0};
    n += sink_fds(relay->sink, fds + n);
    if (relay->source)
        fds[n++] = source_fd(relay->source, relay_awaits_input(relay));
    letters = n;
    n += relay_letters_fds(relay, fds + n);
    metrics = n;
    n += relay_metrics_fds(relay, fds + n);
    after = n;
    n += job_fds(relay, fds + n);
    must(poll(fds, n, timeout) >= 0 || errno == EINTR);
    relay->now_ms = clock_mono_ms();
    for (nfds_t i = letters; i < metrics; i++)
        relay_letters_polled(relay, &fds[i]);
    for (nfds_t i = metrics; i < after; i++)
        relay_metrics_polled(relay, &fds[i]);
    note_pause(relay, relay->now_ms - before - timeout);
}

static void turn(struct relay *relay)
{
    wait_for_any(relay);
    take_signals(relay);
    take_acks(relay); /* first make room, then read */
    relay_serve_ping(relay);
    relay_serve_inquiry(relay);
    relay_serve_watch(relay);
    relay_serve_memo(relay);
    switch (relay->phase) {
    case CONNECTING:
    case STANDBY:
    case WAITING:
        relay_serve_connecting(relay);
        break;
    case STREAMING:
    case DRAINING:
        relay_serve_stream(relay);
        break;
    case ENDING:
        relay_serve_ending(relay);
        break;
    case STOPPED:
        break;
    }
    relay_serve_letters(relay);
    relay_serve_metrics(relay);
}

/* ---- life ------------------------------------------------------------------------ */

/* Otherwise nothing would come of it. */
static int64_t topic_wait_ms(const struct config *config)
{
    return config->dead_letters.on_poison == ON_POISON_DEAD_LETTER
               ? config->dead_letters.topic_wait_ms
               : 0;
}

static int open_relay(struct relay *relay, struct err *err)
{
    struct sink_options options = {
        .properties = relay->config->kafka,
        .nproperties = relay->config->nkafka,
        .memory_bytes = relay->config->relay.memory_bytes,
        .topic_wait_ms = topic_wait_ms(relay->config),
        .notice = relay_notice,
        .refused = relay_metrics_refused,
        .refused_arg = relay,
    };

    relay->signal_fd = signals_open(err);
    if (relay->signal_fd < 0 || relay_metrics_open(relay, err) != 0)
        return -1;
    relay->sink = sink_new(&options, err);
    if (!relay->sink)
        return -1;
    relay->ledger = ledger_new(MAX_TRANSACTIONS, LSN_NONE);
    if (!relay->ledger)
        return err_set(err, ERR_INTERNAL, "out of memory for %d transactions",
                       MAX_TRANSACTIONS);
    relay->publisher = (struct publisher){.ledger = relay->ledger, .sink = relay->sink};
    return relay_letters_open(relay, err);
}

/* False: one still runs. */
static bool finish_jobs(const struct relay *relay)
{
    struct jobs jobs = jobs_of(relay);

    for (size_t i = 0; i < JOBS; i++) {
        if (jobs.all[i] && !job_is_done(jobs.all[i]))
            return false;
    }
    for (size_t i = 0; i < JOBS; i++) {
        if (jobs.all[i])
            job_finish(jobs.all[i]);
    }
    return true;
}

/* False: a thread still looks at relay and its configuration. */
static bool close_relay(struct relay *relay)
{
    relay_metrics_close(relay);
    sink_free(relay->sink);
    relay->sink = NULL;
    ledger_free(relay->ledger);
    if (relay->signal_fd >= 0)
        signals_close(relay->signal_fd);
    if (!finish_jobs(relay))
        return false;
    server_free(relay->watch.server);
    family_done(&relay->inquiry.family);
    memo_writer_done(&relay->memo.writer);
    relay_close_stream(relay);
    relay_letters_close(relay);
    return true;
}

static int run(struct relay *relay, struct err *err)
{
    if (open_relay(relay, err) != 0)
        return -1;
    relay_connect(relay);
    while (relay->phase != STOPPED)
        turn(relay);
    if (relay->failure.class == ERR_NONE)
        return 0;
    *err = relay->failure;
    return -1;
}

int relay_run(const struct config *config, const char *config_path, struct err *err)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    int rc;

    if (!relay)
        return err_set(err, ERR_INTERNAL, "out of memory");
    relay->config = config;
    relay->config_path = config_path;
    relay->inquiry.family.config = config;
    relay->shutdown_timeout_ms = config->relay.shutdown_timeout_ms;
    relay->now_ms = clock_mono_ms();
    backoff_init(&relay->backoff, CONNECT_MS, CONNECT_MAX_MS);
    relay_forgive(relay);
    rc = run(relay, err);
    if (close_relay(relay))
        free(relay);
    return rc;
}
