/* Any frames from a server, acknowledged in any order: the way from the frame through
 * io/slot.c, core/wal2json.c, core/route.c and app/publish.c to the ledger and back to
 * the status that the server is sent.  Whatever comes, no status may name a position
 * beyond an event that is not acknowledged, none may go back, what is acknowledged is
 * told, and the window keeps what was put into it.
 *
 * The input is a script, one step a line.  S is how far the position moves on: the
 * character minus '0'.  N picks something.
 *
 *   B S   C S   K S   a transaction begins, commits; a keepalive
 *   I S N             a row of one of the tables below
 *   T S TEXT          TEXT as wal2json's
 *   R BYTES           BYTES as a frame
 *   A N               one message is acknowledged      D     all are
 *   O N               an acknowledgement of a connection that is gone
 *   X S               the connection is lost; the server stands S before the position
 */
#include "app/publish.h"
#include "base/buf.h"
#include "base/must.h"
#include "core/pgwire.h"
#include "core/window.h"
#include "io/slot.h"

#include "../perf/ends.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FRAMES_MAX = 500,
    FRAME_MAX_BYTES = 1 << 14,
    TRANSACTIONS_MAX = 4,
    MESSAGES_MAX = 16, /* the least that a window has */
    WINDOW_BYTES = 1 << 15,
    OLD_MAX = 16,
    BEGINNING = 1000, /* where the WAL is when we come */
};

/* ---- what the relay is about ------------------------------------------------------- */

static const char settings[] = "[postgres]\n"
                               "dsn = host=localhost\n"
                               "[table public.outbox]\n"
                               "headers = trace\n"
                               "[table audit.log]\n"
                               "topic = audit.{aggregate_type}\n"
                               "partition = part\n"
                               "timestamp = at\n"
                               "[kafka]\n"
                               "bootstrap.servers = localhost\n";

static char public[] = "public", outbox[] = "outbox", audit[] = "audit",
            log_1[] = "log_1";
static char id[] = "id", type[] = "aggregate_type", key[] = "aggregate_id";
static char event[] = "event_type", payload[] = "payload", trace[] = "trace";
static char part[] = "part", at[] = "at";
static char text[] = "text", integer[] = "integer", bytea[] = "bytea";
static char timestamptz[] = "timestamp with time zone";

static struct catalog_column outbox_columns[] = {
    {id, text, COLUMN_TEXT},    {type, text, COLUMN_TEXT},    {key, text, COLUMN_TEXT},
    {event, text, COLUMN_TEXT}, {payload, text, COLUMN_TEXT}, {trace, text, COLUMN_TEXT},
};
static struct catalog_column log_columns[] = {
    {id, text, COLUMN_TEXT},        {type, text, COLUMN_TEXT},
    {key, bytea, COLUMN_BYTEA},     {event, text, COLUMN_TEXT},
    {payload, bytea, COLUMN_BYTEA}, {part, integer, COLUMN_TEXT},
    {at, timestamptz, COLUMN_TEXT},
};
static struct catalog_leaf outbox_leaf = {public, outbox}, log_leaf = {audit, log_1};
static char *schemas[] = {audit};
static struct catalog_table tables[] = {
    {outbox_columns, 6, &outbox_leaf, 1, NULL, 0},
    {log_columns, 7, &log_leaf, 1, schemas, 1},
};
static const struct catalog catalog = {tables, 2, "public"};

static const char *const rows[] = {
    "\"public\",\"table\":\"outbox\",\"columns\":[{\"name\":\"id\",\"value\":\"7\"},"
    "{\"name\":\"aggregate_type\",\"value\":\"order\"},"
    "{\"name\":\"aggregate_id\",\"value\":\"k\"},"
    "{\"name\":\"event_type\",\"value\":\"paid\"},"
    "{\"name\":\"payload\",\"value\":\"{\\\"n\\\": 1}\"},"
    "{\"name\":\"trace\",\"value\":null}]}",
    "\"audit\",\"table\":\"log_1\",\"columns\":[{\"name\":\"id\",\"value\":\"7\"},"
    "{\"name\":\"aggregate_type\",\"value\":\"user\"},"
    "{\"name\":\"aggregate_id\",\"value\":\"6b\"},"
    "{\"name\":\"event_type\",\"value\":\"seen\"},"
    "{\"name\":\"payload\",\"value\":\"00ff41\"},{\"name\":\"part\",\"value\":2},"
    "{\"name\":\"at\",\"value\":\"2026-11-30 09:31:34.24+00\"}]}",
    /* a partition that is younger than the catalog */
    "\"audit\",\"table\":\"log_2\",\"columns\":[{\"name\":\"id\",\"value\":\"7\"},"
    "{\"name\":\"aggregate_type\",\"value\":\"user\"},"
    "{\"name\":\"aggregate_id\",\"value\":null},"
    "{\"name\":\"event_type\",\"value\":\"seen\"},"
    "{\"name\":\"payload\",\"value\":null},{\"name\":\"part\",\"value\":0},"
    "{\"name\":\"at\",\"value\":null}]}",
    "\"public\",\"table\":\"orders\",\"columns\":[{\"name\":\"id\",\"value\":1}]}",
};

