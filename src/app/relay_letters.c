/* relay_letters.c - events that Kafka does not take, into their table; see
 * relay_state.h and letters.h. */
#include "app/letters.h"
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    WRITE_BYTES = 4 << 20, /* of payloads in one statement */
    AGAIN_MS = 200,
    AGAIN_MAX_MS = 10000,
    TELL_EVERY_MS = 60000,
    KEY_BYTES = 64 << 20,
};

/* ---- trouble ---------------------------------------------------------------------- */

static void failed(struct relay *relay, const struct err *err)
{
    struct letters *l = relay->letters;

    l->retry.changed = l->retry.changed || l->op == OP_COUNT;
    l->tally.stale = l->tally.stale || l->op == OP_TALLY;
    l->op = OP_NONE;
    if (l->writer && deadletters_fenced(l->writer)) {
        relay_lost(relay, err, 0);
        return;
    }
    if (l->writer && !deadletters_usable(l->writer)) {
        deadletters_free(l->writer);
        l->writer = NULL;
    }
    l->failing = true;
    l->at_ms = relay->now_ms + backoff_next(&l->backoff, relay_random(relay));
    relay_letters_tell(relay, err);
}

static void went_well(struct relay *relay)
{
    struct letters *l = relay->letters;

    if (l->failing)
        log_event(LOG_INFO, NULL, "the table of dead letters is in use again");
    l->failing = false;
    l->told[0] = '\0';
    backoff_reset(&l->backoff);
}

/* ---- connecting ------------------------------------------------------------------- */

static void begin_link(struct relay *relay)
{
    struct letters *l = relay->letters;
    struct err err = {0};

    l->link.config = relay->config;
    l->link.walsender_pid = l->walsender_pid;
    l->link.from = l->from;
    l->link.held = l->loaded ? NULL : l->held;
    l->link.pg = NULL;
    l->link.lost = false;
    l->link.err = (struct err){0};
    l->awaited = true;
    l->job = job_start(letters_connect, &l->link, &err);
    if (!l->job)
        failed(relay, &err);
}

static void use(struct relay *relay)
{
    struct letters *l = relay->letters;
    const struct config *config = relay->config;

    relay_retry_begin(relay);
    relay_tally_changed(l);
    if (l->loaded)
        return;
    l->loaded = true;
    relay->publisher.held = l->held;
    sink_dead_letters(relay->sink, l->held, (unsigned)config->dead_letters.max_attempts);
    if (held_events(l->held) > 0)
        log_event(LOG_INFO, NULL, "%zu dead letters of %zu keys are unresolved",
                  held_events(l->held), held_keys(l->held));
}

static void end_link(struct relay *relay)
{
    struct letters *l = relay->letters;
    const struct deadletters_options options = {relay->config->dead_letters.schema,
                                                relay->config->postgres.slot,
                                                l->link.walsender_pid};
    struct err err = l->link.err;

    job_finish(l->job);
    l->job = NULL;
    if (!l->on || !l->awaited) {
        pg_close(l->link.pg);
        return;
    }
    if (l->link.lost) {
        relay_lost(relay, &err, 0);
        return;
    }
    if (l->link.pg)
        l->writer = deadletters_new(l->link.pg, &options, &err);
    if (l->writer)
        use(relay);
    else
        failed(relay, &err);
}

/* ---- rows ------------------------------------------------------------------------- */

static int write_rows(struct relay *relay, size_t n, struct err *err)
{
    struct letters *l = relay->letters;

    for (size_t i = 0; i < n; i++) {
        l->rows[i] = relay_letter(relay, l->entries[i], &l->messages[i]);
        l->ended[i] = l->rows[i].end != LSN_NONE;
        if (!l->rows[i].held && !l->rows[i].dead)
            l->retry.due_ms =
                clock_min(l->retry.due_ms, relay->now_ms + l->rows[i].retry_ms);
    }
    l->n = n;
    if (deadletters_write(l->writer, l->rows, n, err) != 0)
        return -1;
    l->op = OP_WRITE;
    return 1;
}

