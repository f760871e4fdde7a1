#include "app/memo_row.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERY_MAX = 8192 };

/* Neither a lock nor a large table holds up the relay. */
static const char brief[] = "SELECT pg_catalog.set_config('lock_timeout', '2s', false),"
                            " pg_catalog.set_config('statement_timeout', '5s', false)";
static const char unlimited[] =
    "SELECT pg_catalog.set_config('lock_timeout', '0', false),"
    " pg_catalog.set_config('statement_timeout', '0', false)";

/* ---- reading --------------------------------------------------------------------- */

static const char read_query[] =
    "SELECT system_id, timeline, confirmed_lsn, written_at::pg_catalog.timestamptz(0)"
    " FROM public.walrelay_state WHERE slot = $1";

static void take(const struct pg_result *row, struct memo *ret)
{
    struct memo memo = {0};

    memo.timeline = (uint32_t)strtoul(pg_value(row, 0, 1), NULL, 10);
    if (!lsn_parse(pg_value(row, 0, 2), &memo.confirmed))
        return;
    (void)snprintf(memo.system_id, sizeof(memo.system_id), "%s", pg_value(row, 0, 0));
    (void)snprintf(memo.written_at, sizeof(memo.written_at), "%s", pg_value(row, 0, 3));
    *ret = memo;
}

int memo_row_read(struct pg *pg, const char *slot, struct memo *ret, struct err *err)
{
    struct pg_result *row;

    *ret = (struct memo){0};
    if (pg_execute(pg, brief, 0, NULL, err) != 0)
        return -1;
    row = pg_query(pg, read_query, 1, &slot, err);
    if (row && pg_rows(row) == 1)
        take(row, ret);
    pg_result_free(row);
    (void)pg_execute(pg, unlimited, 0, NULL, NULL);
    return row ? 0 : -1;
}

/* ---- counting -------------------------------------------------------------------- */

/* A row version is younger than the memo's if its transaction began later. */
static int add_table(struct buf *query, const struct table_settings *table)
{
    char *schema = pg_quote_identifier(table->schema);
    char *name = pg_quote_identifier(table->name);
    int rc = schema && name ? 0 : -1;

    if (rc == 0)
        buf_printf(
            query,
            "%s(SELECT pg_catalog.count(*) FROM %s.%s t, public.walrelay_state s"
            " WHERE s.slot = $1 AND pg_catalog.age(t.xmin) < pg_catalog.age(s.xmin))",
            query->len > strlen("SELECT ") ? " + " : "", schema, name);
    free(schema);
    free(name);
    return rc;
}

static struct pg_result *count(struct pg *pg, const struct config *config,
                               struct err *err)
{
    const char *slot = config->postgres.slot;
    struct pg_result *ret = NULL;
    struct buf query;
    int rc = 0;

    buf_init(&query, QUERY_MAX);
    buf_printf(&query, "SELECT ");
    for (size_t i = 0; rc == 0 && i < config->ntables; i++)
        rc = add_table(&query, &config->tables[i]);
    if (rc == 0 && !query.failed && pg_execute(pg, brief, 0, NULL, err) == 0)
        ret = pg_query(pg, buf_str(&query), 1, &slot, err);
    (void)pg_execute(pg, unlimited, 0, NULL, NULL);
    buf_done(&query);
    return ret;
}

void memo_row_count(struct pg *pg, const struct config *config, char *text, size_t size)
{
    struct err err = {0};
    struct pg_result *found = count(pg, config, &err);

    if (found)
        (void)snprintf(text, size, "the outbox has %s rows that were written since then",
                       pg_value(found, 0, 0));
    else
        (void)snprintf(text, size,
                       "how many rows of the outbox that concerns cannot be told (%s%s)",
                       err.code[0] ? "SQLSTATE " : "no answer", err.code);
    pg_result_free(found);
}

/* ---- writing --------------------------------------------------------------------- */

/* Without its synchronous standby a commit would wait for ever. */
static const char local_commit[] =
    "SELECT pg_catalog.set_config('synchronous_commit', 'local', false)";

/* Never back: a relay that was frozen while it wrote, and thaws after its successor has
 * written, would leave a slot that stands ahead of its memo. */
static const char write_query[] =
    "INSERT INTO public.walrelay_state AS s"
    " (slot, system_id, timeline, confirmed_lsn, written_at) VALUES ($1, $2, $3, $4, "
    "now())"
    " ON CONFLICT (slot) DO UPDATE SET system_id = excluded.system_id,"
    " timeline = excluded.timeline, confirmed_lsn = excluded.confirmed_lsn,"
    " written_at = excluded.written_at WHERE s.system_id <> excluded.system_id"
    " OR (s.timeline, s.confirmed_lsn) <= (excluded.timeline, excluded.confirmed_lsn)";

static int put(struct memo_writer *w)
{
    char timeline[16];
    char lsn[24];
    const char *const values[] = {w->config->postgres.slot, w->memo.system_id, timeline,
                                  lsn};

    (void)snprintf(timeline, sizeof(timeline), "%u", (unsigned)w->memo.timeline);
    (void)snprintf(lsn, sizeof(lsn), "%" LSN_FMT, LSN_ARG(w->memo.confirmed));
    return pg_execute(w->pg, write_query, 4, values, &w->err);
}

static int open_and_put(struct memo_writer *w)
{
    err_clear(&w->err);
    w->pg = pg_connect(w->config->postgres.dsn, PG_SQL, &w->err);
    if (w->pg && pg_execute(w->pg, brief, 0, NULL, &w->err) == 0 &&
        pg_execute(w->pg, local_commit, 0, NULL, &w->err) == 0 && put(w) == 0)
        return 0;
    memo_writer_done(w);
    return -1;
}

/* The connection of the last time may be gone. */
static void work(void *arg)
{
    struct memo_writer *w = arg;

    if (w->pg && put(w) == 0)
        return;
    memo_writer_done(w);
    (void)open_and_put(w);
}

struct job *memo_row_write(struct memo_writer *writer, const struct memo *memo,
                           struct err *err)
{
    writer->memo = *memo;
    err_clear(&writer->err);
    return job_start(work, writer, err);
}

void memo_writer_done(struct memo_writer *writer)
{
    pg_close(writer->pg);
    writer->pg = NULL;
}
