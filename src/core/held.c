#include "core/held.h"

#include "base/must.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 64 };

struct held_key {
    struct held_key *next;
    uint64_t hash;
    size_t rows;     /* unresolved ones in the table */
    size_t pending;  /* added and not written yet */
    size_t recount;  /* rows, when the recount ends */
    uint64_t from;   /* it holds the events of the window from this one on */
    bool is_awaited; /* a row that comes again will set from */
    struct slice topic;
    struct slice key;
    char bytes[];
};

/* A row that the stream may bring once more. */
struct again {
    struct again *next;
    struct place place;
    bool has_end;
    struct held_key *first_of; /* whose first unresolved row it is; NULL: of none */
};

struct held {
    struct held_limits limits;
    struct held_key **keys;
    size_t nbuckets; /* a power of two, of both tables */
    size_t nkeys;    /* in the table, also those that hold nothing any more */
    size_t nholding;
    size_t nevents;
    size_t key_bytes;
    struct again **again;
    size_t nagain;
};

/* ---- hashes --------------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;

    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * 1099511628211u;
    return hash;
}

static uint64_t hash_key(struct slice topic, struct slice key)
{
    uint64_t hash = hash_bytes(14695981039346656037u, &topic.len, sizeof(topic.len));

    hash = hash_bytes(hash, topic.ptr, topic.len);
    return hash_bytes(hash, key.ptr, key.len);
}

static uint64_t hash_place(const struct place *place)
{
    uint64_t hash = hash_bytes(14695981039346656037u, &place->lsn, sizeof(place->lsn));

    return hash_bytes(hash, &place->number, sizeof(place->number));
}

/* ---- life ------------------------------------------------------------------------ */

struct held *held_new(struct held_limits limits)
{
    struct held *held = calloc(1, sizeof(*held));

    if (!held)
        return NULL;
    held->limits = limits;
    held->nbuckets = FIRST_BUCKETS;
    held->keys = calloc(held->nbuckets, sizeof(struct held_key *));
    held->again = calloc(held->nbuckets, sizeof(struct again *));
    if (held->keys && held->again)
        return held;
    held_free(held);
    return NULL;
}

void held_clear(struct held *held)
{
    for (size_t i = 0; i < held->nbuckets; i++) {
        for (struct held_key *key = held->keys[i]; key; key = held->keys[i]) {
            held->keys[i] = key->next;
            free(key);
        }
        for (struct again *row = held->again[i]; row; row = held->again[i]) {
            held->again[i] = row->next;
            free(row);
        }
    }
    held->nkeys = held->nholding = held->nevents = 0;
    held->key_bytes = held->nagain = 0;
}

void held_free(struct held *held)
{
    if (!held)
        return;
    if (held->keys && held->again)
        held_clear(held);
    free(held->keys);
    free(held->again);
    free(held);
}

/* ---- buckets --------------------------------------------------------------------- */

static size_t bucket(const struct held *held, uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32) & (held->nbuckets - 1);
}

static void move_all(struct held *held, struct held_key **keys, struct again **again,
                     size_t nbuckets)
{
    struct held old = *held;

    held->keys = keys;
    held->again = again;
    held->nbuckets = nbuckets;
    for (size_t i = 0; i < old.nbuckets; i++) {
        for (struct held_key *key = old.keys[i]; key; key = old.keys[i]) {
            struct held_key **to = &keys[bucket(held, key->hash)];

            old.keys[i] = key->next;
            key->next = *to;
            *to = key;
        }
        for (struct again *row = old.again[i]; row; row = old.again[i]) {
            struct again **to = &again[bucket(held, hash_place(&row->place))];

            old.again[i] = row->next;
            row->next = *to;
            *to = row;
        }
    }
    free(old.keys);
    free(old.again);
}

/* Without memory the lists just become longer. */
static void make_room(struct held *held)
{
    size_t nbuckets = held->nbuckets * 2;
    struct held_key **keys;
    struct again **again;

    if (held->nkeys < held->nbuckets && held->nagain < held->nbuckets)
        return;
    keys = calloc(nbuckets, sizeof(struct held_key *));
    again = calloc(nbuckets, sizeof(struct again *));
    if (keys && again) {
        move_all(held, keys, again, nbuckets);
    } else {
        free(keys);
        free(again);
    }
}

/* ---- keys ------------------------------------------------------------------------ */

static struct held_key **find(const struct held *held, struct slice topic,
                              struct slice key)
{
    uint64_t hash = hash_key(topic, key);
    struct held_key **at = &held->keys[bucket(held, hash)];

    while (*at && ((*at)->hash != hash || !slice_eq((*at)->topic, topic) ||
                   !slice_eq((*at)->key, key)))
        at = &(*at)->next;
    return at;
}

static struct slice copy(char *to, struct slice from)
{
    if (from.len > 0)
        memcpy(to, from.ptr, from.len);
    return (struct slice){to, from.len};
}

static struct held_key *add_key(struct held *held, struct slice topic, struct slice key)
{
    struct held_key *ret = malloc(sizeof(*ret) + topic.len + key.len);
    struct held_key **at;

    if (!ret)
        return NULL;
    make_room(held);
    *ret = (struct held_key){.hash = hash_key(topic, key)};
    ret->topic = copy(ret->bytes, topic);
    ret->key = copy(ret->bytes + topic.len, key);
    at = &held->keys[bucket(held, ret->hash)];
    ret->next = *at;
    *at = ret;
    held->nkeys++;
    held->key_bytes += topic.len + key.len;
    return ret;
}

static size_t events_of(const struct held_key *key)
{
    return key->rows + key->pending;
}

