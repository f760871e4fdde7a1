#include "core/held.h"

#include "base/must.h"

#include <stdlib.h>

enum { FIRST_BUCKETS = 64 };

struct held_key {
    struct held_key *next;
    uint64_t hash;
    size_t events;  /* unresolved */
    bool asleep;    /* its first unresolved row comes again and has not come yet */
    size_t sleeper; /* 1 while a known row is to wake it */
    struct slice topic;
    struct slice key;
    char bytes[];
};

/* A row that the stream may bring once more. */
struct known {
    struct known *next;
    struct place place;
    struct held_key *wakes; /* NULL: nobody */
};

struct held {
    struct held_limits limits;
    struct held_key **keys;
    size_t nbuckets; /* a power of two, of both tables */
    size_t nkeys;    /* in the table, also those that hold nothing any more */
    size_t nholding;
    size_t nevents;
    size_t key_bytes;
    struct known **known;
    size_t nknown;
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

static bool same_place(const struct place *a, const struct place *b)
{
    return a->lsn == b->lsn && a->number == b->number && a->commit_us == b->commit_us;
}

/* ---- life ------------------------------------------------------------------------ */

struct held *held_new(struct held_limits limits)
{
    struct held *held = calloc(1, sizeof(*held));

    if (!held)
        return NULL;
    held->limits = limits;
    held->nbuckets = FIRST_BUCKETS;
    held->keys = calloc(held->nbuckets, sizeof(*held->keys));
    held->known = calloc(held->nbuckets, sizeof(*held->known));
    if (held->keys && held->known)
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
        for (struct known *known = held->known[i]; known; known = held->known[i]) {
            held->known[i] = known->next;
            free(known);
        }
    }
    held->nkeys = held->nholding = held->nevents = 0;
    held->key_bytes = held->nknown = 0;
}

void held_free(struct held *held)
{
    if (!held)
        return;
    if (held->keys && held->known)
        held_clear(held);
    free(held->keys);
    free(held->known);
    free(held);
}

/* ---- buckets --------------------------------------------------------------------- */

static size_t bucket(const struct held *held, uint64_t hash)
{
    return (size_t)(hash ^ hash >> 32) & (held->nbuckets - 1);
}

static void move_all(struct held *held, struct held_key **keys, struct known **known,
                     size_t nbuckets)
{
    struct held old = *held;

    held->keys = keys;
    held->known = known;
    held->nbuckets = nbuckets;
    for (size_t i = 0; i < old.nbuckets; i++) {
        for (struct held_key *key = old.keys[i]; key; key = old.keys[i]) {
            struct held_key **to = &keys[bucket(held, key->hash)];

            old.keys[i] = key->next;
            key->next = *to;
            *to = key;
        }
        for (struct known *row = old.known[i]; row; row = old.known[i]) {
            struct known **to = &known[bucket(held, hash_place(&row->place))];

            old.known[i] = row->next;
            row->next = *to;
            *to = row;
        }
    }
    free(old.keys);
    free(old.known);
}

/* Without memory the lists just become longer. */
static void make_room(struct held *held)
{
    size_t nbuckets = held->nbuckets * 2;
    struct held_key **keys;
    struct known **known;

    if (held->nkeys < held->nbuckets && held->nknown < held->nbuckets)
        return;
    keys = calloc(nbuckets, sizeof(struct held_key *));
    known = calloc(nbuckets, sizeof(struct known *));
    if (keys && known) {
        move_all(held, keys, known, nbuckets);
    } else {
        free(keys);
        free(known);
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

static void drop_if_idle(struct held *held, struct held_key *key)
{
    struct held_key **at;

    if (key->events > 0 || key->sleeper > 0)
        return;
    at = find(held, key->topic, key->key);
    must(*at == key);
    *at = key->next;
    held->nkeys--;
    held->key_bytes -= key->topic.len + key->key.len;
    free(key);
}

static void count_event(struct held *held, struct held_key *key)
{
    held->nholding += key->events == 0;
    key->events++;
    held->nevents++;
}

static bool holds(struct slice topic, struct slice key)
{
    return topic.ptr && key.ptr;
}

/* ---- rows that come again -------------------------------------------------------- */

static int add_known(struct held *held, const struct place *place, struct held_key *wakes)
{
    struct known *known = malloc(sizeof(*known));
    struct known **at;

    if (!known)
        return -1;
    make_room(held);
    at = &held->known[bucket(held, hash_place(place))];
    *known = (struct known){*at, *place, wakes};
    *at = known;
    held->nknown++;
    if (wakes) {
        wakes->asleep = true;
        wakes->sleeper = 1;
    }
    return 0;
}

/* False: there is no row of that place. */
static bool take_known(struct held *held, const struct place *place)
{
    struct known **at = &held->known[bucket(held, hash_place(place))];
    struct known *known;

    while (*at && !same_place(&(*at)->place, place))
        at = &(*at)->next;
    known = *at;
    if (!known)
        return false;
    *at = known->next;
    held->nknown--;
    if (known->wakes) {
        known->wakes->asleep = false;
        known->wakes->sleeper = 0;
        drop_if_idle(held, known->wakes);
    }
    free(known);
    return true;
}

/* ---- the interface --------------------------------------------------------------- */

int held_load(struct held *held, const struct held_row *row)
{
    struct held_key *key = NULL;
    bool first = false;

    if (row->unresolved && holds(row->topic, row->key)) {
        key = *find(held, row->topic, row->key);
        first = !key;
        if (!key)
            key = add_key(held, row->topic, row->key);
        if (!key)
            return -1;
        count_event(held, key);
    }
    return row->comes_again ? add_known(held, &row->place, first ? key : NULL) : 0;
}

bool held_is_empty(const struct held *held)
{
    return held->nkeys == 0 && held->nknown == 0;
}

enum held_verdict held_judge(struct held *held, struct slice topic, struct slice key,
                             const struct place *place)
{
    const struct held_key *found;

    if (held->nknown > 0 && take_known(held, place))
        return HELD_KNOWN;
    if (held->nholding == 0 || !holds(topic, key))
        return HELD_FREE;
    found = *find(held, topic, key);
    return found && found->events > 0 && !found->asleep ? HELD_BEHIND : HELD_FREE;
}

enum held_room held_add(struct held *held, struct slice topic, struct slice key)
{
    struct held_key *found;

    if (!holds(topic, key))
        return HELD_TAKEN;
    if (held->nevents >= held->limits.total)
        return HELD_TOTAL_FULL;
    found = *find(held, topic, key);
    if (found && found->events >= held->limits.per_key)
        return HELD_KEY_FULL;
    if (!found && held->key_bytes + topic.len + key.len > held->limits.key_bytes)
        return HELD_NO_MEMORY;
    if (!found)
        found = add_key(held, topic, key);
    if (!found)
        return HELD_NO_MEMORY;
    found->asleep = false; /* what comes next is behind this one */
    count_event(held, found);
    return HELD_TAKEN;
}

void held_remove(struct held *held, struct slice topic, struct slice key)
{
    struct held_key *found;

    if (!holds(topic, key))
        return;
    found = *find(held, topic, key);
    must(found && found->events > 0);
    found->events--;
    held->nevents--;
    held->nholding -= found->events == 0;
    drop_if_idle(held, found);
}

size_t held_keys(const struct held *held)
{
    return held->nholding;
}

size_t held_events(const struct held *held)
{
    return held->nevents;
}
