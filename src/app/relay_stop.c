/* relay_stop.c - an orderly end; see relay_state.h. */
#include "app/relay_state.h"
#include "base/log.h"

enum { END_MS = 1000 }; /* for the server's CopyDone, when shutdown_timeout is used up */

void relay_drain(struct relay *relay)
{
    if (!relay->stop)
        relay->stop_by_ms = relay->now_ms + relay->shutdown_timeout_ms;
    relay->stop = true;
    relay->phase = relay->source ? DRAINING : STOPPED;
}

void relay_stop_with(struct relay *relay, const struct err *err)
{
    if (relay->failure.class == ERR_NONE)
        relay->failure = *err;
    relay_drain(relay);
}

/* The last position, CopyDone; then the server's own, before which closing would lose
 * the position (walsender.c reads until then). */
static void end_stream(struct relay *relay)
{
    struct err err = {0};

    relay->phase = ENDING;
    relay->has_change = false;
    if (relay->stop_by_ms < relay->now_ms + END_MS)
        relay->stop_by_ms = relay->now_ms + END_MS;
    if (source_end(relay->source, relay_tellable(relay), relay->now_ms, &err) == 0)
        return;
    log_err(LOG_WARNING, &err);
    relay->phase = STOPPED;
}

static bool waits_for_acks(const struct relay *relay)
{
    return sink_pending(relay->sink) > 0 && !relay->sink_failed;
}

static bool waits_for_commit(const struct relay *relay)
{
    return ledger_open(relay->ledger) && relay->failure.class == ERR_NONE;
}

void relay_serve_draining(struct relay *relay)
{
    bool late = relay->now_ms >= relay->stop_by_ms;

    if (!late && (waits_for_commit(relay) || waits_for_acks(relay) ||
                  !relay_letters_settled(relay) || !relay_memo_is_settled(relay)))
        return;
    if (late)
        log_event(
            LOG_WARNING, NULL,
            "shutdown_timeout is over: %zu events that Kafka has not acknowledged%s may "
            "be repeated after the next start",
            sink_pending(relay->sink),
            waits_for_commit(relay) ? ", and the transaction being read," : "");
    end_stream(relay);
}

/* Discards what still comes, until the server has read our last word. */
void relay_serve_ending(struct relay *relay)
{
    struct err err = {0};
    struct change change;
    int rc = 1;

    if (source_end(relay->source, relay_tellable(relay), relay->now_ms, &err) != 0 ||
        relay->now_ms >= relay->stop_by_ms) {
        relay->phase = STOPPED;
        return;
    }
    if (!relay_read_source(relay))
        return;
    while (rc == 1)
        rc = source_next(relay->source, relay->now_ms, &change, &err);
    if (rc < 0 || source_ended(relay->source))
        relay->phase = STOPPED;
}
