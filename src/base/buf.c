#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FIRST_CAP = 64 };

void buf_init(struct buf *buf, size_t max)
{
    *buf = (struct buf){.max = max};
}

void buf_done(struct buf *buf)
{
    free(buf->ptr);
    *buf = (struct buf){0};
}

void buf_reset(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
    buf->no_memory = false;
}

/* Room for n more bytes and a terminating NUL. */
static bool reserve(struct buf *buf, size_t n)
{
    size_t cap = buf->cap ? buf->cap : FIRST_CAP;
    char *ptr;

    if (buf->failed || n > buf->max || buf->len > buf->max - n) {
        buf->failed = true;
        return false;
    }
    while (cap < buf->len + n + 1)
        cap *= 2;
    if (cap == buf->cap)
        return true;
    ptr = realloc(buf->ptr, cap);
    if (!ptr) {
        buf->failed = buf->no_memory = true;
        return false;
    }
    buf->ptr = ptr;
    buf->cap = cap;
    return true;
}

void buf_add(struct buf *buf, struct slice bytes)
{
    if (!reserve(buf, bytes.len))
        return;
    if (bytes.len > 0)
        memcpy(buf->ptr + buf->len, bytes.ptr, bytes.len);
    buf->len += bytes.len;
    buf->ptr[buf->len] = '\0';
}

void buf_add_str(struct buf *buf, const char *string)
{
    buf_add(buf, slice_of(string));
}

void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, (struct slice){&c, 1});
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list ap;
    va_list again;
    int n;

    va_start(ap, fmt);
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (n < 0)
        buf->failed = true;
    else if (reserve(buf, (size_t)n)) {
        (void)vsnprintf(buf->ptr + buf->len, (size_t)n + 1, fmt, again);
        buf->len += (size_t)n;
    }
    va_end(again);
}

struct slice buf_slice(const struct buf *buf)
{
    return (struct slice){buf_str(buf), buf->len};
}

const char *buf_str(const struct buf *buf)
{
    return buf->ptr && buf->len > 0 ? buf->ptr : "";
}
