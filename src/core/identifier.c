#include "core/identifier.h"

#include <stdbool.h>
#include <string.h>

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* An identifier while it is being read: full once it is longer than PostgreSQL's. */
struct name {
    identifier_t text;
    size_t len;
};

static void add(struct name *name, char c)
{
    if (name->len < IDENTIFIER_MAX)
        name->text[name->len] = c;
    name->len++;
}

static int finish(const struct name *name, identifier_t ret, struct err *err)
{
    if (name->len == 0)
        return err_set(err, ERR_CONFIG, "a name is empty");
    if (name->len > IDENTIFIER_MAX)
        return err_set(err, ERR_CONFIG,
                       "a name of %zu bytes is longer than PostgreSQL's limit of %d",
                       name->len, IDENTIFIER_MAX);
    memcpy(ret, name->text, IDENTIFIER_MAX + 1);
    return 0;
}

/* p stands on the opening quote. */
static int read_quoted(const char **p, identifier_t ret, struct err *err)
{
    struct name name = {0};
    const char *q = *p + 1;

    for (; *q && (*q != '"' || q[1] == '"'); q++) {
        if (*q == '"')
            q++;
        add(&name, *q);
    }
    if (*q != '"')
        return err_set(err, ERR_CONFIG, "a double quote is not closed");
    *p = q + 1;
    return finish(&name, ret, err);
}

static bool is_first(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c >= 0x80;
}

/* ident_start and ident_cont of PostgreSQL's scan.l */
static bool is_next(unsigned char c)
{
    return is_first(c) || (c >= '0' && c <= '9') || c == '$';
}

static int read_folded(const char **p, identifier_t ret, struct err *err)
{
    struct name name = {0};
    const char *q = *p;

    if (*q && !is_first((unsigned char)*q))
        return err_set(err, ERR_CONFIG,
                       "\"%s\" is no SQL name; put a name with other characters than "
                       "letters, digits and _ in double quotes",
                       *p);
    for (; is_next((unsigned char)*q); q++)
        add(&name, (char)(*q >= 'A' && *q <= 'Z' ? *q - 'A' + 'a' : *q));
    *p = q;
    return finish(&name, ret, err);
}

static int read_sql_name(const char **p, identifier_t ret, struct err *err)
{
    *p = skip_blanks(*p);
    if ((**p == '"' ? read_quoted(p, ret, err) : read_folded(p, ret, err)) < 0)
        return -1;
    *p = skip_blanks(*p);
    return 0;
}

int identifier_table(const char *text, identifier_t schema, identifier_t name,
                     struct err *err)
{
    identifier_t parts[2] = {"public", ""};
    const char *p = text;

    if (read_sql_name(&p, parts[1], err) < 0)
        return -1;
    if (*p == '.') {
        p++;
        memcpy(parts[0], parts[1], sizeof(identifier_t));
        if (read_sql_name(&p, parts[1], err) < 0)
            return -1;
    }
    if (*p == '.')
        return err_set(err, ERR_CONFIG,
                       "the name has more parts than schema and table: %s", text);
    if (*p)
        return err_set(
            err, ERR_CONFIG,
            "unexpected \"%s\" after the name; put a name with other characters "
            "than letters, digits and _ in double quotes",
            p);
    memcpy(schema, parts[0], sizeof(identifier_t));
    memcpy(name, parts[1], sizeof(identifier_t));
    return 0;
}

static int read_plain(const char **p, const char *stops, identifier_t ret,
                      struct err *err)
{
    struct name name = {0};
    size_t len = strcspn(*p, stops);
    const char *end = *p + len;

    while (len > 0 && strchr(" \t", (*p)[len - 1]))
        len--;
    for (size_t i = 0; i < len; i++)
        add(&name, (*p)[i]);
    *p = end;
    return finish(&name, ret, err);
}

int identifier_column(const char **text, const char *stops, identifier_t name,
                      struct err *err)
{
    const char *p = skip_blanks(*text);
    identifier_t column;

    if (*p != '"') {
        if (read_plain(&p, stops, column, err) < 0)
            return -1;
    } else {
        if (read_quoted(&p, column, err) < 0)
            return -1;
        p = skip_blanks(p);
        if (*p && !strchr(stops, *p))
            return err_set(err, ERR_CONFIG, "unexpected \"%s\" after a quoted name", p);
    }
    memcpy(name, column, sizeof(column));
    *text = p;
    return 0;
}
