/* strangers.h - tables that were looked up and belong to no section.
 *
 * The answer holds for what was committed before it was given: later the table may be
 * attached as a partition. */
#ifndef WALRELAY_CORE_STRANGERS_H
#define WALRELAY_CORE_STRANGERS_H

#include "base/slice.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STRANGERS_MAX = 64 };

struct stranger {
    char *schema;
    char *name;
    int64_t before_us;
};

/* All zeros: nobody.  The newest names, at most STRANGERS_MAX: one that is forgotten is
 * looked up again. */
struct strangers {
    struct stranger all[STRANGERS_MAX];
    size_t next; /* the place that is taken next */
};

/* What was committed to that table before before_us (microseconds since 1970) is of no
 * section.  0, or -1 without memory. */
int strangers_add(struct strangers *strangers, struct slice schema, struct slice name,
                  int64_t before_us) __attribute__((warn_unused_result));
bool strangers_have(const struct strangers *strangers, struct slice schema,
                    struct slice name, int64_t commit_us);
void strangers_done(struct strangers *strangers);

#endif