static void tell_written(const struct entry *e)
{
    char attempt[16];
    struct log_field fields[] = {
        {"topic", sink_topic_of(e)},         {"table", e->table},
        {"event_id", e->event_id},           {"event_type", e->event_type},
        {"aggregate_id", e->aggregate_id},   {"attempt", {0}},
        {"code", slice_of(e->refusal.code)}, LOG_END};

    (void)snprintf(attempt, sizeof(attempt), "%u", e->attempts > 0 ? e->attempts : 1);
    fields[5].value = slice_of(attempt);
    if (e->refusal.held)
        log_event(LOG_DEBUG, fields, "a dead letter: held behind another of its key");
    else
        log_event(LOG_WARNING, fields, "a dead letter: %s: %s", e->refusal.reason,
                  e->refusal.text ? e->refusal.text : "");
}

static void acknowledge(struct relay *relay, const struct entry *e, bool ended)
{
    if (!ended && publish_note_unended(&relay->publisher, e->ticket, e->begin_lsn,
                                       e->place.commit_us))
        return;
    ledger_ack(relay->ledger, e->ticket);
}

/* The same entries as when they were taken: what is before them is durable and stays so.
 */
static void rows_written(struct relay *relay)
{
    struct letters *l = relay->letters;
    size_t n = sink_refused(relay->sink, l->entries, l->n, SIZE_MAX);

    for (size_t i = 0; i < n; i++) {
        const struct entry *e = l->entries[i];

        /* resolved meanwhile: what it was to wait behind */
        if (held_written(l->held, sink_topic_of(e), e->key) && e->refusal.held)
            l->retry.due_ms = relay->now_ms;
        tell_written(e);
        acknowledge(relay, e, l->ended[i]);
    }
    sink_settle(relay->sink, n);
    relay->acked = true;
    letters_copies_written(&l->copies);
}

/* ---- the end of a transaction whose rows are written already ------------------------
 */

static bool end_is_known(const struct relay *relay)
{
    const struct unended *u = &relay->publisher.unended;

    return u->n > 0 && ledger_end(relay->ledger, u->ticket) != LSN_NONE;
}

static int write_end(struct relay *relay, struct err *err)
{
    struct letters *l = relay->letters;
    const struct unended *u = &relay->publisher.unended;

    if (deadletters_end(l->writer, u->begin_lsn, u->commit_us,
                        ledger_end(relay->ledger, u->ticket), err) != 0)
        return -1;
    l->op = OP_END;
    return 1;
}

static void end_written(struct relay *relay)
{
    struct unended *u = &relay->publisher.unended;

    for (; u->n > 0; u->n--)
        ledger_ack(relay->ledger, u->ticket);
    relay->acked = true;
}

/* ---- too many --------------------------------------------------------------------- */

static void tell_open(struct relay *relay)
{
    struct letters *l = relay->letters;

    if (l->open_told_ms != 0 && relay->now_ms - l->open_told_ms < TELL_EVERY_MS)
        return;
    l->open_told_ms = relay->now_ms;
    log_event(LOG_WARNING, NULL,
              "more than %llu events were refused within %lld s, so it is hardly the "
              "events' fault: nothing more is read, and no dead letters are written, "
              "until SIGHUP or a restart; mend what refuses them, or raise limit in "
              "[dead_letters]",
              (unsigned long long)relay->config->dead_letters.limit,
              (long long)relay->config->dead_letters.limit_window_ms / 1000);
}

static void count_refusals(struct relay *relay)
{
    struct letters *l = relay->letters;

    for (; l->refusals < sink_refusals(relay->sink); l->refusals++)
        breaker_count(l->breaker, relay->now_ms);
    if (breaker_is_open(l->breaker))
        tell_open(relay);
}

