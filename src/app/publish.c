#include "app/publish.h"

#include <stdio.h>

/* What the log says of an event that cannot be published. */
static enum publish_verdict fail(const struct publisher *p, struct err *err)
{
    const struct message *m = &p->message;

    err_set_event(err, m->event_id, m->event_type, m->aggregate_id, 1);
    return PUBLISH_FAILED;
}

/* A transaction enters the ledger with its first message, so there must be room then. */
static bool has_room(const struct publisher *p)
{
    return !ledger_full(p->ledger) || ledger_has_rows(p->ledger);
}

static bool take_ticket(struct publisher *p)
{
    if (p->ticketed)
        return true;
    if (!has_room(p)) {
        sink_leave(p->sink);
        return false;
    }
    p->ticket = ledger_add(p->ledger);
    p->ticketed = true;
    return true;
}

/* It goes into the table of dead letters, if there is one. */
static bool refuse(struct publisher *p, struct refusal refusal, struct err *err)
{
    if (!p->held || err->class != ERR_POISON)
        return false;
    p->refused = true;
    p->refusal = refusal;
    (void)snprintf(p->why, sizeof(p->why), "%s", err->text);
    p->refusal.text = p->why;
    err_clear(err);
    return true;
}

static enum publish_verdict put_refused(struct publisher *p, struct err *err)
{
    int rc = sink_refuse(p->sink, &p->message, p->ticket, &p->refusal, err);

    if (rc < 0)
        return fail(p, err);
    if (rc == 0)
        return PUBLISH_FULL;
    publish_forget(p);
    return PUBLISHED;
}

static enum publish_verdict put(struct publisher *p, struct err *err)
{
    int rc;

    if (!take_ticket(p))
        return PUBLISH_FULL;
    if (p->refused)
        return put_refused(p, err);
    rc = sink_put(p->sink, &p->message, p->ticket, err);
    if (rc < 0)
        return refuse(p, sink_put_refusal(), err) ? put_refused(p, err) : fail(p, err);
    if (rc == 0)
        return PUBLISH_FULL;
    publish_forget(p);
    return PUBLISHED;
}

/* ---- what the table of dead letters has already ----------------------------------- */

bool publish_note_unended(struct publisher *publisher, ticket_t ticket, lsn_t begin_lsn,
                          int64_t commit_us)
{
    struct unended *u = &publisher->unended;

    if (u->n > 0 && u->ticket != ticket)
        return false;
    *u = (struct unended){begin_lsn, commit_us, ticket, u->n + 1};
    return true;
}

/* Only one transaction is open, so rows without an end are all of that one.  Those of an
 * older one, if somebody made such, wait until that is mended. */
static bool may_acknowledge(const struct publisher *p)
{
    return has_room(p) && (p->unended.n == 0 || p->unended.begin_lsn == p->begin_lsn);
}

static enum publish_verdict acknowledge(struct publisher *p, const struct change *change,
                                        bool has_end)
{
    ticket_t ticket = ledger_add(p->ledger);

    if (has_end || !publish_note_unended(p, ticket, p->begin_lsn, change->commit_us))
        ledger_ack(p->ledger, ticket);
    return PUBLISHED;
}

/* ---- one row ---------------------------------------------------------------------- */

/* p->routed, or what is to be done with the row instead. */
static enum publish_verdict route(struct publisher *p, struct change *change,
                                  int64_t now_ms, struct err *err)
{
    static const struct refusal unfit = {.reason = "not publishable", .for_ever = true};

    switch (router_message(p->router, change, now_ms, &p->message, err)) {
    case ROUTE_MESSAGE:
        break;
    case ROUTE_OTHER:
        return PUBLISHED;
    case ROUTE_UNKNOWN:
        return PUBLISH_UNKNOWN;
    case ROUTE_NEED_TYPES:
        return PUBLISH_NEED_TYPES;
    case ROUTE_POISON:
        if (!refuse(p, unfit, err))
            return fail(p, err);
        break;
    }
    p->message.begin_lsn = p->begin_lsn;
    p->routed = true;
    return PUBLISHED;
}

/* The row is in the table already, and needs only its acknowledgement. */
static bool is_known(struct publisher *p, const struct change *change, bool *has_end)
{
    struct place place = {change->lsn, change->number, change->commit_us};

    return held_known(p->held, &place, sink_next(p->sink), has_end);
}

static enum publish_verdict insert(struct publisher *p, struct change *change,
                                   int64_t now_ms, struct err *err)
{
    enum publish_verdict verdict;
    bool has_end;

    if (!p->routed) {
        if (p->held && !held_is_empty(p->held)) {
            if (!may_acknowledge(p))
                return PUBLISH_FULL;
            if (is_known(p, change, &has_end))
                return acknowledge(p, change, has_end);
        }
        verdict = route(p, change, now_ms, err);
        if (!p->routed)
            return verdict;
    }
    return put(p, err);
}

/* Rows lie between a begin and a commit, whatever the other side sends. */
static bool in_order(const struct publisher *p, const struct change *change)
{
    switch (change->kind) {
    case CHANGE_BEGIN:
        return !ledger_open(p->ledger);
    case CHANGE_INSERT:
    case CHANGE_COMMIT:
        return ledger_open(p->ledger);
    default:
        return true;
    }
}

static enum publish_verdict out_of_order(const struct change *change, struct err *err)
{
    (void)err_set(err, ERR_POISON,
                  "the stream at %" LSN_FMT
                  " is out of order: begin, rows and commit of a transaction, or two "
                  "commits, do not follow each other",
                  LSN_ARG(change->lsn));
    return PUBLISH_FAILED;
}

/* The slot's position is read before the stream begins, on another connection.  Meanwhile
 * a crash of the server may have moved the slot back, or a client of a server before
 * 15.13, 16.9 and 17.5, or somebody made it again.  Nothing is lost, but the position
 * must not stand above what is sent. */
static enum publish_verdict commit(struct publisher *p, const struct change *change,
                                   struct err *err)
{
    if (change->lsn < ledger_flushed(p->ledger))
        return PUBLISH_BEHIND;
    if (!ledger_accepts(p->ledger, change->lsn))
        return out_of_order(change, err);
    ledger_commit(p->ledger, change->lsn);
    return PUBLISHED;
}

enum publish_verdict publish(struct publisher *publisher, struct change *change,
                             int64_t now_ms, struct err *err)
{
    if (!in_order(publisher, change))
        return out_of_order(change, err);
    switch (change->kind) {
    case CHANGE_BEGIN:
        ledger_begin(publisher->ledger);
        publisher->begin_lsn = change->lsn;
        break;
    case CHANGE_INSERT:
        return insert(publisher, change, now_ms, err);
    case CHANGE_COMMIT:
        return commit(publisher, change, err);
    case CHANGE_IDLE:
        ledger_idle(publisher->ledger, change->lsn);
        break;
    case CHANGE_MESSAGE:
    case CHANGE_IGNORED:
        break;
    }
    return PUBLISHED;
}

void publish_forget(struct publisher *publisher)
{
    publisher->routed = false;
    publisher->ticketed = false;
    publisher->refused = false;
}
