#include "io/topics.h"

#include <stdlib.h>
#include <string.h>

enum {
    BUCKETS = 1024,
    MAX_TOPICS = 4096,
    RETRY_MS = 1000,
    RETRY_MAX_MS = 30000,
};

struct topics {
    struct topic *buckets[BUCKETS];
    struct topic *last; /* most messages go where the one before went */
    size_t n;
};

static size_t bucket_of(struct slice name)
{
    uint32_t h = 2166136261u; /* FNV-1a */

    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.ptr[i]) * 16777619u;
    return h % BUCKETS;
}

static bool is_named(const struct topic *topic, struct slice name)
{
    return topic->name_len == name.len && memcmp(topic->name, name.ptr, name.len) == 0;
}

struct topics *topics_new(void)
{
    return calloc(1, sizeof(struct topics));
}

static void forget_producer(struct topic *topic)
{
    if (topic->handle && producer_partition_count(topic->handle) > 0)
        topic->count = producer_partition_count(topic->handle);
    free(topic->partitions);
    topic->partitions = NULL;
    topic->npartitions = 0;
    topic->handle = NULL;
    topic->next_in_line = NULL;
    topic->in_line = topic->asked = false;
    topic->probing = false;
    topic->in_flight = 0;
    topic->waiting = (struct waiting){0};
    topic->gathered = (struct waiting){0};
    topic->ready = false;
    topic->next_ready = NULL;
    topic->keyless_left = 0;
}

static void free_topic(struct topic *topic)
{
    free(topic->partitions);
    free(topic->name);
    free(topic);
}

void topics_clear(struct topics *topics)
{
    struct topic *next;

    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct topic *topic = topics->buckets[i]; topic; topic = next) {
            next = topic->next_in_bucket;
            free_topic(topic);
        }
    }
    *topics = (struct topics){0};
}

void topics_free(struct topics *topics)
{
    if (!topics)
        return;
    topics_clear(topics);
    free(topics);
}

bool topics_full(const struct topics *topics)
{
    return topics->n >= MAX_TOPICS;
}

static struct topic *add(struct topics *topics, size_t bucket, struct slice name)
{
    struct topic *topic;

    topic = topics_full(topics) ? NULL : calloc(1, sizeof(*topic));
    if (!topic)
        return NULL;
    topic->name = strndup(name.ptr, name.len);
    if (!topic->name) {
        free(topic);
        return NULL;
    }
    topic->name_len = name.len;
    backoff_init(&topic->backoff, RETRY_MS, RETRY_MAX_MS);
    topic->next_in_bucket = topics->buckets[bucket];
    topics->buckets[bucket] = topic;
    topics->n++;
    return topic;
}

struct topic *topics_get(struct topics *topics, struct slice name)
{
    size_t bucket;
    struct topic *topic = topics->last;

    if (topic && is_named(topic, name))
        return topic;
    bucket = bucket_of(name);
    topic = topics->buckets[bucket];
    while (topic && !is_named(topic, name))
        topic = topic->next_in_bucket;
    if (!topic)
        topic = add(topics, bucket, name);
    topics->last = topic;
    return topic;
}

struct topic *topics_next(const struct topics *topics, const struct topic *after)
{
    size_t bucket = 0;

    if (after) {
        if (after->next_in_bucket)
            return after->next_in_bucket;
        bucket = bucket_of((struct slice){after->name, after->name_len}) + 1;
    }
    while (bucket < BUCKETS && !topics->buckets[bucket])
        bucket++;
    return bucket < BUCKETS ? topics->buckets[bucket] : NULL;
}

void topics_forget_producer(struct topics *topics)
{
    for (size_t i = 0; i < BUCKETS; i++) {
        for (struct topic *topic = topics->buckets[i]; topic;
             topic = topic->next_in_bucket)
            forget_producer(topic);
    }
}

struct partition *topic_partition(struct topic *topic, int32_t n)
{
    int32_t want = topic->npartitions ? topic->npartitions : 1;
    struct partition *partitions;

    if (n < topic->npartitions)
        return &topic->partitions[n];
    while (want <= n)
        want *= 2;
    partitions = realloc(topic->partitions, (size_t)want * sizeof(*partitions));
    if (!partitions)
        return NULL;
    memset(partitions + topic->npartitions, 0,
           (size_t)(want - topic->npartitions) * sizeof(*partitions));
    topic->partitions = partitions;
    topic->npartitions = want;
    return &partitions[n];
}
