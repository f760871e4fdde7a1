/* relay_state.h - what the files of the relay share; nobody else includes it.
 *
 *   relay.c          the loop, and its only poll()
 *   relay_connect.c  CONNECTING, STANDBY, WAITING; a stream begins, a stream is lost
 *   relay_stream.c   STREAMING: changes in, positions out
 *   relay_family.c   STREAMING: a row of a table that was made meanwhile
 *   relay_watch.c    STREAMING: is everything on the server still as it must be?
 *   relay_memo.c     STREAMING: the position is written down before it is told
 *   relay_letters.c  STREAMING, DRAINING: what Kafka does not take, into its table
 *   relay_retry.c    STREAMING: from there to Kafka after all
 *   relay_metrics.c  what it says of itself, in every phase
 *   relay_stop.c     DRAINING, ENDING
 *
 *   CONNECTING ──> STREAMING ──> DRAINING ──> ENDING ──> STOPPED
 *     │   ^ │          │        signal, or     last position
 *     │   │ └─STANDBY  │        an event that  told, CopyDone
 *     v   │            v        cannot be      sent
 *     WAITING <────────┘        published
 *            connection lost
 *
 * Signals and the sink are served in every phase. */
#ifndef WALRELAY_APP_RELAY_STATE_H
#define WALRELAY_APP_RELAY_STATE_H

#include "app/connection.h"
#include "app/family.h"
#include "app/memo_row.h"
#include "app/publish.h"
#include "base/err.h"
#include "core/backoff.h"
#include "core/history.h"
#include "core/ledger.h"
#include "core/metrics.h"
#include "io/httpd.h"
#include "io/job.h"
#include "io/lane.h"
#include "io/sink.h"
#include "io/source.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

enum relay_phase { CONNECTING, STANDBY, WAITING, STREAMING, DRAINING, ENDING, STOPPED };

/* Is the server shutting down?  Asked in a job. */
struct ping {
    struct job *job;
    const char *dsn;
    bool awaited; /* the stream that it was for is still there */
    bool rejected;
    int64_t at_ms;
};

/* Whose is the table of the change in hand? */
struct inquiry {
    struct family family;
    struct job *job;
    bool awaited; /* false: the stream that asked is gone */
};

/* The checks of the server, again. */
struct watch {
    const struct config *config;
    struct job *job;
    struct server *server; /* what they found, or NULL with err set */
    struct err err;
    int64_t at_ms; /* the next time */
    bool awaited;  /* false: the stream that asked is gone */
};

/* What is written down of the slot, see core/memo.h. */
struct memo_keeper {
    struct memo_gate gate;
    struct memo_writer writer;
    struct job *job;
    bool kept; /* false: no stream, or no table to keep it in */
    int64_t written_ms;
    int64_t at_ms;      /* not before */
    int64_t failing_ms; /* since then it cannot be written; 0: it can */
    bool told;          /* that it is not kept, once */
};

struct relay {
    const struct config *config;
    const char *config_path;
    int64_t shutdown_timeout_ms;
    enum relay_phase phase;
    int signal_fd;
    struct sink *sink;
    struct ledger *ledger;
    struct publisher publisher;

    /* connecting */
    struct connection connection;
    struct job *job;
    struct backoff backoff;
    int64_t wait_until_ms;
    int64_t look_ms;
    struct history history; /* of the connection before */
    int64_t patience_ms;    /* for an answer of the server */
    bool typed;             /* a payload was ambiguous without types */

    /* streaming */
    struct source *source;
    lsn_t reached;        /* only a position beyond that is progress */
    struct change change; /* in hand */
    bool has_change;
    bool drained; /* the last turn found nothing to read */
    bool behind;  /* catching up: latency is lost already, large batches are worth more */
    int64_t nap_until_ms; /* what arrives meanwhile is read then, together */
    int64_t wall_ms;      /* when this turn began to read */
    bool acked;           /* since the position was handed to the source; room was made */
    struct ping ping;
    struct inquiry inquiry;
    struct watch watch;
    struct memo_keeper memo;
    struct letters *letters; /* NULL: on_poison = stop */

    /* what the metrics count */
    struct metrics *metrics; /* NULL: nobody listens */
    struct httpd *httpd;
    uint64_t start_ms; /* since 1970 */
    uint64_t published;
    uint64_t reconnects;
    uint64_t timestamps_replaced; /* by routers that are gone */

    /* stopping */
    bool stop;
    bool sink_failed; /* nothing more will be acknowledged */
    int64_t stop_by_ms;
    struct err failure; /* why, if not by signal */

    char told[ERR_TEXT_MAX]; /* the last trouble */
    int64_t told_ms;
    int64_t now_ms;
};