/* ---- the outlet: a window whose messages are acknowledged by the script -------------
 */

struct note {
    lsn_t bound; /* the largest position that does not cover the message */
    uint64_t sum;
};

struct sink {
    struct window *window;
    struct note notes[MESSAGES_MAX]; /* by sequence number */
    ticket_t old[OLD_MAX];           /* of connections that are gone */
    size_t nold;
    lsn_t bound; /* that of the open transaction */
};

static uint64_t mix(uint64_t sum, struct slice s)
{
    sum = (sum ^ (s.ptr ? s.len + 1 : 0)) * UINT64_C(1099511628211);
    for (size_t i = 0; s.ptr && i < s.len; i++)
        sum = (sum ^ (unsigned char)s.ptr[i]) * UINT64_C(1099511628211);
    return sum;
}

static uint64_t sum_of(struct slice a, struct slice b, const struct header *headers,
                       size_t n)
{
    uint64_t sum = mix(mix(1, a), b);

    for (size_t i = 0; i < n; i++)
        sum = mix(mix(sum, headers[i].name), headers[i].value);
    return sum;
}

int sink_put(struct sink *sink, const struct message *m, ticket_t ticket, struct err *err)
{
    window_seq_t seq = window_end(sink->window);

    (void)err;
    must(m->topic.len > 0);
    if (!window_add(sink->window, m, ticket))
        return 0;
    must(window_end(sink->window) - window_begin(sink->window) <= MESSAGES_MAX);
    sink->notes[seq % MESSAGES_MAX] =
        (struct note){sink->bound, sum_of(m->key, m->payload, m->headers, m->nheaders)};
    return 1;
}

void sink_leave(struct sink *sink)
{
    (void)sink;
}

/* There is no table of dead letters here. */
int sink_refuse(struct sink *sink, const struct message *m, ticket_t ticket,
                const struct refusal *refusal, struct err *err)
{
    (void)sink;
    (void)m;
    (void)ticket;
    (void)refusal;
    (void)err;
    abort();
}

uint64_t sink_next(const struct sink *sink)
{
    return window_end(sink->window);
}

static void acknowledge(struct sink *sink, struct ledger *ledger, window_seq_t seq)
{
    struct entry *e = window_entry(sink->window, seq);
    ticket_t ticket = e->ticket;

    if (e->state == ENTRY_DONE)
        return;
    must(sum_of(e->key, e->payload, e->headers, e->nheaders) ==
         sink->notes[seq % MESSAGES_MAX].sum);
    e->state = ENTRY_SENT;
    window_mark_done(sink->window, seq);
    ledger_ack(ledger, ticket);
}

/* The Nth of those in the window. */
static void acknowledge_one(struct sink *sink, struct ledger *ledger, unsigned n)
{
    size_t many = (size_t)(window_end(sink->window) - window_begin(sink->window));

    if (many > 0)
        acknowledge(sink, ledger, window_begin(sink->window) + n % many);
}

static void acknowledge_all(struct sink *sink, struct ledger *ledger)
{
    while (window_pending(sink->window) > 0)
        acknowledge(sink, ledger, window_begin(sink->window));
}

/* As sink_drop, but some acknowledgements still come. */
static void drop(struct sink *sink)
{
    for (window_seq_t seq = window_begin(sink->window); seq != window_end(sink->window);
         seq++) {
        const struct entry *e = window_entry(sink->window, seq);

        if (e->state != ENTRY_DONE)
            sink->old[sink->nold++ % OLD_MAX] = e->ticket;
    }
    window_clear(sink->window);
}

/* ---- the relay, as in app/relay_stream.c and app/relay_connect.c --------------------
 */

struct relay {
    const struct config *config;
    struct frames *frames; /* those of this connection */
    struct pg *pg;
    struct source *source;
    struct publisher publisher;
    struct sink sink;
    struct change change;
    bool has_change;
    bool typed;
    int64_t now_ms;

    /* what the server has said on this connection */
    lsn_t at;        /* where the script is in the WAL */
    lsn_t read;      /* the largest position up to which we have seen everything */
    lsn_t committed; /* the end of the last transaction */
    lsn_t told;
};

