/* place.h - where an event's row stands in the WAL. */
#ifndef WALRELAY_CORE_PLACE_H
#define WALRELAY_CORE_PLACE_H

#include "base/lsn.h"

#include <stdbool.h>
#include <stdint.h>

/* The same each time the row is sent, whatever the stream leaves out.  The time of the
 * commit tells apart what has the same LSN in a cluster that was restored from a dump. */
struct place {
    lsn_t lsn;         /* of the row's record */
    uint32_t number;   /* 1, 2, ... among the rows of that record (COPY writes many) */
    int64_t commit_us; /* since 1970 */
};

static inline bool place_eq(const struct place *a, const struct place *b)
{
    return a->lsn == b->lsn && a->number == b->number && a->commit_us == b->commit_us;
}

/* The place of the row at lsn that comes after last, both of one transaction; the rows
 * of a record come one behind the other.  An all-zero place is before the first. */
static inline struct place place_after(const struct place *last, lsn_t lsn,
                                       int64_t commit_us)
{
    uint32_t number = lsn == last->lsn ? last->number + 1 : 1;

    return (struct place){lsn, number, commit_us};
}

#endif
