/* window.h - the messages that Kafka has not acknowledged yet, in order.
 *
 * A ring of entries over a ring of bytes.  A message is copied once, compactly, when
 * it enters and stays where it lies until it leaves, so an outlet may borrow from it
 * and send it again.  Entries leave in order; one that is done early keeps its place,
 * and its bytes, until those before it are done. */
#ifndef WALRELAY_CORE_WINDOW_H
#define WALRELAY_CORE_WINDOW_H

#include "core/ledger.h"
#include "core/message.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct window;

/* Names an entry; counts up and is never reused. */
typedef uint64_t window_seq_t;

enum entry_state {
    ENTRY_QUEUED,  /* not with the outlet */
    ENTRY_SENT,    /* with the outlet */
    ENTRY_DONE,    /* acknowledged; leaves when those before it have left */
    ENTRY_REFUSED, /* for the table of dead letters; stays until it is there */
};

/* Why an event is not for Kafka. */
struct refusal {
    bool held;          /* nothing is wrong with it: it waits behind another */
    bool for_ever;      /* the row itself is wrong: no use to try again */
    const char *reason; /* a class of a few words; static */
    const char *code;   /* Kafka's name of the error; static, NULL: none */
    char *text;         /* what the peer, or we, said of it; malloc'ed, NULL: nothing */
};

/* Slices and headers live until the entry is done. */
struct entry {
    enum entry_state state;
    ticket_t ticket;
    struct slice key;
    struct slice payload;
    struct header *headers;
    size_t nheaders;
    int32_t partition; /* as in struct message */
    int64_t timestamp_ms;
    int64_t commit_ms;
    struct slice given_timestamp;
    struct slice table;
    struct slice event_id;
    struct slice event_type;
    struct slice aggregate_id;
    struct place place;
    lsn_t begin_lsn;
    uint8_t type_from; /* aggregate_type's place in the topic's name */
    uint8_t type_len;
    struct refusal refusal; /* ENTRY_REFUSED */
    size_t cost_bytes;      /* its share of the budget */

    /* the outlet's own */
    unsigned attempts; /* how often it was sent */
    void *topic;
    int32_t sent_partition;
    bool in_lane;      /* sent, by the second producer */
    bool offered;      /* to the producer: it was sent or waits in a list */
    bool doubted;      /* its partition did not exist when it was sent last */
    bool behind;       /* an earlier one of its key was tried again in vain */
    window_seq_t next; /* in a list of the outlet's */
};

/* max_bytes bounds the sum of the entries' costs: what the bytes take here and, by
 * estimate, in librdkafka.  A message of more than max_bytes / 2 fits only alone, into
 * memory that is made for it.  NULL: no memory. */
struct window *window_new(size_t max_entries, size_t max_bytes);
void window_free(struct window *window);

/* From now on the bounds are these.  What is in the window stays where it lies, in the
 * memory that was there before, until it leaves.  False, and nothing changed: it is not
 * gone yet since the last time, more entries than that are in use, or there is no memory.
 */
bool window_resize(struct window *window, size_t max_entries, size_t max_bytes);

/* Copies message.  False when there is no room now; table, header names and what
 * else message borrows from the configuration is not copied. */
bool window_add(struct window *window, const struct message *message, ticket_t ticket)
    __attribute__((warn_unused_result));

/* Entries from window_begin to before window_end; any of them may be done. */
window_seq_t window_begin(const struct window *window);
window_seq_t window_end(const struct window *window);
struct entry *window_entry(struct window *window, window_seq_t seq);

/* What an entry is, but for its topic; borrows from it. */
struct message window_message(const struct entry *entry);

/* seq is done.  Entries at the front that are done leave. */
void window_mark_done(struct window *window, window_seq_t seq);

/* The record carries the commit time instead of its timestamp column, whose text goes
 * into the header walrelay.timestamp.  False: it has none, or does so already. */
bool window_use_commit_time(struct entry *entry);

/* All entries leave, done or not.  Their bytes stay until the next window_add. */
void window_clear(struct window *window);

size_t window_max_entries(const struct window *window);
size_t window_max_bytes(const struct window *window);

/* Not done yet. */
size_t window_pending(const struct window *window);
size_t window_cost_bytes(const struct window *window);

#endif
