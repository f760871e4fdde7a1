/* deadletters.h - the other outlet: rows of the table of dead letters.
 *
 * One connection, one statement at a time, each its own transaction, so none is ever
 * left open.  Every statement checks that the slot is still streamed by us.  Nothing
 * here blocks; who uses it polls deadletters_fd and calls deadletters_serve. */
#ifndef WALRELAY_IO_DEADLETTERS_H
#define WALRELAY_IO_DEADLETTERS_H

#include "base/err.h"
#include "core/dead_letter.h"
#include "io/pg.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

struct deadletters;

/* What one statement may hold. */
enum { DEADLETTERS_MAX = 100 };

struct deadletters_options {
    const char *schema; /* of the table; borrowed for its life */
    const char *slot;   /* the same */
    int walsender_pid;  /* of the connection that streams from it */
};

/* The table's name as SQL writes it, to be freed with free().  NULL: no memory. */
char *deadletters_table(const char *schema);

/* The settings that its connection needs; blocks, so it is for the thread that has made
 * the connection (PG_SQL). */
int deadletters_prepare(struct pg *pg, struct err *err)
    __attribute__((warn_unused_result));

/* Takes pg.  NULL with err set: no memory; pg is closed then. */
struct deadletters *deadletters_new(struct pg *pg,
                                    const struct deadletters_options *options,
                                    struct err *err) __attribute__((warn_unused_result));

/* A statement under way may still be carried out by the server. */
void deadletters_free(struct deadletters *deadletters);

/* A statement is under way: no other may be begun. */
bool deadletters_busy(const struct deadletters *deadletters);

/* Begins to write n rows, at most DEADLETTERS_MAX, in their order, all or none; those
 * that exist count as written.  Copies them. */
int deadletters_write(struct deadletters *deadletters, const struct dead_letter *letters,
                      size_t n, struct err *err) __attribute__((warn_unused_result));

/* Begins to say where the transaction ends that begins at begin: in those of its rows
 * that were written before it was known. */
int deadletters_end(struct deadletters *deadletters, lsn_t begin, int64_t commit_us,
                    lsn_t end, struct err *err) __attribute__((warn_unused_result));

/* Begins to resolve rows: they are in Kafka.  ids are numbers. */
int deadletters_resolve(struct deadletters *deadletters, const char *const *ids, size_t n,
                        struct err *err) __attribute__((warn_unused_result));

/* One more attempt that failed; texts end with a NUL. */
struct deadletters_failure {
    const char *id;
    const char *version; /* DUE_VERSION; NULL: whichever */
    struct slice reason;
    struct slice error_code; /* absent: none */
    struct slice error;
    uint64_t max_attempts; /* with so many it is dead, */
    int64_t retry_ms;      /* else it is tried again after that */
};

/* Begins to count it, unless the row has changed since version: somebody wants it tried
 * again, resolved or discarded, or this was counted and no answer came. */
int deadletters_fail(struct deadletters *deadletters,
                     const struct deadletters_failure *failure, struct err *err)
    __attribute__((warn_unused_result));

/* Begins to look for rows that are to be sent now, each after all that it must come
 * after: what is due, and what is held behind nothing but such.  At most
 * DEADLETTERS_MAX, and more than one only with payloads of less than 4 MB together. */
int deadletters_due(struct deadletters *deadletters, uint64_t max_attempts,
                    struct err *err) __attribute__((warn_unused_result));

/* Begins to count the unresolved rows of each key. */
int deadletters_count(struct deadletters *deadletters, struct err *err)
    __attribute__((warn_unused_result));

/* Begins to count the unresolved rows by state. */
int deadletters_tally(struct deadletters *deadletters, struct err *err)
    __attribute__((warn_unused_result));

/* The columns of an answer.  Bytes are hexadecimal digits.  deadletters_due has always a
 * row; without an id there is none to send. */
enum {
    RESOLVED_IDS = 1, /* "{1,2}"; NULL: none */

    COUNTED_TOPIC = 1,
    COUNTED_KEY,
    COUNTED_ROWS,

    TALLY_WAITING = 1,
    TALLY_HELD,
    TALLY_DEAD,
    TALLY_AGE_MS, /* of the oldest; NULL: there is none */

    DUE_NEXT_MS = 1, /* until another is due; NULL: none will */
    DUE_ID,
    DUE_TOPIC,
    DUE_KEY,
    DUE_PAYLOAD,
    DUE_HEADERS, /* "name:value,name:value", both as digits */
    DUE_PARTITION,
    DUE_RECORD_MS,
    DUE_GIVEN_TIME,
    DUE_COMMIT_MS,
    DUE_TABLE,
    DUE_EVENT_ID,
    DUE_EVENT_TYPE,
    DUE_AGGREGATE_ID,
    DUE_LSN,
    DUE_ATTEMPTS,
    DUE_VERSION, /* another one when the row was changed */
};

/* Takes the answer of what ended last, to be freed with pg_result_free. */
struct pg_result *deadletters_take(struct deadletters *deadletters);

struct pollfd deadletters_fd(const struct deadletters *deadletters);

/* 1: what was begun is durable; 0: nothing has ended; -1: it failed, and whether it was
 * carried out is not known; begin it again, on another connection unless
 * deadletters_usable. */
int deadletters_serve(struct deadletters *deadletters, struct err *err)
    __attribute__((warn_unused_result));
bool deadletters_usable(const struct deadletters *deadletters);

/* It failed because the slot is not streamed by us any more: nothing was written. */
bool deadletters_fenced(const struct deadletters *deadletters);

/* Somebody else has changed rows since the last call. */
bool deadletters_changed(struct deadletters *deadletters);

#endif
