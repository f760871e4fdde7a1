/* letters_copy.c - refused events as records of dead_letter_topic; see letters.h.
 *
 * They are sent before their rows are written: what dies in between comes again and is
 * sent once more, while what has a row is known and is not.  A producer of their own
 * carries them, so that this topic disturbs no other.  What that topic can never take
 * stays out of it, with a warning: the row has all of it. */
#include "app/letters.h"
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/must.h"
#include "io/kafka_error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AGAIN_MS = 1000, AGAIN_MAX_MS = 30000, TELL_EVERY_MS = 60000 };

void letters_copies_init(struct copies *copies)
{
    backoff_init(&copies->backoff, AGAIN_MS, AGAIN_MAX_MS);
}

/* ---- one record ------------------------------------------------------------------- */

enum { NUMBERS = 5, NUMBER_MAX = 24, OURS = 14 };

/* What its headers say besides the event's own. */
struct reasons {
    char numbers[NUMBERS][NUMBER_MAX];
    struct header headers[OURS];
    size_t n;
};

static void say(struct reasons *r, const char *name, struct slice value)
{
    must(r->n < OURS);
    if (value.ptr)
        r->headers[r->n++] = (struct header){slice_of(name), value};
}

static void gather_reasons(const struct relay *relay, const struct dead_letter *row,
                           struct reasons *r)
{
    const struct message *m = row->message;

    r->n = 0;
    (void)snprintf(r->numbers[0], NUMBER_MAX, "%d", (int)m->partition);
    (void)snprintf(r->numbers[1], NUMBER_MAX, "%lld", (long long)m->timestamp_ms);
    (void)snprintf(r->numbers[2], NUMBER_MAX, "%" LSN_FMT, LSN_ARG(row->place.lsn));
    (void)snprintf(r->numbers[3], NUMBER_MAX, "%u", (unsigned)row->place.number);
    (void)snprintf(r->numbers[4], NUMBER_MAX, "%u", row->attempts);
    say(r, "__walrelay.errors.topic", m->topic);
    if (m->partition != PARTITION_ANY)
        say(r, "__walrelay.errors.partition", slice_of(r->numbers[0]));
    say(r, "__walrelay.errors.timestamp", slice_of(r->numbers[1]));
    say(r, "__walrelay.errors.reason", row->reason);
    say(r, "__walrelay.errors.code", row->error_code);
    say(r, "__walrelay.errors.message", row->error);
    say(r, "__walrelay.errors.attempts", slice_of(r->numbers[4]));
    say(r, "__walrelay.errors.slot", slice_of(relay->config->postgres.slot));
    say(r, "__walrelay.errors.row_lsn", slice_of(r->numbers[2]));
    say(r, "__walrelay.errors.row_number", slice_of(r->numbers[3]));
    say(r, "__walrelay.errors.table", m->table);
    say(r, "__walrelay.errors.event_id", m->event_id);
    say(r, "__walrelay.errors.event_type", m->event_type);
    say(r, "__walrelay.errors.aggregate_id", m->aggregate_id);
}

static struct slice keep(char **to, struct slice bytes)
{
    char *at = *to;

    if (!bytes.ptr)
        return bytes;
    if (bytes.len > 0)
        memcpy(at, bytes.ptr, bytes.len);
    *to += bytes.len + 1; /* one apart: present, though empty */
    return (struct slice){at, bytes.len};
}

static size_t bytes_of(const struct header *headers, size_t n)
{
    size_t bytes = 0;

    for (size_t i = 0; i < n; i++)
        bytes += headers[i].name.len + headers[i].value.len + 2;
    return bytes;
}

static void keep_headers(struct copy *copy, char **to, const struct header *headers,
                         size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct header *h = &copy->headers[copy->message.nheaders++];

        *h = (struct header){keep(to, headers[i].name), keep(to, headers[i].value)};
    }
}

