#include "app/setup.h"

#include "app/probe.h"
#include "app/setup_slot.h"
#include "app/sqlfile.h"
#include "app/sqlscript.h"
#include "core/mapped.h"
#include "io/pg.h"

#include <stdlib.h>
#include <string.h>

enum { SCRIPT_MAX = 64 * 1024 };

struct setup {
    const struct config *config;
    FILE *out;
    struct pg *pg;     /* NULL: only print */
    struct buf script; /* of the step at hand, filled in */
};

static void say(const struct setup *setup, const char *what, const char *kind,
                const char *name)
{
    (void)fprintf(setup->out, "%-11s  %s %s\n", what, kind, name);
    (void)fflush(setup->out);
}

static int fill(struct setup *setup, const char *script,
                const struct sql_variable *variables, struct err *err)
{
    buf_reset(&setup->script);
    return sqlscript_fill(&setup->script, script, variables, err);
}

static void print(const struct setup *setup)
{
    (void)fprintf(setup->out, "%s\n", buf_str(&setup->script));
}

/* Runs the script that has been filled in; -1 with an err that names the step. */
static int run(struct setup *setup, const char *kind, const char *name, int *changes,
               struct err *err)
{
    struct err mine = {0};

    if (sqlscript_run(setup->pg, buf_str(&setup->script), changes, &mine) == 0)
        return 0;
    return err_set_code(err, mine.class, mine.code, "%s %s: %s%s", kind, name, mine.text,
                        mine.class == ERR_DENIED
                            ? " (have a superuser run what walrelay setup prints)"
                            : "");
}

/* Prints that script, or runs it and says whether there was anything to do. */
static int step(struct setup *setup, const char *kind, const char *name, struct err *err)
{
    int changes = 0;

    if (!setup->pg) {
        print(setup);
        return 0;
    }
    if (run(setup, kind, name, &changes, err) < 0)
        return -1;
    say(setup, changes > 0 ? "done" : "as it is", kind, name);
    return 0;
}

/* ---- role and plugin ----------------------------------------------------------- */

static char *role_of(struct setup *setup, struct err *err)
{
    const char *role;

    if (!setup->pg)
        return pg_dsn_user(setup->config->postgres.dsn, err);
    role = pg_parameter(setup->pg, "session_authorization");
    return strdup(role ? role : "");
}

static int set_up_role(struct setup *setup, struct err *err)
{
    char *role = role_of(setup, err);
    const struct sql_variable variables[] = {{"role", role}, {0}};
    int rc = -1;

    if (role && fill(setup, sql_role, variables, err) == 0)
        rc = step(setup, "role", role, err);
    free(role);
    return rc;
}

static int set_up_plugin(struct setup *setup, struct err *err)
{
    const struct sql_variable none[] = {{0}};

    if (fill(setup, sql_plugin, none, err) < 0)
        return -1;
    return step(setup, "setting", "output_plugin_libraries", err);
}

/* ---- tables -------------------------------------------------------------------- */

/* Does the table of sql/outbox_events.sql have all the columns that are asked for? */
static bool default_table_serves(const struct mapped *mapped)
{
    static const char *const columns[] = {"id",         "aggregate_type", "aggregate_id",
                                          "event_type", "payload",        "attempts",
                                          "created_at", "processed_at"};
    size_t found = 0;

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        found += mapped_has(mapped, columns[i]) ? 1 : 0;
    return found == mapped->n;
}

static void add_columns(struct buf *out, const struct mapped *mapped)
{
    for (size_t i = 0; i < mapped->n; i++)
        buf_printf(out, "%s%.*s", i > 0 ? ", " : "", SLICE_ARG(mapped->columns[i]));
}

/* 1: there is such a table, 0: there is none. */
static int exists(struct setup *setup, const struct table_settings *table,
                  struct err *err)
{
    const char *const names[] = {table->schema, table->name};
    struct pg_result *found =
        pg_query(setup->pg, "SELECT to_regclass(format('%I.%I', $1::text, $2::text))", 2,
                 names, err);
    int rc = found ? pg_value(found, 0, 0) != NULL : -1;

    pg_result_free(found);
    return rc;
}