static void check_bound(const struct relay *relay, lsn_t position)
{
    const struct sink *sink = &relay->sink;

    must(position <= relay->read);
    if (ledger_open(relay->publisher.ledger))
        must(position <= sink->bound);
    for (window_seq_t seq = window_begin(sink->window); seq != window_end(sink->window);
         seq++) {
        if (window_entry(sink->window, seq)->state != ENTRY_DONE)
            must(position <= sink->notes[seq % MESSAGES_MAX].bound);
    }
}

static void check(struct relay *relay)
{
    lsn_t flushed = ledger_flushed(relay->publisher.ledger);
    struct slice status = ends_told(relay->pg);
    lsn_t told = 0;

    for (int i = 9; i < 17; i++) /* see pgwire.c */
        told = told << 8 | (unsigned char)status.ptr[i];
    check_bound(relay, flushed);
    must(told <= flushed && told >= relay->told);
    relay->told = told;
    if (window_pending(relay->sink.window) == 0 && !ledger_open(relay->publisher.ledger))
        must(flushed >= relay->committed &&
             ledger_in_flight(relay->publisher.ledger) == 0);
}

static void connect(struct relay *relay, lsn_t start)
{
    static const struct encoding utf8 = {.kind = ENCODING_UTF8};
    struct slot_options options = {.name = "s",
                                   .start = start,
                                   .answer_within_ms = INT64_MAX / 2,
                                   .typed = relay->typed,
                                   .catalog = &catalog,
                                   .encoding = &utf8};
    struct err err = {0};

    relay->frames->n = 0;
    relay->pg = ends_pg(relay->frames);
    relay->publisher.router = router_new(
        relay->config, &catalog, (struct router_options){.typed = relay->typed}, &err);
    relay->source = slot_open(relay->pg, &options, relay->now_ms, &err);
    must(relay->publisher.router && relay->source);
    ledger_restart(relay->publisher.ledger, start);
    relay->at = relay->read = relay->committed = start;
    relay->told = LSN_NONE;
}

static void disconnect(struct relay *relay)
{
    source_free(relay->source);
    relay->has_change = false;
    publish_forget(&relay->publisher);
    router_free(relay->publisher.router);
    drop(&relay->sink);
    for (size_t i = 0; i < relay->frames->n; i++)
        free((char *)(uintptr_t)relay->frames->all[i].ptr);
}

static void lose(struct relay *relay, lsn_t back)
{
    lsn_t start = ledger_flushed(relay->publisher.ledger);

    disconnect(relay);
    connect(relay, back < start ? start - back : 1);
}

/* What the change in hand says about positions, once it has been dealt with. */
static void note(struct relay *relay)
{
    const struct change *change = &relay->change;

    if (change->kind == CHANGE_BEGIN)
        relay->sink.bound = relay->read;
    if (change->kind == CHANGE_COMMIT && change->lsn > relay->committed)
        relay->committed = change->lsn;
    if ((change->kind == CHANGE_COMMIT || change->kind == CHANGE_IDLE) &&
        change->lsn > relay->read)
        relay->read = change->lsn;
}

/* True: dealt with, or to be tried again at once. */
static bool publish_change(struct relay *relay)
{
    struct err err = {0};

    switch (publish(&relay->publisher, &relay->change, 1796030102500, &err)) {
    case PUBLISHED:
        relay->has_change = false;
        note(relay);
        return true;
    case PUBLISH_FULL:
        return false;
    case PUBLISH_UNKNOWN:
        must(router_pass(relay->publisher.router, relay->change.schema,
                         relay->change.table, INT64_MAX) == 0);
        return true; /* the same again */
    case PUBLISH_NEED_TYPES:
        must(!relay->typed);
        relay->typed = true;
        break;
    case PUBLISH_BEHIND:
        must(relay->change.lsn < ledger_flushed(relay->publisher.ledger));
        lose(relay, 1);
        return false;
    case PUBLISH_FAILED:
        must(err.class == ERR_POISON && err.text[0]);
        acknowledge_all(&relay->sink, relay->publisher.ledger);
        check(relay);
        break;
    }
    lose(relay, 0);
    return false;
}

/* False: there is none, or the connection was lost. */
static bool get_change(struct relay *relay)
{
    struct err err = {0};
    int rc = source_next(relay->source, relay->now_ms, &relay->change, &err);

    relay->has_change = rc == 1;
    if (rc < 0) {
        must(err.class == ERR_POISON || err.class == ERR_INTERNAL);
        lose(relay, 0);
    }
    return rc == 1;
}

static void turn(struct relay *relay)
{
    struct err err = {0};

    relay->now_ms += 1000;
    while ((relay->has_change || get_change(relay)) && publish_change(relay))
        check(relay);
    must(source_confirm(relay->source, ledger_flushed(relay->publisher.ledger),
                        CONFIRM_OWN, !relay->has_change, relay->now_ms, &err) == 0);
    check(relay);
}

