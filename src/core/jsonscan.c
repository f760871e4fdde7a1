/* jsonscan.c - see jsonscan.h. */
#include "core/jsonscan.h"

#include <stdint.h>

enum { MAX_DEPTH = 64 };

/* ---- strings ------------------------------------------------------------------ */

static bool is_special(char c)
{
    return c == '"' || c == '\\';
}

/* Does one of the eight bytes end a run of plain bytes?  x ^ pattern has a zero byte
 * where x has the byte, and (v - 01…) & ~v & 80… is not 0 just when v has a zero byte. */
static bool has_special(uint64_t x)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t quote = x ^ ones * '"';
    uint64_t backslash = x ^ ones * '\\';

    return ((((quote - ones) & ~quote) | ((backslash - ones) & ~backslash)) &
            ones << 7) != 0;
}

/* Moves the bytes up to the next quote or backslash from *from to *to, which is not
 * behind it.  Eight bytes are read before they are written, so that the two may
 * overlap. */
static void move_plain(char **to, char **from, const char *end)
{
    char *t = *to;
    char *f = *from;
    uint64_t x;

    while (end - f >= 8) {
        memcpy(&x, f, 8);
        if (has_special(x))
            break;
        memcpy(t, &x, 8);
        f += 8;
        t += 8;
    }
    while (f < end && !is_special(*f))
        *t++ = *f++;
    *to = t;
    *from = f;
}

char *jsonscan_find_special(char *p, char *end)
{
    uint64_t x;

    for (; end - p >= 8; p += 8) {
        memcpy(&x, p, 8);
        if (has_special(x))
            break;
    }
    while (p < end && !is_special(*p))
        p++;
    return p;
}

static bool take_hex4(struct jsonscan *scan, unsigned *ret)
{
    unsigned v = 0;

    if (scan->end - scan->p < 4)
        return jsonscan_fail(scan, "\\u without four digits");
    for (int i = 0; i < 4; i++) {
        char d = *scan->p++;

        if (d >= '0' && d <= '9')
            v = v << 4 | (unsigned)(d - '0');
        else if ((d | 0x20) >= 'a' && (d | 0x20) <= 'f')
            v = v << 4 | (unsigned)((d | 0x20) - 'a' + 10);
        else
            return jsonscan_fail(scan, "\\u without four digits");
    }
    *ret = v;
    return true;
}

static char *put_utf8(char *to, unsigned rune)
{
    if (rune < 0x80) {
        *to++ = (char)rune;
    } else if (rune < 0x800) {
        *to++ = (char)(0xc0 | rune >> 6);
        *to++ = (char)(0x80 | (rune & 0x3f));
    } else if (rune < 0x10000) {
        *to++ = (char)(0xe0 | rune >> 12);
        *to++ = (char)(0x80 | (rune >> 6 & 0x3f));
        *to++ = (char)(0x80 | (rune & 0x3f));
    } else {
        *to++ = (char)(0xf0 | rune >> 18);
        *to++ = (char)(0x80 | (rune >> 12 & 0x3f));
        *to++ = (char)(0x80 | (rune >> 6 & 0x3f));
        *to++ = (char)(0x80 | (rune & 0x3f));
    }
    return to;
}

/* After \u.  A NUL or half of a surrogate pair stands for no text that PostgreSQL
 * could have stored. */
