/* hex.h - hexadecimal digits as PostgreSQL writes them: lower case. */
#ifndef WALRELAY_BASE_HEX_H
#define WALRELAY_BASE_HEX_H

#include "base/buf.h"
#include "base/slice.h"

#include <stdbool.h>

/* Only digits, and an even number of them; true for no digits at all. */
bool hex_valid(struct slice s);

/* Turns the digits at bytes into bytes where they lie: the first len / 2 bytes are
 * the result.  False if they are not hex_valid; the bytes are spoiled then. */
bool hex_decode(char *bytes, size_t len) __attribute__((warn_unused_result));

/* Appends what the digits in text stand for.  False if they are not hex_valid, or out has
 * failed: what is in out is spoiled then. */
bool hex_add(struct buf *out, struct slice text) __attribute__((warn_unused_result));

#endif
