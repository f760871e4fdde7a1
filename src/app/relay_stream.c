/* relay_stream.c - changes in, positions out; see relay_state.h. */
#include "app/relay_state.h"
#include "base/clock.h"

enum {
    CHANGES_PER_TURN = 512,
    BEHIND_US = 1000000, /* a commit that old when the server sends it: catching up */
    PING_EVERY_MS = 2000,
    REJECTED_WAIT_MS = 1000,
    NAP_MS = 1,
};

/* ---- reading -------------------------------------------------------------------- */

/* The stream is read while there is room, and, when stopping, to the end of the open
 * transaction, so that a restart does not publish its beginning twice. */
bool relay_is_reading(const struct relay *relay)
{
    if (relay->has_change || !relay_letters_ready(relay))
        return false;
    if (relay->phase == STREAMING)
        return true;
    return relay->phase == DRAINING && relay->failure.class == ERR_NONE &&
           ledger_open(relay->ledger);
}

bool relay_awaits_input(const struct relay *relay)
{
    return relay_is_reading(relay) && relay->now_ms >= relay->nap_until_ms;
}

bool relay_read_source(struct relay *relay)
{
    struct err err = {0};

    if (source_read(relay->source, &err) == 0)
        return true;
    if (relay->phase == ENDING)
        relay->phase = STOPPED;
    else
        relay_lost(relay, &err, 0);
    return false;
}

static void note_age(struct relay *relay, const struct change *change)
{
    if (change->kind == CHANGE_BEGIN)
        relay->behind = change->sent_us - change->commit_us > BEHIND_US;
}

/* 1: a change is in hand; 0: nothing complete has arrived; -1: the stream is over. */
static int get_change(struct relay *relay)
{
    struct err err;
    int rc;

    err_clear(&err);
    rc = source_next(relay->source, relay->now_ms, &relay->change, &err);
    if (rc < 0)
        relay_lost(relay, &err, 0);
    if (rc != 1)
        return rc;
    relay->has_change = true;
    note_age(relay, &relay->change);
    return 1;
}

static void stream_with_types(struct relay *relay)
{
    struct err err = {0};

    relay->typed = true;
    (void)err_set(&err, ERR_RETRY,
                  "a payload at %" LSN_FMT
                  " is hexadecimal text, or bytea since the column "
                  "was altered: streaming again with column types to tell",
                  LSN_ARG(relay->change.lsn));
    relay_lost(relay, &err, 0);
}

/* From where the slot stands, which is looked up again. */
static void stream_from_slot(struct relay *relay)
{
    struct err err = {0};

    relay->history = (struct history){0};
    (void)err_set(&err, ERR_RETRY,
                  "slot %s stands before %" LSN_FMT ", where it stood when it was looked "
                  "at, with a transaction that ends at %" LSN_FMT
                  ": streaming again from "
                  "there; what was published already is repeated",
                  relay->config->postgres.slot, LSN_ARG(ledger_flushed(relay->ledger)),
                  LSN_ARG(relay->change.lsn));
    relay_lost(relay, &err, 0);
}

/* True: dealt with.  False: it stays in hand, or the stream is over. */
static bool publish_change(struct relay *relay)
{
    struct err err;

    err_clear(&err);
    switch (publish(&relay->publisher, &relay->change, relay->wall_ms, &err)) {
    case PUBLISHED:
        relay->has_change = false;
        return true;
    case PUBLISH_FULL:
        break;
    case PUBLISH_UNKNOWN:
        relay_inquire(relay);
        break;
    case PUBLISH_NEED_TYPES:
        stream_with_types(relay);
        break;
    case PUBLISH_BEHIND:
        stream_from_slot(relay);
        break;
    case PUBLISH_FAILED:
        relay->has_change = false;
        relay_stop_with(relay, &err);
        break;
    }
    return false;
}

/* The walsender sends row by row, and each wakes who waits for it, which costs both sides
 * more than the row.  While catching up nobody waits for a row: let some gather. */
static void nap(struct relay *relay, int taken)
{
    if (relay->behind && taken > 0 && relay->phase == STREAMING)
        relay->nap_until_ms = relay->now_ms + NAP_MS;
}

/* Reads until a read brings nothing new.  One that brought something may have left more
 * behind, in the kernel or in TLS, whatever poll(2) would say of the socket.  What has
 * been read is used up first: libpq's buffer grows with each read while room in the sink
 * comes in small pieces, and would have no ceiling. */
