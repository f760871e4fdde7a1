/* nearest.h - the name that was probably meant. */
#ifndef WALRELAY_CORE_NEAREST_H
#define WALRELAY_CORE_NEAREST_H

#include <stddef.h>

/* Of n names the one that the fewest edits (a byte added, removed or replaced) turn
 * into wanted; between equals the one that differs least in case, then the first.
 * NULL only if n is 0.  Looks at the first 128 bytes of each name. */
const char *nearest_name(const char *wanted, const char *const *names, size_t n);

#endif
