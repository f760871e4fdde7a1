/* jsonscan.h - JSON read in place, token by token, by whoever knows its grammar.
 *
 * For the hot path: no tree, no allocation.  Nothing is read at or behind the end, and
 * strings are unescaped where they lie, so results borrow from the text. */
#ifndef WALRELAY_CORE_JSONSCAN_H
#define WALRELAY_CORE_JSONSCAN_H

#include "base/slice.h"

#include <stdbool.h>
#include <string.h>

/* What is left of the text, and what was wrong with it. */
struct jsonscan {
    char *p;
    char *end;
    const char *wrong; /* a literal; NULL as long as all is well */
};

/* Notes what is wrong; the first complaint stays.  Returns false, as does every
 * function below that did not find what it promises to read. */
static inline bool jsonscan_fail(struct jsonscan *scan, const char *wrong)
{
    if (!scan->wrong)
        scan->wrong = wrong;
    return false;
}

static inline bool jsonscan_is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static inline void jsonscan_skip_space(struct jsonscan *scan)
{
    while (scan->p < scan->end && jsonscan_is_space(*scan->p))
        scan->p++;
}

/* Steps over space and the wanted byte.  Does not complain. */
static inline bool jsonscan_take(struct jsonscan *scan, char wanted)
{
    if (scan->p < scan->end && jsonscan_is_space(*scan->p))
        jsonscan_skip_space(scan);
    if (scan->p == scan->end || *scan->p != wanted)
        return false;
    scan->p++;
    return true;
}

static inline bool jsonscan_take_bytes(struct jsonscan *scan, const char *wanted,
                                       size_t len)
{
    if ((size_t)(scan->end - scan->p) < len || memcmp(scan->p, wanted, len) != 0)
        return false;
    scan->p += len;
    return true;
}

/* Steps over exactly these bytes.  Does not complain.  A macro, so that the compiler
 * knows the length and compares in one or two instructions. */
#define JSONSCAN_TAKE(scan, literal)                                                     \
    jsonscan_take_bytes(scan, literal, sizeof(literal) - 1)

/* A string, decoded; never absent.  \u0000 and half a surrogate pair are refused: no
 * text of PostgreSQL's holds them. */
bool jsonscan_string(struct jsonscan *scan, struct slice *ret);

/* The name of a field and its colon. */
bool jsonscan_key(struct jsonscan *scan, struct slice *ret);

/* A string, decoded; or the bare text of a number, true or false; absent for null. */
bool jsonscan_scalar(struct jsonscan *scan, struct slice *ret);

/* Any value, nested at most 64 deep, is stepped over.  Its brackets must match and its
 * strings be sound; commas and colons are not looked at. */
bool jsonscan_skip(struct jsonscan *scan);

/* The next quote or backslash at or behind p; end if there is none. */
char *jsonscan_find_special(char *p, char *end);

#endif
