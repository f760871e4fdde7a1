#include "core/metrics.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TYPES_MAX = 200, TYPE_BYTES = 128 };

enum unit { AS_IT_IS, MILLISECONDS };

struct row {
    const char *name;
    const char *labels; /* as on the page; NULL: none */
    const char *type;
    enum unit unit;
    const char *help; /* of the first row with that name */
};

#define COUNTER "counter"
#define GAUGE   "gauge"

/* Rows of one name follow each other. */
static const struct row rows[METRICS] = {
    [METRIC_BUILD] = {"walrelay_build_info", "version=\"" WALRELAY_VERSION "\"", GAUGE,
                      AS_IT_IS, "Always 1; the version is a label."},
    [METRIC_STREAMING] = {"outbox_streaming", NULL, GAUGE, AS_IT_IS,
                          "1 while the relay streams from its slot."},
    [METRIC_RECONNECTS] = {"outbox_reconnects_total", NULL, COUNTER, AS_IT_IS,
                           "Streams, and attempts to begin one, that failed."},
    [METRIC_PUBLISHED] = {"outbox_events_published_total", NULL, COUNTER, AS_IT_IS,
                          "Events that Kafka has acknowledged, repetitions included."},
    [METRIC_FAILED] = {"outbox_events_failed_total", NULL, COUNTER, AS_IT_IS,
                       "How often an event was refused, each further attempt included."},
    [METRIC_PENDING] = {"outbox_events_pending", NULL, GAUGE, AS_IT_IS,
                        "Events that were read and are not acknowledged."},
    [METRIC_PENDING_BYTES] = {"outbox_events_pending_bytes", NULL, GAUGE, AS_IT_IS,
                              "What they take of the setting memory."},
    [METRIC_RECEIVED_LSN] = {"outbox_received_lsn", NULL, GAUGE, AS_IT_IS,
                             "Up to where the WAL has been read, as a number."},
    [METRIC_FLUSHED_LSN] = {"outbox_confirmed_flush_lsn", NULL, GAUGE, AS_IT_IS,
                            "Up to where everything is durable, as a number."},
    [METRIC_LAG_BYTES] = {"outbox_lag_bytes", NULL, GAUGE, AS_IT_IS,
                          "WAL that has been read and is not confirmed."},
    [METRIC_LAG_MS] = {"outbox_lag_seconds", NULL, GAUGE, MILLISECONDS,
                       "Since the oldest pending event was committed; 0: there is none."},
    [METRIC_TIMESTAMPS_REPLACED] = {"outbox_timestamps_replaced_total", NULL, COUNTER,
                                    AS_IT_IS,
                                    "Records with the commit time in place of a "
                                    "timestamp that none can have."},
    [METRIC_WAITING] = {"outbox_dead_letters", "state=\"waiting\"", GAUGE, AS_IT_IS,
                        "Unresolved rows of the table of dead letters."},
    [METRIC_HELD] = {"outbox_dead_letters", "state=\"held\"", GAUGE, AS_IT_IS, NULL},
    [METRIC_DEAD] = {"outbox_dead_letters", "state=\"dead\"", GAUGE, AS_IT_IS, NULL},
    [METRIC_OLDEST_MS] = {"outbox_dead_letters_oldest_age_seconds", NULL, GAUGE,
                          MILLISECONDS,
                          "Since the oldest of these was written; 0: there is none."},
    [METRIC_HELD_KEYS] = {"outbox_held_keys", NULL, GAUGE, AS_IT_IS,
                          "Keys whose events wait behind a dead letter."},
    [METRIC_BREAKER_OPEN] = {"outbox_dead_letters_breaker_open", NULL, GAUGE, AS_IT_IS,
                             "1 after too many refused events: nothing is read."},
    [METRIC_START_MS] = {"process_start_time_seconds", NULL, GAUGE, MILLISECONDS,
                         "When the relay started, in seconds since 1970."},
    [METRIC_CPU_MS] = {"process_cpu_seconds_total", NULL, COUNTER, MILLISECONDS,
                       "CPU time of the process."},
    [METRIC_RESIDENT_BYTES] = {"process_resident_memory_bytes", NULL, GAUGE, AS_IT_IS,
                               "Resident memory of the process."},
};

