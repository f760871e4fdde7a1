#include "app/probe.h"

#include <string.h>

/* Always one row; without the table all but the names are NULL. */
const char dead_letters_query[] =
    "SELECT format('%I.%I', $1::text, $2::text), quote_ident(session_user), c.relkind,"
    " c.relpersistence, row_security_active(c.oid),"
    " concat_ws(', ', CASE WHEN NOT has_schema_privilege(n.oid, 'USAGE')"
    " THEN 'USAGE of its schema' END, (SELECT string_agg(needed, ', ')"
    " FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) AS needed"
    " WHERE NOT has_table_privilege(c.oid, needed))),"
    " (SELECT string_agg(needed, ', ') FROM unnest(ARRAY['id', 'slot', 'row_lsn',"
    " 'row_number', 'committed_at', 'begin_lsn', 'commit_lsn', 'outbox_table',"
    " 'event_id', 'event_type', 'aggregate_type', 'aggregate_id', 'topic', 'key',"
    " 'payload', 'header_names', 'header_values', 'partition', 'record_time',"
    " 'given_time', 'replaced', 'replacement', 'reason', 'error_code', 'error',"
    " 'attempts', 'first_failed_at', 'last_failed_at', 'retry_after', 'state',"
    " 'note']) AS needed"
    " WHERE NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid"
    " AND a.attname = needed AND NOT a.attisdropped))"
    " FROM (SELECT) one LEFT JOIN (pg_class c JOIN pg_namespace n"
    " ON n.oid = c.relnamespace) ON n.nspname = $1 AND c.relname = $2";

enum dead_letters_column {
    LETTERS_NAME,
    LETTERS_ROLE,
    LETTERS_KIND,
    LETTERS_PERSISTENCE,
    LETTERS_ROW_SECURITY,
    LETTERS_RIGHTS, /* those that are missing */
    LETTERS_MISSING /* columns */
};

static const char *get(const struct pg_result *found, enum dead_letters_column column)
{
    const char *value = pg_value(found, 0, (int)column);

    return value ? value : "";
}

/* What is in the table must survive a crash of the server. */
static int judge_kind(const struct pg_result *found, struct err *err)
{
    const char *name = get(found, LETTERS_NAME);

    if (strcmp(get(found, LETTERS_KIND), "r") != 0)
        return err_set(err, ERR_CONFIG,
                       "%s is no ordinary table: rename it, and make the table of dead "
                       "letters with walrelay setup",
                       name);
    if (strcmp(get(found, LETTERS_PERSISTENCE), "p") != 0)
        return err_set(err, ERR_CONFIG,
                       "table %s does not survive a crash: ALTER TABLE %s SET LOGGED",
                       name, name);
    if (*get(found, LETTERS_MISSING))
        return err_set(
            err, ERR_CONFIG,
            "table %s lacks columns (%s): it is of another version; rename it, "
            "and make it anew with walrelay setup",
            name, get(found, LETTERS_MISSING));
    return 0;
}

/* Rights come and go while the relay runs: it waits for them. */
static int judge_rights(const struct pg_result *found, struct err *err)
{
    const char *name = get(found, LETTERS_NAME);
    const char *role = get(found, LETTERS_ROLE);

    if (*get(found, LETTERS_RIGHTS))
        return err_set_code(
            err, ERR_RETRY, "42501",
            "role %s lacks rights on table %s (%s): GRANT SELECT, INSERT, "
            "UPDATE ON %s TO %s, or walrelay setup",
            role, name, get(found, LETTERS_RIGHTS), name, role);
    if (pg_is_true(found, 0, LETTERS_ROW_SECURITY))
        return err_set_code(
            err, ERR_RETRY, "42501",
            "row security hides rows of table %s from role %s: ALTER TABLE "
            "%s DISABLE ROW LEVEL SECURITY",
            name, role, name);
    return 0;
}

int verdict_dead_letters(struct check *check, const struct pg_result *found,
                         struct err *err)
{
    const char *name = get(found, LETTERS_NAME);

    if (!pg_value(found, 0, LETTERS_KIND)) {
        check_note(
            check,
            "there is no table %s, so an event that Kafka can never take stops the "
            "relay",
            name);
        return 0;
    }
    if (judge_kind(found, err) < 0 || judge_rights(found, err) < 0)
        return -1;
    check->server->dead_letters = true;
    if (check->config->dead_letters.on_poison == ON_POISON_STOP)
        check_note(check, "not used, as on_poison is stop");
    else
        check_note(check, "table %s", name);
    return 0;
}
