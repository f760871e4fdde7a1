/* grow.h - arrays that get one more item at a time. */
#ifndef WALRELAY_BASE_GROW_H
#define WALRELAY_BASE_GROW_H

#include <stddef.h>
#include <stdlib.h>

/* array with its n items of item_bytes each and room for one more; the capacity is
 * always the next power of two.  NULL: out of memory, and array is as it was. */
static inline void *grow(void *array, size_t n, size_t item_bytes)
{
    size_t cap = n ? 2 * n : 1;

    if (array && (n & (n - 1)) != 0)
        return array; /* n is no power of two: not full */
    if (cap > (size_t)-1 / 2 / item_bytes)
        return NULL;
    return realloc(array, cap * item_bytes);
}

#endif
