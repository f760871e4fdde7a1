#include "io/pg_error.h"

#include "io/pg.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQLSTATE_LEN = 5 };

struct rule {
    const char *sqlstate; /* the whole, or its first two characters (the class) */
    const char *words;    /* must be in the message; NULL: any message */
    enum err_class class;
};

/* The first rule that fits decides; none: ERR_RETRY.  Words are looked for where a
 * code is shared by failures that differ; in another language they do not match, and
 * waiting is the safe answer. */
static const struct rule rules[] = {
    {"28", NULL, ERR_DENIED},
    {"42501", NULL, ERR_DENIED},
    {"42704", NULL, ERR_SLOT},
    {"55000", "cannot read from logical replication slot", ERR_SLOT}, /* to 15 */
    {"55000", "can no longer get changes from", ERR_SLOT},            /* 16, 17 */
    {"55000", "can no longer access replication slot", ERR_SLOT},     /* from 18 */
    {"55000", "was not created in this database", ERR_SLOT},
    {"55000", "wal_level", ERR_CONFIG},
    {"58P01", NULL, ERR_CONFIG},
    {"22023", NULL, ERR_CONFIG},
    {"42602", NULL, ERR_CONFIG},
    {"0A000", NULL, ERR_CONFIG},
    {"3D000", NULL, ERR_CONFIG}, /* no such database */
};

static bool fits(const struct rule *rule, const char *sqlstate, const char *message)
{
    return strncmp(sqlstate, rule->sqlstate, strlen(rule->sqlstate)) == 0 &&
           (!rule->words || (message && strstr(message, rule->words)));
}

enum err_class pg_class_of(const char *sqlstate, const char *message)
{
    for (size_t i = 0; sqlstate && i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (fits(&rules[i], sqlstate, message))
            return rules[i].class;
    }
    return ERR_RETRY;
}

const char *pg_cure_of(const char *sqlstate, const char *message)
{
    if (sqlstate && strcmp(sqlstate, "58P01") == 0 && strstr(message, "wal2json"))
        return "; install wal2json on the server (Debian and Ubuntu: package "
               "postgresql-VERSION-wal2json)";
    /* MaxAllocSize, in palloc and (program_limit_exceeded) in enlargeStringInfo */
    if (strstr(message, "invalid memory alloc request size") ||
        (sqlstate && strcmp(sqlstate, "54000") == 0))
        return "; no row may be larger than 1 GB as wal2json writes it: the guide says, "
               "at "
               "Sizes, how to pass one by";
    return "";
}

/* Failures of a connection that carry no SQLSTATE, or one that says too little. */
static const struct {
    const char *words;
    enum err_class class;
} connection_rules[] = {
    {"no password supplied", ERR_DENIED},          /* libpq */
    {"certificate verify failed", ERR_CONFIG},     /* OpenSSL */
    {"root certificate file", ERR_CONFIG},         /* libpq */
    {"does not match host name", ERR_CONFIG},      /* libpq, verify-full */
    {"server does not support SSL", ERR_CONFIG},   /* libpq */
    {"unsupported startup parameter", ERR_CONFIG}, /* a pooler in between */
    {"definition of service", ERR_CONFIG},         /* libpq */
};

static bool is_code(const char *text)
{
    for (int i = 0; i < SQLSTATE_LEN; i++) {
        if (!isdigit((unsigned char)text[i]) && !isupper((unsigned char)text[i]))
            return false;
    }
    return true;
}

/* The SQLSTATE of "SEVERITY:  28P01: words", the severity in any language. */
static bool find_code(const char *text, size_t len, char ret[SQLSTATE_LEN + 1])
{
    const char *end = text + len;

    for (const char *at = strstr(text, ":  "); at && at < end;
         at = strstr(at + 1, ":  ")) {
        at += strlen(":  ");
        if (is_code(at) && at[SQLSTATE_LEN] == ':') {
            (void)snprintf(ret, SQLSTATE_LEN + 1, "%s", at);
            return true;
        }
    }
    return false;
}

