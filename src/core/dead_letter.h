/* dead_letter.h - one row for the table of dead letters, and the statement that writes
 * some of them. */
#ifndef WALRELAY_CORE_DEAD_LETTER_H
#define WALRELAY_CORE_DEAD_LETTER_H

#include "base/buf.h"
#include "core/message.h"
#include "core/place.h"

#include <stdbool.h>
#include <stdint.h>

/* Slices that are absent become NULL. */
struct dead_letter {
    struct place place;
    lsn_t begin; /* of its transaction */
    lsn_t end;   /* LSN_NONE: not read yet */
    const struct message *message;
    struct slice aggregate_type;
    bool held;           /* never tried, behind another */
    bool dead;           /* not to be tried again */
    struct slice reason; /* a class: "too large" */
    struct slice error_code;
    struct slice error;
    unsigned attempts;
    int64_t retry_ms; /* until the next attempt */
};

/* How a value is handed to the server. */
struct dead_letter_param {
    struct slice value; /* a text ends with a NUL, which does not count */
    bool binary;
    bool made;   /* value lies in the text that was made, */
    size_t from; /* from here on */
};

/* How every statement on that table begins: `ours` has a row if the slot $1 is active for
 * PID $2.  Another table of the WITH follows. */
#define DEAD_LETTER_OURS                                                                 \
    "WITH ours AS (SELECT FROM pg_catalog.pg_replication_slots"                          \
    " WHERE slot_name = $1::text AND active_pid = $2::int), "

/* Of a row: somebody, or a retry, has to do something about it yet.  As in the condition
 * of the table's index (sql/dead_letters.sql), or that is not used. */
#define DEAD_LETTER_UNRESOLVED "state IN ('waiting', 'held', 'dead')"

/* The statement's parameters: $1 the slot, $2 a PID, then so many for each row. */
enum { DEAD_LETTER_PARAMS = 24, DEAD_LETTER_FIRST = 3 };

/* Appends the statement for n rows, of the table called table (as SQL writes it).  It
 * returns one row: was the slot $1 active for PID $2?  If not, nothing was written.
 * Rows that exist are left alone, but for commit_lsn where they lack it: no answer came
 * when they were written, and the end was not known yet.  Ids are in the order of the
 * rows. */
void dead_letter_insert(struct buf *sql, const char *table, size_t n);

/* Fills the parameters of n rows, which borrow from letters and from text.  False: text
 * is too small or there is no memory. */
bool dead_letter_bind(const struct dead_letter *letters, size_t n, struct buf *text,
                      struct dead_letter_param *params)
    __attribute__((warn_unused_result));

#endif