/* Copies all: the entry may be gone before the producer is.  False: no memory. */
static bool fill(struct copy *copy, const struct relay *relay, struct slice topic,
                 const struct dead_letter *row)
{
    const struct message *m = row->message;
    struct reasons reasons;
    char *to;

    gather_reasons(relay, row, &reasons);
    copy->headers = calloc(m->nheaders + reasons.n, sizeof(*copy->headers));
    copy->block = to =
        malloc(m->key.len + m->payload.len + 2 + bytes_of(m->headers, m->nheaders) +
               bytes_of(reasons.headers, reasons.n));
    if (!copy->headers || !copy->block)
        return false;
    copy->message = (struct message){.topic = topic,
                                     .key = keep(&to, m->key),
                                     .payload = keep(&to, m->payload),
                                     .headers = copy->headers,
                                     .partition = PARTITION_ANY,
                                     .timestamp_ms = clock_wall_us() / 1000};
    keep_headers(copy, &to, m->headers, m->nheaders);
    keep_headers(copy, &to, reasons.headers, reasons.n);
    return true;
}

static void forget(struct copy *copy)
{
    free(copy->block);
    free(copy->headers);
    *copy = (struct copy){0};
}

/* ---- what came of them ------------------------------------------------------------ */

static void over(struct copies *c, struct copy *copy)
{
    forget(copy);
    c->left--;
}

/* The topic, the brokers, memory: it is tried again, and no row is written before. */
static void tell_trouble(struct relay *relay, int error, const char *why)
{
    struct copies *c = &relay->letters->copies;
    const char *topic = relay->config->dead_letters.topic;
    const char *code = error != 0 ? kafka_error_name(error) : NULL;
    const char *cure = kafka_error_cure(error);
    struct log_field fields[] = {
        {"code", slice_of(code)}, {"topic", slice_of(topic)}, LOG_END};

    if (error == c->told && c->told_ms != 0 && relay->now_ms - c->told_ms < TELL_EVERY_MS)
        return;
    c->told = error;
    c->told_ms = relay->now_ms;
    log_event(LOG_WARNING, fields,
              "dead_letter_topic %s: %s%s%s; dead letters and the position wait for it",
              topic, why, *cure ? "; " : "", cure);
}

/* The entry is still there: it has no row yet. */
static void tell_refused(const struct relay *relay, const struct entry *e,
                         const struct lane_result *result)
{
    struct log_field fields[] = {{"code", slice_of(kafka_error_name(result->error))},
                                 {"topic", sink_topic_of(e)},
                                 {"table", e->table},
                                 {"event_id", e->event_id},
                                 {"event_type", e->event_type},
                                 {"aggregate_id", e->aggregate_id},
                                 LOG_END};

    log_event(
        LOG_WARNING, fields,
        "a dead letter is in its table alone: dead_letter_topic %s does not take it: "
        "%s",
        relay->config->dead_letters.topic, result->text);
}

static void went_well(struct relay *relay)
{
    struct copies *c = &relay->letters->copies;

    backoff_reset(&c->backoff);
    if (c->told_ms != 0)
        log_event(LOG_INFO, NULL, "dead_letter_topic %s takes records again",
                  relay->config->dead_letters.topic);
    c->told_ms = 0;
}

static void try_later(struct relay *relay)
{
    struct copies *c = &relay->letters->copies;

    if (relay->now_ms >= c->at_ms)
        c->at_ms = relay->now_ms + backoff_next(&c->backoff, relay_random(relay));
}

static void take(struct relay *relay, const struct lane_result *result)
{
    struct letters *l = relay->letters;
    struct copies *c = &l->copies;
    struct copy *copy = &c->all[result->tag];

    must(copy->state == COPY_SENT);
    switch (result->outcome) {
    case LANE_ACKNOWLEDGED:
        went_well(relay);
        over(c, copy);
        break;
    case LANE_REFUSED:
        tell_refused(relay, l->entries[result->tag], result);
        over(c, copy);
        break;
    case LANE_LATER:
        copy->state = COPY_WAITS;
        tell_trouble(relay, result->error, result->text);
        try_later(relay);
        break;
    case LANE_BEHIND:
        copy->state = COPY_WAITS;
        break;
    }
}

/* ---- sending ---------------------------------------------------------------------- */

static int make_lane(struct relay *relay, struct err *err)
{
    const struct config *config = relay->config;
    const struct lane_options options = {
        .properties = config->kafka,
        .nproperties = config->nkafka,
        .limits = {.attempts = (unsigned)config->dead_letters.max_attempts,
                   .topic_wait_ms = config->dead_letters.topic_wait_ms},
        .missing_ms = lane_missing_ms(config->dead_letters.topic_wait_ms),
        .notice = relay_notice,
    };
    struct copies *c = &relay->letters->copies;

    if (!c->lane)
        c->lane = lane_new(&options, err);
    return c->lane ? 0 : -1;
}

