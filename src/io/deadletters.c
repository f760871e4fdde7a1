#include "io/deadletters.h"

#include "base/must.h"
#include "core/catalog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    SQL_MAX = 1 << 20,
    TEXT_MAX = 512 << 20, /* numbers, texts and headers of one statement */
    DUE_BYTES = 4 << 20,
    HEAD = DEAD_LETTER_FIRST - 1,
    PARAMS_MAX = HEAD + DEADLETTERS_MAX * DEAD_LETTER_PARAMS,
};

struct deadletters {
    struct pg *pg;
    char *table; /* as SQL writes it */
    const char *slot;
    char pid[16];
    bool busy;
    bool broken;
    bool fenced;
    struct pg_result *answer;
    bool unsent; /* libpq holds bytes that the socket does not take */
    struct buf sql;
    struct buf text;
    struct dead_letter_param row_params[DEADLETTERS_MAX * DEAD_LETTER_PARAMS];
    struct pg_param params[PARAMS_MAX];
};

/* ---- life ------------------------------------------------------------------------ */

int deadletters_prepare(struct pg *pg, struct err *err)
{
    /* off would acknowledge what a crash of the server forgets */
    if (pg_execute(
            pg,
            "SELECT pg_catalog.set_config('default_transaction_read_only', 'off', false),"
            " pg_catalog.set_config('lock_timeout', '5s', false),"
            " pg_catalog.set_config('statement_timeout', '30s', false),"
            " CASE pg_catalog.current_setting('synchronous_commit') WHEN 'off' THEN"
            " pg_catalog.set_config('synchronous_commit', 'local', false) END",
            0, NULL, err) != 0)
        return -1;
    return pg_execute(pg, "LISTEN " DEAD_LETTERS_TABLE, 0, NULL, err);
}

char *deadletters_table(const char *schema)
{
    char *quoted = pg_quote_identifier(schema);
    size_t size = quoted ? strlen(quoted) + sizeof("." DEAD_LETTERS_TABLE) : 0;
    char *ret = quoted ? malloc(size) : NULL;

    if (ret)
        (void)snprintf(ret, size, "%s." DEAD_LETTERS_TABLE, quoted);
    free(quoted);
    return ret;
}

struct deadletters *
deadletters_new(struct pg *pg, const struct deadletters_options *options, struct err *err)
{
    struct deadletters *d = calloc(1, sizeof(*d));
    char *table = deadletters_table(options->schema);

    if (!d || !table) {
        (void)err_set(err, ERR_INTERNAL, "out of memory for dead letters");
        free(d);
        free(table);
        pg_close(pg);
        return NULL;
    }
    d->pg = pg;
    d->table = table;
    d->slot = options->slot;
    (void)snprintf(d->pid, sizeof(d->pid), "%d", options->walsender_pid);
    buf_init(&d->sql, SQL_MAX);
    buf_init(&d->text, TEXT_MAX);
    return d;
}

void deadletters_free(struct deadletters *d)
{
    if (!d)
        return;
    pg_result_free(d->answer);
    pg_close(d->pg);
    buf_done(&d->sql);
    buf_done(&d->text);
    free(d->table);
    free(d);
}

/* ---- statements ------------------------------------------------------------------ */

/* The connection is gone. */
static int fail(struct deadletters *d)
{
    d->broken = true;
    d->busy = false;
    return -1;
}

static int send_on(struct deadletters *d, struct err *err)
{
    int rc = pg_flush(d->pg, err);

    d->unsent = rc == 1;
    return rc < 0 ? fail(d) : 0;
}

static int begin(struct deadletters *d, size_t nparams, struct err *err)
{
    must(!d->busy);
    if (d->sql.failed || d->text.failed)
        return err_set(err, ERR_INTERNAL, "out of memory for dead letters");
    if (pg_ask(d->pg, buf_str(&d->sql), nparams, d->params, err) < 0)
        return fail(d);
    d->busy = true;
    return send_on(d, err);
}