/* A table that only its owner can make: its columns are not those of ours. */
static int leave_to_owner(struct setup *setup, const struct table_settings *table,
                          const struct mapped *mapped, struct err *err)
{
    struct buf columns;
    int rc = 0;

    buf_init(&columns, SCRIPT_MAX);
    add_columns(&columns, mapped);
    if (setup->pg)
        rc = err_set(err, ERR_CONFIG,
                     "table %s.%s does not exist: CREATE TABLE it with the columns that "
                     "its section names (%s) and run setup again",
                     table->schema, table->name, buf_str(&columns));
    else
        (void)fprintf(setup->out,
                      "-- Table %s.%s is yours to make; its section names the columns\n"
                      "--   %s\n\n",
                      table->schema, table->name, buf_str(&columns));
    buf_done(&columns);
    return rc;
}

static int run_or_print_table(struct setup *setup, const struct table_settings *table,
                              struct err *err)
{
    int changes = 0;

    if (!setup->pg) {
        print(setup);
        return 0;
    }
    if (run(setup, "table", table->name, &changes, err) < 0)
        return -1;
    say(setup, "done", "table", table->name);
    return 0;
}

static int make_table(struct setup *setup, const struct table_settings *table,
                      struct err *err)
{
    struct buf index;
    int rc = -1;

    buf_init(&index, SCRIPT_MAX);
    buf_printf(&index, "%s_unprocessed", table->name);
    const struct sql_variable variables[] = {{"schema", table->schema},
                                             {"table", table->name},
                                             {"index", buf_str(&index)},
                                             {0}};

    if (index.failed)
        (void)err_set(err, ERR_INTERNAL, "out of memory");
    else if (fill(setup, sql_outbox_events, variables, err) == 0)
        rc = run_or_print_table(setup, table, err);
    buf_done(&index);
    return rc;
}

static int set_up_table(struct setup *setup, const struct table_settings *table,
                        struct err *err)
{
    struct mapped mapped;
    int there = setup->pg ? exists(setup, table, err) : 0;
    int rc;

    if (there < 0)
        return -1;
    if (there > 0) {
        say(setup, "as it is", "table", table->name);
        return 0;
    }
    if (mapped_init(&mapped, table, err) < 0)
        return -1;
    if (default_table_serves(&mapped))
        rc = make_table(setup, table, err);
    else
        rc = leave_to_owner(setup, table, &mapped, err);
    mapped_done(&mapped);
    return rc;
}

/* ---- state ---------------------------------------------------------------------- */

/* Only helps to notice what happens to the slot, so that everything else goes on. */
static int set_up_state(struct setup *setup, struct err *err)
{
    char *role = role_of(setup, err);
    const struct sql_variable variables[] = {{"role", role}, {0}};
    struct err mine = {0};
    int rc = -1;

    if (role && fill(setup, sql_state, variables, err) == 0)
        rc = 0;
    free(role);
    if (rc == 0 && step(setup, "table", "walrelay_state", &mine) != 0)
        (void)fprintf(
            setup->out,
            "%-11s  %s; without it nobody notices a slot that was moved or made "
            "again\n",
            "not done", mine.text);
    return rc;
}

/* ---- dead letters --------------------------------------------------------------- */

/* 1: the table is there and may be used, 0: not so. */
static int dead_letters_serve(struct setup *setup, struct err *err)
{
    const char *const names[] = {setup->config->dead_letters.schema, DEAD_LETTERS_TABLE};
    struct pg_result *found = pg_query(setup->pg, dead_letters_query, 2, names, err);
    struct server server = {0};
    struct check check = {.pg = setup->pg, .config = setup->config, .server = &server};
    int rc = found ? 0 : -1;

    if (found && verdict_dead_letters(&check, found, NULL) == 0)
        rc = server.dead_letters;
    pg_result_free(found);
    return rc;
}

static void say_not_made(struct setup *setup, const struct err *why)
{
    (void)fprintf(setup->out,
                  "%-11s  table %s: %s; without it an event that Kafka can never take "
                  "stops the relay\n",
                  "not done", DEAD_LETTERS_TABLE, why->text);
}

