#include "core/encoding.h"

#include <stdlib.h>

static size_t converted_len(const struct encoding *encoding, struct slice bytes)
{
    size_t len = 0;

    for (size_t i = 0; i < bytes.len; i++)
        len += strlen(encoding->to_utf8[(unsigned char)bytes.ptr[i]]);
    return len;
}

int encoding_convert(const struct encoding *encoding, struct slice bytes,
                     struct frame *ret, struct err *err)
{
    size_t len = converted_len(encoding, bytes);
    char *to = malloc(len + 1);
    struct frame frame = {to, len};

    if (!to)
        return err_set(err, ERR_INTERNAL, "out of memory for a change of %zu bytes", len);
    for (size_t i = 0; i < bytes.len; i++) {
        const char *utf8 = encoding->to_utf8[(unsigned char)bytes.ptr[i]];
        size_t n = strlen(utf8);

        if (n == 0) {
            free(frame.bytes);
            return err_set(err, ERR_POISON, "byte 0x%02x is no character of %s",
                           (unsigned)(unsigned char)bytes.ptr[i], encoding->name);
        }
        memcpy(to, utf8, n);
        to += n;
    }
    *to = '\0';
    *ret = frame;
    return 0;
}
