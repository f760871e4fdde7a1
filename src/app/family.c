#include "app/family.h"

#include <stdlib.h>
#include <string.h>

enum { TRIES = 40 };

#define TREE                                                                             \
    "WITH RECURSIVE tree(oid) AS (SELECT c.oid FROM pg_class c JOIN pg_namespace n"      \
    " ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2"                 \
    " UNION SELECT i.inhrelid FROM pg_inherits i JOIN tree ON i.inhparent = tree.oid)"

/* Is a transaction under way that may have given the table a partition?  The walsender
 * sends a transaction as soon as its commit record is on disk, which is before others
 * can see what it did (with synchronous replication, long before).  Until they can, it
 * holds the lock under which it changed the tree, and an xid, which VACUUM has not. */
static const char changing_query[] = TREE
    " SELECT EXISTS (SELECT FROM tree JOIN pg_locks r ON r.relation = tree.oid"
    " JOIN pg_locks x USING (virtualtransaction) JOIN pg_database d ON d.oid = r.database"
    " WHERE d.datname = current_database() AND r.granted AND r.mode IN"
    " ('ShareUpdateExclusiveLock', 'ShareRowExclusiveLock', 'AccessExclusiveLock')"
    " AND x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock')";

static const char member_query[] = TREE
    " SELECT EXISTS (SELECT FROM tree JOIN pg_class c USING (oid) JOIN pg_namespace n"
    " ON n.oid = c.relnamespace WHERE n.nspname = $3 AND c.relname = $4)";

/* Leaving a parent writes all rows of pg_attribute anew (attinhcount) and leaves that of
 * the row type in pg_type, which is as old as the table.  It counts if that may be later
 * than what the slot still has to send.  (A negative age is that of a frozen row after a
 * wraparound.) */
static const char left_query[] =
    "SELECT c.oid IS NULL OR coalesce((SELECT bool_and(age(a.xmin) < age(t.xmin)"
    " AND age(a.xmin) BETWEEN 0 AND age(s.catalog_xmin)) FROM pg_attribute a"
    " WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), false)"
    " FROM (SELECT) one LEFT JOIN (pg_class c JOIN pg_namespace n"
    " ON n.oid = c.relnamespace JOIN pg_type t ON t.oid = c.reltype)"
    " ON n.nspname = $1 AND c.relname = $2"
    " LEFT JOIN pg_replication_slots s ON s.slot_name = $3";

static const char clock_query[] =
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/* 1: yes, 0: no, -1: family->err is set. */
static int ask(struct family *family, const char *query, int n, const char *const *args)
{
    struct pg_result *result = pg_query(family->pg, query, n, args, &family->err);
    int rc = result ? pg_is_true(result, 0, 0) : -1;

    pg_result_free(result);
    return rc;
}

/* The same of every configured table: 1 if it is true of one. */
static int ask_all(struct family *family, const char *query, int n)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < family->config->ntables; i++) {
        const struct table_settings *table = &family->config->tables[i];
        const char *const args[] = {table->schema, table->name, family->schema,
                                    family->name};

        rc = ask(family, query, n, args);
    }
    return rc;
}

static int look_at_clock(struct family *family)
{
    struct pg_result *result = pg_query(family->pg, clock_query, 0, NULL, &family->err);

    if (!result)
        return -1;
    family->asked_us = strtoll(pg_value(result, 0, 0), NULL, 10);
    pg_result_free(result);
    return 0;
}

static int wait_for_changes(struct family *family)
{
    int rc = 1;

    for (int i = 0; rc == 1 && i < TRIES; i++) {
        if (i > 0)
            pg_result_free(
                pg_query(family->pg, "SELECT pg_sleep(0.05)", 0, NULL, &family->err));
        rc = ask_all(family, changing_query, 2);
    }
    if (rc == 1)
        return err_set(&family->err, ERR_RETRY,
                       "is table %s.%s a partition of a configured one?  That is not "
                       "known before the transaction ends that is changing partitions",
                       family->schema, family->name);
    return rc;
}

static int judge(struct family *family)
{
    const char *const args[] = {family->schema, family->name,
                                family->config->postgres.slot};
    int rc;

    if (look_at_clock(family) < 0 || wait_for_changes(family) < 0)
        return -1;
    rc = ask_all(family, member_query, 4);
    if (rc == 1)
        family->verdict = FAMILY_MEMBER;
    if (rc != 0)
        return rc;
    rc = ask(family, left_query, 3, args);
    family->verdict = rc == 1 ? FAMILY_LEFT : FAMILY_STRANGER;
    return rc;
}

static void work(void *arg)
{
    struct family *family = arg;

    if (family->pg && judge(family) >= 0)
        return;
    /* none yet, or the server has closed it while it was idle */
    pg_close(family->pg);
    err_clear(&family->err);
    family->pg = pg_connect(family->config->postgres.dsn, PG_SQL, &family->err);
    if (family->pg && judge(family) >= 0)
        return;
    pg_close(family->pg);
    family->pg = NULL;
}

struct job *family_ask(struct family *family, struct slice schema, struct slice name,
                       struct err *err)
{
    free(family->schema);
    free(family->name);
    family->schema = strndup(schema.ptr, schema.len);
    family->name = strndup(name.ptr, name.len);
    err_clear(&family->err);
    if (!family->schema || !family->name) {
        (void)err_set(err, ERR_INTERNAL, "out of memory for a table's name");
        return NULL;
    }
    return job_start(work, family, err);
}

void family_done(struct family *family)
{
    pg_close(family->pg);
    free(family->schema);
    free(family->name);
    *family = (struct family){0};
}
