/* relay_metrics.c - what the relay says of itself; see relay_state.h.
 *
 * Most numbers are looked up when somebody asks for them: only what would be gone by then
 * is counted on the way. */
#include "app/letters.h"
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/resident.h"

/* ---- numbers ---------------------------------------------------------------------- */

/* Clocks of two machines may differ. */
static uint64_t or_zero(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

static void set_stream(struct relay *relay)
{
    struct metrics *m = relay->metrics;
    lsn_t received = source_received(relay->source);
    lsn_t flushed = ledger_flushed(relay->ledger);
    int64_t oldest_ms = sink_oldest_ms(relay->sink);

    if (received != LSN_NONE)
        metrics_set(m, METRIC_RECEIVED_LSN, received);
    metrics_set(m, METRIC_FLUSHED_LSN, flushed);
    metrics_set(m, METRIC_LAG_BYTES, received > flushed ? received - flushed : 0);
    metrics_set(m, METRIC_LAG_MS,
                oldest_ms > 0 ? or_zero(clock_wall_us() / 1000 - oldest_ms) : 0);
}

static void forget(struct metrics *m, enum metric first, enum metric last)
{
    for (enum metric i = first; i <= last; i++)
        metrics_forget(m, i);
}

static void set_tally(struct relay *relay)
{
    const struct tally *t = &relay->letters->tally;
    struct metrics *m = relay->metrics;
    int64_t n = t->waiting + t->held + t->dead;

    metrics_set(m, METRIC_WAITING, or_zero(t->waiting));
    metrics_set(m, METRIC_HELD, or_zero(t->held));
    metrics_set(m, METRIC_DEAD, or_zero(t->dead));
    metrics_set(m, METRIC_OLDEST_MS, n > 0 ? or_zero(relay->now_ms - t->oldest_ms) : 0);
}

/* While the connection is made anew it is the last that was known; what another relay
 * makes of the table is that one's to tell. */
static void set_letters(struct relay *relay)
{
    struct letters *l = relay->letters;
    struct metrics *m = relay->metrics;

    if (relay->phase == STANDBY) {
        l->tally.known = false;
        forget(m, METRIC_WAITING, METRIC_HELD_KEYS);
    }
    if (l->tally.known)
        set_tally(relay);
    if (l->loaded)
        metrics_set(m, METRIC_HELD_KEYS, held_keys(l->held));
    metrics_set(m, METRIC_BREAKER_OPEN, breaker_is_open(l->breaker));
}

static void set_process(struct relay *relay)
{
    struct metrics *m = relay->metrics;
    uint64_t resident = resident_bytes();

    metrics_set(m, METRIC_BUILD, 1);
    metrics_set(m, METRIC_START_MS, relay->start_ms);
    metrics_set(m, METRIC_CPU_MS, or_zero(clock_cpu_ms()));
    if (resident > 0)
        metrics_set(m, METRIC_RESIDENT_BYTES, resident);
}

static void set_sink(struct relay *relay)
{
    struct metrics *m = relay->metrics;

    metrics_set(m, METRIC_PUBLISHED, relay->published);
    metrics_set(m, METRIC_PENDING, sink_pending(relay->sink));
    metrics_set(m, METRIC_PENDING_BYTES, sink_bytes(relay->sink));
}

static void page(void *arg, struct buf *page)
{
    struct relay *relay = arg;
    struct metrics *m = relay->metrics;
    struct router *router = relay->publisher.router;

    metrics_set(m, METRIC_STREAMING, relay->source != NULL);
    metrics_set(m, METRIC_RECONNECTS, relay->reconnects);
    metrics_set(m, METRIC_TIMESTAMPS_REPLACED,
                relay->timestamps_replaced +
                    (router ? router_timestamps_replaced(router) : 0));
    set_process(relay);
    set_sink(relay);
    if (relay->source)
        set_stream(relay);
    else
        forget(m, METRIC_RECEIVED_LSN, METRIC_LAG_MS);
    if (relay->letters)
        set_letters(relay);
    metrics_render(m, page);
}

void relay_metrics_refused(void *arg, struct slice event_type)
{
    struct relay *relay = arg;

    if (relay->metrics)
        metrics_count_failed(relay->metrics, event_type);
}

/* ---- the loop --------------------------------------------------------------------- */

size_t relay_metrics_fds(const struct relay *relay, struct pollfd *fds)
{
    if (!relay->httpd)
        return 0;
    fds[0] = httpd_fd(relay->httpd);
    return 1;
}

void relay_metrics_polled(const struct relay *relay, const struct pollfd *fd)
{
    httpd_polled(relay->httpd, fd);
}

void relay_serve_metrics(struct relay *relay)
{
    if (relay->httpd)
        httpd_serve(relay->httpd, relay->now_ms);
}

int64_t relay_metrics_deadline(const struct relay *relay)
{
    return relay->httpd ? httpd_deadline(relay->httpd) : CLOCK_NEVER;
}

/* ---- life ------------------------------------------------------------------------- */

int relay_metrics_open(struct relay *relay, struct err *err)
{
    const struct httpd_options options = {
        .listen = relay->config->http.listen,
        .page_max = METRICS_PAGE_MAX,
        .page = page,
        .arg = relay,
    };

    if (!options.listen.host)
        return 0;
    relay->start_ms = (uint64_t)clock_wall_us() / 1000;
    relay->metrics = metrics_new();
    if (!relay->metrics)
        return err_set(err, ERR_INTERNAL, "out of memory for metrics");
    relay->httpd = httpd_new(&options, err);
    if (!relay->httpd)
        return -1;
    log_event(LOG_INFO, NULL, "metrics are answered on port %u",
              (unsigned)options.listen.port);
    return 0;
}

void relay_metrics_close(struct relay *relay)
{
    httpd_free(relay->httpd);
    metrics_free(relay->metrics);
    relay->httpd = NULL;
    relay->metrics = NULL;
}
