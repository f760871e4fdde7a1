/* ini.h - the sections and keys of an INI file, each with its line.
 *
 *   # a comment has a line of its own and begins with # or ;
 *   [section]
 *   key = value        # this belongs to the value
 *
 * UTF-8, with or without a byte order mark, lines ending in LF or CR LF.  Blanks
 * around sections, keys and values do not count; quotes are part of the value.  A
 * value is one line of any length: a line never continues the one before it, so keys
 * may be indented.  Control characters other than the tab are refused. */
#ifndef WALRELAY_CORE_INI_H
#define WALRELAY_CORE_INI_H

#include "base/err.h"
#include "base/slice.h"

struct ini_section {
    char *name; /* what stands between the brackets */
    int line;
};

struct ini_entry {
    size_t section; /* index */
    char *key;
    char *value;
    int line;
};

/* In the file's order.  Several sections may have one name; the keys of a section
 * differ by more than upper and lower case. */
struct ini {
    struct ini_section *sections;
    size_t nsections;
    struct ini_entry *entries;
    size_t nentries;
};

/* 0, or -1 with err set (ERR_CONFIG, with path and line where there is one) and *ret
 * untouched.  The text of an error never holds a value. */
int ini_read(const char *path, struct slice text, struct ini *ret, struct err *err)
    __attribute__((warn_unused_result));
void ini_done(struct ini *ini);

#endif
