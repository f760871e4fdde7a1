/* sink.h - messages into Kafka, in order, and the tickets of those that are durable.
 *
 * An idempotent producer with the gapless guarantee and acks=all.  The sink owns the
 * messages that are not acknowledged.  One rule covers every failure: any failed
 * delivery report, and any produce error but a full queue, stops sending at once; the
 * producer is destroyed, a new one made, and what is not acknowledged is sent again,
 * in order.
 *
 * Nothing here blocks longer than a millisecond.  One thread owns a sink; librdkafka's
 * callbacks run in it too, inside sink_serve and sink_push. */
#ifndef WALRELAY_IO_SINK_H
#define WALRELAY_IO_SINK_H

#include "base/err.h"
#include "base/log.h"
#include "core/config.h"
#include "core/held.h"
#include "core/ledger.h"
#include "core/message.h"
#include "core/window.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink;

/* Something an operator should know: Kafka went away or came back, a topic is missing. */
typedef void (*sink_notice_t)(void *arg, enum log_level level,
                              const struct log_field *fields, const char *text);

/* An event was refused, by Kafka or by us; those that are held do not count. */
typedef void (*sink_refused_t)(void *arg, struct slice event_type);

struct sink_options {
    const struct kafka_property *properties; /* borrowed for the sink's life */
    size_t nproperties;
    uint64_t memory_bytes; /* ceiling of the unacknowledged messages; up to 32 times as
                              much, but not over 1 GB, while many topics gather */
    int64_t topic_wait_ms; /* with a table of dead letters: an event whose topic does not
                              exist, or refuses all, that long is refused; 0: it waits */
    sink_notice_t notice;
    void *notice_arg;
    sink_refused_t refused; /* NULL: nobody wants to know */
    void *refused_arg;
};

/* NULL with err set: ERR_CONFIG when librdkafka refuses a property, in its words. */
struct sink *sink_new(const struct sink_options *options, struct err *err)
    __attribute__((warn_unused_result));

/* Drops what is not acknowledged.  May take some milliseconds. */
void sink_free(struct sink *sink);

/* A ticket of none of the ledger's: the message is a row of the table of dead letters
 * that is tried again.  It is not held; if it is refused it is among what sink_refused
 * says, and so are those of its key behind it, as held. */
#define TICKET_RETRY (UINT64_C(1) << 63)

static inline bool ticket_is_retry(ticket_t ticket)
{
    return (ticket & TICKET_RETRY) != 0;
}

/* From now on an event that Kafka can never take ends nothing: it stays in the sink until
 * it is settled.  What comes after it under the same key, as held knows, stays likewise.
 * Once more than attempts failures that may be its fault are its fault.  held is
 * borrowed; NULL: such an event makes sink_serve fail. */
void sink_dead_letters(struct sink *sink, struct held *held, unsigned attempts);

/* The same as sink_put, for an event that is not for Kafka, as it was found before.
 * Copies refusal's text.  -1: ERR_POISON beyond the limits of what is held. */
int sink_refuse(struct sink *sink, const struct message *message, ticket_t ticket,
                const struct refusal *refusal, struct err *err)
    __attribute__((warn_unused_result));

/* The refused and held events that only durable ones, and themselves, are before: at most
 * max, and more than one only of less than max_bytes together, and none that is tried
 * again.  How many; they stay there until sink_settle, sink_drop or sink_free, but may be
 * elsewhere in memory after sink_put or sink_refuse. */
size_t sink_refused(const struct sink *sink, struct entry **ret, size_t max,
                    size_t max_bytes);

/* What the next event will be called that enters the sink, as held knows it. */
uint64_t sink_next(const struct sink *sink);

/* How often Kafka, or we, refused an event, those that are held not counted. */
uint64_t sink_refusals(const struct sink *sink);

/* The first n of these are in the table of dead letters: they leave.  sink_done does not
 * hand out their tickets. */
void sink_settle(struct sink *sink, size_t n);

/* What the messages take of memory_bytes. */
size_t sink_bytes(const struct sink *sink);

/* When the oldest message was committed that is not durable yet, those that are tried
 * again left out; milliseconds since 1970, 0: there is none. */
int64_t sink_oldest_ms(const struct sink *sink);

/* The topic of an entry; absent without one. */
struct slice sink_topic_of(const struct entry *entry);

/* 1: taken (copied); 0: full, try again after sink_serve; -1: err is set, ERR_POISON
 * when Kafka can never take this message, ERR_INTERNAL when there is no memory for it:
 * then the sink is as before. */
int sink_put(struct sink *sink, const struct message *message, ticket_t ticket,
             struct err *err) __attribute__((warn_unused_result));

/* What ERR_POISON of sink_put means. */
static inline struct refusal sink_put_refusal(void)
{
    return (struct refusal){.reason = "too large", .code = "MSG_SIZE_TOO_LARGE"};
}

/* One ticket of a message that became durable; false when there is none.  A ticket
 * comes once for each of its messages. */
bool sink_done(struct sink *sink, ticket_t *ret) __attribute__((warn_unused_result));

/* What was put so far should leave now rather than wait for a batch to fill.  Called
 * whenever the source has nothing more to read; does something only when nothing else
 * is under way, so that under load batches form while others travel. */
void sink_push(struct sink *sink);

/* on: nobody waits for a single message, as there is a backlog to catch up with.  Batches
 * do not fill while linger.ms lasts, and each small one costs a request.  So messages
 * gather here until most of the memory is used, and leave topic by topic. */
void sink_gather(struct sink *sink, bool on);

/* No message can follow before some are acknowledged: what gathers leaves. */
void sink_leave(struct sink *sink);

/* Reports and state changes.  -1 with err set: the process should stop. */
int sink_serve(struct sink *sink, int64_t now_ms, struct err *err)
    __attribute__((warn_unused_result));

/* For poll(2): at most SINK_FDS entries are filled; how many. */
enum { SINK_FDS = 2 };
size_t sink_fds(const struct sink *sink, struct pollfd *fds);

/* When sink_serve or sink_done has something to do without an event. */
int64_t sink_deadline(const struct sink *sink);

/* Messages whose ticket sink_done has not handed out. */
size_t sink_pending(const struct sink *sink);

/* The source is gone, and somebody else may be publishing the same by now: nothing more
 * is sent, what waits is purged, and what is under way may still be acknowledged.  When
 * nothing is under way any more, or at sink_drop, all else is forgotten. */
void sink_ebb(struct sink *sink);

/* Messages that are under way, and tickets that sink_done has not handed out. */
size_t sink_travelling(const struct sink *sink);

/* Forgets all messages, and destroys the producer so that what librdkafka still holds
 * is not sent late. */
void sink_drop(struct sink *sink);

/* Kafka answers: the last that was heard of it was good. */
bool sink_is_up(const struct sink *sink);

#endif