/* How each statement but the first begins, and how it ends. */
static const char ours[] = DEAD_LETTER_OURS "done AS (UPDATE ";
static const char is_ours[] = " AND EXISTS (SELECT FROM ours))"
                              " SELECT EXISTS (SELECT FROM ours)";

static void begin_params(struct deadletters *d)
{
    buf_reset(&d->sql);
    buf_reset(&d->text);
    d->params[0] = (struct pg_param){.value = slice_of(d->slot)};
    d->params[1] = (struct pg_param){.value = slice_of(d->pid)};
}

int deadletters_write(struct deadletters *d, const struct dead_letter *letters, size_t n,
                      struct err *err)
{
    size_t nparams = n * DEAD_LETTER_PARAMS;

    must(n > 0 && n <= DEADLETTERS_MAX);
    begin_params(d);
    dead_letter_insert(&d->sql, d->table, n);
    if (!dead_letter_bind(letters, n, &d->text, d->row_params))
        return err_set(err, ERR_INTERNAL, "out of memory for dead letters");
    for (size_t i = 0; i < nparams; i++)
        d->params[HEAD + i] =
            (struct pg_param){d->row_params[i].value, d->row_params[i].binary};
    return begin(d, HEAD + nparams, err);
}

int deadletters_end(struct deadletters *d, lsn_t begin_lsn, int64_t commit_us, lsn_t end,
                    struct err *err)
{
    char begins[24];
    char ends[24];
    char commit[24];

    begin_params(d);
    (void)snprintf(begins, sizeof(begins), "%" LSN_FMT, LSN_ARG(begin_lsn));
    (void)snprintf(ends, sizeof(ends), "%" LSN_FMT, LSN_ARG(end));
    (void)snprintf(commit, sizeof(commit), "%" PRId64, commit_us);
    d->params[2] = (struct pg_param){.value = slice_of(begins)};
    d->params[3] = (struct pg_param){.value = slice_of(commit)};
    d->params[4] = (struct pg_param){.value = slice_of(ends)};
    buf_printf(&d->sql,
               "%s%s SET commit_lsn = $5::text::pg_lsn WHERE slot = $1::text"
               " AND begin_lsn = $3::text::pg_lsn AND commit_lsn IS NULL"
               " AND committed_at = 'epoch'::timestamptz"
               " + $4::text::bigint * interval '1 us'%s",
               ours, d->table, is_ours);
    return begin(d, 5, err);
}

int deadletters_resolve(struct deadletters *d, const char *const *ids, size_t n,
                        struct err *err)
{
    begin_params(d);
    for (size_t i = 0; i < n; i++)
        buf_printf(&d->text, "%s%s", i > 0 ? "," : "{", ids[i]);
    buf_add_char(&d->text, '}');
    d->params[HEAD] = (struct pg_param){.value = slice_of(buf_str(&d->text))};
    buf_printf(&d->sql,
               "%s%s SET state = 'resolved', retry_after = NULL WHERE slot = $1::text"
               " AND id = ANY ($3::text::bigint[])"
               " AND " DEAD_LETTER_UNRESOLVED
               " AND EXISTS (SELECT FROM ours) RETURNING id)"
               " SELECT EXISTS (SELECT FROM ours), (SELECT array_agg(id) FROM done)",
               ours, d->table);
    return begin(d, HEAD + 1, err);
}

int deadletters_fail(struct deadletters *d, const struct deadletters_failure *failure,
                     struct err *err)
{
    const struct slice values[] = {slice_of(failure->id), failure->reason,
                                   failure->error_code, failure->error,
                                   slice_of(failure->version)};
    const size_t n = sizeof(values) / sizeof(values[0]);

    begin_params(d);
    for (size_t i = 0; i < n; i++)
        d->params[HEAD + i] = (struct pg_param){.value = values[i]};
    buf_printf(&d->sql,
               "%s%s SET attempts = attempts + 1, last_failed_at = now(),"
               " reason = $4::text, error_code = $5::text, error = $6::text,"
               " retry_after = now() + %" PRId64 " * interval '1 ms',"
               " state = CASE WHEN attempts + 1 >= %" PRIu64
               " THEN 'dead' ELSE 'waiting' END"
               " WHERE slot = $1::text AND id = $3::text::bigint"
               " AND coalesce(xmin::text = $7::text, true)"
               " AND " DEAD_LETTER_UNRESOLVED "%s",
               ours, d->table, failure->retry_ms, failure->max_attempts, is_ours);
    return begin(d, HEAD + n, err);
}

