/* relay_retry.c - dead letters that are tried again; see relay_state.h and letters.h.
 *
 * They go through the same sink as the stream, which keeps the order of a key and says
 * which one is refused; the others of its key behind it come back unsent.  What is held
 * follows what it waited for in the same way. */
#include "app/letters.h"
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/hex.h"
#include "base/log.h"
#include "base/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOK_EVERY_MS = 30000 };

/* ---- a row ------------------------------------------------------------------------ */

static struct slice cell(const struct retry *r, int row, int column)
{
    return slice_of(pg_value(r->rows, row, column));
}

static int64_t number(const struct retry *r, int row, int column, int64_t otherwise)
{
    const char *text = pg_value(r->rows, row, column);

    return text ? strtoll(text, NULL, 10) : otherwise;
}

/* The bytes of so many digits, put at *to; false: they are none. */
static bool take_bytes(char **to, struct slice digits, struct slice *ret)
{
    char *at = *to;

    *ret = (struct slice){NULL, 0};
    if (!digits.ptr)
        return true;
    memcpy(at, digits.ptr, digits.len);
    if (digits.len > 0 && !hex_decode(at, digits.len))
        return false;
    *ret = (struct slice){at, digits.len / 2};
    *to += digits.len + 1; /* one apart: present, though empty */
    return true;
}

static size_t count_headers(struct slice text)
{
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == ':';
    return n;
}

/* "name:value,name:value" */
static bool take_headers(char **to, struct slice text, struct header *headers)
{
    const char *at = text.ptr;
    const char *end = at ? at + text.len : at;

    for (struct header *h = headers; at != end; h++) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *comma = colon ? memchr(colon, ',', (size_t)(end - colon)) : NULL;
        const char *stop = comma ? comma : end;

        if (!colon ||
            !take_bytes(to, (struct slice){at, (size_t)(colon - at)}, &h->name) ||
            !take_bytes(to, (struct slice){colon + 1, (size_t)(stop - colon - 1)},
                        &h->value))
            return false;
        at = comma ? comma + 1 : end;
    }
    return true;
}

static bool make_room(const struct retry *r, int row, struct retry_bytes *ret)
{
    struct slice headers = cell(r, row, DUE_HEADERS);
    size_t n = count_headers(headers);

    ret->block = malloc(cell(r, row, DUE_KEY).len + cell(r, row, DUE_PAYLOAD).len +
                        headers.len + 4 + 2 * n);
    ret->headers = calloc(n + 1, sizeof(*ret->headers));
    return ret->block && ret->headers;
}

static void fill_people(const struct retry *r, int row, struct message *m)
{
    m->table = cell(r, row, DUE_TABLE);
    m->event_id = cell(r, row, DUE_EVENT_ID);
    m->event_type = cell(r, row, DUE_EVENT_TYPE);
    m->aggregate_id = cell(r, row, DUE_AGGREGATE_ID);
    if (!lsn_parse(pg_value(r->rows, row, DUE_LSN), &m->place.lsn))
        m->place.lsn = LSN_NONE;
}

static int message_of(const struct retry *r, int row, struct retry_bytes *bytes,
                      struct message *ret, struct err *err)
{
    struct slice headers = cell(r, row, DUE_HEADERS);
    char *to;

    if (!bytes->block && !make_room(r, row, bytes))
        return err_set(err, ERR_INTERNAL, "out of memory for a dead letter");
    to = bytes->block;
    *ret = (struct message){.topic = cell(r, row, DUE_TOPIC),
                            .headers = bytes->headers,
                            .nheaders = count_headers(headers),
                            .given_timestamp = cell(r, row, DUE_GIVEN_TIME)};
    fill_people(r, row, ret);
    ret->partition = (int32_t)number(r, row, DUE_PARTITION, PARTITION_ANY);
    ret->commit_ms = number(r, row, DUE_COMMIT_MS, 0);
    ret->timestamp_ms = number(r, row, DUE_RECORD_MS, ret->commit_ms);
    if (take_bytes(&to, cell(r, row, DUE_KEY), &ret->key) &&
        take_bytes(&to, cell(r, row, DUE_PAYLOAD), &ret->payload) &&
        take_headers(&to, headers, bytes->headers))
        return 0;
    return err_set(err, ERR_INTERNAL, "dead letter %s cannot be read",
                   pg_value(r->rows, row, DUE_ID));
}

