/* path.c - the walk of an event through the relay, without libpq and librdkafka, for
 * path.py to count its instructions.  Prints how many events those were. */
#include "app/publish.h"
#include "base/clock.h"
#include "base/must.h"
#include "core/config.h"
#include "io/slot.h"

#include "ends.h"
#include "frames.h"

#include <stdio.h>

enum {
    CHANGES_PER_TURN = 512, /* as in app/relay_stream.c */
    MAX_TRANSACTIONS = 32768,
    ANSWER_WITHIN_MS = 60000,
};

struct relay {
    struct source *source;
    struct publisher publisher;
    int64_t now_ms;
};

void walk(struct relay *relay);

static void stop(const char *doing, const struct err *err)
{
    fprintf(stderr, "%s: %s\n", doing, err->text);
    abort();
}

/* ---- the loop, as in app/relay.c and app/relay_stream.c ---------------------------- */

static void take_acks(struct relay *relay)
{
    struct err err = {0};
    ticket_t ticket;

    if (sink_serve(relay->publisher.sink, relay->now_ms, &err) != 0)
        stop("sink_serve", &err);
    while (sink_done(relay->publisher.sink, &ticket))
        ledger_ack(relay->publisher.ledger, ticket);
}

/* False: there is none. */
static bool take_change(struct relay *relay)
{
    struct change change;
    struct err err;
    int rc;

    err_clear(&err);
    rc = source_next(relay->source, relay->now_ms, &change, &err);
    if (rc < 0)
        stop("source_next", &err);
    if (rc == 0)
        return false;
    if (publish(&relay->publisher, &change, relay->now_ms, &err) != PUBLISHED)
        stop("publish", &err);
    return true;
}

/* False: there are no more. */
static bool take_changes(struct relay *relay, size_t limit)
{
    for (size_t i = 0; i < limit; i++) {
        if (!take_change(relay))
            return false;
    }
    return true;
}

static void confirm(struct relay *relay)
{
    struct err err = {0};

    if (source_confirm(relay->source, ledger_flushed(relay->publisher.ledger),
                       CONFIRM_OWN, true, relay->now_ms, &err) != 0)
        stop("source_confirm", &err);
}

static bool turn(struct relay *relay, size_t limit)
{
    bool more;

    relay->now_ms++;
    take_acks(relay);
    more = take_changes(relay, limit);
    confirm(relay);
    return more;
}

/* The first transaction: Kafka's partitions are not known yet, and much waits. */
static void warm_up(struct relay *relay)
{
    (void)turn(relay, FRAMES);
    while (sink_pending(relay->publisher.sink) > 0)
        (void)turn(relay, 0);
}

/* What is counted.  Not static and never inlined: path.py names it. */
__attribute__((noinline)) void walk(struct relay *relay)
{
    while (turn(relay, CHANGES_PER_TURN) || sink_pending(relay->publisher.sink) > 0) {
    }
}

/* ---- before and after -------------------------------------------------------------- */

static const char settings[] = "[postgres]\n"
                               "dsn = host=localhost\n"
                               "[table public.outbox_events]\n"
                               "[kafka]\n"
                               "bootstrap.servers = localhost\n";

static char schema[] = "public";
static char table[] = "outbox_events";
static char columns[][2][32] = {
    {"id", "uuid"},
    {"aggregate_type", "text"},
    {"aggregate_id", "text"},
    {"event_type", "text"},
    {"payload", "jsonb"},
    {"attempts", "integer"},
    {"created_at", "timestamp with time zone"},
    {"processed_at", "timestamp with time zone"},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]) };

/* What the server says of sql/outbox_events.sql's table. */
struct tables {
    struct catalog_column columns[COLUMNS];
    struct catalog_leaf leaf;
    struct catalog_table table;
    struct catalog catalog;
};

static void describe(struct tables *ret)
{
    for (size_t i = 0; i < COLUMNS; i++)
        ret->columns[i] =
            (struct catalog_column){columns[i][0], columns[i][1], COLUMN_TEXT};
    ret->leaf = (struct catalog_leaf){schema, table};
    ret->table = (struct catalog_table){
        .columns = ret->columns, .ncolumns = COLUMNS, .leaves = &ret->leaf, .nleaves = 1};
    ret->catalog = (struct catalog){.tables = &ret->table, .ntables = 1};
}

static void on_notice(void *arg, enum log_level level, const struct log_field *fields,
                      const char *text)
{
    (void)arg, (void)level, (void)fields;
    fprintf(stderr, "%s\n", text);
}

static void open_relay(struct relay *relay, const struct config *config,
                       const struct tables *tables, const struct frames *frames)
{
    static const struct encoding utf8 = {.kind = ENCODING_UTF8};
    struct sink_options sink = {.memory_bytes = config->relay.memory_bytes,
                                .notice = on_notice};
    struct slot_options slot = {.name = config->postgres.slot,
                                .answer_within_ms = ANSWER_WITHIN_MS,
                                .catalog = &tables->catalog,
                                .encoding = &utf8};
    struct publisher *p = &relay->publisher;
    struct err err = {0};

    relay->now_ms = clock_mono_ms();
    p->router = router_new(config, &tables->catalog, (struct router_options){0}, &err);
    p->ledger = ledger_new(MAX_TRANSACTIONS, LSN_NONE);
    p->sink = sink_new(&sink, &err);
    p->held = held_new((struct held_limits){1, 1, 1, false}); /* nothing is held */
    relay->source = slot_open(ends_pg(frames), &slot, relay->now_ms, &err);
    if (!p->router || !p->ledger || !p->sink || !p->held || !relay->source)
        stop("open", &err);
    sink_dead_letters(p->sink, p->held, 1);
}

static void close_relay(struct relay *relay)
{
    source_free(relay->source);
    sink_free(relay->publisher.sink);
    held_free(relay->publisher.held);
    ledger_free(relay->publisher.ledger);
    router_free(relay->publisher.router);
}

/* Did everything that went in come out, unescaped? */
static void check(const struct relay *relay, const struct frames *frames)
{
    struct ends_sent sent = ends_sent();

    must(sent.messages == EVENTS && sent.payload_bytes == EVENTS * PAYLOAD_BYTES);
    must(sent.headers == 2 * EVENTS); /* id and type */
    must(ledger_flushed(relay->publisher.ledger) == frames->end);
}

int main(void)
{
    static const char *const no_environment[] = {NULL};
    struct err err = {0};
    struct config *config =
        config_parse("settings", slice_of(settings), no_environment, &err);
    struct frames *frames = frames_new();
    struct tables tables;
    struct relay relay = {0};

    if (!config)
        stop("config_parse", &err);
    describe(&tables);
    open_relay(&relay, config, &tables, frames);
    warm_up(&relay);
    walk(&relay);
    check(&relay, frames);
    close_relay(&relay);
    frames_free(frames);
    config_free(config);
    printf("%d\n", EVENTS - ROWS);
    return 0;
}