/* As UTF-8, so that two of them are two on the page, too. */
struct failed_type {
    char name[TYPE_BYTES];
    size_t len;
    uint64_t count;
};

struct metrics {
    bool known[METRICS];
    uint64_t values[METRICS];
    struct failed_type failed[TYPES_MAX + 1]; /* room for `other` */
    size_t nfailed;
};

struct metrics *metrics_new(void)
{
    return calloc(1, sizeof(struct metrics));
}

void metrics_free(struct metrics *m)
{
    free(m);
}

void metrics_set(struct metrics *m, enum metric metric, uint64_t value)
{
    m->known[metric] = true;
    m->values[metric] = value;
}

void metrics_forget(struct metrics *m, enum metric metric)
{
    m->known[metric] = false;
}

/* ---- by type ----------------------------------------------------------------------- */

static struct failed_type clean(struct slice type)
{
    struct failed_type ret = {.len = 0};
    size_t step;

    for (size_t at = 0; at < type.len; at += step) {
        size_t len = utf8_character(type.ptr + at, type.len - at);
        struct slice c = {type.ptr + at, len};

        if (len == 0)
            c = slice_of(UTF8_REPLACEMENT);
        if (ret.len + c.len > sizeof(ret.name))
            break;
        memcpy(ret.name + ret.len, c.ptr, c.len);
        ret.len += c.len;
        step = len > 0 ? len : 1;
    }
    return ret;
}

static struct slice name_of(const struct failed_type *type)
{
    return (struct slice){type->name, type->len};
}

static struct failed_type *find(struct metrics *m, const struct failed_type *type)
{
    for (size_t i = 0; i < m->nfailed; i++) {
        if (slice_eq(name_of(&m->failed[i]), name_of(type)))
            return &m->failed[i];
    }
    return NULL;
}

static struct failed_type *find_or_add(struct metrics *m, const struct failed_type *type)
{
    struct failed_type *found = find(m, type);

    if (found)
        return found;
    m->failed[m->nfailed] = *type;
    return &m->failed[m->nfailed++];
}

void metrics_count_failed(struct metrics *m, struct slice event_type)
{
    struct failed_type type = clean(event_type);

    if (m->nfailed >= TYPES_MAX && !find(m, &type))
        type = clean(slice_of("other"));
    find_or_add(m, &type)->count++;
}

/* ---- the page ---------------------------------------------------------------------- */

static void begin_family(struct buf *page, const struct row *row)
{
    buf_printf(page, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name,
               row->type);
}

static void add_value(struct buf *page, const struct row *row, uint64_t value)
{
    if (row->unit == MILLISECONDS)
        buf_printf(page, " %" PRIu64 ".%03u\n", value / 1000, (unsigned)(value % 1000));
    else
        buf_printf(page, " %" PRIu64 "\n", value);
}

/* The format's escapes of a label's value. */
static void add_label(struct buf *page, struct slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.ptr[i];

        if (c == '\\' || c == '"' || c == '\n')
            buf_add_char(page, '\\');
        if (c == '\n')
            c = 'n';
        buf_add_char(page, c);
    }
}

static void add_failed(struct buf *page, const struct metrics *m)
{
    const struct row *row = &rows[METRIC_FAILED];

    for (size_t i = 0; i < m->nfailed; i++) {
        buf_printf(page, "%s{event_type=\"", row->name);
        add_label(page, name_of(&m->failed[i]));
        buf_add_str(page, "\"}");
        add_value(page, row, m->failed[i].count);
    }
}

static void add_sample(struct buf *page, const struct metrics *m, enum metric metric)
{
    const struct row *row = &rows[metric];

    if (row->labels)
        buf_printf(page, "%s{%s}", row->name, row->labels);
    else
        buf_add_str(page, row->name);
    add_value(page, row, m->values[metric]);
}

void metrics_render(const struct metrics *m, struct buf *page)
{
    for (enum metric i = 0; i < METRICS; i++) {
        if (rows[i].help)
            begin_family(page, &rows[i]);
        if (i == METRIC_FAILED)
            add_failed(page, m);
        else if (m->known[i])
            add_sample(page, m, i);
    }
}
