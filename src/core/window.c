/* window.c - see window.h.
 *
 * A block of bytes never wraps: one that does not fit before the end of the ring
 * begins at its start, and the gap belongs to it.  Each entry remembers where its
 * block ends; the block of the front entry begins where its predecessor's ended. */
#include "core/window.h"

#include "base/must.h"

#include <stdlib.h>
#include <string.h>

/* What librdkafka 2.0.2 keeps beside the bytes, measured: its message, and each
 * header with the copy of its name and value. */
enum { MESSAGE_OVERHEAD = 190, HEADER_OVERHEAD = 110 };

struct block {
    size_t begin;
    size_t end; /* begin of the next block, before it wraps */
};

struct window {
    char *bytes;
    size_t cap_bytes;
    size_t usual_bytes; /* cap_bytes, but for a message that needs more */
    size_t used_from;   /* begin of the front block */
    size_t used_to;     /* end of the newest block */
    window_seq_t since; /* the first entry whose block lies in bytes */
    char *old_bytes;    /* of those before that, or NULL */

    struct entry *entries;
    struct block *blocks;
    size_t mask; /* number of entries - 1, a power of two */
    window_seq_t begin;
    window_seq_t end;

    size_t pending;
    size_t cost;
    size_t max_cost;
};

static size_t power_of_two(size_t n)
{
    size_t p = 16;

    while (p < n)
        p *= 2;
    return p;
}

static void leave(struct window *window)
{
    while (window->begin != window->end) {
        const struct entry *entry = &window->entries[window->begin & window->mask];

        if (entry->state != ENTRY_DONE)
            break;
        window->cost -= entry->cost_bytes;
        window->begin++;
    }
    if (window->begin < window->since)
        return;
    if (window->old_bytes) {
        free(window->old_bytes);
        window->old_bytes = NULL;
    }
    window->since = window->begin;
    if (window->begin != window->end)
        window->used_from = window->blocks[window->begin & window->mask].begin;
}

/* Memory of a size, into which what is in the other window's entries moves. */
static bool make(struct window *window, size_t max_entries, size_t max_bytes,
                 const struct window *other)
{
    size_t n = power_of_two(max_entries);

    window->mask = n - 1;
    window->max_cost = max_bytes;
    window->usual_bytes = window->cap_bytes = max_bytes / 2 + 4096;
    window->bytes = malloc(window->cap_bytes);
    window->entries = calloc(n, sizeof(*window->entries));
    window->blocks = calloc(n, sizeof(*window->blocks));
    if (!window->bytes || !window->entries || !window->blocks) {
        free(window->bytes);
        free(window->entries);
        free(window->blocks);
        return false;
    }
    for (window_seq_t seq = other->begin; seq != other->end; seq++) {
        window->entries[seq & window->mask] = other->entries[seq & other->mask];
        window->blocks[seq & window->mask] = other->blocks[seq & other->mask];
    }
    return true;
}

struct window *window_new(size_t max_entries, size_t max_bytes)
{
    struct window *window = calloc(1, sizeof(*window));

    if (window && !make(window, max_entries, max_bytes, window)) {
        free(window);
        return NULL;
    }
    return window;
}

bool window_resize(struct window *window, size_t max_entries, size_t max_bytes)
{
    struct window new = *window;

    if (window->old_bytes || window->end - window->begin > power_of_two(max_entries) ||
        !make(&new, max_entries, max_bytes, window))
        return false;
    free(window->entries);
    free(window->blocks);
    new.old_bytes = window->bytes;
    new.since = window->end;
    *window = new;
    leave(window);
    return true;
}

void window_free(struct window *window)
{
    if (!window)
        return;
    free(window->bytes);
    free(window->old_bytes);
    free(window->entries);
    free(window->blocks);
    free(window);
}

struct entry *window_entry(struct window *window, window_seq_t seq)
{
    must(seq - window->begin < window->end - window->begin);
    return &window->entries[seq & window->mask];
}

/* Empty memory grows for a message that is larger than all of it, which then travels
 * alone, and shrinks again for the next. */
static bool fit(struct window *window, size_t size)
{
    size_t want = size > window->usual_bytes ? size : window->usual_bytes;
    char *bytes;

    if (want == window->cap_bytes)
        return true;
    bytes = malloc(want);
    if (!bytes)
        return size <= window->cap_bytes;
    free(window->bytes);
    window->bytes = bytes;
    window->cap_bytes = want;
    return true;
}

/* Room for size bytes behind the newest block: false, or *ret is where they begin. */
static bool find_room(struct window *window, size_t size, size_t *ret)
{
    size_t from = window->used_from;
    size_t to = window->used_to;

    if (window->since == window->end) {
        *ret = 0;
        return fit(window, size);
    }
    if (to > from) { /* one piece in the middle */
        if (window->cap_bytes - to >= size) {
            *ret = to;
            return true;
        }
        *ret = 0;
        return size < from; /* not equal: to == from would mean empty */
    }
    *ret = to;
    return size < from - to;
}

/* Never 0: blocks of no bytes would make a full ring look like an empty one. */
static size_t align8(size_t n)
{
    return (n + 8) & ~(size_t)7;
}

/* One more for walrelay.timestamp, see window_use_commit_time. */
static size_t header_room(const struct message *m)
{
    return m->nheaders + (m->given_timestamp.ptr ? 1 : 0);
}

static bool same(struct slice a, struct slice b)
{
    return a.ptr && a.ptr == b.ptr && a.len == b.len;
}

/* Where among the headers the same bytes stand; nheaders if nowhere. */
static size_t header_with(const struct message *m, struct slice value)
{
    size_t i = 0;

    while (i < m->nheaders && !same(m->headers[i].value, value))
        i++;
    return i;
}