/* One host's failure. */
static enum err_class class_of_attempt(const char *text, size_t len, char *sqlstate)
{
    char *copy = strndup(text, len);
    enum err_class class = ERR_RETRY;

    if (!copy)
        return ERR_RETRY;
    if (strncmp(copy, "invalid ", strlen("invalid ")) == 0)
        class = ERR_CONFIG; /* a parameter that libpq refuses before it connects */
    if (find_code(copy, len, sqlstate))
        class = pg_class_of(sqlstate, copy);
    for (size_t i = 0;
         class == ERR_RETRY && i < sizeof(connection_rules) / sizeof(connection_rules[0]);
         i++) {
        if (strstr(copy, connection_rules[i].words))
            class = connection_rules[i].class;
    }
    free(copy);
    return class;
}

/* Where the next host's failure begins, or the end of the text. */
static const char *next_attempt(const char *text)
{
    const char *next = *text ? strstr(text + 1, "connection to server ") : NULL;

    return next ? next : text + strlen(text);
}

/* Drops the lines that PQERRORS_VERBOSE adds for the server's source, and the end of
 * the last line. */
static void cut_locations(char *text)
{
    size_t len = strlen(text);

    while (len > 0 && text[len - 1] == '\n')
        text[--len] = '\0';
    for (char *at = strstr(text, "\nLOCATION:"); at; at = strstr(at, "\nLOCATION:")) {
        char *end = strchr(at + 1, '\n');

        if (!end)
            end = at + strlen(at);
        memmove(at, end, strlen(end) + 1);
    }
}

static const char *connection_cure_of(const char *text)
{
    if (strstr(text, "replication role") || strstr(text, "start WAL sender"))
        return "; as a superuser: ALTER ROLE … REPLICATION";
    if (strstr(text, "pg_hba.conf"))
        return "; add a line for this role and the dsn's database to pg_hba.conf (a "
               "line for the database \"replication\" does not serve), then SELECT "
               "pg_reload_conf()";
    if (strstr(text, "max_wal_senders"))
        return "; raise max_wal_senders or end another replication connection";
    if (strstr(text, "unsupported startup parameter"))
        return "; connect to PostgreSQL directly, not through a pooler";
    return "";
}

int pg_fail_connect(const char *connection, const char *text, struct err *err)
{
    enum err_class class = ERR_NONE;
    char sqlstate[SQLSTATE_LEN + 1] = "";
    char *words = strdup(text);

    for (const char *at = text; *at;) {
        const char *end = next_attempt(at);
        enum err_class attempt = class_of_attempt(at, (size_t)(end - at), sqlstate);

        class = class == ERR_NONE || attempt == ERR_RETRY ? attempt : class;
        if (class == ERR_RETRY)
            break;
        at = end;
    }
    if (words)
        cut_locations(words);
    (void)err_set_code(err, class == ERR_NONE ? ERR_RETRY : class, sqlstate,
                       "PostgreSQL %s: %s%s", connection, words ? words : "",
                       connection_cure_of(text));
    free(words);
    return -1;
}

/* Like strdup, with every quote character doubled and one at each end. */
static char *quote(const char *prefix, const char *text, char mark, bool double_backslash)
{
    char *ret = malloc(strlen(prefix) + 2 * strlen(text) + 3);
    char *to = ret;

    if (!ret)
        return NULL;
    while (*prefix)
        *to++ = *prefix++;
    *to++ = mark;
    for (const char *from = text; *from; from++) {
        if (*from == mark || (double_backslash && *from == '\\'))
            *to++ = *from;
        *to++ = *from;
    }
    *to++ = mark;
    *to = '\0';
    return ret;
}

char *pg_quote_identifier(const char *name)
{
    return quote("", name, '"', false);
}

/* With a backslash in it the literal is E'…', which means the same whatever
 * standard_conforming_strings says. */
char *pg_quote_literal(const char *text)
{
    bool backslash = strchr(text, '\\') != NULL;

    return quote(backslash ? "E" : "", text, '\'', backslash);
}
