/* source.h - where changes come from: one connection to something that tells, in commit
 * order, what was inserted, and can be told how much of that it may forget.
 *
 * A source lives as long as its connection.  After any error it is freed, and the relay
 * opens the next one at the position that the ledger has reached.  Nothing here blocks.
 */
#ifndef WALRELAY_IO_SOURCE_H
#define WALRELAY_IO_SOURCE_H

#include "base/err.h"
#include "base/lsn.h"
#include "core/change.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

struct source;

/* Why the position moved since it was last told. */
enum confirm_urgency {
    CONFIRM_OTHERS,  /* only what is none of our business went by */
    CONFIRM_OWN,     /* messages of ours became durable, others are under way */
    CONFIRM_DRAINED, /* the last message of ours became durable */
};

struct source_ops {
    int (*next)(struct source *, int64_t now_ms, struct change *, struct err *);
    int (*read)(struct source *, struct err *);
    struct pollfd (*fd)(const struct source *, bool reading);
    int64_t (*deadline)(const struct source *);
    int (*confirm)(struct source *, lsn_t flushed, enum confirm_urgency, bool reading,
                   int64_t now_ms, struct err *);
    bool (*suspect)(struct source *);
    bool (*is_silent)(const struct source *);
    int (*end)(struct source *, lsn_t flushed, int64_t now_ms, struct err *);
    bool (*ended)(const struct source *);
    lsn_t (*received)(const struct source *);
    void (*free)(struct source *);
};

/* The first member of every implementation. */
struct source {
    const struct source_ops *ops;
};

/* 1: *ret is the next change, which lives until the next call; 0: nothing complete has
 * arrived; -1: the connection is gone or broken, see err. */
static inline int source_next(struct source *source, int64_t now_ms, struct change *ret,
                              struct err *err)
{
    return source->ops->next(source, now_ms, ret, err);
}

/* Reads what has arrived; called when poll(2) says so, after source_next gave 0. */
static inline int source_read(struct source *source, struct err *err)
{
    return source->ops->read(source, err);
}

/* What to poll for.  reading: false while there is no room for changes. */
static inline struct pollfd source_fd(const struct source *source, bool reading)
{
    return source->ops->fd(source, reading);
}

/* When source_confirm has something to do without an event. */
static inline int64_t source_deadline(const struct source *source)
{
    return source->ops->deadline(source);
}

/* Called every turn of the loop: what lies below flushed is durable.  The source decides
 * when to say so: it keeps the connection alive, answers what the other side asks, and
 * finds out when that does not answer.  reading: as in source_fd. */
static inline int source_confirm(struct source *source, lsn_t flushed,
                                 enum confirm_urgency urgency, bool reading,
                                 int64_t now_ms, struct err *err)
{
    return source->ops->confirm(source, flushed, urgency, reading, now_ms, err);
}

/* Since the last call the other side behaved as one that shuts down and waits for us. */
static inline bool source_suspect(struct source *source)
{
    return source->ops->suspect(source);
}

/* source_confirm failed because the other side did not answer in time. */
static inline bool source_is_silent(const struct source *source)
{
    return source->ops->is_silent(source);
}

/* Tells flushed for the last time and that nothing follows; go on with source_read and
 * source_next, which discard, until source_ended.  Closing before would lose it. */
static inline int source_end(struct source *source, lsn_t flushed, int64_t now_ms,
                             struct err *err)
{
    return source->ops->end(source, flushed, now_ms, err);
}

static inline bool source_ended(const struct source *source)
{
    return source->ops->ended(source);
}

/* The largest position that the other side has named; LSN_NONE: none yet. */
static inline lsn_t source_received(const struct source *source)
{
    return source->ops->received(source);
}

static inline void source_free(struct source *source)
{
    if (source)
        source->ops->free(source);
}

#endif
