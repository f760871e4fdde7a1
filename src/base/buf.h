/* buf.h - growable bytes with a ceiling that is fixed when they are made. */
#ifndef WALRELAY_BASE_BUF_H
#define WALRELAY_BASE_BUF_H

#include "base/slice.h"

#include <stdbool.h>

struct buf {
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
    bool failed;    /* an append was refused: over the ceiling, or out of memory */
    bool no_memory; /* it was the latter */
};

void buf_init(struct buf *buf, size_t max);
void buf_done(struct buf *buf);

/* Empty again; the memory stays. */
void buf_reset(struct buf *buf);

/* Appending to a failed buffer does nothing, so that a caller may append many
 * times and look at `failed` once.  No byte of a refused append is stored. */
void buf_add(struct buf *buf, struct slice bytes);
void buf_add_str(struct buf *buf, const char *string);
void buf_add_char(struct buf *buf, char c);
void buf_printf(struct buf *buf, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* The bytes, borrowed until the next change of buf; never absent. */
struct slice buf_slice(const struct buf *buf);

/* The same as a C string; never NULL.  Borrowed likewise. */
const char *buf_str(const struct buf *buf);

#endif