/* ---- the script -------------------------------------------------------------------- */

static void add_number(struct buf *out, uint64_t v)
{
    for (int shift = 56; shift >= 0; shift -= 8)
        buf_add_char(out, (char)(unsigned char)(v >> shift));
}

static void add_frame(struct relay *relay, struct buf *out)
{
    must(!out->failed);
    if (relay->frames->n == FRAMES_MAX) {
        buf_done(out);
        return;
    }
    relay->frames->all[relay->frames->n++] = (struct slice){out->ptr, out->len};
}

static void begin_data(struct relay *relay, struct buf *out)
{
    buf_add_char(out, 'w');
    add_number(out, relay->at);
    add_number(out, relay->at);
    add_number(out, 42);
}

static void keepalive(struct relay *relay, struct buf *out)
{
    buf_add_char(out, 'k');
    add_number(out, relay->at);
    add_number(out, 42);
    buf_add_char(out, 0);
}

/* step without its first character. */
static void send(struct relay *relay, char kind, struct slice step)
{
    static const char stamp[] = ",\"timestamp\":\"2026-11-30 09:31:34.243247+00\"";
    struct slice rest = step.len > 0 ? (struct slice){step.ptr + 1, step.len - 1} : step;
    unsigned n = rest.len > 0 ? (unsigned char)rest.ptr[0] : 0;
    struct buf out;

    buf_init(&out, FRAME_MAX_BYTES);
    if (kind != 'R' && step.len > 0)
        relay->at += (lsn_t)(step.ptr[0] - '0');
    if (kind == 'R')
        buf_add(&out, step);
    else if (kind == 'K')
        keepalive(relay, &out);
    else
        begin_data(relay, &out);
    if (kind == 'T')
        buf_add(&out, rest);
    else if (kind == 'B' || kind == 'C')
        buf_printf(&out, "{\"action\":\"%c\"%s}", kind, stamp);
    else if (kind == 'I')
        buf_printf(&out, "{\"action\":\"I\"%s,\"schema\":%s", stamp,
                   rows[n % (sizeof(rows) / sizeof(rows[0]))]);
    add_frame(relay, &out);
}

static void run_step(struct relay *relay, char kind, struct slice step)
{
    struct ledger *ledger = relay->publisher.ledger;
    unsigned n = step.len > 0 ? (unsigned char)step.ptr[0] - '0' : 0;

    if (kind == 'A')
        acknowledge_one(&relay->sink, ledger, n);
    else if (kind == 'D')
        acknowledge_all(&relay->sink, ledger);
    else if (kind == 'O' && relay->sink.nold > 0)
        ledger_ack(ledger,
                   relay->sink.old[n % (relay->sink.nold < OLD_MAX ? relay->sink.nold
                                                                   : OLD_MAX)]);
    else if (kind == 'X')
        lose(relay, n & 0xff);
    else if (strchr("BCKITR", kind) && step.len < FRAME_MAX_BYTES / 2)
        send(relay, kind, step);
    turn(relay);
}

static void run(struct relay *relay, const char *script, size_t size)
{
    const char *end = script + size;

    while (script < end) {
        const char *stop = memchr(script, '\n', (size_t)(end - script));

        if (!stop)
            stop = end;
        if (stop > script && *script)
            run_step(relay, *script,
                     (struct slice){script + 1, (size_t)(stop - script) - 1});
        script = stop + 1;
    }
    while (relay->has_change) { /* full: there is always something to wait for */
        must(window_pending(relay->sink.window) > 0);
        acknowledge_all(&relay->sink, relay->publisher.ledger);
        turn(relay);
    }
    acknowledge_all(&relay->sink, relay->publisher.ledger);
    turn(relay);
}

/* Read once: it takes longer than a script. */
static const struct config *configuration(void)
{
    static const char *const no_environment[] = {NULL};
    static struct config *config;
    struct err err = {0};

    if (!config)
        config = config_parse("settings", slice_of(settings), no_environment, &err);
    must(config);
    return config;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct frames frames;
    struct relay relay = {.config = configuration(), .frames = &frames};

    relay.sink.window = window_new(MESSAGES_MAX, WINDOW_BYTES);
    relay.publisher.ledger = ledger_new(TRANSACTIONS_MAX, LSN_NONE);
    relay.publisher.sink = &relay.sink;
    must(relay.sink.window && relay.publisher.ledger);
    connect(&relay, BEGINNING);
    run(&relay, (const char *)data, size);
    disconnect(&relay);
    ledger_free(relay.publisher.ledger);
    window_free(relay.sink.window);
    return 0;
}
