#include "core/unsecured_jwt.h"

#include "base/must.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROPERTY "[kafka] sasl.oauthbearer.config"

enum { MAX_LIFE_S = 365 * 24 * 3600 };

struct settings {
    char principal[256];
    char claim[64];
    char life[16];
};

/* Base64 for URLs, without padding (RFC 4648, section 5).  Returns the end of out. */
static char *encode(const char *text, char *out)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned bits = 0;
    int n = 0;

    for (const char *p = text; *p; p++) {
        bits = (bits << 8) | (unsigned char)*p;
        for (n += 8; n >= 6; n -= 6)
            *out++ = digits[(bits >> (n - 6)) & 63];
    }
    if (n > 0)
        *out++ = digits[(bits << (6 - n)) & 63];
    return out;
}

static int keep(char *to, size_t size, const char *value, size_t len, struct err *err)
{
    if (len == 0 || len >= size)
        return err_set(err, ERR_CONFIG, PROPERTY ": a value is empty or over %zu bytes",
                       size - 1);
    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)value[i] < ' ' || value[i] == '"' || value[i] == '\\')
            return err_set(err, ERR_CONFIG,
                           PROPERTY ": a value has a quote, a backslash or a control "
                                    "character");
    }
    memcpy(to, value, len);
    to[len] = '\0';
    return 0;
}

static int word(struct settings *settings, const char *text, size_t len, struct err *err)
{
    const struct {
        const char *name;
        char *value;
        size_t size;
    } known[] = {
        {"principal=", settings->principal, sizeof(settings->principal)},
        {"principalClaimName=", settings->claim, sizeof(settings->claim)},
        {"lifeSeconds=", settings->life, sizeof(settings->life)},
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t n = strlen(known[i].name);

        if (len >= n && memcmp(text, known[i].name, n) == 0)
            return keep(known[i].value, known[i].size, text + n, len - n, err);
    }
    return err_set(err, ERR_CONFIG,
                   PROPERTY
                   ": may have principal=, principalClaimName= and lifeSeconds=");
}

static int parse(struct settings *settings, const char *config, struct err *err)
{
    *settings = (struct settings){.claim = "sub", .life = "3600"};
    for (const char *at = config + strspn(config, " "); *at; at += strspn(at, " ")) {
        size_t len = strcspn(at, " ");

        if (word(settings, at, len, err) != 0)
            return -1;
        at += len;
    }
    if (settings->principal[0] == '\0')
        return err_set(err, ERR_CONFIG, PROPERTY ": names no principal=");
    return 0;
}

int unsecured_jwt(const char *config, int64_t now_ms, struct unsecured_jwt *ret,
                  struct err *err)
{
    struct settings settings;
    char claims[512];
    char *end;
    int64_t life, now_s = now_ms / 1000;

    if (parse(&settings, config, err) != 0)
        return -1;
    life = strtol(settings.life, &end, 10);
    if (*end != '\0' || life < 1 || life > MAX_LIFE_S)
        return err_set(err, ERR_CONFIG, PROPERTY ": lifeSeconds is 1 to %d", MAX_LIFE_S);
    (void)snprintf(claims, sizeof(claims),
                   "{\"%s\":\"%s\",\"iat\":%" PRId64 ".%03d,\"exp\":%" PRId64 ".%03d}",
                   settings.claim, settings.principal, now_s, (int)(now_ms % 1000),
                   now_s + life, (int)(now_ms % 1000));
    end = encode("{\"alg\":\"none\"}", ret->token);
    *end++ = '.';
    end = encode(claims, end);
    *end++ = '.';
    *end = '\0';
    must((size_t)(end - ret->token) < sizeof(ret->token));
    memcpy(ret->principal, settings.principal, sizeof(ret->principal));
    ret->expires_ms = now_ms + life * 1000;
    return 0;
}
