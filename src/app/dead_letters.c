#include "app/dead_letters.h"

#include "app/dead_letters_rows.h"
#include "io/deadletters.h"
#include "io/pg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SQL_MAX = 64 * 1024,
    IDS_MAX = 32 * 1024 * 1024,
    PAYLOAD_MAX = 256 * 1024 * 1024,
    BATCH = 100, /* rows read at once: payloads may be large */
};

/* What the statements share; $1 to $7 are in params. */
struct letters {
    const struct config *config;
    const struct letters_args *args;
    FILE *out;
    struct pg *pg;
    char *table;    /* its name as SQL writes it */
    struct buf ids; /* {1,2} */
    struct buf sql;
};

/* ---- statements ----------------------------------------------------------------- */

/* The rows that were asked for; $7 goes through them in batches. */
static const char where[] =
    " WHERE slot = $1 AND ($2::bigint[] IS NULL OR id = ANY ($2::bigint[]))"
    " AND ($3::text IS NULL OR key = convert_to($3, 'UTF8'))"
    " AND ($4::text IS NULL OR reason = $4) AND ($5::text IS NULL OR topic = $5)"
    " AND ($6 = 'all' OR state = ANY (string_to_array($6, ','))) AND id > $7::bigint";

static struct pg_result *ask(struct letters *letters, const char *states,
                             const char *after, const char *extra, struct err *err)
{
    const struct letters_args *args = letters->args;
    const char *const params[] = {
        letters->config->postgres.slot,
        args->nids > 0 ? buf_str(&letters->ids) : NULL,
        args->key,
        args->reason,
        args->topic,
        states,
        after,
        extra,
    };

    if (letters->sql.failed) {
        (void)err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    return pg_query(letters->pg, buf_str(&letters->sql), extra ? 8 : 7, params, err);
}

static struct pg_result *select_after(struct letters *letters, const char *after,
                                      bool payloads, struct err *err)
{
    const char *states = letters->args->state;

    if (!states)
        states = letters->args->nids > 0 ? "all" : "waiting,held,dead";
    buf_reset(&letters->sql);
    buf_add_str(&letters->sql, "SELECT ");
    letters_select(&letters->sql, payloads);
    buf_printf(&letters->sql, " FROM %s%s ORDER BY id LIMIT %d", letters->table, where,
               (int)BATCH);
    return ask(letters, states, after, NULL, err);
}

/* ---- list, show, export --------------------------------------------------------- */

static int print_row(struct letters *letters, const struct pg_result *rows, int row,
                     struct err *err)
{
    if (letters->args->json || letters->args->verb == LETTERS_EXPORT)
        return letters_print_json(letters->out, rows, row, err);
    if (letters->args->verb == LETTERS_SHOW)
        return letters_print_whole(letters->out, rows, row, err);
    letters_print_line(letters->out, rows, row);
    return 0;
}

/* last becomes the id of the batch's last row.  How many rows it had, or -1. */
static int print_batch(struct letters *letters, char last[24], bool payloads,
                       struct err *err)
{
    struct pg_result *rows = select_after(letters, last, payloads, err);
    int n = rows ? pg_rows(rows) : -1;
    int rc = n < 0 ? -1 : 0;

    for (int i = 0; i < n && rc == 0; i++)
        rc = print_row(letters, rows, i, err);
    if (n > 0)
        (void)snprintf(last, 24, "%s", pg_value(rows, n - 1, 0));
    pg_result_free(rows);
    return rc < 0 ? -1 : n;
}

static int print_all(struct letters *letters, struct err *err)
{
    const struct letters_args *args = letters->args;
    bool payloads = args->verb != LETTERS_LIST;
    char last[24] = "-1";
    int total = 0;
    int n;

    if (args->verb == LETTERS_LIST && !args->json)
        letters_print_heading(letters->out);
    do {
        n = print_batch(letters, last, payloads, err);
        total += n;
    } while (n == BATCH);
    if (n < 0)
        return -1;
    if (args->verb == LETTERS_SHOW && total == 0)
        return err_set(err, ERR_USAGE, "there is no dead letter %s of slot %s",
                       args->ids[0], letters->config->postgres.slot);
    return 0;
}

/* ---- retry, discard ------------------------------------------------------------- */

static bool is_among(const struct pg_result *rows, const char *id)
{
    for (int i = 0; i < pg_rows(rows); i++) {
        if (strtoll(pg_value(rows, i, 0), NULL, 10) == strtoll(id, NULL, 10))
            return true;
    }
    return false;
}

/* Why was this one left out? */
static int fail_left_out(struct letters *letters, const char *id, struct err *err)
{
    const char *const params[] = {letters->config->postgres.slot, id};
    struct pg_result *found;

    buf_reset(&letters->sql);
    buf_printf(&letters->sql,
               "SELECT d.state, (SELECT min(id) FROM %s e WHERE e.slot = d.slot"
               " AND e.topic = d.topic AND e.key = d.key AND e.id < d.id"
               " AND e.state IN ('waiting', 'dead')) FROM %s d"
               " WHERE d.slot = $1 AND d.id = $2::bigint",
               letters->table, letters->table);
    found = pg_query(letters->pg, buf_str(&letters->sql), 2, params, err);
    if (!found)
        return -1;
    if (pg_rows(found) == 0)
        (void)err_set(err, ERR_USAGE, "there is no dead letter %s of slot %s", id,
                      letters->config->postgres.slot);
    else if (strcmp(pg_value(found, 0, 0), "held") == 0)
        (void)err_set(err, ERR_USAGE,
                      "dead letter %s was never refused: it waits behind %s of the same "
                      "key, and is published after it",
                      id, pg_value(found, 0, 1) ? pg_value(found, 0, 1) : "another");
    else
        (void)err_set(err, ERR_USAGE, "dead letter %s is %s already", id,
                      pg_value(found, 0, 0));
    pg_result_free(found);
    return -1;
}

static int report(struct letters *letters, const struct pg_result *rows, const char *done,
                  struct err *err)
{
    const struct letters_args *args = letters->args;

    for (int i = 0; i < pg_rows(rows); i++)
        (void)fprintf(letters->out, "%s  %s\n", done, pg_value(rows, i, 0));
    for (size_t i = 0; i < args->nids; i++) {
        if (!is_among(rows, args->ids[i]))
            return fail_left_out(letters, args->ids[i], err);
    }
    return 0;
}

/* One UPDATE, which the table's trigger tells the relay of.  extra is $8. */
static int change(struct letters *letters, const char *assignments, const char *extra,
                  const char *states, const char *done, struct err *err)
{
    struct pg_result *rows;
    int rc;

    buf_reset(&letters->sql);
    buf_printf(&letters->sql, "UPDATE %s SET %s%s RETURNING id", letters->table,
               assignments, where);
    rows = ask(letters, states, "-1", extra, err);
    if (!rows)
        return -1;
    rc = report(letters, rows, done, err);
    pg_result_free(rows);
    return rc;
}

/* Appends \x and digits. */
static int read_payload(const char *path, struct buf *hex, struct err *err)
{
    FILE *file = fopen(path, "re");
    int rc = 0;
    int c = 0;

    if (!file)
        return err_set(err, ERR_USAGE, "cannot open %s: %s", path, strerror(errno));
    buf_add_str(hex, "\\x");
    while (!hex->failed && (c = fgetc(file)) != EOF)
        buf_printf(hex, "%02x", (unsigned)c);
    if (ferror(file))
        rc = err_set(err, ERR_USAGE, "cannot read %s: %s", path, strerror(errno));
    else if (hex->failed)
        rc = err_set(err, ERR_USAGE, "%s is too large for a payload", path);
    (void)fclose(file);
    return rc;
}

static int retry(struct letters *letters, struct err *err)
{
    static const char again[] = "state = 'waiting', attempts = 0, retry_after = NULL";
    static const char replaced[] = "state = 'waiting', attempts = 0, retry_after = NULL,"
                                   " replaced = true, replacement = $8::bytea";
    const char *states = letters->args->state ? letters->args->state : "waiting,dead";
    struct buf payload;
    int rc = 0;

    buf_init(&payload, PAYLOAD_MAX);
    if (letters->args->payload_file)
        rc = read_payload(letters->args->payload_file, &payload, err);
    if (rc == 0)
        rc = change(letters, payload.len > 0 ? replaced : again,
                    payload.len > 0 ? buf_str(&payload) : NULL, states, "retry", err);
    buf_done(&payload);
    return rc;
}

static int discard(struct letters *letters, struct err *err)
{
    return change(letters, "state = 'discarded', retry_after = NULL, note = $8",
                  letters->args->note, "waiting,held,dead", "discarded", err);
}

/* ---- the whole ------------------------------------------------------------------ */

static int check_table(struct letters *letters, struct err *err)
{
    const char *name = letters->table;
    struct pg_result *found =
        pg_query(letters->pg,
                 "SELECT to_regclass($1), set_config('default_transaction_read_only',"
                 " 'off', false)",
                 1, &name, err);
    int rc = 0;

    if (!found)
        return -1;
    if (!pg_value(found, 0, 0))
        rc =
            err_set(err, ERR_CONFIG,
                    "there is no table %s in this database: walrelay setup --apply makes "
                    "it; schema in [dead_letters] says where",
                    name);
    pg_result_free(found);
    return rc;
}

static int obey(struct letters *letters, struct err *err)
{
    if (check_table(letters, err) < 0)
        return -1;
    switch (letters->args->verb) {
    case LETTERS_RETRY:
        return retry(letters, err);
    case LETTERS_DISCARD:
        return discard(letters, err);
    default:
        return print_all(letters, err);
    }
}

static int add_table(struct letters *letters, struct err *err)
{
    letters->table = deadletters_table(letters->config->dead_letters.schema);
    return letters->table ? 0 : err_set(err, ERR_INTERNAL, "out of memory");
}

static void add_ids(struct buf *out, const struct letters_args *args)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < args->nids; i++)
        buf_printf(out, "%s%s", i > 0 ? "," : "", args->ids[i]);
    buf_add_char(out, '}');
}

int letters_run(const struct config *config, const struct letters_args *args, FILE *out,
                struct err *err)
{
    struct letters letters = {.config = config, .args = args, .out = out};
    int rc = -1;

    buf_init(&letters.ids, IDS_MAX);
    buf_init(&letters.sql, SQL_MAX);
    add_ids(&letters.ids, args);
    letters.pg = pg_connect(config->postgres.dsn, PG_SQL, err);
    if (letters.pg && add_table(&letters, err) == 0)
        rc = obey(&letters, err);
    pg_close(letters.pg);
    free(letters.table);
    buf_done(&letters.ids);
    buf_done(&letters.sql);
    return rc;
}
