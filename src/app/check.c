#include "app/check.h"

#include "app/judge.h"
#include "app/probe.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum probe_args {
    ARGS_NONE,
    ARGS_SLOT,           /* $1 the slot's name */
    ARGS_TABLE,          /* $1 schema, $2 table */
    ARGS_TABLE_AND_SLOT, /* $1 the table's oid, $2 the slot's name */
    ARGS_TABLE_OID,      /* $1 the table's oid */
    ARGS_DEAD_LETTERS,   /* $1 schema, $2 table */
};

struct probe {
    const char *name;
    const char *query; /* NULL: none is needed */
    enum probe_args args;
    const char *needs; /* the probe without which this one cannot be judged, or NULL */
    verdict_t *verdict;
};

static const struct probe server_probes[] = {
    {"server version", NULL, ARGS_NONE, NULL, verdict_version},
    {"primary", "SELECT pg_is_in_recovery()", ARGS_NONE, NULL, verdict_primary},
    {"synchronous_standby_names", "SELECT current_setting('synchronous_standby_names')",
     ARGS_NONE, NULL, verdict_standby},
    {"wal_level", "SELECT current_setting('wal_level')", ARGS_NONE, NULL, verdict_level},
    {"output_plugin_libraries",
     "SELECT readable, CASE WHEN readable"
     " THEN current_setting('output_plugin_libraries', true) END"
     " FROM pg_has_role('pg_read_all_settings', 'usage') AS readable",
     ARGS_NONE, NULL, verdict_plugin},
    /* Amazon RDS hands replication out by membership in rds_replication */
    {"role",
     "SELECT quote_ident(rolname), rolreplication OR rolsuper OR EXISTS ("
     "SELECT FROM pg_roles g WHERE g.rolname = 'rds_replication'"
     " AND pg_has_role(g.oid, 'usage')) FROM pg_roles WHERE rolname = session_user",
     ARGS_NONE, NULL, verdict_role},
    {"encoding",
     "SELECT pg_encoding_to_char(encoding), pg_encoding_max_length(encoding)"
     " FROM pg_database WHERE datname = current_database()",
     ARGS_NONE, NULL, verdict_encoding},
    {"memo of the slot", memo_query, ARGS_NONE, "primary", verdict_memo},
    {"slot", slot_query, ARGS_SLOT, "primary", verdict_slot_exists},
    {"slot is logical", slot_query, ARGS_SLOT, "slot", verdict_slot_logical},
    {"slot's database", slot_query, ARGS_SLOT, "slot is logical", verdict_slot_database},
    {"slot's plugin", slot_query, ARGS_SLOT, "slot is logical", verdict_slot_plugin},
    {"slot's WAL", slot_query, ARGS_SLOT, "slot is logical", verdict_slot_status},
    {"dead letters", dead_letters_query, ARGS_DEAD_LETTERS, NULL, verdict_dead_letters},
};

/* Each for every [table] section. */
static const struct probe table_probes[] = {
    {"table", table_query, ARGS_TABLE, NULL, verdict_table},
    {"columns", columns_query, ARGS_TABLE_AND_SLOT, "table", verdict_columns},
    {"rows in", leaves_query, ARGS_TABLE_OID, "table", verdict_leaves},
};

static const struct probe settings_probe = {"settings", NULL, ARGS_NONE, "columns",
                                            verdict_settings};

/* Not one of a query, see judge.h. */
static const struct probe history_probe = {"slot's history", NULL, ARGS_NONE, NULL, NULL};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
enum { FAILED_MAX = COUNT(server_probes) + COUNT(table_probes) + 1 };

/* The probes that failed, or were not run because of one that did. */
struct failures {
    const char *names[FAILED_MAX];
    size_t n;
};

struct run {
    struct check check;
    FILE *out; /* NULL: stop at the first failure */
    bool failed;
};

/* ---- for the verdicts ---------------------------------------------------------- */

