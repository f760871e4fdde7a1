/* letters.h - what the files of the relay that deal with dead letters share; nobody else
 * includes it.
 *
 *   letters_link.c   the connection, and what the table holds already
 *   letters_row.c    a refused entry as a row
 *   letters_copy.c   a refused entry to dead_letter_topic, before its row
 *   letters_trouble.c what the log says while the table cannot be used
 *   relay_letters.c  the writer's connection; rows in, their tickets to the ledger
 *   relay_retry.c    rows that are tried again, and those they held back
 *   letters_tally.c  how many there are, for the metrics
 *
 * docs/decisions/0015-dead-letters.md says how it works. */
#ifndef WALRELAY_APP_LETTERS_H
#define WALRELAY_APP_LETTERS_H

#include "core/backoff.h"
#include "core/breaker.h"
#include "core/held.h"
#include "core/window.h"
#include "io/deadletters.h"
#include "io/job.h"
#include "io/lane.h"

/* A connection in the making. */
struct letters_link {
    const struct config *config;
    int walsender_pid;
    lsn_t from;
    struct held *held; /* to be loaded, or NULL: it is */
    struct pg *pg;     /* what came of it, or NULL with err set */
    bool lost;         /* the slot is not that walsender's, and will not be */
    struct err err;
};

enum letters_op {
    OP_NONE,
    OP_WRITE,
    OP_END,
    OP_DUE,
    OP_RESOLVE,
    OP_FAIL,
    OP_COUNT,
    OP_TALLY,
};

enum retry_state {
    RETRY_WAITS,   /* not in the sink yet */
    RETRY_SENT,    /* in the sink */
    RETRY_ARRIVED, /* in Kafka */
    RETRY_ENDING,  /* the same, and the statement is under way that says so */
    RETRY_REFUSED, /* see failure */
    RETRY_OVER,
};

/* What the message of a row borrows from; the sink does so until it has left. */
struct retry_bytes {
    char *block;
    struct header *headers;
};

/* Rows that are tried again, as deadletters_due found them. */
struct retry {
    struct pg_result *rows; /* NULL: none */
    int n;
    int left; /* not over */
    enum retry_state states[DEADLETTERS_MAX];
    struct retry_bytes bytes[DEADLETTERS_MAX];
    int64_t due_ms; /* when to look for more */
    bool changed;   /* somebody has changed the table */
    int failed;     /* the row whose failure is to be written; -1: none */
    struct refusal refusal;
    char why[ERR_TEXT_MAX];
};

enum copy_state {
    COPY_NONE,  /* there is none to be made, or it is over */
    COPY_WAITS, /* not with the producer */
    COPY_SENT,  /* with it */
};

/* One refused entry as a record of dead_letter_topic; the lane borrows from it. */
struct copy {
    enum copy_state state;
    char *block;
    struct header *headers;
    struct message message;
};

/* The copies of the first n entries that the sink refuses. */
struct copies {
    struct lane *lane; /* NULL: none was needed yet */
    size_t n;
    size_t left; /* not durable yet */
    struct copy all[DEADLETTERS_MAX];
    bool dropped; /* what is there is waste, and perhaps still borrowed */
    struct backoff backoff;
    int64_t at_ms; /* not before, after a failure */
    int told;      /* the last one that was told */
    int64_t told_ms;
};

/* What the metrics say of the table, as it was counted last. */
struct tally {
    bool wanted;   /* there are metrics */
    bool known;    /* it has been counted */
    bool stale;    /* the table has changed since */
    int64_t at_ms; /* not counted again before */
    int64_t waiting;
    int64_t held;
    int64_t dead;
    int64_t oldest_ms; /* when, on the loop's clock, the oldest was written */
};

struct letters {
    struct held *held;
    struct breaker *breaker;
    uint64_t refusals; /* that the breaker has counted */
    int64_t open_told_ms;

    bool on;     /* there is a stream, and a table for it */
    bool used;   /* there was a table for one of the streams */
    bool loaded; /* held is as the table: changes may be routed */
    int walsender_pid;
    lsn_t from; /* where the stream begins */
    struct letters_link link;
    struct job *job;
    bool awaited; /* false: the stream that wanted the connection is gone */
    struct deadletters *writer;
    bool readable; /* its connection has something for us */

    enum letters_op op; /* under way, */
    int64_t asked_ms;   /* since then */
    size_t n;           /* its rows */
    bool ended[DEADLETTERS_MAX];
    struct entry *entries[DEADLETTERS_MAX];
    struct message messages[DEADLETTERS_MAX];
    struct dead_letter rows[DEADLETTERS_MAX];

    struct copies copies;
    struct retry retry;
    struct tally tally;
    struct backoff backoff;
    int64_t at_ms; /* not before, after a failure */
    bool failing;
    int64_t told_ms;
    char told[ERR_TEXT_MAX];
};

/* For a job, with a struct letters_link; blocks. */
void letters_connect(void *arg);

struct relay;

/* letters_row.c: the row of a refused entry.  Borrows from it, and from message, which is
 * filled. */
struct dead_letter relay_letter(const struct relay *relay, const struct entry *entry,
                                struct message *message);

/* letters_copy.c */
void letters_copies_init(struct copies *copies);
/* At the end of the process; waits some milliseconds. */
void letters_copies_done(struct copies *copies);
/* How many of the entries at the front of l->entries, n in all, are in dead_letter_topic,
 * or will not be; begins to send the others. */
size_t letters_copied(struct relay *relay, size_t n);
/* Their rows are written. */
void letters_copies_written(struct copies *copies);
/* The entries are gone. */
void letters_copies_drop(struct copies *copies);
void letters_copies_serve(struct relay *relay);
int64_t letters_copies_deadline(const struct copies *copies);

/* Until an event that failed so often is tried again. */
int64_t relay_retry_delay(const struct relay *relay, unsigned attempts);

/* letters_trouble.c */
void relay_letters_tell(struct relay *relay, const struct err *err);
/* Tells if the statement under way takes long. */
void relay_letters_watch_answer(struct relay *relay);
int64_t relay_letters_answer_deadline(const struct letters *letters);

/* relay_retry.c */
/* There is a new connection. */
void relay_retry_begin(struct relay *relay);
/* All is forgotten, also by the sink. */
void relay_retry_done(struct letters *letters);
/* Hands rows to the sink, takes refused ones back from it. */
void relay_retry_serve(struct relay *relay);
/* The next statement; false: there is nothing to do now.  -1 with err set. */
int relay_retry_ask(struct relay *relay, struct err *err)
    __attribute__((warn_unused_result));
void relay_retry_answered(struct relay *relay, enum letters_op op);
bool relay_retry_is_settled(const struct relay *relay);
int64_t relay_retry_deadline(const struct relay *relay);

/* letters_tally.c */
/* The table may be other than it was. */
void relay_tally_changed(struct letters *letters);
/* Time to count? */
bool relay_tally_is_due(const struct relay *relay);
int relay_tally_ask(struct relay *relay, struct err *err)
    __attribute__((warn_unused_result));
void relay_tally_answered(struct relay *relay);
int64_t relay_tally_deadline(const struct relay *relay);

#endif
