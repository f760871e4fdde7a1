#include "base/hex.h"

/* The digit's value plus one; 0 for what is no digit. */
static const unsigned char digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
    ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
    ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

bool hex_valid(struct slice s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!digits[(unsigned char)s.ptr[i]])
            return false;
    }
    return s.len % 2 == 0;
}

bool hex_decode(char *bytes, size_t len)
{
    for (size_t i = 0; i + 1 < len; i += 2) {
        unsigned high = digits[(unsigned char)bytes[i]];
        unsigned low = digits[(unsigned char)bytes[i + 1]];

        if (!high || !low)
            return false;
        bytes[i / 2] = (char)((high - 1) << 4 | (low - 1));
    }
    return len % 2 == 0;
}

bool hex_add(struct buf *out, struct slice text)
{
    size_t begin = out->len;

    buf_add(out, text);
    if (out->failed)
        return false;
    if (text.len == 0)
        return true;
    if (!hex_decode(out->ptr + begin, text.len))
        return false;
    out->len = begin + text.len / 2;
    out->ptr[out->len] = '\0';
    return true;
}
