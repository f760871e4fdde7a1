/* jsonscan.c - see jsonscan.h. */
#include "core/jsonscan.h"

#include <stdint.h>

#if defined(__SSE2__) && !defined(JSONSCAN_PORTABLE)
#include <emmintrin.h>
#endif

enum { MAX_DEPTH = 64 };

/* ---- strings ------------------------------------------------------------------ */

/* Strings are searched in blocks: bit i of a block's mask is set when byte i is a quote
 * or a backslash. */
enum { BLOCK = 32 };

#if defined(__SSE2__) && !defined(JSONSCAN_PORTABLE)
static uint32_t mask_of_half(const char *p)
{
    __m128i bytes = _mm_loadu_si128((const void *)p);
    __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    __m128i backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));

    return (uint32_t)_mm_movemask_epi8(_mm_or_si128(quotes, backslashes));
}

static uint64_t mask_of_block(const char *p)
{
    return mask_of_half(p) | mask_of_half(p + BLOCK / 2) << BLOCK / 2;
}

/* The place of the lowest bit that is set; mask is not 0. */
static size_t lowest_bit(uint64_t mask)
{
    return (size_t)__builtin_ctzll(mask);
}
#else
#define EACH_BYTE(x) (UINT64_C(0x0101010101010101) * (x))

/* The high bit of each byte that is zero. */
static uint64_t zero_bytes(uint64_t x)
{
    return ~(((x & EACH_BYTE(0x7f)) + EACH_BYTE(0x7f)) | x | EACH_BYTE(0x7f));
}

static uint64_t mask_of_block(const char *p)
{
    uint64_t mask = 0;

    for (int i = 0; i < BLOCK; i += 8) {
        uint64_t x = 0;
        uint64_t found;

        for (int k = 7; k >= 0; k--)
            x = x << 8 | (unsigned char)p[i + k];
        found = zero_bytes(x ^ EACH_BYTE('"')) | zero_bytes(x ^ EACH_BYTE('\\'));
        /* the multiplication gathers the eight high bits in the highest byte */
        mask |= (found >> 7) * UINT64_C(0x0102040810204080) >> 56 << i;
    }
    return mask;
}

static size_t lowest_bit(uint64_t mask)
{
    size_t place = 0;

    for (int half = 32; half > 0; half /= 2) {
        if (!(mask & ((UINT64_C(1) << half) - 1))) {
            mask >>= half;
            place += (size_t)half;
        }
    }
    return place;
}
#endif

/* Less than a block is left.  Apart, so that the usual case sets nothing up for it. */
__attribute__((noinline)) static char *find_in_tail(char *p, char *end)
{
    char tail[BLOCK] = {0};
    uint64_t mask;

    memcpy(tail, p, (size_t)(end - p));
    mask = mask_of_block(tail);
    return mask ? p + lowest_bit(mask) : end;
}

char *jsonscan_find_special(char *p, char *end)
{
    for (; end - p >= BLOCK; p += BLOCK) {
        uint64_t mask = mask_of_block(p);

        if (mask)
            return p + lowest_bit(mask);
    }
    return find_in_tail(p, end);
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
    unsigned low = 0;

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
    unsigned rune = 0;
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

/* Unescapes from *from to *to, which is not behind it, up to a quote, an escape that is
 * not a letter, or the end of two blocks, and moves both on.  Most runs between escapes
 * are short: 16 bytes are copied whatever their length, to where it does no harm. */
static void unescape_blocks(char **to, char **from, const char *end)
{
    static const char letters[256] = {
        ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
        ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t'};
    enum { LEN = 2 * BLOCK, SHORT = 16 };
    char in[2 * LEN] = {0};
    char out[2 * LEN];
    size_t len = end - *from >= LEN ? LEN : (size_t)(end - *from);
    uint64_t mask;
    size_t i = 0;
    size_t o = 0;

    memcpy(in, *from, len);
    mask = mask_of_block(in) | mask_of_block(in + BLOCK) << BLOCK;
    for (;;) {
        size_t run = (mask ? lowest_bit(mask) : len) - i;

        /* memcpy would be a call: _FORTIFY_SOURCE=3 does not see that i, o <= LEN */
        __builtin_memcpy(out + o, in + i, SHORT);
        if (run > SHORT)
            memcpy(out + o + SHORT, in + i + SHORT, LEN - SHORT);
        i += run;
        o += run;
        if (i + 1 >= len || in[i] != '\\' || !letters[(unsigned char)in[i + 1]])
            break;
        out[o++] = letters[(unsigned char)in[i + 1]];
        i += 2;
        mask &= i < LEN ? ~UINT64_C(0) << i : 0;
    }
    memcpy(*to, out, o);
    *to += o;
    *from += i;
}

/* From the first escape, at p, or the end.  Apart: most strings have none. */
__attribute__((noinline)) static bool finish_string(struct jsonscan *scan, char *start,
                                                    char *p, struct slice *ret)
{
    char *to = p;

    scan->p = p;
    while (scan->p < scan->end && *scan->p != '"') {
        unescape_blocks(&to, &scan->p, scan->end);
        if (scan->p < scan->end && *scan->p == '\\' && !take_escape(scan, &to))
            return false;
    }
    if (scan->p == scan->end)
        return jsonscan_fail(scan, "a string without an end");
    scan->p++;
    *ret = (struct slice){start, (size_t)(to - start)};
    return true;
}

bool jsonscan_string(struct jsonscan *scan, struct slice *ret)
{
    char *start;
    char *p;

    if (!jsonscan_take(scan, '"'))
        return jsonscan_fail(scan, "no string where one belongs");
    start = scan->p;
    p = jsonscan_find_special(start, scan->end);
    if (p == scan->end || *p != '"')
        return finish_string(scan, start, p, ret);
    scan->p = p + 1;
    *ret = (struct slice){start, (size_t)(p - start)};
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