/* 1: it is with the lane; 0: not now; -1 with err set. */
static int send(struct relay *relay, size_t i, struct err *err)
{
    struct letters *l = relay->letters;
    struct copy *copy = &l->copies.all[i];
    struct lane_record record = {.partition = PARTITION_ANY, .tag = i};
    int rc;

    if (!copy->block) {
        struct message message;
        struct dead_letter row = relay_letter(relay, l->entries[i], &message);

        if (!fill(copy, relay, slice_of(relay->config->dead_letters.topic), &row)) {
            forget(copy);
            copy->state = COPY_WAITS;
            return err_set(err, ERR_RETRY, "out of memory for a record of it");
        }
        copy->state = COPY_WAITS;
    }
    record.message = copy->message;
    rc = lane_put(l->copies.lane, &record, err);
    if (rc == 1)
        copy->state = COPY_SENT;
    return rc;
}

static int send_all(struct relay *relay, struct err *err)
{
    struct copies *c = &relay->letters->copies;

    if (make_lane(relay, err) != 0)
        return -1;
    for (size_t i = 0; i < c->n; i++) {
        if (c->all[i].state == COPY_WAITS) {
            int rc = send(relay, i, err);

            if (rc != 1)
                return rc;
        }
    }
    return 0;
}

static void begin(struct letters *l, size_t n)
{
    struct copies *c = &l->copies;

    c->n = n;
    c->left = 0;
    for (size_t i = 0; i < n; i++) {
        if (l->entries[i]->refusal.held)
            continue;
        c->all[i].state = COPY_WAITS;
        c->left++;
    }
}

size_t letters_copied(struct relay *relay, size_t n)
{
    struct letters *l = relay->letters;
    struct copies *c = &l->copies;

    if (relay->config->dead_letters.topic[0] == '\0')
        return n;
    if (c->dropped)
        return 0;
    if (c->n == 0)
        begin(l, n);
    return c->left == 0 ? c->n : 0;
}

/* 0, or -1 with err set. */
static int serve(struct relay *relay, struct err *err)
{
    struct letters *l = relay->letters;
    struct copies *c = &l->copies;
    struct lane_result result;

    if (c->lane && lane_serve(c->lane, relay->now_ms, err) != 0)
        return -1;
    if (c->dropped && !lane_borrows(c->lane))
        letters_copies_written(c);
    /* they may lie elsewhere by now */
    if (c->left == 0 || c->dropped ||
        sink_refused(relay->sink, l->entries, c->n, SIZE_MAX) != c->n)
        return 0;
    while (c->lane && lane_done(c->lane, &result))
        take(relay, &result);
    return relay->now_ms >= c->at_ms ? send_all(relay, err) : 0;
}

void letters_copies_serve(struct relay *relay)
{
    struct err err = {0};
    int rc = serve(relay, &err);

    if (rc < 0) {
        tell_trouble(relay, 0, err.text);
        try_later(relay);
    }
}

int64_t letters_copies_deadline(const struct copies *copies)
{
    int64_t deadline = copies->lane ? lane_deadline(copies->lane) : CLOCK_NEVER;

    for (size_t i = 0; copies->left > 0 && i < copies->n; i++) {
        if (copies->all[i].state == COPY_WAITS)
            return clock_min(deadline, copies->at_ms);
    }
    return deadline;
}

/* ---- the end ---------------------------------------------------------------------- */

void letters_copies_written(struct copies *copies)
{
    for (size_t i = 0; i < copies->n; i++)
        forget(&copies->all[i]);
    copies->n = copies->left = 0;
    copies->dropped = false;
}

void letters_copies_drop(struct copies *copies)
{
    if (copies->n == 0)
        return;
    copies->left = 0;
    copies->dropped = copies->lane != NULL;
    if (copies->lane)
        lane_drop(copies->lane);
    else
        letters_copies_written(copies);
}

void letters_copies_done(struct copies *copies)
{
    lane_free(copies->lane);
    copies->lane = NULL;
    letters_copies_written(copies);
}
