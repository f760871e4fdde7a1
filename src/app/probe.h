/* probe.h - the verdicts of check.c's table of probes.
 *
 * A verdict gets the result of its probe's query.  0: as it must be; -1: err is set,
 * one line that names the thing and what mends it.  Either way it may leave a note
 * for people, warn, and fill what the relay needs to know. */
#ifndef WALRELAY_APP_PROBE_H
#define WALRELAY_APP_PROBE_H

#include "app/check.h"

struct check {
    struct pg *pg;
    const struct config *config;
    struct server *server; /* what has been found out so far */
    size_t table;          /* which one the probes of a table look at */
    char table_name[300];  /* that one's name as SQL writes it */
    char table_oid[16];    /* and its oid, once it is known to exist */
    char note[256];        /* what the last probe saw, or empty */
};

void check_note(struct check *check, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The settings and the catalog entry of the table being looked at. */
const struct table_settings *check_table(const struct check *check);
struct catalog_table *check_catalog(const struct check *check);

typedef int verdict_t(struct check *check, const struct pg_result *found,
                      struct err *err);

/* Of the server (probe_server.c), in the order of the columns of its query. */
verdict_t verdict_version;  /* no query */
verdict_t verdict_primary;  /* pg_is_in_recovery() */
verdict_t verdict_standby;  /* synchronous_standby_names */
verdict_t verdict_level;    /* wal_level */
verdict_t verdict_plugin;   /* may it be read, output_plugin_libraries */
verdict_t verdict_role;     /* current_user, may it replicate */
verdict_t verdict_encoding; /* its name, bytes of the longest character */

/* Of the memo of the slot (probe_memo.c). */
extern const char memo_query[];
verdict_t verdict_memo;
/* What follows for events when the slot cannot be used: "", or a part of a sentence about
 * the memo, and what is to be done about it. */
void memo_consequence(const struct check *check, const char *literal, char *text,
                      size_t size);

/* Of the slot (probe_slot.c); all share slot_query. */
extern const char slot_query[];
verdict_t verdict_slot_exists;
verdict_t verdict_slot_logical;
verdict_t verdict_slot_database;
verdict_t verdict_slot_plugin;
verdict_t verdict_slot_status;

/* Of the table of dead letters (probe_dead_letters.c). */
extern const char dead_letters_query[];
verdict_t verdict_dead_letters;

/* Of a table (probe_table.c). */
extern const char table_query[];
extern const char columns_query[];
extern const char leaves_query[];
verdict_t verdict_table;
verdict_t verdict_columns;
verdict_t verdict_leaves;

/* Of all tables together; no query. */
verdict_t verdict_settings;

#endif