/* There may be a hundred thousand rows that are held behind one: only the keys that have
 * such are looked at, from one to the next by the index, and of each the first row. */
static void add_free_keys(struct deadletters *d)
{
    static const char next[] =
        "SELECT topic, md5(key) AS hash FROM %s WHERE slot = $1::text AND state = 'held'"
        " AND topic IS NOT NULL AND key IS NOT NULL%s ORDER BY topic, md5(key) LIMIT 1";

    buf_add_str(&d->sql, "keys AS ((");
    buf_printf(&d->sql, next, d->table, "");
    buf_add_str(&d->sql, ") UNION ALL SELECT next.* FROM keys, LATERAL (");
    buf_printf(&d->sql, next, d->table,
               " AND (topic, md5(key)) > (keys.topic, keys.hash)");
    buf_printf(&d->sql,
               ") next), free AS (SELECT * FROM keys WHERE 'held' = (SELECT state FROM %s"
               " WHERE slot = $1::text AND topic = keys.topic AND md5(key) = keys.hash"
               " AND " DEAD_LETTER_UNRESOLVED " ORDER BY id LIMIT 1) LIMIT %d)",
               d->table, DEADLETTERS_MAX);
}

/* The held rows that no other one is before, but such; and those whose time has come, the
 * first of their key. */
static void add_ready(struct deadletters *d)
{
    buf_printf(
        &d->sql,
        "ready AS (SELECT run.id FROM free, LATERAL (SELECT id,"
        " bool_or(state <> 'held') OVER (ORDER BY id) AS blocked"
        " FROM (SELECT id, state FROM %s WHERE slot = $1::text"
        " AND topic = free.topic AND md5(key) = free.hash AND " DEAD_LETTER_UNRESOLVED
        " ORDER BY id LIMIT %d) AS first) AS run WHERE NOT blocked"
        " UNION ALL SELECT id FROM %s d WHERE slot = $1::text"
        " AND state IN ('waiting', 'dead') AND attempts < $3::text::bigint"
        " AND (retry_after IS NULL OR retry_after <= now())"
        " AND NOT EXISTS (SELECT FROM %s WHERE slot = d.slot AND topic = d.topic"
        " AND md5(key) = md5(d.key) AND key = d.key AND id < d.id"
        " AND " DEAD_LETTER_UNRESOLVED "))",
        d->table, DEADLETTERS_MAX, d->table, d->table);
}

static void add_due(struct deadletters *d)
{
    buf_add_str(&d->sql, "WITH RECURSIVE ");
    add_free_keys(d);
    buf_add_str(&d->sql, ", ");
    add_ready(d);
    buf_printf(
        &d->sql,
        " SELECT d.*, d.xmin AS version, row_number() OVER w AS place,"
        " sum(octet_length(CASE WHEN replaced THEN replacement ELSE payload END))"
        " OVER w AS bytes FROM (SELECT id FROM ready ORDER BY id LIMIT %d) AS picked"
        " JOIN %s d ON d.id = picked.id WINDOW w AS (ORDER BY d.id)",
        DEADLETTERS_MAX, d->table);
}

