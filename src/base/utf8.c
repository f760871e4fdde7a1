#include "base/utf8.h"

#include <stdint.h>

/* Well-formed sequences (the Unicode Standard, table 3-7):
 *
 *   00..7F
 *   C2..DF  80..BF
 *   E0      A0..BF  80..BF
 *   E1..EC  80..BF  80..BF
 *   ED      80..9F  80..BF
 *   EE..EF  80..BF  80..BF
 *   F0      90..BF  80..BF  80..BF
 *   F1..F3  80..BF  80..BF  80..BF
 *   F4      80..8F  80..BF  80..BF */

static size_t sequence_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC2)
        return 0;
    if (first < 0xE0)
        return 2;
    if (first < 0xF0)
        return 3;
    return first < 0xF5 ? 4 : 0;
}

/* Only the second byte's range depends on the first. */
static bool second_fits(unsigned char first, unsigned char second)
{
    switch (first) {
    case 0xE0:
        return second >= 0xA0 && second <= 0xBF;
    case 0xED:
        return second >= 0x80 && second <= 0x9F;
    case 0xF0:
        return second >= 0x90 && second <= 0xBF;
    case 0xF4:
        return second >= 0x80 && second <= 0x8F;
    default:
        return second >= 0x80 && second <= 0xBF;
    }
}

static bool sequence_valid(const unsigned char *p, size_t len)
{
    if (len > 1 && !second_fits(p[0], p[1]))
        return false;
    for (size_t i = 2; i < len; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return false;
    }
    return true;
}

static bool all_ascii(const unsigned char *p)
{
    uint64_t eight;

    memcpy(&eight, p, sizeof(eight));
    return (eight & 0x8080808080808080u) == 0;
}

bool utf8_valid(struct slice bytes)
{
    const unsigned char *p = (const unsigned char *)bytes.ptr;
    size_t left = bytes.len;

    while (left > 0) {
        size_t len;

        if (left >= sizeof(uint64_t) && all_ascii(p))
            len = sizeof(uint64_t);
        else {
            len = sequence_length(*p);
            if (len == 0 || len > left || !sequence_valid(p, len))
                return false;
        }
        p += len;
        left -= len;
    }
    return true;
}

size_t utf8_character(const char *p, size_t left)
{
    for (size_t len = 1; len <= 4 && len <= left; len++) {
        if (utf8_valid((struct slice){p, len}))
            return len;
    }
    return 0;
}
