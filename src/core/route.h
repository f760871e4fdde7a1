/* route.h - a row of an outbox table to a record for Kafka.
 *
 * Columns are found by name in every row, never by position: the table may be
 * altered between two rows of one transaction. */
#ifndef WALRELAY_CORE_ROUTE_H
#define WALRELAY_CORE_ROUTE_H

#include "base/err.h"
#include "core/catalog.h"
#include "core/change.h"
#include "core/config.h"
#include "core/message.h"

struct router;

struct router_options {
    bool typed;      /* the stream carries types */
    bool check_utf8; /* the database is SQL_ASCII: nothing vouches for its bytes */
};

/* Borrows config and catalog for its life.  NULL with err set: ERR_CONFIG for a
 * setting that names a column the table does not have (with the nearest name) or
 * a bad topic template, ERR_INTERNAL without memory. */
struct router *router_new(const struct config *config, const struct catalog *catalog,
                          struct router_options options, struct err *err)
    __attribute__((warn_unused_result));
void router_free(struct router *router);

enum route_verdict {
    ROUTE_MESSAGE,    /* *ret is filled */
    ROUTE_OTHER,      /* the row's table is not configured */
    ROUTE_UNKNOWN,    /* it may be a partition that is younger than the catalog: its row
                       * has all columns of one.  Make a new router from a new catalog, or
                       * say router_pass, and ask again */
    ROUTE_NEED_TYPES, /* without types this payload is ambiguous: hexadecimal text, or a
                       * bytea since the column was altered; stream again with types */
    ROUTE_POISON, /* err says why; ret holds what could be read: a value that could not,
                   * as it stands in the row; no topic unless topic and key are right */
};

/* change is an INSERT; its bytes may be overwritten (hexadecimal becomes bytes in
 * place).  A poison row's err is ERR_POISON and names table, event id, LSN and
 * reason.  now_ms is the wall clock, milliseconds since 1970: a timestamp more than
 * an hour ahead of it, which Kafka 4 refuses by default
 * (message.timestamp.after.max.ms), not after the beginning of 1970 or not finite
 * gives way to the commit time, and its text goes into the header walrelay.timestamp. */
enum route_verdict router_message(struct router *router, struct change *change,
                                  int64_t now_ms, struct message *ret, struct err *err);

/* That table belongs to no section, as far as rows go that were committed before
 * before_us (microseconds since 1970).  0, or -1 without memory. */
int router_pass(struct router *router, struct slice schema, struct slice table,
                int64_t before_us) __attribute__((warn_unused_result));

/* Timestamps that gave way to the commit time so far. */
uint64_t router_timestamps_replaced(const struct router *router);

#endif