int deadletters_due(struct deadletters *d, uint64_t max_attempts, struct err *err)
{
    char most[24];

    begin_params(d);
    (void)snprintf(most, sizeof(most), "%" PRIu64, max_attempts);
    d->params[HEAD] = (struct pg_param){.value = slice_of(most)};
    buf_add_str(&d->sql, DEAD_LETTER_OURS "due AS (");
    add_due(d);
    buf_printf(&d->sql,
               ") SELECT EXISTS (SELECT FROM ours), (SELECT ceil(extract(epoch FROM"
               " min(retry_after) - now()) * 1000)::bigint FROM %s WHERE slot = $1::text"
               " AND state IN ('waiting', 'dead') AND attempts < $3::text::bigint"
               " AND retry_after > now()), id, topic, encode(key, 'hex'),"
               " encode(CASE WHEN replaced THEN replacement ELSE payload END, 'hex'),"
               " (SELECT string_agg(encode(convert_to(name, 'UTF8'), 'hex') || ':'"
               " || encode(value, 'hex'), ',' ORDER BY n) FROM unnest(header_names,"
               " header_values) WITH ORDINALITY AS header (name, value, n)), partition,"
               " floor(extract(epoch FROM record_time) * 1000)::bigint, given_time,"
               " floor(extract(epoch FROM committed_at) * 1000)::bigint, outbox_table,"
               " event_id, event_type, aggregate_id, row_lsn, attempts, version"
               " FROM (SELECT) one LEFT JOIN due ON place = 1 OR bytes < %d ORDER BY id",
               d->table, (int)DUE_BYTES);
    return begin(d, HEAD + 1, err);
}

int deadletters_count(struct deadletters *d, struct err *err)
{
    begin_params(d);
    buf_printf(&d->sql,
               DEAD_LETTER_OURS
               "keys AS (SELECT topic, key, count(*) AS n FROM %s WHERE slot = $1::text "
               "AND topic IS NOT NULL"
               " AND key IS NOT NULL AND " DEAD_LETTER_UNRESOLVED
               " GROUP BY topic, key) SELECT EXISTS (SELECT FROM ours), topic,"
               " encode(key, 'hex'), n FROM (SELECT) one LEFT JOIN keys ON true",
               d->table);
    return begin(d, HEAD, err);
}

int deadletters_tally(struct deadletters *d, struct err *err)
{
    begin_params(d);
    buf_printf(&d->sql,
               DEAD_LETTER_OURS
               "tally AS (SELECT count(*) FILTER (WHERE state = 'waiting') AS waiting,"
               " count(*) FILTER (WHERE state = 'held') AS held,"
               " count(*) FILTER (WHERE state = 'dead') AS dead,"
               " floor(extract(epoch FROM now() - min(first_failed_at)) * 1000)::bigint"
               " AS age FROM %s WHERE slot = $1::text"
               " AND " DEAD_LETTER_UNRESOLVED ")"
               " SELECT EXISTS (SELECT FROM ours), waiting, held, dead, age FROM tally",
               d->table);
    return begin(d, HEAD, err);
}

/* ---- answers --------------------------------------------------------------------- */

struct pollfd deadletters_fd(const struct deadletters *d)
{
    return (struct pollfd){pg_socket(d->pg), (short)(POLLIN | (d->unsent ? POLLOUT : 0)),
                           0};
}

static int judge(struct deadletters *d, const struct pg_result *result, struct err *err)
{
    if (pg_is_true(result, 0, 0))
        return 1;
    d->fenced = true;
    return err_set(err, ERR_RETRY,
                   "slot %s is not streamed by this relay any more: no dead letter was "
                   "written",
                   d->slot);
}

int deadletters_serve(struct deadletters *d, struct err *err)
{
    struct pg_result *result = NULL;
    int rc;

    if (pg_consume(d->pg, err) < 0)
        return fail(d);
    if (send_on(d, err) < 0)
        return -1;
    if (!d->busy)
        return 0;
    rc = pg_answer(d->pg, &result, err);
    if (rc == 0)
        return 0;
    d->busy = false;
    if (rc == 1)
        rc = judge(d, result, err);
    pg_result_free(d->answer);
    d->answer = result;
    return rc;
}

struct pg_result *deadletters_take(struct deadletters *d)
{
    struct pg_result *ret = d->answer;

    d->answer = NULL;
    return ret;
}

bool deadletters_fenced(const struct deadletters *d)
{
    return d->fenced;
}

bool deadletters_busy(const struct deadletters *d)
{
    return d->busy;
}

bool deadletters_usable(const struct deadletters *d)
{
    return !d->broken;
}

bool deadletters_changed(struct deadletters *d)
{
    return pg_notified(d->pg);
}
