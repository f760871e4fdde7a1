#include "app/memo_row.h"
#include "app/probe.h"

#include <stdio.h>

/* to_regclass would fail without USAGE of the schema. */
const char memo_query[] =
    "SELECT c.oid IS NOT NULL, coalesce(has_schema_privilege(n.oid, 'USAGE')"
    " AND has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT')"
    " AND has_table_privilege(c.oid, 'UPDATE'), false)"
    " AND NOT current_setting('transaction_read_only')::bool"
    " FROM (SELECT) one LEFT JOIN (pg_class c JOIN pg_namespace n"
    " ON n.oid = c.relnamespace) ON n.nspname = 'public' AND c.relname = "
    "'walrelay_state'";

static void trouble(struct check *check, const char *why, const char *cure)
{
    struct server *server = check->server;

    (void)snprintf(server->memo_trouble, sizeof(server->memo_trouble),
                   "%s, so nobody will notice if the slot is moved or made again%s%s",
                   why, cure,
                   *cure ? pg_parameter(check->pg, "session_authorization") : "");
    check_note(check, "none: %s", server->memo_trouble);
}

/* Never a failure: the relay needs none. */
int verdict_memo(struct check *check, const struct pg_result *found, struct err *err)
{
    struct memo *memo = &check->server->memo;
    struct err mine = {0};

    (void)err;
    if (!pg_is_true(found, 0, 0)) {
        trouble(check, "table public.walrelay_state does not exist (walrelay setup)", "");
    } else if (!pg_is_true(found, 0, 1)) {
        trouble(check, "table public.walrelay_state may not be written",
                "; GRANT SELECT, INSERT, UPDATE, DELETE ON public.walrelay_state TO ");
    } else if (memo_row_read(check->pg, check->config->postgres.slot, memo, &mine) != 0) {
        trouble(check, mine.text, "");
    } else if (memo->system_id[0]) {
        check_note(check, "confirmed %" LSN_FMT " at %s", LSN_ARG(memo->confirmed),
                   memo->written_at);
    }
    return 0;
}

void memo_consequence(const struct check *check, const char *literal, char *text,
                      size_t size)
{
    const struct memo *memo = &check->server->memo;
    char count[160];

    text[0] = '\0';
    if (!memo->system_id[0])
        return;
    memo_row_count(check->pg, check->config, count, sizeof(count));
    (void)snprintf(text, size,
                   "; walrelay confirmed %" LSN_FMT
                   " last, at %s, and %s; if you make the slot by hand: DELETE FROM "
                   "public.walrelay_state WHERE slot = %s",
                   LSN_ARG(memo->confirmed), memo->written_at, count, literal);
}