void relay_letters_reset(struct relay *relay)
{
    struct letters *l = relay->letters;

    if (!l || !breaker_is_open(l->breaker))
        return;
    l->open_told_ms = 0;
    breaker_reset(l->breaker);
    log_event(LOG_INFO, NULL, "events that are refused go into the table again");
}

/* ---- one turn --------------------------------------------------------------------- */

static void answered(struct relay *relay)
{
    struct letters *l = relay->letters;
    enum letters_op op = l->op;

    l->op = OP_NONE;
    went_well(relay);
    if (op == OP_WRITE || op == OP_RESOLVE || op == OP_FAIL)
        relay_tally_changed(l);
    if (op == OP_WRITE)
        rows_written(relay);
    else if (op == OP_END)
        end_written(relay);
    else if (op == OP_TALLY)
        relay_tally_answered(relay);
    else
        relay_retry_answered(relay, op);
}

/* 1: a statement is under way; 0: nothing to do. */
static int ask(struct relay *relay, struct err *err)
{
    struct letters *l = relay->letters;
    size_t n;

    if (end_is_known(relay))
        return write_end(relay, err);
    if (relay_tally_is_due(relay))
        return relay_tally_ask(relay, err);
    if (breaker_is_open(l->breaker))
        return 0;
    n = sink_refused(relay->sink, l->entries, DEADLETTERS_MAX, WRITE_BYTES);
    if (n > 0 && !ticket_is_retry(l->entries[0]->ticket)) {
        n = letters_copied(relay, n);
        if (n > 0)
            return write_rows(relay, n, err);
    }
    return relay_retry_ask(relay, err);
}

static void serve_writer(struct relay *relay)
{
    struct letters *l = relay->letters;
    struct err err = {0};
    int rc = 0;

    if (l->readable || l->op != OP_NONE)
        rc = deadletters_serve(l->writer, &err);
    l->readable = false;
    if (rc >= 0 && deadletters_changed(l->writer)) {
        l->retry.changed = true;
        relay_tally_changed(l);
    }
    if (rc > 0)
        answered(relay);
    if (rc >= 0 && l->op == OP_NONE && relay->now_ms >= l->at_ms)
        rc = ask(relay, &err);
    if (rc > 0 && l->op != OP_NONE)
        l->asked_ms = relay->now_ms;
    if (rc < 0)
        failed(relay, &err);
}

void relay_serve_letters(struct relay *relay)
{
    struct letters *l = relay->letters;

    if (!l)
        return;
    if (l->job && job_is_done(l->job))
        end_link(relay);
    letters_copies_serve(relay);
    if (!l->on || (relay->phase != STREAMING && relay->phase != DRAINING))
        return;
    count_refusals(relay);
    if (l->writer)
        relay_retry_serve(relay);
    if (l->writer)
        serve_writer(relay);
    else if (!l->job && relay->now_ms >= l->at_ms)
        begin_link(relay);
    relay_letters_watch_answer(relay);
}

/* ---- what the others ask ------------------------------------------------------------
 */

bool relay_letters_ready(const struct relay *relay)
{
    const struct letters *l = relay->letters;

    return !l || !l->on || (l->loaded && !breaker_is_open(l->breaker));
}

bool relay_letters_settled(const struct relay *relay)
{
    const struct letters *l = relay->letters;

    return !l || !l->on ||
           (!end_is_known(relay) && l->op == OP_NONE && relay_retry_is_settled(relay));
}

size_t relay_letters_fds(const struct relay *relay, struct pollfd *fds)
{
    const struct letters *l = relay->letters;
    size_t n = 0;

    if (l && l->writer)
        fds[n++] = deadletters_fd(l->writer);
    if (l && l->copies.lane)
        n += lane_fds(l->copies.lane, fds + n);
    return n;
}

void relay_letters_polled(struct relay *relay, const struct pollfd *fd)
{
    struct letters *l = relay->letters;

    if (fd->revents != 0 && l->writer && fd->fd == deadletters_fd(l->writer).fd)
        l->readable = true;
}