/* What people read of an event usually is its key or a header too, and is kept once. */
static size_t extra(const struct message *m, struct slice s)
{
    return same(m->key, s) || header_with(m, s) < m->nheaders ? 0 : s.len;
}

static size_t block_size(const struct message *m)
{
    size_t size = header_room(m) * sizeof(struct header);

    for (size_t i = 0; i < m->nheaders; i++)
        size += m->headers[i].value.len;
    return align8(size + m->key.len + m->payload.len + m->given_timestamp.len +
                  extra(m, m->event_id) + extra(m, m->event_type) +
                  extra(m, m->aggregate_id));
}

static size_t cost_of(const struct message *m, size_t block)
{
    size_t cost = block + MESSAGE_OVERHEAD + m->nheaders * HEADER_OVERHEAD;

    for (size_t i = 0; i < m->nheaders; i++)
        cost += m->headers[i].name.len + m->headers[i].value.len;
    return cost;
}

/* An absent slice stays absent, an empty one stays present. */
static struct slice copy(char **to, struct slice from)
{
    struct slice s = {*to, from.len};

    if (!from.ptr)
        return from;
    if (from.len > 0)
        memcpy(*to, from.ptr, from.len);
    *to += from.len;
    return s;
}

static struct slice copy_extra(char **to, struct slice from, const struct message *m,
                               const struct entry *entry)
{
    size_t i = header_with(m, from);

    if (same(m->key, from))
        return entry->key;
    return i < m->nheaders ? entry->headers[i].value : copy(to, from);
}

static void fill(struct entry *entry, const struct message *m, char *block)
{
    struct header *headers = (struct header *)(void *)block;
    char *to = block + header_room(m) * sizeof(struct header);

    entry->key = copy(&to, m->key);
    entry->payload = copy(&to, m->payload);
    for (size_t i = 0; i < m->nheaders; i++) {
        headers[i].name = m->headers[i].name;
        headers[i].value = copy(&to, m->headers[i].value);
    }
    entry->headers = headers;
    entry->nheaders = m->nheaders;
    entry->partition = m->partition;
    entry->timestamp_ms = m->timestamp_ms;
    entry->commit_ms = m->commit_ms;
    entry->given_timestamp = copy(&to, m->given_timestamp);
    entry->table = m->table;
    entry->event_id = copy_extra(&to, m->event_id, m, entry);
    entry->event_type = copy_extra(&to, m->event_type, m, entry);
    entry->aggregate_id = copy_extra(&to, m->aggregate_id, m, entry);
    entry->place = m->place;
    entry->begin_lsn = m->begin_lsn;
    if (m->aggregate_type.ptr) {
        entry->type_from = (uint8_t)(m->aggregate_type.ptr - m->topic.ptr);
        entry->type_len = (uint8_t)m->aggregate_type.len;
    }
}

bool window_add(struct window *window, const struct message *message, ticket_t ticket)
{
    size_t size = block_size(message);
    size_t cost = cost_of(message, size);
    size_t at;
    struct entry *entry;

    if (window->end - window->begin > window->mask || !find_room(window, size, &at))
        return false;
    /* One message alone may cost more than the budget leaves: it must go some time. */
    if (window->cost + cost > window->max_cost && window->begin != window->end)
        return false;
    if (window->since == window->end)
        window->used_from = at;
    entry = &window->entries[window->end & window->mask];
    window->blocks[window->end & window->mask] = (struct block){at, at + size};
    window->used_to = at + size;
    window->end++;
    window->pending++;
    window->cost += cost;
    *entry = (struct entry){.state = ENTRY_QUEUED, .ticket = ticket, .cost_bytes = cost};
    fill(entry, message, window->bytes + at);
    return true;
}

window_seq_t window_begin(const struct window *window)
{
    return window->begin;
}

window_seq_t window_end(const struct window *window)
{
    return window->end;
}

struct message window_message(const struct entry *entry)
{
    return (struct message){
        .key = entry->key,
        .payload = entry->payload,
        .headers = entry->headers,
        .nheaders = entry->nheaders,
        .partition = entry->partition,
        .timestamp_ms = entry->timestamp_ms,
        .commit_ms = entry->commit_ms,
        .given_timestamp = entry->given_timestamp,
        .table = entry->table,
        .event_id = entry->event_id,
        .event_type = entry->event_type,
        .aggregate_id = entry->aggregate_id,
        .place = entry->place,
        .begin_lsn = entry->begin_lsn,
    };
}

bool window_use_commit_time(struct entry *entry)
{
    if (!entry->given_timestamp.ptr)
        return false;
    entry->headers[entry->nheaders++] =
        (struct header){slice_of(HEADER_GIVEN_TIMESTAMP), entry->given_timestamp};
    entry->given_timestamp = (struct slice){0};
    entry->timestamp_ms = entry->commit_ms;
    return true;
}

void window_clear(struct window *window)
{
    window->begin = window->end;
    window->pending = 0;
    window->cost = 0;
    window->since = window->end; /* old_bytes may still be borrowed */
}

size_t window_max_entries(const struct window *window)
{
    return window->mask + 1;
}

size_t window_max_bytes(const struct window *window)
{
    return window->max_cost;
}

void window_mark_done(struct window *window, window_seq_t seq)
{
    struct entry *entry = window_entry(window, seq);

    must(entry->state != ENTRY_DONE);
    entry->state = ENTRY_DONE;
    window->pending--;
    if (seq == window->begin)
        leave(window);
}

size_t window_pending(const struct window *window)
{
    return window->pending;
}

size_t window_cost_bytes(const struct window *window)
{
    return window->cost;
}
