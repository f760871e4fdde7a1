#include "app/judge.h"

#include "app/memo_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int judge_identify(struct pg *replication, struct history *ret, struct err *err)
{
    struct pg_result *result = pg_query(replication, "IDENTIFY_SYSTEM", 0, NULL, err);
    int rc = -1;

    if (!result)
        return -1;
    /* systemid, timeline, xlogpos, dbname */
    if (pg_rows(result) == 1 && lsn_parse(pg_value(result, 0, 2), &ret->wal_end)) {
        (void)snprintf(ret->system_id, sizeof(ret->system_id), "%s",
                       pg_value(result, 0, 0));
        ret->timeline = (uint32_t)strtoul(pg_value(result, 0, 1), NULL, 10);
        rc = 0;
    } else {
        rc = err_set(err, ERR_RETRY, "IDENTIFY_SYSTEM: unexpected answer of the server");
    }
    pg_result_free(result);
    return rc;
}

/* LSN_NONE where the server does not know. */
static lsn_t branch_point(struct pg *replication, uint32_t timeline, uint32_t from)
{
    char command[48];
    struct pg_result *file;
    lsn_t ret = LSN_NONE;

    (void)snprintf(command, sizeof(command), "TIMELINE_HISTORY %u", (unsigned)timeline);
    file = pg_query(replication, command, 0, NULL, NULL);
    if (file && pg_rows(file) == 1 && pg_value(file, 0, 1))
        ret = memo_branch_point(pg_value(file, 0, 1), from);
    pg_result_free(file);
    return ret;
}

static int fail_ahead(const struct judge *j, const struct memo *memo, struct err *err)
{
    char *literal = pg_quote_literal(j->config->postgres.slot);
    char count[160];
    int rc;

    memo_row_count(j->sql, j->config, count, sizeof(count));
    rc = err_set(
        err, ERR_SLOT,
        "slot %s stands at %" LSN_FMT ", ahead of %" LSN_FMT
        ", which walrelay confirmed last, at %s: it was moved or made again, and events "
        "committed in between may be missing in Kafka; %s; publish them (operations "
        "guide, Events that are missing), then DELETE FROM public.walrelay_state WHERE "
        "slot = %s",
        j->config->postgres.slot, LSN_ARG(j->server->confirmed_flush),
        LSN_ARG(memo->confirmed), memo->written_at, count, literal ? literal : "…");
    free(literal);
    return rc;
}

static int fail_system(const struct judge *j, const struct history *now, struct err *err)
{
    const struct memo *memo = &j->server->memo;
    char *literal = pg_quote_literal(j->config->postgres.slot);
    int rc = err_set(
        err, ERR_SLOT,
        "this server has system identifier %s, and the one on which walrelay confirmed "
        "%" LSN_FMT " last, at %s, had %s: events committed there after that may be "
        "missing in Kafka, how many cannot be told; correct the dsn, or, if this server "
        "takes the place of that one, publish them (operations guide, Events that are "
        "missing), then DELETE FROM public.walrelay_state WHERE slot = %s",
        now->system_id, LSN_ARG(memo->confirmed), memo->written_at, memo->system_id,
        literal ? literal : "…");

    free(literal);
    return rc;
}

static void warn_carried(const struct judge *j, const struct history *now)
{
    server_warn(j->server,
                "the server is on timeline %u, the last one was on %u (a failover): slot "
                "%s goes on at %" LSN_FMT ", and events may be repeated",
                (unsigned)now->timeline, (unsigned)j->server->memo.timeline,
                j->config->postgres.slot, LSN_ARG(j->server->confirmed_flush));
}

/* What this process knows itself is newer than the memo, should that be out of order. */
static struct memo best_memo(const struct judge *j)
{
    struct memo memo = j->server->memo;

    if (strcmp(memo.system_id, j->then.system_id) == 0 &&
        memo.timeline == j->then.timeline && j->reached > memo.confirmed)
        memo.confirmed = j->reached;
    return memo;
}

int judge_slot(const struct judge *judge, const struct history *now, struct err *err)
{
    struct memo memo = best_memo(judge);
    lsn_t branched = LSN_NONE;

    if (memo.system_id[0] && memo.timeline != now->timeline)
        branched = branch_point(judge->replication, now->timeline, memo.timeline);
    switch (memo_judge(&memo, now, branched, judge->server->confirmed_flush)) {
    case MEMO_FITS:
        break;
    case MEMO_CARRIED:
        warn_carried(judge, now);
        break;
    case MEMO_AHEAD:
        return fail_ahead(judge, &memo, err);
    case MEMO_OTHER_SYSTEM:
        return fail_system(judge, now, err);
    }
    return 0;
}
