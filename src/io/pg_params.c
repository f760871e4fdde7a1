#include "io/pg_params.h"

#include "base/must.h"

#include <libpq-fe.h>

#include <stdlib.h>
#include <string.h>

/* A later parameter of the same name wins. */
static void add(struct pg_params *params, const char *name, const char *value)
{
    must(params->n < PG_PARAMS_MAX);
    params->names[params->n] = name;
    params->values[params->n] = value;
    params->n++;
}

static bool have(const struct pg_params *params, const char *name)
{
    for (size_t i = 0; i < params->n; i++) {
        if (strcmp(params->names[i], name) == 0)
            return true;
    }
    return false;
}

/* libpq's complaint about a dsn quotes pieces of it, and a password with a space in it
 * is the usual reason: all from the first quote to the last is hidden. */
static int fail_dsn(char *message, struct err *err)
{
    char *first = message ? strchr(message, '"') : NULL;
    char *last = message ? strrchr(message, '"') : NULL;

    if (first && last > first)
        memmove(first + 1, last, strlen(last) + 1);
    return err_set(err, ERR_CONFIG,
                   "[postgres] dsn cannot be read: %s (\"\" hides what may be part of a "
                   "password; quote values with spaces, percent-encode them in a URI)",
                   message ? message : "out of memory");
}

/* With an unencoded @ or / in the password of a URI, libpq takes the rest of the
 * password for a host name and quotes it when that does not resolve. */
static bool uri_is_ambiguous(const char *dsn)
{
    const char *authority = strstr(dsn, "://");
    const char *at;
    size_t len;

    if (!authority || strncmp(dsn, "postgres", strlen("postgres")) != 0)
        return false;
    authority += strlen("://");
    len = strcspn(authority, "/");
    at = memchr(authority, '@', len);
    at = at ? at + 1 : authority + len;
    return memchr(at, '@', strcspn(at, "?")) != NULL;
}

/* What a dsn that does not say otherwise gets. */
struct preset {
    const char *name;
    const char *value;
    const char *variable; /* of the environment, that says otherwise; or NULL */
};

static const struct preset presets[] = {
    {"connect_timeout", "10", "PGCONNECT_TIMEOUT"},
    /* A host that is gone says nothing: what was sent to it is not acknowledged for so
     * many ms, or, where nothing was sent, the probes are not. */
    {"tcp_user_timeout", "20000", NULL},
    {"keepalives_idle", "5", NULL},
    {"keepalives_interval", "5", NULL},
    {"keepalives_count", "3", NULL},
};

/* The file of a service may say otherwise, and what is added here would win. */
static void add_presets(struct pg_params *params)
{
    if (have(params, "service") || getenv("PGSERVICE"))
        return;
    for (size_t i = 0; i < sizeof(presets) / sizeof(presets[0]); i++) {
        const struct preset *preset = &presets[i];

        if (!have(params, preset->name) &&
            !(preset->variable && getenv(preset->variable)))
            add(params, preset->name, preset->value);
    }
}

int pg_params_init(struct pg_params *params, const char *dsn, enum pg_kind kind,
                   struct err *err)
{
    char *message = NULL;

    *params = (struct pg_params){0};
    if (uri_is_ambiguous(dsn))
        return err_set(err, ERR_CONFIG,
                       "[postgres] dsn: the URI has an @ too many; write @ and / in a "
                       "password as %%40 and %%2F");
    params->parsed = PQconninfoParse(dsn, &message);
    if (!params->parsed) {
        (void)fail_dsn(message, err);
        PQfreemem(message);
        return -1;
    }
    for (const PQconninfoOption *option = params->parsed; option->keyword; option++) {
        if (option->val && strcmp(option->keyword, "replication") != 0)
            add(params, option->keyword, option->val);
    }
    add_presets(params);
    add(params, "fallback_application_name", "walrelay");
    /* for the words of errors and the names in catalogs; no effect on the stream */
    add(params, "client_encoding", "UTF8");
    if (kind == PG_REPLICATION)
        add(params, "replication", "database");
    return 0;
}

void pg_params_done(struct pg_params *params)
{
    PQconninfoFree(params->parsed);
}

static const char *option_value(const PQconninfoOption *options, const char *name)
{
    for (; options && options->keyword; options++) {
        if (strcmp(options->keyword, name) == 0)
            return options->val;
    }
    return NULL;
}

char *pg_dsn_user(const char *dsn, struct err *err)
{
    struct pg_params params;
    PQconninfoOption *defaults;
    const char *user;
    char *ret;

    if (pg_params_init(&params, dsn, PG_SQL, err) < 0)
        return NULL;
    defaults = PQconndefaults();
    user = option_value(params.parsed, "user");
    if (!user)
        user = option_value(defaults, "user");
    ret = user ? strdup(user) : NULL;
    if (!ret)
        (void)err_set(err, ERR_CONFIG, "[postgres] dsn names no user");
    PQconninfoFree(defaults);
    pg_params_done(&params);
    return ret;
}

/* ---- connecting ---------------------------------------------------------------- */

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

/* Connects and waits for it.  PQconnectdbParams would do, but it gives no SQLSTATE
 * and prints the server's notices: both can be set only on a connection that has
 * begun, so one is begun and at once made anew by PQreset, which waits as
 * PQconnectdbParams does (each host with its own timeout). */
struct pg_conn *pg_params_connect(const struct pg_params *params)
{
    PGconn *conn = PQconnectStartParams(params->names, params->values, 0);

    if (!conn || PQstatus(conn) == CONNECTION_BAD)
        return conn;
    (void)PQsetErrorVerbosity(conn, PQERRORS_VERBOSE);
    (void)PQsetNoticeProcessor(conn, ignore_notice, NULL);
    PQreset(conn);
    (void)PQsetErrorVerbosity(conn, PQERRORS_DEFAULT);
    return conn;
}