void server_warn(struct server *server, const char *fmt, ...)
{
    va_list ap;

    if (server->nwarnings == SERVER_WARNINGS_MAX)
        return;
    va_start(ap, fmt);
    (void)vsnprintf(server->warnings[server->nwarnings++], SERVER_WARNING_BYTES, fmt, ap);
    va_end(ap);
}

void check_note(struct check *check, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(check->note, sizeof(check->note), fmt, ap);
    va_end(ap);
}

const struct table_settings *check_table(const struct check *check)
{
    return &check->config->tables[check->table];
}

struct catalog_table *check_catalog(const struct check *check)
{
    return &check->server->catalog->tables[check->table];
}

/* ---- running them -------------------------------------------------------------- */

static bool has_failed(const struct failures *failures, const char *name)
{
    for (size_t i = 0; name && i < failures->n; i++) {
        if (strcmp(failures->names[i], name) == 0)
            return true;
    }
    return false;
}

static int ask(struct check *check, const struct probe *probe, struct err *err)
{
    const struct table_settings *table =
        probe->args == ARGS_TABLE ? check_table(check) : NULL;
    const char *slot = check->config->postgres.slot;
    const char *const args[][2] = {
        [ARGS_NONE] = {NULL, NULL},
        [ARGS_SLOT] = {slot, NULL},
        [ARGS_TABLE] = {table ? table->schema : NULL, table ? table->name : NULL},
        [ARGS_TABLE_AND_SLOT] = {check->table_oid, slot},
        [ARGS_TABLE_OID] = {check->table_oid, NULL},
        [ARGS_DEAD_LETTERS] = {check->config->dead_letters.schema, DEAD_LETTERS_TABLE},
    };
    const char *const *values = args[probe->args];
    struct pg_result *found = NULL;
    int rc;

    if (probe->query) {
        found = pg_query(check->pg, probe->query,
                         values[1]   ? 2
                         : values[0] ? 1
                                     : 0,
                         values, err);
        if (!found)
            return -1;
    }
    rc = probe->verdict(check, found, err);
    pg_result_free(found);
    return rc;
}

static void print_line(struct run *run, const char *verdict, const char *text)
{
    (void)fprintf(run->out, "%-11s  %s\n", verdict, text);
}

static void print_name(struct run *run, const char *verdict, const char *name,
                       const char *subject, const char *note)
{
    (void)fprintf(run->out, "%-11s  %s%s%s%s%s\n", verdict, name, *subject ? " " : "",
                  subject, *note ? ": " : "", note);
}

static void print_passed(struct run *run, const struct probe *probe, const char *subject,
                         size_t warnings_before)
{
    const struct server *server = run->check.server;

    print_name(run, "ok", probe->name, subject, run->check.note);
    for (size_t i = warnings_before; i < server->nwarnings; i++)
        print_line(run, "warning", server->warnings[i]);
}

/* 0, also after a failure if all are to be printed; -1: stop. */
static int run_probe(struct run *run, const struct probe *probe, const char *subject,
                     struct failures *failures, struct err *err)
{
    size_t warnings = run->check.server->nwarnings;
    struct err mine = {0};

    run->check.note[0] = '\0';
    if (has_failed(failures, probe->needs)) {
        failures->names[failures->n++] = probe->name;
        print_name(run, "not checked", probe->name, subject, "");
        return 0;
    }
    if (ask(&run->check, probe, &mine) == 0) {
        if (run->out)
            print_passed(run, probe, subject, warnings);
        return 0;
    }
    failures->names[failures->n++] = probe->name;
    run->failed = true;
    (void)err_set_code(err, mine.class, mine.code, "%s", mine.text);
    if (!run->out)
        return -1;
    print_line(run, "FAILED", mine.text);
    return 0;
}

/* The failures of one table say nothing about the next, but settings need them all. */
static int run_table(struct run *run, struct failures *failures, struct err *err)
{
    const struct table_settings *table = check_table(&run->check);
    struct failures mine = {0};

    (void)snprintf(run->check.table_name, sizeof(run->check.table_name), "%s.%s",
                   table->schema, table->name);
    for (size_t i = 0; i < COUNT(table_probes); i++) {
        if (run_probe(run, &table_probes[i], run->check.table_name, &mine, err) < 0)
            return -1;
    }
    if (has_failed(&mine, settings_probe.needs) &&
        !has_failed(failures, settings_probe.needs))
        failures->names[failures->n++] = settings_probe.needs;
    return 0;
}