static void drop_if_idle(struct held *held, struct held_key *key)
{
    struct held_key **at;

    if (events_of(key) > 0 || key->is_awaited)
        return;
    at = find(held, key->topic, key->key);
    must(*at == key);
    *at = key->next;
    held->nkeys--;
    held->key_bytes -= key->topic.len + key->key.len;
    free(key);
}

/* Sets both counts of a key, and frees it with the last event. */
static void set_events(struct held *held, struct held_key *key, size_t rows,
                       size_t pending)
{
    size_t before = events_of(key);
    size_t after = rows + pending;

    key->rows = rows;
    key->pending = pending;
    held->nevents = held->nevents - before + after;
    held->nholding = held->nholding - (before > 0) + (after > 0);
    drop_if_idle(held, key);
}

static bool can_hold(const struct held *held, struct slice topic, struct slice key)
{
    return !held->limits.skip && topic.ptr && key.ptr;
}

/* ---- rows that come again -------------------------------------------------------- */

static int add_again(struct held *held, const struct held_row *row,
                     struct held_key *first_of)
{
    struct again *again = malloc(sizeof(*again));
    struct again **at;

    if (!again)
        return -1;
    make_room(held);
    at = &held->again[bucket(held, hash_place(&row->place))];
    *again = (struct again){*at, row->place, row->has_end, first_of};
    *at = again;
    held->nagain++;
    if (first_of) {
        first_of->from = UINT64_MAX;
        first_of->is_awaited = true;
    }
    return 0;
}

static void wake(struct held *held, struct held_key *key, uint64_t seq)
{
    key->is_awaited = false;
    if (seq < key->from)
        key->from = seq;
    drop_if_idle(held, key);
}

bool held_known(struct held *held, const struct place *place, uint64_t seq, bool *has_end)
{
    struct again **at = &held->again[bucket(held, hash_place(place))];
    struct again *again;

    while (*at && !place_eq(&(*at)->place, place))
        at = &(*at)->next;
    again = *at;
    if (!again)
        return false;
    *has_end = again->has_end;
    *at = again->next;
    held->nagain--;
    if (again->first_of)
        wake(held, again->first_of, seq);
    free(again);
    return true;
}

/* ---- the interface --------------------------------------------------------------- */

int held_load(struct held *held, const struct held_row *row)
{
    struct held_key *key = NULL;
    bool first = false;

    if (row->unresolved && can_hold(held, row->topic, row->key)) {
        key = *find(held, row->topic, row->key);
        first = !key;
        if (!key)
            key = add_key(held, row->topic, row->key);
        if (!key)
            return -1;
        set_events(held, key, key->rows + 1, key->pending);
    }
    return row->comes_again ? add_again(held, row, first ? key : NULL) : 0;
}

bool held_is_empty(const struct held *held)
{
    return held->nkeys == 0 && held->nagain == 0;
}

bool held_holds(const struct held *held, struct slice topic, struct slice key,
                uint64_t seq)
{
    const struct held_key *found;

    if (held->nholding == 0 || !can_hold(held, topic, key))
        return false;
    found = *find(held, topic, key);
    return found && events_of(found) > 0 && seq >= found->from;
}

static enum held_room room_for(const struct held *held, const struct held_key *found,
                               struct slice topic, struct slice key)
{
    if (held->nevents >= held->limits.total)
        return HELD_TOTAL_FULL;
    if (found && events_of(found) >= held->limits.per_key)
        return HELD_KEY_FULL;
    if (!found && held->key_bytes + topic.len + key.len > held->limits.key_bytes)
        return HELD_NO_MEMORY;
    return HELD_TAKEN;
}

enum held_room held_add(struct held *held, struct slice topic, struct slice key,
                        uint64_t seq)
{
    struct held_key *found;
    enum held_room room;

    if (!can_hold(held, topic, key))
        return HELD_TAKEN;
    found = *find(held, topic, key);
    room = room_for(held, found, topic, key);
    if (room != HELD_TAKEN)
        return room;
    if (!found) {
        found = add_key(held, topic, key);
        if (!found)
            return HELD_NO_MEMORY;
        found->from = seq + 1;
    }
    if (seq + 1 < found->from)
        found->from = seq + 1;
    set_events(held, found, found->rows, found->pending + 1);
    return HELD_TAKEN;
}

bool held_written(struct held *held, struct slice topic, struct slice key)
{
    struct held_key *found;
    bool alone;

    if (!can_hold(held, topic, key))
        return true;
    found = *find(held, topic, key);
    must(found && found->pending > 0);
    alone = found->rows == 0;
    set_events(held, found, found->rows + 1, found->pending - 1);
    return alone;
}

void held_remove(struct held *held, struct slice topic, struct slice key)
{
    struct held_key *found;

    if (!can_hold(held, topic, key))
        return;
    found = *find(held, topic, key);
    if (found && found->rows > 0)
        set_events(held, found, found->rows - 1, found->pending);
}

/* ---- recount --------------------------------------------------------------------- */

void held_recount_begin(struct held *held)
{
    for (size_t i = 0; i < held->nbuckets; i++) {
        for (struct held_key *key = held->keys[i]; key; key = key->next)
            key->recount = 0;
    }
}

void held_recount(struct held *held, struct slice topic, struct slice key, size_t rows)
{
    struct held_key *found = can_hold(held, topic, key) ? *find(held, topic, key) : NULL;

    if (found)
        found->recount = rows;
}

void held_recount_end(struct held *held)
{
    for (size_t i = 0; i < held->nbuckets; i++) {
        struct held_key *next;

        for (struct held_key *key = held->keys[i]; key; key = next) {
            next = key->next; /* the key may go */
            set_events(held, key, key->recount, key->pending);
        }
    }
}

size_t held_keys(const struct held *held)
{
    return held->nholding;
}

size_t held_events(const struct held *held)
{
    return held->nevents;
}
