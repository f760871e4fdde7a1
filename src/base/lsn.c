#include "base/lsn.h"

#include <stddef.h>

/* Up to eight hexadecimal digits; the end of them, or NULL. */
static const char *half(const char *p, uint32_t *ret)
{
    uint32_t v = 0;
    int n = 0;

    for (;; p++, n++) {
        uint32_t digit;

        if (*p >= '0' && *p <= '9')
            digit = (uint32_t)(*p - '0');
        else if (*p >= 'A' && *p <= 'F')
            digit = (uint32_t)(*p - 'A') + 10;
        else if (*p >= 'a' && *p <= 'f')
            digit = (uint32_t)(*p - 'a') + 10;
        else
            break;
        v = v << 4 | digit;
    }
    if (n < 1 || n > 8)
        return NULL;
    *ret = v;
    return p;
}

bool lsn_parse(const char *text, lsn_t *ret)
{
    uint32_t high;
    uint32_t low;
    const char *p = text ? half(text, &high) : NULL;

    if (!p || *p != '/')
        return false;
    p = half(p + 1, &low);
    if (!p || *p != '\0')
        return false;
    *ret = (lsn_t)high << 32 | low;
    return true;
}