static int run_all(struct run *run, struct err *err)
{
    struct failures failures = {0};

    for (size_t i = 0; i < COUNT(server_probes); i++) {
        if (run_probe(run, &server_probes[i], "", &failures, err) < 0)
            return -1;
    }
    for (run->check.table = 0; run->check.table < run->check.config->ntables;
         run->check.table++) {
        if (run_table(run, &failures, err) < 0)
            return -1;
    }
    run->check.table = 0;
    if (run_probe(run, &settings_probe, "", &failures, err) < 0)
        return -1;
    return run->failed ? -1 : 0;
}

static struct server *server_new(const struct config *config, struct err *err)
{
    size_t ntables = config->ntables;
    struct server *server = calloc(1, sizeof(*server));
    struct catalog *catalog = calloc(1, sizeof(*catalog));
    struct catalog_table *tables = calloc(ntables ? ntables : 1, sizeof(*tables));

    if (!server || !catalog || !tables) {
        (void)err_set(err, ERR_INTERNAL, "out of memory");
        free(server);
        free(catalog);
        free(tables);
        return NULL;
    }
    catalog->tables = tables;
    catalog->ntables = ntables;
    server->catalog = catalog;
    catalog->dead_letters_schema = config->dead_letters.schema;
    return server;
}

void server_free(struct server *server)
{
    if (!server)
        return;
    catalog_free(server->catalog);
    free(server);
}

/* ---- the two uses -------------------------------------------------------------- */

struct server *check_server(struct pg *pg, const struct config *config, struct err *err)
{
    struct run run = {.check = {.pg = pg, .config = config}};

    run.check.server = server_new(config, err);
    if (!run.check.server)
        return NULL;
    if (run_all(&run, err) == 0)
        return run.check.server;
    server_free(run.check.server);
    return NULL;
}

static struct pg *try_to_connect(struct run *run, enum pg_kind kind, const char *name,
                                 struct err *err)
{
    struct err mine = {0};
    struct pg *pg = pg_connect(run->check.config->postgres.dsn, kind, &mine);

    if (pg) {
        print_name(run, "ok", name, "", "");
        return pg;
    }
    print_line(run, "FAILED", mine.text);
    (void)err_set_code(err, mine.class, mine.code, "%s", mine.text);
    return NULL;
}

/* What needs both connections. */
static int judge(struct run *run, struct pg *replication, struct err *err)
{
    const struct judge judge = {.sql = run->check.pg,
                                .replication = replication,
                                .config = run->check.config,
                                .server = run->check.server};
    size_t warnings = run->check.server->nwarnings;
    struct history history;
    struct err mine = {0};

    if (judge_identify(replication, &history, &mine) == 0 &&
        judge_slot(&judge, &history, &mine) == 0) {
        run->check.note[0] = '\0';
        print_passed(run, &history_probe, "", warnings);
        return 0;
    }
    print_line(run, "FAILED", mine.text);
    return err_set_code(err, mine.class, mine.code, "%s", mine.text);
}

int check_print(const struct config *config, FILE *out, struct err *err)
{
    struct run run = {.check = {.config = config}, .out = out};
    struct pg *replication;
    int rc = -1;

    replication = try_to_connect(&run, PG_REPLICATION, "replication connection", err);
    run.check.pg = try_to_connect(&run, PG_SQL, "SQL connection", err);
    if (run.check.pg)
        run.check.server = server_new(config, err);
    if (run.check.server)
        rc = run_all(&run, err);
    if (rc == 0 && replication)
        rc = judge(&run, replication, err);
    server_free(run.check.server);
    pg_close(run.check.pg);
    pg_close(replication);
    return replication ? rc : -1;
}
