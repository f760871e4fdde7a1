#include "app/sqlscript.h"

#include <stdlib.h>
#include <string.h>

/* The line that begins at line, with its line feed. */
static size_t line_length(const char *line)
{
    size_t len = strcspn(line, "\n");

    return line[len] == '\n' ? len + 1 : len;
}

static bool sets_defaults(const char *line)
{
    static const char *const commands[] = {"\\if ", "\\else", "\\endif", "\\set "};

    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strncmp(line, commands[i], strlen(commands[i])) == 0)
            return true;
    }
    return false;
}

static const char *value_of(const struct sql_variable *variables, struct slice name)
{
    for (; variables->name; variables++) {
        if (slice_eq(slice_of(variables->name), name))
            return variables->value;
    }
    return NULL;
}

/* at is a colon and a quote.  Returns what follows the variable, or NULL. */
static const char *fill_one(struct buf *out, const char *at,
                            const struct sql_variable *variables, struct err *err)
{
    char mark = at[1];
    const char *name = at + 2;
    const char *end = strchr(name, mark);
    const char *value;
    char *quoted;

    value = end ? value_of(variables, (struct slice){name, (size_t)(end - name)}) : NULL;
    if (!value) {
        (void)err_set(err, ERR_INTERNAL, "no value for the variable at %.30s", at);
        return NULL;
    }
    quoted = mark == '"' ? pg_quote_identifier(value) : pg_quote_literal(value);
    if (!quoted) {
        (void)err_set(err, ERR_INTERNAL, "out of memory");
        return NULL;
    }
    buf_add_str(out, quoted);
    free(quoted);
    return end + 1;
}

int sqlscript_fill(struct buf *out, const char *script,
                   const struct sql_variable *variables, struct err *err)
{
    for (const char *at = script; *at;) {
        bool line_begins = at == script || at[-1] == '\n';

        if (line_begins && sets_defaults(at)) {
            at += line_length(at);
        } else if (at[0] == ':' && (at[1] == '"' || at[1] == '\'')) {
            at = fill_one(out, at, variables, err);
            if (!at)
                return -1;
        } else {
            buf_add_char(out, *at++);
        }
    }
    return out->failed ? err_set(err, ERR_INTERNAL, "out of memory") : 0;
}

static int run_each_value(struct pg *pg, const struct pg_result *found, int columns,
                          int *changes, struct err *err)
{
    for (int i = 0; i < pg_rows(found) * columns; i++) {
        const char *sql = pg_value(found, i / columns, i % columns);
        struct pg_result *result = sql ? pg_query(pg, sql, 0, NULL, err) : NULL;

        if (sql && !result)
            return -1;
        pg_result_free(result);
        *changes += 1;
    }
    return 0;
}

static int run_statement(struct pg *pg, const char *sql, bool gexec, int *changes,
                         struct err *err)
{
    struct pg_result *found = pg_query(pg, sql, 0, NULL, err);
    int rc = 0;

    if (!found)
        return -1;
    if (gexec)
        rc = run_each_value(pg, found, pg_columns(found), changes, err);
    else
        *changes += pg_rows(found);
    pg_result_free(found);
    return rc;
}

static bool ends_statement(const char *line, size_t len)
{
    return len >= 2 && memcmp(line + len - 2, ";\n", 2) == 0;
}

int sqlscript_run(struct pg *pg, const char *script, int *changes, struct err *err)
{
    struct buf statement;
    int rc = 0;

    buf_init(&statement, strlen(script));
    for (const char *line = script; rc == 0 && *line; line += line_length(line)) {
        size_t len = line_length(line);
        bool gexec = strncmp(line, "\\gexec\n", len) == 0;
        bool comment = strncmp(line, "--", 2) == 0;

        if (!gexec && !comment)
            buf_add(&statement, (struct slice){line, len});
        if (statement.failed) { /* before a part of it runs */
            rc = err_set(err, ERR_INTERNAL, "out of memory");
        } else if (gexec || (!comment && ends_statement(line, len))) {
            rc = run_statement(pg, buf_str(&statement), gexec, changes, err);
            buf_reset(&statement);
        }
    }
    buf_done(&statement);
    return rc;
}