static int64_t statement_deadline(const struct relay *relay)
{
    const struct letters *l = relay->letters;
    int64_t deadline;

    if (l->job)
        return CLOCK_NEVER;
    if (l->op != OP_NONE)
        return relay_letters_answer_deadline(l);
    if (breaker_is_open(l->breaker))
        return clock_min(l->open_told_ms + TELL_EVERY_MS, relay_tally_deadline(relay));
    deadline = l->writer ? relay_retry_deadline(relay) : l->at_ms;
    if (l->failing)
        deadline = clock_min(deadline, l->at_ms);
    deadline = clock_min(deadline, relay_tally_deadline(relay));
    return deadline > l->at_ms ? deadline : l->at_ms;
}

int64_t relay_letters_deadline(const struct relay *relay)
{
    const struct letters *l = relay->letters;

    if (!l || !l->on)
        return CLOCK_NEVER;
    return clock_min(statement_deadline(relay), letters_copies_deadline(&l->copies));
}

/* ---- life ---------------------------------------------------------------------------
 */

int relay_letters_open(struct relay *relay, struct err *err)
{
    const struct config *c = relay->config;
    const struct held_limits limits = {(size_t)c->dead_letters.held_per_key,
                                       (size_t)c->dead_letters.held_total, KEY_BYTES,
                                       c->dead_letters.order == ORDER_SKIP};
    struct letters *l;

    if (c->dead_letters.on_poison != ON_POISON_DEAD_LETTER)
        return 0;
    l = relay->letters = calloc(1, sizeof(*l));
    if (l) {
        l->held = held_new(limits);
        l->breaker =
            breaker_new((size_t)c->dead_letters.limit, c->dead_letters.limit_window_ms);
        backoff_init(&l->backoff, AGAIN_MS, AGAIN_MAX_MS);
        letters_copies_init(&l->copies);
        l->retry.failed = -1;
        l->tally.wanted = relay->metrics != NULL;
    }
    if (!l || !l->held || !l->breaker)
        return err_set(err, ERR_INTERNAL, "out of memory for dead letters");
    return 0;
}

/* The job is done. */
void relay_letters_close(struct relay *relay)
{
    struct letters *l = relay->letters;

    if (!l)
        return;
    if (l->job)
        pg_close(l->link.pg);
    relay_letters_end(relay);
    relay_retry_done(l);
    letters_copies_done(&l->copies);
    held_free(l->held);
    breaker_free(l->breaker);
    free(l);
    relay->letters = NULL;
}

int relay_letters_look(const struct relay *relay, struct err *err)
{
    const struct letters *l = relay->letters;

    if (!l || !l->used || relay->connection.server->dead_letters)
        return 0;
    return err_set_code(err, ERR_RETRY, "42P01",
                        "the table of dead letters is gone, and with it which keys wait "
                        "for an event: bring it back, or make it anew (walrelay setup "
                        "--apply); restart the relay to go on without it");
}

void relay_letters_begin(struct relay *relay, int walsender_pid, lsn_t from)
{
    struct letters *l = relay->letters;

    if (!l)
        return;
    relay_retry_done(l);
    if (!relay->connection.server->dead_letters) {
        sink_dead_letters(relay->sink, NULL, 0);
        return;
    }
    l->on = l->used = true;
    l->loaded = false;
    l->walsender_pid = walsender_pid;
    l->from = from;
    l->at_ms = relay->now_ms;
    l->refusals = sink_refusals(relay->sink);
}

void relay_letters_end(struct relay *relay)
{
    struct letters *l = relay->letters;

    relay->publisher.held = NULL;
    relay->publisher.unended = (struct unended){0};
    if (!l)
        return;
    l->on = l->loaded = l->awaited = false;
    l->op = OP_NONE;
    letters_copies_drop(&l->copies);
    deadletters_free(l->writer);
    l->writer = NULL;
}