/* ---- life ------------------------------------------------------------------------- */

static void forget_rows(struct retry *r)
{
    for (int i = 0; i < r->n; i++) {
        free(r->bytes[i].block);
        free(r->bytes[i].headers);
        r->bytes[i] = (struct retry_bytes){0};
    }
    pg_result_free(r->rows);
    r->rows = NULL;
    r->n = r->left = 0;
    r->failed = -1;
}

void relay_retry_done(struct letters *letters)
{
    forget_rows(&letters->retry);
    letters->retry.changed = false;
}

void relay_retry_begin(struct relay *relay)
{
    struct retry *r = &relay->letters->retry;

    r->changed = relay->letters->loaded; /* else it has just been loaded */
    r->due_ms = relay->now_ms;
    for (int i = 0; i < r->n; i++) {
        if (r->states[i] == RETRY_ENDING)
            r->states[i] = RETRY_ARRIVED;
    }
}

/* ---- into the sink ---------------------------------------------------------------- */

static void over(struct relay *relay, int row)
{
    struct retry *r = &relay->letters->retry;

    if (r->states[row] == RETRY_OVER)
        return;
    r->states[row] = RETRY_OVER;
    if (--r->left > 0)
        return;
    forget_rows(r);
    r->due_ms = relay->now_ms; /* there may be more */
}

static bool same_key(const struct retry *r, int a, int b)
{
    return cell(r, a, DUE_KEY).ptr && cell(r, a, DUE_TOPIC).ptr &&
           slice_eq(cell(r, a, DUE_KEY), cell(r, b, DUE_KEY)) &&
           slice_eq(cell(r, a, DUE_TOPIC), cell(r, b, DUE_TOPIC));
}

/* Refused before it was sent, or by Kafka.  What is behind it has to wait. */
static void refused(struct relay *relay, int row, const struct refusal *refusal)
{
    struct retry *r = &relay->letters->retry;

    r->failed = row;
    r->states[row] = RETRY_REFUSED;
    r->refusal = *refusal;
    (void)snprintf(r->why, sizeof(r->why), "%s", refusal->text ? refusal->text : "");
    for (int i = row + 1; i < r->n; i++) {
        if (r->states[i] == RETRY_WAITS && same_key(r, row, i))
            over(relay, i);
    }
}

/* False: not now. */
static bool put(struct relay *relay, int row)
{
    struct retry *r = &relay->letters->retry;
    struct message message = {0};
    struct err err = {0};
    struct refusal why = sink_put_refusal();
    int rc = message_of(r, row, &r->bytes[row], &message, &err);

    if (rc == 0 && !message.topic.ptr) {
        why = (struct refusal){.reason = "not publishable"};
        rc = err_set(&err, ERR_POISON, "it has no topic: discard it");
    }
    if (rc == 0)
        rc = sink_put(relay->sink, &message, TICKET_RETRY | (ticket_t)row, &err);
    if (rc == 1)
        r->states[row] = RETRY_SENT;
    if (rc < 0 && err.class == ERR_POISON) {
        why.text = err.text;
        relay_metrics_refused(relay, cell(r, row, DUE_EVENT_TYPE));
        refused(relay, row, &why);
    }
    return rc == 1;
}

/* One that the sink has refused is the next thing that it is asked for. */
static void take_refused(struct relay *relay)
{
    struct letters *l = relay->letters;

    while (l->retry.failed < 0 && l->op != OP_WRITE &&
           sink_refused(relay->sink, l->entries, 1, SIZE_MAX) == 1 &&
           ticket_is_retry(l->entries[0]->ticket)) {
        int row = (int)(l->entries[0]->ticket & ~TICKET_RETRY);
        struct refusal refusal = l->entries[0]->refusal;

        if (refusal.held)
            over(relay, row);
        else
            refused(relay, row, &refusal);
        sink_settle(relay->sink, 1);
    }
}

