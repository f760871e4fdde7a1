/* utf8.h - is it UTF-8? */
#ifndef WALRELAY_BASE_UTF8_H
#define WALRELAY_BASE_UTF8_H

#include "base/slice.h"

#include <stdbool.h>

/* U+FFFD, for what is none. */
#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* True if bytes are well-formed as RFC 3629 and table 3-7 of the Unicode Standard
 * define it: no overlong form, no surrogate, nothing above U+10FFFF, nothing cut
 * short.  Empty and absent bytes are well-formed. */
bool utf8_valid(struct slice bytes);

/* The length of the character that stands at p, of which left bytes are there; 0 if it is
 * none. */
size_t utf8_character(const char *p, size_t left);

#endif