/* relay.c: a warning, once per change of state and once a minute while it lasts. */
void relay_tell(struct relay *relay, const struct err *err);

/* What a producer has to say, as a line. */
void relay_notice(void *arg, enum log_level level, const struct log_field *fields,
                  const char *text);

/* relay_connect.c */
uint64_t relay_random(const struct relay *relay); /* for jitter */
void relay_connect(struct relay *relay);
void relay_serve_connecting(struct relay *relay);
/* The stream, or the attempt to open one, failed: goes on with the next attempt in
 * at_least_ms or more, or stops if err is not one that passes. */
void relay_lost(struct relay *relay, const struct err *err, int64_t at_least_ms);
int64_t relay_connect_deadline(const struct relay *relay);
/* The server needs more time for an answer than it had. */
void relay_be_patient(struct relay *relay);
/* The position moves: what failed before has passed. */
void relay_forgive(struct relay *relay);
void relay_close_stream(struct relay *relay);

/* relay_stream.c */
/* Whether changes are taken now: back-pressure is that they are not. */
bool relay_is_reading(const struct relay *relay);
/* Whether poll(2) should tell when more arrives. */
bool relay_awaits_input(const struct relay *relay);
void relay_serve_stream(struct relay *relay);
void relay_serve_ping(struct relay *relay);
/* Reads what the source's connection has.  False: it was lost, and that is dealt with. */
bool relay_read_source(struct relay *relay);
int64_t relay_stream_deadline(const struct relay *relay);

/* relay_family.c */
/* The change in hand is of a table that the router does not know: finds out whose it is,
 * while the change stays in hand. */
void relay_inquire(struct relay *relay);
void relay_serve_inquiry(struct relay *relay);

/* relay_watch.c */
void relay_serve_watch(struct relay *relay);
int64_t relay_watch_deadline(const struct relay *relay);
void relay_watch_now(struct relay *relay);
void relay_watch_later(struct relay *relay); /* all has just been checked */
/* Each of what the checks warn of is a line. */
void relay_warn(const struct server *server);

/* relay_memo.c */
void relay_memo_begin(struct relay *relay); /* a stream begins */
void relay_serve_memo(struct relay *relay);
/* How far the slot may be told now: the flushed position, or what was told before while
 * the memo is being written. */
lsn_t relay_tellable(struct relay *relay);
/* Everything that is flushed may be told, or never will be. */
bool relay_memo_is_settled(const struct relay *relay);
int64_t relay_memo_deadline(const struct relay *relay);

/* relay_letters.c */
int relay_letters_open(struct relay *relay, struct err *err)
    __attribute__((warn_unused_result));
void relay_letters_close(struct relay *relay);
/* Is there still a table, if there was one?  Without it what follows a dead letter would
 * overtake that. */
int relay_letters_look(const struct relay *relay, struct err *err)
    __attribute__((warn_unused_result));
void relay_letters_begin(struct relay *relay, int walsender_pid, lsn_t from);
void relay_letters_end(struct relay *relay); /* the stream is over */
void relay_serve_letters(struct relay *relay);
/* May changes be taken?  Not before it is known what the table holds. */
bool relay_letters_ready(const struct relay *relay);
/* Nothing is under way that a ticket waits for. */
bool relay_letters_settled(const struct relay *relay);
void relay_letters_reset(struct relay *relay); /* somebody says that all is mended */
/* A message of the table's is in Kafka, see TICKET_RETRY. */
void relay_letters_arrived(struct relay *relay, ticket_t ticket);
enum { LETTERS_FDS = 1 + LANE_FDS };
size_t relay_letters_fds(const struct relay *relay, struct pollfd *fds);
void relay_letters_polled(struct relay *relay, const struct pollfd *fd);
int64_t relay_letters_deadline(const struct relay *relay);

/* relay_metrics.c */
int relay_metrics_open(struct relay *relay, struct err *err)
    __attribute__((warn_unused_result));
void relay_metrics_close(struct relay *relay);
/* An event of that type was refused; arg is the relay, see sink_refused_t. */
void relay_metrics_refused(void *arg, struct slice event_type);
enum { METRICS_FDS = 1 };
size_t relay_metrics_fds(const struct relay *relay, struct pollfd *fds);
void relay_metrics_polled(const struct relay *relay, const struct pollfd *fd);
void relay_serve_metrics(struct relay *relay);
int64_t relay_metrics_deadline(const struct relay *relay);

/* relay_stop.c */
/* No more changes are taken; what is under way gets shutdown_timeout. */
void relay_drain(struct relay *relay);
/* The same because of err, with which relay_run will end. */
void relay_stop_with(struct relay *relay, const struct err *err);
void relay_serve_draining(struct relay *relay);
void relay_serve_ending(struct relay *relay);

#endif
