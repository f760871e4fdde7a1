#include "app/probe.h"

#include <stdlib.h>
#include <string.h>

/* Always one row; without a slot of this name all of the slot's columns are NULL. */
const char slot_query[] =
    "SELECT slot_type, plugin, database, current_database(), wal_status, active_pid,"
    " confirmed_flush_lsn, pg_current_wal_lsn(), quote_literal($1),"
    " pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)),"
    " left(pg_walfile_name(pg_current_wal_lsn()), 8)"
    " FROM (SELECT) one LEFT JOIN pg_replication_slots ON slot_name = $1";

enum slot_column {
    SLOT_TYPE,
    SLOT_PLUGIN,
    SLOT_DATABASE,
    SLOT_CURRENT_DATABASE,
    SLOT_WAL_STATUS,
    SLOT_ACTIVE_PID,
    SLOT_CONFIRMED,
    SLOT_WAL_NOW,
    SLOT_LITERAL, /* its name as SQL writes a text */
    SLOT_RETAINED,
    SLOT_TIMELINE, /* eight hexadecimal digits */
};

static const char *get(const struct pg_result *found, enum slot_column column)
{
    const char *value = pg_value(found, 0, (int)column);

    return value ? value : "";
}

/* Filled although the slot may be refused: none of it is used then. */
static void remember(struct server *server, const struct pg_result *found)
{
    server->active_pid = (int32_t)strtol(get(found, SLOT_ACTIVE_PID), NULL, 10);
    if (!lsn_parse(get(found, SLOT_CONFIRMED), &server->confirmed_flush))
        server->confirmed_flush = LSN_NONE;
}

static int fail_missing(const struct check *check, const struct pg_result *found,
                        struct err *err)
{
    char consequence[512];

    memo_consequence(check, get(found, SLOT_LITERAL), consequence, sizeof(consequence));
    return err_set_code(
        err, ERR_SLOT, "42704",
        "slot %s does not exist on this server (timeline %lu): SELECT "
        "pg_create_logical_replication_slot(%s, 'wal2json'), or walrelay setup "
        "--apply; events committed before that are not in the new slot, so if there "
        "was one (dropped, or left behind at a failover) they may be lost%s",
        check->config->postgres.slot, strtoul(get(found, SLOT_TIMELINE), NULL, 16),
        get(found, SLOT_LITERAL), consequence);
}

int verdict_slot_exists(struct check *check, const struct pg_result *found,
                        struct err *err)
{
    if (!pg_value(found, 0, SLOT_TYPE))
        return fail_missing(check, found, err);
    remember(check->server, found);
    check_note(check, "%s", check->config->postgres.slot);
    return 0;
}

int verdict_slot_logical(struct check *check, const struct pg_result *found,
                         struct err *err)
{
    if (strcmp(get(found, SLOT_TYPE), "logical") == 0)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "slot %s is a %s slot and walrelay needs a logical one: set another "
                   "name for slot in [postgres], or, if nobody needs this one, SELECT "
                   "pg_drop_replication_slot(%s)",
                   check->config->postgres.slot, get(found, SLOT_TYPE),
                   get(found, SLOT_LITERAL));
}

int verdict_slot_database(struct check *check, const struct pg_result *found,
                          struct err *err)
{
    if (strcmp(get(found, SLOT_DATABASE), get(found, SLOT_CURRENT_DATABASE)) == 0)
        return 0;
    return err_set(err, ERR_SLOT,
                   "slot %s belongs to database %s but the dsn connects to %s: correct "
                   "dbname in the dsn, or set another name for slot in [postgres]",
                   check->config->postgres.slot, get(found, SLOT_DATABASE),
                   get(found, SLOT_CURRENT_DATABASE));
}

int verdict_slot_plugin(struct check *check, const struct pg_result *found,
                        struct err *err)
{
    if (strcmp(get(found, SLOT_PLUGIN), "wal2json") == 0)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "slot %s uses plugin %s and walrelay needs wal2json: set another name "
                   "for slot in [postgres], or, if nobody needs this one, SELECT "
                   "pg_drop_replication_slot(%s) and walrelay setup --apply",
                   check->config->postgres.slot, get(found, SLOT_PLUGIN),
                   get(found, SLOT_LITERAL));
}

/* A slot that is being made waits for old transactions and has no position yet. */
static int fail_unfinished(const struct check *check, const struct pg_result *found,
                           struct err *err)
{
    return err_set(err, ERR_RETRY,
                   "slot %s is still being made by PID %s, which waits for older "
                   "transactions: SELECT pid, query FROM pg_stat_activity WHERE "
                   "backend_xid IS NOT NULL; SELECT gid FROM pg_prepared_xacts",
                   check->config->postgres.slot, get(found, SLOT_ACTIVE_PID));
}

static int fail_lost(const struct check *check, const struct pg_result *found,
                     struct err *err)
{
    const char *literal = get(found, SLOT_LITERAL);
    char consequence[512];

    memo_consequence(check, literal, consequence, sizeof(consequence));
    return err_set(
        err, ERR_SLOT,
        "slot %s is lost: the server removed WAL that it needed "
        "(max_slot_wal_keep_size), events committed between %s and %s are gone "
        "from the stream. Publish them from the table, then SELECT "
        "pg_drop_replication_slot(%s); SELECT "
        "pg_create_logical_replication_slot(%s, 'wal2json')%s",
        check->config->postgres.slot, get(found, SLOT_CONFIRMED),
        get(found, SLOT_WAL_NOW), literal, literal, consequence);
}

int verdict_slot_status(struct check *check, const struct pg_result *found,
                        struct err *err)
{
    const char *status = get(found, SLOT_WAL_STATUS);
    const char *slot = check->config->postgres.slot;

    if (strcmp(status, "lost") == 0)
        return fail_lost(check, found, err);
    if (!pg_value(found, 0, SLOT_CONFIRMED))
        return fail_unfinished(check, found, err);
    check_note(check, "%s, %s retained", status, get(found, SLOT_RETAINED));
    if (strcmp(status, "unreserved") == 0)
        server_warn(
            check->server,
            "slot %s will be lost at the next checkpoint: it retains %s, more than "
            "max_slot_wal_keep_size; raise that now (ALTER SYSTEM SET "
            "max_slot_wal_keep_size = …; SELECT pg_reload_conf())",
            slot, get(found, SLOT_RETAINED));
    else if (strcmp(status, "extended") == 0)
        server_warn(check->server, "slot %s retains %s of WAL, more than max_wal_size",
                    slot, get(found, SLOT_RETAINED));
    return 0;
}
