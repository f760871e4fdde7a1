#include "app/dead_letters_load.h"

#include "base/buf.h"
#include "base/hex.h"
#include "io/deadletters.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 1000, KEY_MAX = 1 << 30, SQL_MAX = 4096 };

enum load_column {
    LOAD_ID,
    LOAD_TOPIC,
    LOAD_KEY,
    LOAD_LSN,
    LOAD_NUMBER,
    LOAD_COMMIT_US,
    LOAD_UNRESOLVED,
    LOAD_COMES_AGAIN,
    LOAD_HAS_END,
};

static void add_query(struct buf *sql, const char *table)
{
    buf_printf(sql,
               "SELECT id, topic, encode(key, 'hex'), row_lsn, row_number,"
               " (extract(epoch FROM committed_at) * 1000000)::bigint,"
               " " DEAD_LETTER_UNRESOLVED ","
               " coalesce(commit_lsn > $2::pg_lsn, true), commit_lsn IS NOT NULL"
               " FROM %s WHERE slot = $1 AND id > $3::bigint"
               " AND (" DEAD_LETTER_UNRESOLVED " OR commit_lsn > $2::pg_lsn"
               " OR commit_lsn IS NULL) ORDER BY id LIMIT %d",
               table, (int)BATCH);
}

/* The key's bytes, in buf; absent for SQL NULL.  False: no memory. */
static bool read_key(const char *digits, struct buf *buf, struct slice *ret)
{
    *ret = (struct slice){NULL, 0};
    if (!digits)
        return true;
    buf_reset(buf);
    if (!hex_add(buf, slice_of(digits)))
        return false;
    *ret = buf_slice(buf);
    return true;
}

static int load_row(const struct pg_result *rows, int row, struct buf *key,
                    struct held *held, struct err *err)
{
    struct held_row ret = {
        .topic = slice_of(pg_value(rows, row, LOAD_TOPIC)),
        .place.number = (uint32_t)strtoul(pg_value(rows, row, LOAD_NUMBER), NULL, 10),
        .place.commit_us = strtoll(pg_value(rows, row, LOAD_COMMIT_US), NULL, 10),
        .unresolved = pg_is_true(rows, row, LOAD_UNRESOLVED),
        .comes_again = pg_is_true(rows, row, LOAD_COMES_AGAIN),
        .has_end = pg_is_true(rows, row, LOAD_HAS_END),
    };

    if (!lsn_parse(pg_value(rows, row, LOAD_LSN), &ret.place.lsn))
        return err_set(err, ERR_RETRY, "dead letter %s has no LSN",
                       pg_value(rows, row, LOAD_ID));
    if (!read_key(pg_value(rows, row, LOAD_KEY), key, &ret.key) ||
        held_load(held, &ret) < 0)
        return err_set(err, ERR_INTERNAL, "out of memory for the keys of dead letters");
    return 0;
}

/* last becomes the id of the batch's last row.  How many rows it had, or -1. */
static int load_batch(struct pg *pg, const char *sql, const char *const params[3],
                      char last[24], struct held *held, struct err *err)
{
    struct pg_result *rows = pg_query(pg, sql, 3, params, err);
    int n = rows ? pg_rows(rows) : -1;
    struct buf key;
    int rc = 0;

    buf_init(&key, KEY_MAX);
    for (int i = 0; i < n && rc == 0; i++)
        rc = load_row(rows, i, &key, held, err);
    if (n > 0)
        (void)snprintf(last, 24, "%s", pg_value(rows, n - 1, LOAD_ID));
    buf_done(&key);
    pg_result_free(rows);
    return rc < 0 ? -1 : n;
}

int letters_load(struct pg *pg, const struct config *config, lsn_t start,
                 struct held *held, struct err *err)
{
    char *table = deadletters_table(config->dead_letters.schema);
    char from[24];
    char last[24] = "-1";
    const char *const params[] = {config->postgres.slot, from, last};
    struct buf sql;
    int n = BATCH;

    (void)snprintf(from, sizeof(from), "%" LSN_FMT, LSN_ARG(start));
    buf_init(&sql, SQL_MAX);
    if (table)
        add_query(&sql, table);
    if (!table || sql.failed)
        n = err_set(err, ERR_INTERNAL, "out of memory for dead letters");
    while (n == BATCH)
        n = load_batch(pg, buf_str(&sql), params, last, held, err);
    buf_done(&sql);
    free(table);
    return n < 0 ? -1 : 0;
}
