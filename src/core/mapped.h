/* mapped.h - the columns that a [table] section names. */
#ifndef WALRELAY_CORE_MAPPED_H
#define WALRELAY_CORE_MAPPED_H

#include "base/err.h"
#include "base/slice.h"
#include "core/config.h"
#include "core/topic.h"

#include <stdbool.h>
#include <stddef.h>

struct mapped {
    struct slice *columns; /* each once; those of the topic's template come first */
    size_t n;
    size_t ntopic; /* how many of them stand in the template */
    struct topic_template topic;
};

/* Borrows table.  0, or -1 with err set: a template that cannot be read (ERR_CONFIG),
 * or no memory. */
int mapped_init(struct mapped *mapped, const struct table_settings *table,
                struct err *err) __attribute__((warn_unused_result));
void mapped_done(struct mapped *mapped);

bool mapped_has(const struct mapped *mapped, const char *column);
bool mapped_in_topic(const struct mapped *mapped, const char *column);

#endif
