#include "core/secret.h"

#include <stdlib.h>
#include <string.h>

#define HIDDEN       "********"
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int lower(int c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool contains(const char *text, const char *word)
{
    size_t n = strlen(word);

    for (; *text; text++) {
        size_t i = 0;

        while (i < n && lower((unsigned char)text[i]) == word[i])
            i++;
        if (i == n)
            return true;
    }
    return false;
}

/* ssl.key.password, ssl.keystore.password, sasl.oauthbearer.client.secret and what
 * later versions add of this kind */
static const char *const secret_words[] = {"password", "passphrase", "secret", "key.pem",
                                           "sasl.oauthbearer.config"};

bool secret_is_property(const char *name)
{
    for (size_t i = 0; i < COUNT(secret_words); i++) {
        if (contains(name, secret_words[i]))
            return true;
    }
    return false;
}

/* password, sslpassword, oauth_client_secret, scram_client_key, scram_server_key; and
 * a dbname may be a connection string itself. */
static bool is_secret_option(struct slice key, struct slice value)
{
    char name[64];

    if (key.len >= sizeof(name))
        return true;
    memcpy(name, key.ptr, key.len);
    name[key.len] = '\0';
    if (strcmp(name, "dbname") == 0)
        return value.len > 0 && memchr(value.ptr, '=', value.len) != NULL;
    return contains(name, "password") || contains(name, "secret") ||
           contains(name, "scram_");
}

/* ---- key=value ----------------------------------------------------------------- */

/* conninfo_parse in libpq's fe-connect.c: blanks may stand around =, a value ends at a
 * blank or is quoted, a backslash takes the next character as it is. */

static bool is_space(char c)
{
    return c != '\0' && strchr(" \t\n\v\f\r", c);
}

static const char *skip_spaces(const char *p)
{
    while (is_space(*p))
        p++;
    return p;
}

/* The end of the value at p; NULL if its quote is not closed. */
static const char *end_of_value(const char *p)
{
    bool quoted = *p == '\'';

    for (p += quoted; *p; p++) {
        if (quoted ? *p == '\'' : is_space(*p))
            return p + quoted;
        if (*p == '\\' && p[1])
            p++;
    }
    return quoted ? NULL : p;
}

/* Appends one key = value and gives its end; NULL if there is none. */
static const char *add_pair(struct buf *out, const char *p)
{
    size_t key_len = strcspn(p, "= \t\n\v\f\r");
    const char *equal = skip_spaces(p + key_len);
    const char *value;
    const char *end;

    if (key_len == 0 || *equal != '=')
        return NULL;
    value = skip_spaces(equal + 1);
    end = end_of_value(value);
    if (!end)
        return NULL;
    buf_add(out, (struct slice){p, (size_t)(value - p)});
    if (is_secret_option((struct slice){p, key_len},
                         (struct slice){value, (size_t)(end - value)}))
        buf_add_str(out, HIDDEN);
    else
        buf_add(out, (struct slice){value, (size_t)(end - value)});
    return end;
}

static bool add_pairs(struct buf *out, const char *dsn)
{
    const char *p = dsn;

    for (;;) {
        const char *next = skip_spaces(p);

        buf_add(out, (struct slice){p, (size_t)(next - p)});
        if (*next == '\0')
            return true;
        p = add_pair(out, next);
        if (!p)
            return false;
    }
}

/* ---- URI ----------------------------------------------------------------------- */

/* The bytes of a percent-encoded name, for comparison only. */
static size_t decode(struct slice in, char *out, size_t max)
{
    size_t n = 0;

    for (size_t i = 0; i < in.len && n < max; i++) {
        char hex[3] = {0};

        if (in.ptr[i] == '%' && i + 2 < in.len) {
            memcpy(hex, in.ptr + i + 1, 2);
            out[n++] = (char)strtoul(hex, NULL, 16);
            i += 2;
        } else {
            out[n++] = in.ptr[i];
        }
    }
    return n;
}

/* keyword=value&keyword=value */
static void add_query(struct buf *out, const char *p)
{
    while (*p) {
        size_t len = strcspn(p, "&");
        size_t key_len = strcspn(p, "=&");
        size_t value_at = key_len < len ? key_len + 1 : len;
        char key[64];
        size_t n = decode((struct slice){p, key_len}, key, sizeof(key));

        buf_add(out, (struct slice){p, value_at});
        if (value_at < len &&
            is_secret_option((struct slice){key, n},
                             (struct slice){p + value_at, len - value_at}))
            buf_add_str(out, HIDDEN);
        else
            buf_add(out, (struct slice){p + value_at, len - value_at});
        p += len;
        if (*p)
            buf_add_char(out, *p++);
    }
}

/* user:password@host/dbname.  A password with @ or / in it is a mistake that libpq reads
 * otherwise than its author; so all from the first colon to the last @ is hidden. */
static void add_authority(struct buf *out, struct slice text)
{
    const char *colon = memchr(text.ptr, ':', text.len);
    size_t at = text.len;

    while (at > 0 && text.ptr[at - 1] != '@')
        at--;
    if (colon && at > 0 && colon < text.ptr + at - 1) {
        buf_add(out, (struct slice){text.ptr, (size_t)(colon + 1 - text.ptr)});
        buf_add_str(out, HIDDEN);
        text = (struct slice){text.ptr + at - 1, text.len - (at - 1)};
    }
    buf_add(out, text);
}

/* scheme://authority?query.  With an @ behind the question mark nobody can say whether
 * that belongs to a password, and whether to that of the authority or of the query. */
static void add_uri(struct buf *out, const char *dsn)
{
    const char *authority = strstr(dsn, "://") + 3;
    const char *query = strchr(authority, '?');
    size_t len = query ? (size_t)(query - authority) : strlen(authority);

    buf_add(out, (struct slice){dsn, (size_t)(authority - dsn)});
    if (query && strchr(query, '@')) {
        buf_add_str(out, HIDDEN);
        return;
    }
    add_authority(out, (struct slice){authority, len});
    if (query) {
        buf_add_char(out, '?');
        add_query(out, query + 1);
    }
}

void secret_add_dsn(struct buf *out, const char *dsn)
{
    struct buf shown;

    if (strncmp(dsn, "postgresql://", 13) == 0 || strncmp(dsn, "postgres://", 11) == 0) {
        add_uri(out, dsn);
        return;
    }
    buf_init(&shown, out->max);
    buf_add_str(out, add_pairs(&shown, dsn) && !shown.failed ? buf_str(&shown) : HIDDEN);
    buf_done(&shown);
}
