/* relay_memo.c - the position is written down before it is told; see relay_state.h.
 *
 * In a job, so that nothing waits for a table: statuses go on meanwhile, with the
 * position that was told before. */
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"

#include <string.h>

enum {
    OWN_MS = 200,     /* between two memos because of messages of ours, */
    OTHERS_MS = 2000, /* because of what others write */
    RETRY_MS = 1000,
    PATIENCE_MS = 30000, /* then the position moves on without a memo */
};

static void tell_once(struct relay *relay, const char *text)
{
    if (!relay->memo.told)
        log_event(LOG_WARNING, NULL, "%s", text);
    relay->memo.told = true;
}

/* A memo that says at least where the slot stands is good enough to begin with. */
static lsn_t named_already(const struct relay *relay)
{
    const struct memo *memo = &relay->connection.server->memo;
    const struct history *now = &relay->history;

    if (memo->timeline == now->timeline && strcmp(memo->system_id, now->system_id) == 0)
        return memo->confirmed;
    return LSN_NONE;
}

void relay_memo_begin(struct relay *relay)
{
    struct memo_keeper *m = &relay->memo;
    const char *trouble = relay->connection.server->memo_trouble;

    m->kept = trouble[0] == '\0';
    m->gate = (struct memo_gate){.open = !m->kept, .named = named_already(relay)};
    m->at_ms = relay->now_ms;
    m->failing_ms = 0;
    if (m->kept)
        m->told = false;
    else
        tell_once(relay, trouble);
}

static bool is_final(const struct err *err)
{
    return err->class == ERR_DENIED || strcmp(err->code, "42P01") == 0 ||
           strcmp(err->code, "25006") == 0 || strcmp(err->code, "42703") == 0;
}

/* Missing or without rights: no memo on this stream.  Locked, or no connection: later,
 * and in the end the slot is worth more than its memo. */
static void failed(struct relay *relay, const struct err *err)
{
    struct memo_keeper *m = &relay->memo;

    if (m->failing_ms == 0)
        m->failing_ms = relay->now_ms;
    m->at_ms = relay->now_ms + RETRY_MS;
    if (!is_final(err) && relay->now_ms - m->failing_ms < PATIENCE_MS)
        return;
    if (!m->gate.open)
        log_event(
            LOG_WARNING, NULL,
            "public.walrelay_state cannot be written, and the slot moves on without "
            "it: %s",
            err->text);
    m->gate.open = true;
    if (is_final(err))
        m->kept = false;
}

static void written(struct relay *relay)
{
    struct memo_keeper *m = &relay->memo;

    if (m->failing_ms != 0 && m->gate.open)
        log_event(LOG_INFO, NULL, "public.walrelay_state is written again");
    m->failing_ms = 0;
    m->gate.open = false;
    m->gate.named = m->writer.memo.confirmed;
    m->written_ms = relay->now_ms;
    m->at_ms = relay->now_ms;
    relay->acked = true; /* there is something to tell at once */
}

static void end(struct relay *relay)
{
    struct memo_keeper *m = &relay->memo;
    bool same = strcmp(m->writer.memo.system_id, relay->history.system_id) == 0 &&
                m->writer.memo.timeline == relay->history.timeline;

    job_finish(m->job);
    m->job = NULL;
    if (!m->kept || !same)
        return; /* of a stream that is gone */
    if (m->writer.err.class == ERR_NONE)
        written(relay);
    else
        failed(relay, &m->writer.err);
}

static void begin(struct relay *relay)
{
    struct memo_keeper *m = &relay->memo;
    struct memo memo = {.timeline = relay->history.timeline,
                        .confirmed = ledger_flushed(relay->ledger)};
    struct err err = {0};

    memcpy(memo.system_id, relay->history.system_id, sizeof(memo.system_id));
    m->writer.config = relay->config;
    m->job = memo_row_write(&m->writer, &memo, &err);
    if (!m->job)
        failed(relay, &err);
}

/* Often for messages of ours, which would come again after a crash. */
static int64_t due_ms(const struct relay *relay)
{
    const struct memo_keeper *m = &relay->memo;
    bool own = ledger_own(relay->ledger) > m->gate.named || m->gate.named == LSN_NONE;
    int64_t due = m->written_ms + (own || relay->stop ? OWN_MS : OTHERS_MS);

    return due > m->at_ms ? due : m->at_ms;
}

/* A memo is due whether or not the gate is open: open, it is behind. */
static bool wants_memo(const struct relay *relay)
{
    struct memo_gate shut = relay->memo.gate;

    shut.open = false;
    return relay->memo.kept && !relay->memo.job &&
           !memo_lets_pass(&shut, ledger_flushed(relay->ledger),
                           ledger_own(relay->ledger));
}

static bool is_telling(const struct relay *relay)
{
    return relay->phase == STREAMING || relay->phase == DRAINING;
}

void relay_serve_memo(struct relay *relay)
{
    if (relay->memo.job && job_is_done(relay->memo.job))
        end(relay);
    if (is_telling(relay) && wants_memo(relay) && relay->now_ms >= due_ms(relay))
        begin(relay);
}

lsn_t relay_tellable(struct relay *relay)
{
    return memo_pass(&relay->memo.gate, ledger_flushed(relay->ledger),
                     ledger_own(relay->ledger));
}

bool relay_memo_is_settled(const struct relay *relay)
{
    const struct memo_keeper *m = &relay->memo;

    return m->failing_ms != 0 || memo_lets_pass(&m->gate, ledger_flushed(relay->ledger),
                                                ledger_own(relay->ledger));
}

int64_t relay_memo_deadline(const struct relay *relay)
{
    return is_telling(relay) && wants_memo(relay) ? due_ms(relay) : CLOCK_NEVER;
}