/* The relay works without it, so who may not make it goes on. */
static int make_dead_letters(struct setup *setup, struct err *err)
{
    struct err mine = {0};
    int changes = 0;

    if (run(setup, "table", DEAD_LETTERS_TABLE, &changes, &mine) == 0)
        say(setup, "done", "table", DEAD_LETTERS_TABLE);
    else if (mine.class == ERR_DENIED)
        say_not_made(setup, &mine);
    else
        return err_set_code(err, mine.class, mine.code, "%s", mine.text);
    return 0;
}

static int fill_dead_letters(struct setup *setup, struct err *err)
{
    char *role = role_of(setup, err);
    const struct sql_variable variables[] = {
        {"schema", setup->config->dead_letters.schema}, {"role", role}, {0}};
    int rc = role ? fill(setup, sql_dead_letters, variables, err) : -1;

    free(role);
    return rc;
}

static int set_up_dead_letters(struct setup *setup, struct err *err)
{
    int there = setup->pg ? dead_letters_serve(setup, err) : 0;

    if (there < 0)
        return -1;
    if (there > 0) {
        say(setup, "as it is", "table", DEAD_LETTERS_TABLE);
        return 0;
    }
    if (fill_dead_letters(setup, err) < 0)
        return -1;
    if (setup->pg)
        return make_dead_letters(setup, err);
    print(setup);
    return 0;
}

/* ---- slot, and all in order ---------------------------------------------------- */

static void say_slot_is_made(struct setup *setup, const char *slot)
{
    static const char query[] =
        "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1";
    struct pg_result *found = pg_query(setup->pg, query, 1, &slot, NULL);
    const char *lsn = found && pg_rows(found) == 1 ? pg_value(found, 0, 0) : NULL;

    say(setup, "done", "slot", slot);
    (void)fprintf(setup->out,
                  "%-11s  slot %s begins at %s: events committed before it was made "
                  "are not in it\n",
                  "note", slot, lsn ? lsn : "the end of the WAL");
    pg_result_free(found);
}

static int set_up_slot(struct setup *setup, struct err *err)
{
    const char *slot = setup->config->postgres.slot;
    const struct sql_variable variables[] = {{"slot", slot}, {0}};
    struct err mine = {0};
    bool made;

    if (fill(setup, sql_slot, variables, err) < 0)
        return -1;
    if (!setup->pg) {
        print(setup);
        return 0;
    }
    if (setup_slot(setup->pg, setup->config->postgres.dsn, buf_str(&setup->script),
                   setup->out, &made, &mine) < 0)
        return err_set_code(err, mine.class, mine.code, "slot %s: %s", slot, mine.text);
    if (made)
        say_slot_is_made(setup, slot);
    else
        say(setup, "as it is", "slot", slot);
    return 0;
}

static int all_steps(struct setup *setup, struct err *err)
{
    const struct config *config = setup->config;

    if (set_up_role(setup, err) < 0 || set_up_plugin(setup, err) < 0)
        return -1;
    for (size_t i = 0; i < config->ntables; i++) {
        if (set_up_table(setup, &config->tables[i], err) < 0)
            return -1;
    }
    if (set_up_state(setup, err) < 0)
        return -1;
    if (config->dead_letters.on_poison == ON_POISON_DEAD_LETTER &&
        set_up_dead_letters(setup, err) < 0)
        return -1;
    return set_up_slot(setup, err);
}

static const char heading[] =
    "-- What walrelay needs with this configuration.  Run it with psql as a superuser,\n"
    "-- connected to the database of the dsn; wal_level must be logical.\n\n";

int setup_run(const struct config *config, bool apply, FILE *out, struct err *err)
{
    struct setup setup = {.config = config, .out = out};
    int rc;

    if (apply) {
        setup.pg = pg_connect(config->postgres.dsn, PG_SQL, err);
        if (!setup.pg)
            return -1;
        pg_wait_for_ever(setup.pg);
    } else {
        (void)fputs(heading, out);
    }
    buf_init(&setup.script, SCRIPT_MAX);
    rc = all_steps(&setup, err);
    buf_done(&setup.script);
    pg_close(setup.pg);
    return rc;
}
