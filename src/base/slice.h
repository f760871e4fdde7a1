/* slice.h - bytes someone else owns. */
#ifndef WALRELAY_BASE_SLICE_H
#define WALRELAY_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct slice {
    const char *ptr; /* NULL means absent (SQL NULL), not empty */
    size_t len;
};

/* For printf("%.*s", SLICE_ARG(s)); an absent slice prints nothing. */
#define SLICE_ARG(s) (int)(s).len, (s).ptr ? (s).ptr : ""

static inline struct slice slice_of(const char *string)
{
    return (struct slice){string, string ? strlen(string) : 0};
}

/* Same bytes.  Absent equals only absent. */
static inline bool slice_eq(struct slice a, struct slice b)
{
    if (!a.ptr || !b.ptr)
        return !a.ptr && !b.ptr;
    return a.len == b.len && memcmp(a.ptr, b.ptr, a.len) == 0;
}

#endif
