/* oracle.h - the decoder beside jansson. */
#ifndef WALRELAY_TESTS_ORACLE_H
#define WALRELAY_TESTS_ORACLE_H

#include "core/wal2json.h"

#include "unit.h"

#include <stdbool.h>

/* One message, decoded in memory of exactly its size, so that the address sanitizer
 * sees any step beyond.  Every slice was seen to lie inside it. */
struct decoded {
    char *bytes;
    size_t len;
    int rc;
    struct change change;
    struct err err;
};

void decoded_init(struct decoded *d, struct wal2json *decoder, struct slice message);
void decoded_done(struct decoded *d);

/* Does jansson take the message?  If it does, and the decoder did too, they must have
 * read the same; with must_decode the decoder must have taken it. */
bool same_as_jansson(const struct decoded *d, struct slice message, bool must_decode);

/* Calls each(line, context) for the lines of a file in this directory. */
void for_each_line(const char *file, void (*each)(struct slice line, void *context),
                   void *context);

#endif