void relay_retry_serve(struct relay *relay)
{
    struct letters *l = relay->letters;
    struct retry *r = &l->retry;

    if (!r->rows)
        return;
    take_refused(relay);
    if (relay->phase != STREAMING)
        return;
    for (int i = 0; i < r->n && r->failed < 0; i++) {
        if (r->states[i] == RETRY_WAITS && !put(relay, i))
            return;
    }
}

void relay_letters_arrived(struct relay *relay, ticket_t ticket)
{
    struct letters *l = relay->letters;
    int row = (int)(ticket & ~TICKET_RETRY);

    if (l && l->on && row < l->retry.n && l->retry.states[row] == RETRY_SENT)
        l->retry.states[row] = RETRY_ARRIVED;
}

/* ---- statements ------------------------------------------------------------------- */

static int begin(struct letters *l, enum letters_op op, int rc)
{
    if (rc != 0)
        return -1;
    l->op = op;
    return 1;
}

static int ask_fail(struct relay *relay, struct err *err)
{
    struct letters *l = relay->letters;
    const struct retry *r = &l->retry;
    unsigned attempts = (unsigned)number(r, r->failed, DUE_ATTEMPTS, 0) + 1;
    const struct deadletters_failure failure = {
        .id = pg_value(r->rows, r->failed, DUE_ID),
        .version = pg_value(r->rows, r->failed, DUE_VERSION),
        .reason = slice_of(r->refusal.reason),
        .error_code = slice_of(r->refusal.code),
        .error = slice_of(r->why),
        .max_attempts = relay->config->dead_letters.max_attempts,
        .retry_ms = relay_retry_delay(relay, attempts),
    };

    return begin(l, OP_FAIL, deadletters_fail(l->writer, &failure, err));
}

/* 0: nothing has arrived. */
static int ask_resolve(struct relay *relay, struct err *err)
{
    struct letters *l = relay->letters;
    struct retry *r = &l->retry;
    const char *ids[DEADLETTERS_MAX];
    size_t n = 0;

    for (int i = 0; i < r->n; i++) {
        if (r->states[i] != RETRY_ARRIVED && r->states[i] != RETRY_ENDING)
            continue;
        r->states[i] = RETRY_ENDING;
        ids[n++] = pg_value(r->rows, i, DUE_ID);
    }
    return n == 0 ? 0 : begin(l, OP_RESOLVE, deadletters_resolve(l->writer, ids, n, err));
}

int relay_retry_ask(struct relay *relay, struct err *err)
{
    struct letters *l = relay->letters;
    struct retry *r = &l->retry;
    int rc;

    if (r->failed >= 0)
        return ask_fail(relay, err);
    rc = ask_resolve(relay, err);
    if (rc != 0)
        return rc;
    if (r->changed) {
        r->changed = false; /* what is changed from now on is counted next time */
        return begin(l, OP_COUNT, deadletters_count(l->writer, err));
    }
    if (r->rows || relay->now_ms < r->due_ms || relay->phase != STREAMING)
        return 0;
    return begin(
        l, OP_DUE,
        deadletters_due(l->writer, relay->config->dead_letters.max_attempts, err));
}

/* ---- answers ---------------------------------------------------------------------- */

/* Is the number in "{1,22,3}"? */
static bool lists(const char *list, const char *id)
{
    size_t len = strlen(id);

    for (const char *at = list; at && *at && *at != '}'; at = strchr(at + 1, ',')) {
        if (strncmp(at + 1, id, len) == 0 && (at[1 + len] == ',' || at[1 + len] == '}'))
            return true;
    }
    return false;
}

static void key_of(const struct retry *r, int row, struct slice *topic, struct slice *key,
                   char **block)
{
    char *to;

    *topic = cell(r, row, DUE_TOPIC);
    *key = (struct slice){NULL, 0};
    *block = to = malloc(cell(r, row, DUE_KEY).len + 1);
    if (to)
        (void)take_bytes(&to, cell(r, row, DUE_KEY), key);
}