static bool take_rune(struct jsonscan *scan, unsigned *ret)
{
    unsigned low;

    if (!take_hex4(scan, ret))
        return false;
    if (*ret == 0)
        return jsonscan_fail(scan, "\\u0000 in a string");
    if (*ret < 0xd800 || *ret > 0xdfff)
        return true;
    if (*ret > 0xdbff || !JSONSCAN_TAKE(scan, "\\u") || !take_hex4(scan, &low) ||
        low < 0xdc00 || low > 0xdfff)
        return jsonscan_fail(scan, "half of a surrogate pair");
    *ret = 0x10000 + ((*ret - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* At a backslash.  What is written is never longer than what was read. */
static bool take_escape(struct jsonscan *scan, char **to)
{
    unsigned rune;
    char letter;

    if (scan->end - scan->p < 2)
        return jsonscan_fail(scan, "a string without an end");
    letter = scan->p[1];
    scan->p += 2;
    switch (letter) {
    case '"':
    case '\\':
    case '/':
        break;
    case 'n':
        letter = '\n';
        break;
    case 't':
        letter = '\t';
        break;
    case 'r':
        letter = '\r';
        break;
    case 'b':
        letter = '\b';
        break;
    case 'f':
        letter = '\f';
        break;
    case 'u':
        if (!take_rune(scan, &rune))
            return false;
        *to = put_utf8(*to, rune);
        return true;
    default:
        return jsonscan_fail(scan, "an unknown escape in a string");
    }
    *(*to)++ = letter;
    return true;
}

/* A string, unescaped where it lies. */
bool jsonscan_string(struct jsonscan *scan, struct slice *ret)
{
    char *start;
    char *to;

    if (!jsonscan_take(scan, '"'))
        return jsonscan_fail(scan, "no string where one belongs");
    start = scan->p;
    to = scan->p = jsonscan_find_special(start, scan->end);
    while (scan->p < scan->end && *scan->p == '\\') {
        if (!take_escape(scan, &to))
            return false;
        move_plain(&to, &scan->p, scan->end);
    }
    if (scan->p == scan->end)
        return jsonscan_fail(scan, "a string without an end");
    scan->p++;
    *ret = (struct slice){start, (size_t)(to - start)};
    return true;
}

static bool skip_string(struct jsonscan *scan)
{
    struct slice unused;

    return jsonscan_string(scan, &unused);
}

bool jsonscan_key(struct jsonscan *scan, struct slice *ret)
{
    if (!jsonscan_string(scan, ret))
        return false;
    return jsonscan_take(scan, ':') ||
           jsonscan_fail(scan, "no colon after the name of a field");
}

/* ---- values ------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool read_number(struct jsonscan *scan, struct slice *ret)
{
    char *start = scan->p;

    if (scan->p < scan->end && *scan->p == '-')
        scan->p++;
    if (scan->p == scan->end || !is_digit(*scan->p))
        return jsonscan_fail(scan, "no value where one belongs");
    while (scan->p < scan->end &&
           (is_digit(*scan->p) || *scan->p == '.' || *scan->p == '-' || *scan->p == '+' ||
            *scan->p == 'e' || *scan->p == 'E'))
        scan->p++;
    *ret = (struct slice){start, (size_t)(scan->p - start)};
    return true;
}

bool jsonscan_scalar(struct jsonscan *scan, struct slice *ret)
{
    char *start;

    jsonscan_skip_space(scan);
    if (scan->p < scan->end && *scan->p == '"')
        return jsonscan_string(scan, ret);
    start = scan->p;
    if (JSONSCAN_TAKE(scan, "null")) {
        *ret = (struct slice){0};
        return true;
    }
    if (JSONSCAN_TAKE(scan, "true") || JSONSCAN_TAKE(scan, "false")) {
        *ret = (struct slice){start, (size_t)(scan->p - start)};
        return true;
    }
    return read_number(scan, ret);
}

/* Arrays and objects, whose brackets must match; open has a bit for each that is
 * open, 1 for an array.  Whether commas and colons stand right is nobody's concern
 * in a field that is not used. */
static bool skip_nested(struct jsonscan *scan)
{
    uint64_t open = 0;
    int depth = 0;

    do {
        char at;

        jsonscan_skip_space(scan);
        if (scan->p == scan->end)
            return jsonscan_fail(scan, "an array or object without an end");
        at = *scan->p;
        if (at == '"') {
            if (!skip_string(scan))
                return false;
            continue;
        }
        scan->p++;
        if (at == '{' || at == '[') {
            if (++depth > MAX_DEPTH)
                return jsonscan_fail(scan, "arrays or objects too deep in each other");
            open = open << 1 | (at == '[');
        } else if (at == '}' || at == ']') {
            if ((open & 1) != (at == ']'))
                return jsonscan_fail(scan, "an array or object that ends as the other");
            depth--;
            open >>= 1;
        }
    } while (depth > 0);
    return true;
}

bool jsonscan_skip(struct jsonscan *scan)
{
    struct slice unused;

    jsonscan_skip_space(scan);
    if (scan->p < scan->end && (*scan->p == '{' || *scan->p == '['))
        return skip_nested(scan);
    return jsonscan_scalar(scan, &unused);
}
