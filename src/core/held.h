/* held.h - which events must wait behind one that Kafka did not take.
 *
 * The table of dead letters in memory, as far as the stream needs it: the keys that
 * have unresolved rows, and the rows that the stream may bring once more.  A key is
 * Kafka's, with its topic, after routing: two tables may feed one topic.  An event
 * without a key holds nothing and is held by nothing.
 *
 * After a restart PostgreSQL sends again what was not confirmed: first, perhaps, events
 * of a key from before its first unresolved one.  These are in Kafka already (a row is
 * written only when all before it is durable) and go there again; behind the unresolved
 * one they would arrive as the last of their key.  So a key holds what entered the
 * window after its first unresolved row did, and nothing while that is still to come.
 *
 * No I/O, no clock.  docs/decisions/0015-dead-letters.md says why it is so. */
#ifndef WALRELAY_CORE_HELD_H
#define WALRELAY_CORE_HELD_H

#include "base/slice.h"
#include "core/place.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct held_limits {
    size_t per_key;   /* events of one key */
    size_t total;     /* events of all keys */
    size_t key_bytes; /* names of topics and keys */
    bool skip;        /* nothing is held, whatever is refused */
};

/* A row of the table, as it is when a stream begins. */
struct held_row {
    struct slice topic; /* absent: none could be made */
    struct slice key;
    struct place place;
    bool unresolved;
    bool comes_again; /* its transaction is not below the start of the stream */
    bool has_end;     /* the row says where its transaction ends */
};

enum held_room {
    HELD_TAKEN,
    HELD_KEY_FULL,
    HELD_TOTAL_FULL,
    HELD_NO_MEMORY, /* or key_bytes is reached */
};

struct held;

struct held *held_new(struct held_limits limits); /* NULL: no memory */
void held_free(struct held *held);

/* Rows in the order of their ids, after held_clear and before the first change is
 * routed.  0, or -1: no memory.  Limits do not count: what is in the table is held. */
int held_load(struct held *held, const struct held_row *row)
    __attribute__((warn_unused_result));
void held_clear(struct held *held);

/* Nothing to ask for: the usual case. */
bool held_is_empty(const struct held *held);

/* Has the event that the stream brings now a row already?  Then it is durable, and
 * nothing is left to do but to acknowledge it; said once for each row.  seq: what the
 * next event to enter the window is called.  *has_end: as it was loaded. */
bool held_known(struct held *held, const struct place *place, uint64_t seq, bool *has_end)
    __attribute__((warn_unused_result));

/* Must the event seq of the window go behind another, into the table?  Asked when it is
 * about to be handed to the producer. */
bool held_holds(const struct held *held, struct slice topic, struct slice key,
                uint64_t seq);

/* The event seq, refused itself or behind another, is to go into the table: what comes
 * after it is held from now on.  Anything but HELD_TAKEN: nothing has changed.  An event
 * without topic or key is always taken and holds nothing. */
enum held_room held_add(struct held *held, struct slice topic, struct slice key,
                        uint64_t seq) __attribute__((warn_unused_result));

/* One that was added is in the table.  True: no other row of its key is. */
bool held_written(struct held *held, struct slice topic, struct slice key);

/* One row of the table is resolved or discarded; with the last one the key is free.
 * Nothing if there are none. */
void held_remove(struct held *held, struct slice topic, struct slice key);

/* Somebody has changed the table.  Between begin and end each key that has unresolved
 * rows, and how many; the others have none.  What was added and is not written yet
 * counts beside them.  A key that is not held is of no interest. */
void held_recount_begin(struct held *held);
void held_recount(struct held *held, struct slice topic, struct slice key, size_t rows);
void held_recount_end(struct held *held);

size_t held_keys(const struct held *held);   /* that hold */
size_t held_events(const struct held *held); /* unresolved ones that have a key */

#endif
