/* judge.h - is the slot the one that was read so far, and where it was left?
 *
 * What the memo says (core/memo.h) beside what the server says of itself. */
#ifndef WALRELAY_APP_JUDGE_H
#define WALRELAY_APP_JUDGE_H

#include "app/check.h"
#include "core/config.h"
#include "core/history.h"
#include "io/pg.h"

struct judge {
    struct pg *sql;
    struct pg *replication;
    const struct config *config;
    struct server *server; /* what the checks found */
    struct history then;   /* where this process was connected before, */
    lsn_t reached;         /* and how far it came */
};

/* IDENTIFY_SYSTEM. */
int judge_identify(struct pg *replication, struct history *ret, struct err *err)
    __attribute__((warn_unused_result));

/* -1 with err set (ERR_SLOT) if events may be missing; may add a warning to server. */
int judge_slot(const struct judge *judge, const struct history *now, struct err *err)
    __attribute__((warn_unused_result));

#endif
