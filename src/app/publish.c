#include "app/publish.h"

/* What the log says of an event that cannot be published. */
static enum publish_verdict fail(const struct publisher *p, struct err *err)
{
    const struct message *m = &p->message;

    err_set_event(err, m->event_id, m->event_type, m->aggregate_id, 1);
    return PUBLISH_FAILED;
}

/* A transaction enters the ledger with its first message, so there must be room then. */
static enum publish_verdict put(struct publisher *p, struct err *err)
{
    int rc;

    if (!p->ticketed) {
        if (ledger_full(p->ledger) && !ledger_has_rows(p->ledger)) {
            sink_leave(p->sink);
            return PUBLISH_FULL;
        }
        p->ticket = ledger_add(p->ledger);
        p->ticketed = true;
    }
    rc = sink_put(p->sink, &p->message, p->ticket, err);
    if (rc < 0)
        return fail(p, err);
    if (rc == 0)
        return PUBLISH_FULL;
    publish_forget(p);
    return PUBLISHED;
}

static enum publish_verdict insert(struct publisher *p, struct change *change,
                                   int64_t now_ms, struct err *err)
{
    if (!p->routed) {
        switch (router_message(p->router, change, now_ms, &p->message, err)) {
        case ROUTE_MESSAGE:
            p->routed = true;
            break;
        case ROUTE_OTHER:
            return PUBLISHED;
        case ROUTE_UNKNOWN:
            return PUBLISH_UNKNOWN;
        case ROUTE_NEED_TYPES:
            return PUBLISH_NEED_TYPES;
        case ROUTE_POISON:
            return fail(p, err);
        }
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
}