static void take_changes(struct relay *relay)
{
    bool fresh = true; /* something came since the last read */

    relay->drained = false;
    relay->nap_until_ms = 0;
    relay->wall_ms = clock_wall_us() / 1000;
    if (relay->has_change && !publish_change(relay))
        return;
    for (int taken = 0; taken < CHANGES_PER_TURN && relay_is_reading(relay);) {
        int rc = get_change(relay);

        if (rc < 0 || (rc == 1 && !publish_change(relay)))
            return;
        if (rc == 0 && !fresh) {
            relay->drained = true;
            nap(relay, taken);
            return;
        }
        if (rc == 0 && !relay_read_source(relay))
            return;
        fresh = rc == 1;
        taken += rc;
    }
}

/* Under load batches fill while others travel; a quiet stream does not wait for more. */
static void push(struct relay *relay)
{
    sink_gather(relay->sink, relay->behind && relay->phase == STREAMING);
    if ((relay->drained && !relay->behind) || relay->phase == DRAINING)
        sink_push(relay->sink);
}

/* ---- confirming ------------------------------------------------------------------ */

static enum confirm_urgency urgency(const struct relay *relay)
{
    if (!relay->acked)
        return CONFIRM_OTHERS;
    return ledger_in_flight(relay->ledger) > 0 ? CONFIRM_OWN : CONFIRM_DRAINED;
}

/* That changes arrive is no progress yet: the server may always fail at the same place.
 */
static void note_progress(struct relay *relay)
{
    if (ledger_flushed(relay->ledger) <= relay->reached)
        return;
    relay->reached = ledger_flushed(relay->ledger);
    relay_forgive(relay);
}

static void confirm(struct relay *relay)
{
    struct err err = {0};

    note_progress(relay);
    if (source_confirm(relay->source, relay_tellable(relay), urgency(relay),
                       relay_is_reading(relay), relay->now_ms, &err) != 0)
        relay_lost(relay, &err, 0);
    relay->acked = false;
}

/* ---- a server that shuts down and waits for us ------------------------------------- */

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
    relay->ping.awaited = true;
}

/* In every phase: a job that is done and that nobody finishes keeps poll(2) awake. */
void relay_serve_ping(struct relay *relay)
{
    struct err err = {0};

    if (!relay->ping.job || !job_is_done(relay->ping.job))
        return;
    job_finish(relay->ping.job);
    relay->ping.job = NULL;
    if (!relay->ping.rejected || !relay->ping.awaited)
        return;
    (void)err_set(&err, ERR_RETRY,
                  "PostgreSQL is shutting down: leaving it, %zu events are not confirmed",
                  sink_pending(relay->sink));
    relay_lost(relay, &err, REJECTED_WAIT_MS);
}

/* A fast shutdown waits for ever for a client that cannot confirm everything, because
 * Kafka is away (WalSndDone in walsender.c).  New connections are refused meanwhile, and
 * that is how we know.  While we do not read we cannot see how urgently the server asks,
 * and look from time to time. */
static void watch_for_shutdown(struct relay *relay)
{
    bool reading = relay_is_reading(relay);

    if (relay->ping.job)
        return;
    if (reading)
        relay->ping.at_ms = relay->now_ms + PING_EVERY_MS;
    if (source_suspect(relay->source) || relay->now_ms >= relay->ping.at_ms)
        begin_ping(relay);
}

/* ---- one turn -------------------------------------------------------------------- */

void relay_serve_stream(struct relay *relay)
{
    take_changes(relay);
    push(relay);
    if (relay->source)
        confirm(relay);
    if (relay->source)
        watch_for_shutdown(relay);
    if (relay->phase == DRAINING)
        relay_serve_draining(relay);
}

int64_t relay_stream_deadline(const struct relay *relay)
{
    int64_t deadline =
        clock_min(source_deadline(relay->source), relay_watch_deadline(relay));

    deadline = clock_min(deadline, relay_memo_deadline(relay));
    deadline = clock_min(deadline, relay_letters_deadline(relay));
    if (relay->acked && relay->phase != ENDING)
        return relay->now_ms; /* a position to tell, and room for what waits for it */
    if (relay_is_reading(relay) && relay->drained)
        return relay_awaits_input(relay) ? deadline
                                         : clock_min(deadline, relay->nap_until_ms);
    if (relay_is_reading(relay))
        return relay->now_ms;
    if (!relay->ping.job)
        deadline = clock_min(deadline, relay->ping.at_ms);
    return deadline;
}