static void tell_published(const struct retry *r, int row)
{
    char attempt[24];
    struct log_field fields[] = {{"topic", cell(r, row, DUE_TOPIC)},
                                 {"table", cell(r, row, DUE_TABLE)},
                                 {"event_id", cell(r, row, DUE_EVENT_ID)},
                                 {"event_type", cell(r, row, DUE_EVENT_TYPE)},
                                 {"aggregate_id", cell(r, row, DUE_AGGREGATE_ID)},
                                 {"attempt", {0}},
                                 LOG_END};

    (void)snprintf(attempt, sizeof(attempt), "%lld",
                   (long long)number(r, row, DUE_ATTEMPTS, 0) + 1);
    fields[5].value = slice_of(attempt);
    log_event(LOG_INFO, fields, "dead letter %s is published and resolved",
              pg_value(r->rows, row, DUE_ID));
}

/* What somebody has changed meanwhile is not among the ids, and is counted anew. */
static void resolved(struct relay *relay, const char *ids)
{
    struct letters *l = relay->letters;
    struct retry *r = &l->retry;
    int n = r->n;

    for (int i = 0; i < n && r->rows; i++) {
        struct slice topic;
        struct slice key;
        char *block;

        if (r->states[i] != RETRY_ENDING)
            continue;
        key_of(r, i, &topic, &key, &block);
        if (lists(ids, pg_value(r->rows, i, DUE_ID))) {
            held_remove(l->held, topic, key);
            tell_published(r, i);
        } else {
            r->changed = true;
        }
        free(block);
        over(relay, i);
    }
}

static void counted(struct relay *relay, struct pg_result *rows)
{
    struct letters *l = relay->letters;
    struct retry answer = {.rows = rows};
    struct slice topic;
    struct slice key;

    held_recount_begin(l->held);
    for (int i = 0; i < pg_rows(rows); i++) {
        struct slice digits = cell(&answer, i, COUNTED_KEY);
        char *block = malloc(digits.len + 1);
        char *to = block;

        topic = cell(&answer, i, COUNTED_TOPIC);
        if (to && take_bytes(&to, digits, &key))
            held_recount(l->held, topic, key,
                         (size_t)number(&answer, i, COUNTED_ROWS, 0));
        free(block);
    }
    held_recount_end(l->held);
}

static void found_due(struct relay *relay, struct pg_result *rows)
{
    struct retry *r = &relay->letters->retry;
    const char *next = pg_value(rows, 0, DUE_NEXT_MS);
    int64_t next_ms = next ? strtoll(next, NULL, 10) : LOOK_EVERY_MS;

    r->due_ms = relay->now_ms + (next_ms < LOOK_EVERY_MS ? next_ms : LOOK_EVERY_MS);
    if (!pg_value(rows, 0, DUE_ID)) {
        pg_result_free(rows);
        return;
    }
    r->rows = rows;
    r->n = r->left = pg_rows(rows);
    r->failed = -1;
    for (int i = 0; i < r->n; i++)
        r->states[i] = RETRY_WAITS;
}

void relay_retry_answered(struct relay *relay, enum letters_op op)
{
    struct letters *l = relay->letters;
    struct pg_result *answer = deadletters_take(l->writer);

    if (op == OP_DUE) {
        found_due(relay, answer);
        return;
    }
    if (op == OP_RESOLVE)
        resolved(relay, pg_value(answer, 0, RESOLVED_IDS));
    if (op == OP_COUNT) {
        counted(relay, answer);
        l->retry.due_ms = relay->now_ms;
    }
    if (op == OP_FAIL) {
        int row = l->retry.failed;

        l->retry.failed = -1;
        over(relay, row);
    }
    pg_result_free(answer);
}

/* ---- what the others ask ------------------------------------------------------------
 */

bool relay_retry_is_settled(const struct relay *relay)
{
    const struct retry *r = &relay->letters->retry;

    for (int i = 0; i < r->n; i++) {
        if (r->states[i] == RETRY_ARRIVED || r->states[i] == RETRY_ENDING)
            return false;
    }
    return r->failed < 0;
}

int64_t relay_retry_deadline(const struct relay *relay)
{
    const struct retry *r = &relay->letters->retry;

    return r->rows || relay->phase != STREAMING ? CLOCK_NEVER : r->due_ms;
}
