/* publish.h - the walk of one change: to a message, to the sink, into the ledger. */
#ifndef WALRELAY_APP_PUBLISH_H
#define WALRELAY_APP_PUBLISH_H

#include "core/change.h"
#include "core/ledger.h"
#include "core/route.h"
#include "io/sink.h"

/* Rows in the table of dead letters that do not say yet where their transaction ends:
 * their tickets are acknowledged when they do. */
struct unended {
    lsn_t begin_lsn;
    int64_t commit_us;
    ticket_t ticket;
    size_t n;
};

struct publisher {
    struct router *router;
    struct ledger *ledger;
    struct sink *sink;
    struct held *held; /* NULL: there is no table of dead letters */
    struct unended unended;
    lsn_t begin_lsn; /* of the open transaction */

    /* the change in hand, while ledger or sink has no room */
    bool routed;   /* message is made */
    bool ticketed; /* ticket is taken */
    bool refused;  /* it is for the table of dead letters */
    struct message message;
    ticket_t ticket;
    struct refusal refusal;
    char why[ERR_TEXT_MAX];
};

enum publish_verdict {
    PUBLISHED,          /* the change is dealt with; get the next */
    PUBLISH_FULL,       /* the same change again when acknowledgements have made room */
    PUBLISH_UNKNOWN,    /* the router does not know the row's table, see ROUTE_UNKNOWN */
    PUBLISH_NEED_TYPES, /* stream again, with column types */
    PUBLISH_BEHIND,     /* the stream began before the position that the ledger has */
    PUBLISH_FAILED,     /* err is set */
};

/* change stays the same between two calls after PUBLISH_FULL.  now_ms: wall clock,
 * milliseconds since 1970. */
enum publish_verdict publish(struct publisher *publisher, struct change *change,
                             int64_t now_ms, struct err *err);

/* One row of a transaction is in the table without its end.  False: there are such of
 * another transaction. */
bool publish_note_unended(struct publisher *publisher, ticket_t ticket, lsn_t begin_lsn,
                          int64_t commit_us) __attribute__((warn_unused_result));

/* The change in hand is gone with its source. */
void publish_forget(struct publisher *publisher);

#endif
