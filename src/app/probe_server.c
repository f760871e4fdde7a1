#include "app/probe.h"
#include "core/namelist.h"

#include <stdlib.h>
#include <string.h>

/* pg_replication_slots tells a lost slot (wal_status) since 13. */
enum { OLDEST_VERSION = 130000 };

int verdict_version(struct check *check, const struct pg_result *found, struct err *err)
{
    int version = pg_server_version(check->pg);

    (void)found;
    if (version < OLDEST_VERSION)
        return err_set(err, ERR_CONFIG,
                       "PostgreSQL %d.%d is too old: before 13 a server does not tell "
                       "whether a slot has lost WAL (wal_status)",
                       version / 10000, version % 10000);
    check->server->version = version;
    check_note(check, "%d.%d", version / 10000, version % 10000);
    return 0;
}

int verdict_primary(struct check *check, const struct pg_result *found, struct err *err)
{
    (void)check;
    if (strcmp(pg_value(found, 0, 0), "f") == 0)
        return 0;
    return err_set(err, ERR_RETRY,
                   "the server is a standby (pg_is_in_recovery): put all hosts and "
                   "target_session_attrs=read-write into the dsn");
}

int verdict_standby(struct check *check, const struct pg_result *found, struct err *err)
{
    const char *setting = pg_value(found, 0, 0);
    const char *name = pg_parameter(check->pg, "application_name");

    if (!name)
        name = "";
    if (!standby_names_match(setting, name))
        return 0;
    return err_set(
        err, ERR_CONFIG,
        "synchronous_standby_names = '%s' matches the relay's application_name "
        "%s, so every COMMIT of the application would wait for the relay: set "
        "application_name=… in the dsn, or name the standbys only: ALTER SYSTEM "
        "SET synchronous_standby_names = …; SELECT pg_reload_conf()",
        setting, name);
}

int verdict_level(struct check *check, const struct pg_result *found, struct err *err)
{
    (void)check;
    if (strcmp(pg_value(found, 0, 0), "logical") == 0)
        return 0;
    return err_set(err, ERR_CONFIG,
                   "wal_level is %s and logical decoding requires wal_level >= logical: "
                   "ALTER SYSTEM SET wal_level = logical, then restart the server",
                   pg_value(found, 0, 0));
}

/* From 15.19, 18.6 and the same minor releases of the others on, a server refuses a
 * plugin that this setting does not name; servers before them do not know it. */
int verdict_plugin(struct check *check, const struct pg_result *found, struct err *err)
{
    const char *list = pg_value(found, 0, 1);

    if (strcmp(pg_value(found, 0, 0), "t") != 0) {
        check_note(check, "cannot tell, only pg_read_all_settings may see it (GRANT "
                          "pg_monitor TO the role of the dsn)");
        return 0;
    }
    if (!list) {
        check_note(check, "not known to this server, so not needed");
        return 0;
    }
    if (namelist_has(list, "wal2json"))
        return 0;
    /* the list is unquoted: in quotes it would become one name */
    return err_set_code(err, ERR_CONFIG, "42501",
                        "library \"wal2json\" may not be used as an output plugin: "
                        "output_plugin_libraries is %s. As a superuser: ALTER SYSTEM SET "
                        "output_plugin_libraries = pgoutput, test_decoding, wal2json; "
                        "SELECT pg_reload_conf()",
                        *list ? list : "empty");
}

int verdict_role(struct check *check, const struct pg_result *found, struct err *err)
{
    check_note(check, "%s", pg_value(found, 0, 0));
    if (pg_is_true(found, 0, 1))
        return 0;
    return err_set(
        err, ERR_DENIED,
        "role %s may not replicate: ALTER ROLE %s REPLICATION (as a superuser)",
        pg_value(found, 0, 0), pg_value(found, 0, 0));
}

/* ---- encoding ------------------------------------------------------------------ */

/* What the encoding's character for one byte is in UTF-8; left empty if the encoding
 * has none.  The server converts when it sends: client_encoding is UTF8. */
static int ask_byte(struct pg *pg, int byte, char ret[5], struct err *err)
{
    char number[8];
    const char *param = number;
    struct err mine = {0};
    struct pg_result *found;
    int rc = 0;

    (void)snprintf(number, sizeof(number), "%d", byte);
    found = pg_query(pg, "SELECT chr($1::int)", 1, &param, &mine);
    if (found)
        (void)snprintf(ret, 5, "%s", pg_value(found, 0, 0));
    else if (strcmp(mine.code, "22P05") != 0) /* untranslatable_character */
        rc = err_set_code(err, mine.class, mine.code, "%s", mine.text);
    pg_result_free(found);
    return rc;
}

/* All of PostgreSQL's server encodings hold ASCII as it is. */
static int fill_table(struct pg *pg, struct encoding *encoding, struct err *err)
{
    for (int i = 1; i < 128; i++)
        encoding->to_utf8[i][0] = (char)i;
    for (int i = 128; i < 256; i++) {
        if (ask_byte(pg, i, encoding->to_utf8[i], err) < 0)
            return -1;
    }
    return 0;
}

int verdict_encoding(struct check *check, const struct pg_result *found, struct err *err)
{
    struct encoding *encoding = &check->server->encoding;
    const char *name = pg_value(found, 0, 0);
    long bytes = strtol(pg_value(found, 0, 1), NULL, 10);

    check_note(check, "%s", name);
    (void)snprintf(encoding->name, sizeof(encoding->name), "%s", name);
    if (strcmp(name, "UTF8") == 0) {
        encoding->kind = ENCODING_UTF8;
        return 0;
    }
    if (strcmp(name, "SQL_ASCII") == 0) {
        encoding->kind = ENCODING_UNKNOWN;
        check_note(check, "SQL_ASCII, accepted while each value is valid UTF-8");
        return 0;
    }
    if (bytes > 1)
        return err_set(
            err, ERR_CONFIG,
            "the database's encoding %s is not supported, only UTF8, SQL_ASCII "
            "and encodings of one byte a character: move the data into a "
            "database made with CREATE DATABASE … ENCODING 'UTF8' TEMPLATE "
            "template0",
            name);
    encoding->kind = ENCODING_SINGLE_BYTE;
    return fill_table(check->pg, encoding, err);
}
