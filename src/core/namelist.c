#include "core/namelist.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Longer than any name that PostgreSQL keeps (NAMEDATALEN is 64): what is cut here
 * can equal none. */
enum { NAME_MAX_BYTES = 256 };

enum token { TOKEN_END, TOKEN_NAME, TOKEN_QUOTED, TOKEN_COMMA, TOKEN_OPEN, TOKEN_CLOSE };

struct lexer {
    const char *at;
    char name[NAME_MAX_BYTES + 1]; /* of the last TOKEN_NAME or TOKEN_QUOTED */
    size_t len;
};

static const char spaces[] = " \t\n\r\f\v";

static void append(struct lexer *lexer, char c)
{
    if (lexer->len < NAME_MAX_BYTES)
        lexer->name[lexer->len++] = c;
    lexer->name[lexer->len] = '\0';
}

static enum token quoted(struct lexer *lexer)
{
    for (lexer->at++; *lexer->at; lexer->at++) {
        if (*lexer->at == '"' && *++lexer->at != '"')
            break;
        append(lexer, *lexer->at);
    }
    return TOKEN_QUOTED;
}

static enum token bare(struct lexer *lexer)
{
    while (*lexer->at && !strchr(spaces, *lexer->at) && !strchr(",()\"", *lexer->at))
        append(lexer, *lexer->at++);
    return TOKEN_NAME;
}

static enum token next(struct lexer *lexer)
{
    lexer->len = 0;
    lexer->name[0] = '\0';
    lexer->at += strspn(lexer->at, spaces);
    switch (*lexer->at) {
    case '\0':
        return TOKEN_END;
    case ',':
        lexer->at++;
        return TOKEN_COMMA;
    case '(':
        lexer->at++;
        return TOKEN_OPEN;
    case ')':
        lexer->at++;
        return TOKEN_CLOSE;
    case '"':
        return quoted(lexer);
    default:
        return bare(lexer);
    }
}

bool namelist_has(const char *list, const char *name)
{
    struct lexer lexer = {.at = list};

    for (enum token token = next(&lexer); token != TOKEN_END; token = next(&lexer)) {
        if ((token == TOKEN_NAME || token == TOKEN_QUOTED) &&
            strcmp(lexer.name, name) == 0)
            return true;
    }
    return false;
}

/* What stands before a parenthesis is a method and a number, not a name. */
static const char *skip_method(const char *setting)
{
    struct lexer lexer = {.at = setting};

    for (enum token token = next(&lexer); token == TOKEN_NAME; token = next(&lexer))
        ;
    return lexer.at > setting && lexer.at[-1] == '(' ? lexer.at : setting;
}

bool standby_names_match(const char *setting, const char *application_name)
{
    struct lexer lexer = {.at = skip_method(setting)};

    for (enum token token = next(&lexer); token != TOKEN_END; token = next(&lexer)) {
        if (token != TOKEN_NAME && token != TOKEN_QUOTED)
            continue;
        if (strcmp(lexer.name, "*") == 0 || strcasecmp(lexer.name, application_name) == 0)
            return true;
    }
    return false;
}
