/* lane_batch.c - what is sent together, and what becomes of it; see lane_state.h. */
#include "base/must.h"
#include "io/kafka_error.h"
#include "io/lane_state.h"

#include <stdlib.h>
#include <string.h>

enum {
    REQUEST_OVERHEAD = 1024 /* of a request, beside the topic's name; generously */
};

/* ---- one batch ----------------------------------------------------------------------
 */

static size_t wire_bytes(const struct message *m)
{
    return producer_record_bytes(m->key, m->payload, m->headers, m->nheaders) +
           sizeof(HEADER_GIVEN_TIMESTAMP) + m->given_timestamp.len;
}

static bool goes_with(const struct message *first, const struct message *next)
{
    if (first->partition != next->partition)
        return false;
    return first->partition != PARTITION_ANY ||
           (first->key.ptr && slice_eq(first->key, next->key));
}

/* In a queue whose partition is not said, only what has the same key surely belongs to
 * one partition. */
static bool belongs(const struct lane_queue *queue, const struct lane_item *item)
{
    return queue->partition != PARTITION_ANY ||
           goes_with(&queue->first->record.message, &item->record.message);
}

static size_t wanted(const struct lane_queue *queue)
{
    if (queue->bad == 1)
        return 1;
    if (queue->bad > 1)
        return queue->named ? queue->bad - 1 : queue->bad / 2;
    return queue->most;
}

/* Is it like one that was refused?  Then it travels alone, and there is nothing to find.
 */
static bool is_suspicious(const struct lane_queue *queue, const struct message *m)
{
    return (queue->keyless && !m->key.ptr) ||
           (queue->large > 0 && wire_bytes(m) >= queue->large);
}

static void learn_refused(struct lane_queue *queue, const struct message *m, int error)
{
    enum poison_class class = poison_class_of(error);
    size_t bytes = wire_bytes(m);

    if (class == POISON_SIZE && (queue->large == 0 || bytes < queue->large))
        queue->large = bytes;
    if (class == POISON_RECORD && !m->key.ptr)
        queue->keyless = true;
}

/* The topic takes more than it did, or this one is smaller when it is compressed. */
static void learn_taken(struct lane_queue *queue, const struct message *m)
{
    if (!is_suspicious(queue, m))
        return;
    if (queue->large > 0 && wire_bytes(m) >= queue->large)
        queue->large = wire_bytes(m) + 1;
    if (!m->key.ptr)
        queue->keyless = false;
}

/* How many make one request; librdkafka must not make two of them. */
static size_t batch_size(const struct lane *lane, const struct lane_queue *queue)
{
    size_t max = wanted(queue);
    size_t bytes = REQUEST_OVERHEAD + queue->topic->name_len;
    size_t limit = producer_batch_bytes(lane->producer);
    size_t n = 0;

    for (const struct lane_item *i = queue->first; i && n < max && belongs(queue, i);
         i = i->next) {
        bool alone = is_suspicious(queue, &i->record.message);

        bytes += wire_bytes(&i->record.message);
        if (n > 0 && (alone || bytes > limit))
            break;
        n++;
        if (alone)
            break;
    }
    return n;
}

/* Its headers and the one for the timestamp that gave way; NULL: no memory. */
static struct header *with_given_timestamp(struct lane *lane, const struct message *m)
{
    struct header *headers = lane->headers;

    if (lane->headers_cap <= m->nheaders) {
        headers = realloc(headers, (m->nheaders + 1) * sizeof(*headers));
        if (!headers)
            return NULL;
        lane->headers = headers;
        lane->headers_cap = m->nheaders + 1;
    }
    if (m->nheaders > 0)
        memcpy(headers, m->headers, m->nheaders * sizeof(*headers));
    headers[m->nheaders] =
        (struct header){slice_of(HEADER_GIVEN_TIMESTAMP), m->given_timestamp};
    return headers;
}

static int send_item(struct lane *lane, struct lane_item *item, int32_t partition)
{
    const struct message *m = &item->record.message;
    struct entry entry = {.key = m->key,
                          .payload = m->payload,
                          .headers = (struct header *)(uintptr_t)m->headers,
                          .nheaders = m->nheaders,
                          .timestamp_ms = m->timestamp_ms};
    int error;

    if (item->commit_time) {
        entry.headers = with_given_timestamp(lane, m);
        if (!entry.headers)
            return KAFKA_ERROR_NO_RESOURCES;
        entry.nheaders++;
        entry.timestamp_ms = m->commit_ms;
    }
    error = producer_send(lane->producer, item->queue->topic->handle, &entry, partition,
                          (window_seq_t)(uintptr_t)item);
    if (error == 0)
        item->record.attempts++;
    return error;
}

/* Where the front goes; PARTITION_ANY: that is not known yet. */
static int32_t where(const struct lane_queue *queue)
{
    const struct message *m = &queue->first->record.message;
    const struct producer_topic *handle = queue->topic->handle;
    int32_t count = producer_partition_count(handle);

    if (queue->partition != PARTITION_ANY)
        return queue->partition;
    if (m->partition != PARTITION_ANY)
        return m->partition;
    return count > 0 ? producer_partition_of(handle, m->key, count) : PARTITION_ANY;
}

/* How many of n were sent; *error is why the next one was not. */
static size_t send_some(struct lane *lane, struct lane_queue *queue, size_t n,
                        int32_t partition, int *error)
{
    struct lane_item *item = queue->first;
    size_t sent = 0;

    *error = 0;
    while (sent < n) {
        item->reported = false;
        item->error = 0;
        item->partition = partition;
        *error = send_item(lane, item, partition);
        if (*error != 0)
            break;
        item = item->next;
        sent++;
    }
    return sent;
}

/* The partition of a key among as many as there were; as there are more now, it is asked
 * for anew, as long as it takes. */
static size_t send_by_key(struct lane *lane, struct lane_queue *queue, size_t n,
                          int *error)
{
    int32_t count = producer_partition_count(queue->topic->handle);
    size_t sent = send_some(lane, queue, n, PARTITION_ANY, error);

    if (sent == 0 && *error != 0 && count > 0 &&
        producer_partition_count(queue->topic->handle) != count)
        sent = send_some(lane, queue, 1, PARTITION_ANY, error);
    return sent;
}

static bool make_handle(struct lane *lane, struct topic *topic, int *error)
{
    if (!topic->handle)
        topic->handle = producer_topic_new(lane->producer, topic->name, error);
    return topic->handle;
}

/* The first one to a partition is alone: until it is acknowledged librdkafka may not know
 * the partition, and then nothing can be paused. */
static size_t send_batch(struct lane *lane, struct lane_queue *queue, int *error)
{
    bool by_key = queue->partition == PARTITION_ANY &&
                  queue->first->record.message.partition == PARTITION_ANY;
    int32_t partition = where(queue);
    size_t n = batch_size(lane, queue);
    bool known = by_key ? partition != PARTITION_ANY : queue->warm;
    bool paused =
        n > 1 && known && producer_pause(lane->producer, queue->topic->handle, partition);
    size_t sent;

    if (!paused)
        n = 1;
    if (by_key)
        sent = send_by_key(lane, queue, n, error);
    else
        sent = send_some(lane, queue, n, partition, error);
    if (paused)
        producer_resume(lane->producer, queue->topic->handle, partition);
    return sent;
}

void lane_send(struct lane *lane, struct lane_queue *queue)
{
    int error = 0;

    if (queue->n == 0 || queue->sent > 0)
        return;
    queue->used_ms = lane->now_ms;
    queue->reported = 0;
    if (make_handle(lane, queue->topic, &error))
        queue->sent = send_batch(lane, queue, &error);
    if (queue->sent > 0) {
        lane->in_flight += queue->sent;
        return;
    }
    /* what librdkafka itself refuses counts as a batch of one */
    queue->first->reported = true;
    queue->first->error = error;
    queue->first->record.attempts++;
    queue->sent = queue->reported = 1;
    lane->in_flight++;
}

/* ---- what became of it --------------------------------------------------------------
 */

void lane_give_back(struct lane *lane, struct lane_queue *queue, int error)
{
    queue->bad = 0;
    queue->named = false;
    while (queue->n > 0)
        lane_finish(lane, queue, error != 0 ? LANE_LATER : LANE_BEHIND, error);
}

static void end_batch(struct lane *lane, struct lane_queue *queue)
{
    lane->in_flight -= queue->sent;
    queue->sent = 0;
    queue->reported = 0;
}

/* Those at the front that are acknowledged.  How many. */
static size_t finish_acknowledged(struct lane *lane, struct lane_queue *queue, size_t n)
{
    size_t acked = 0;

    while (acked < n && queue->first->reported && queue->first->error == 0) {
        learn_taken(queue, &queue->first->record.message);
        lane_finish(lane, queue, LANE_ACKNOWLEDGED, 0);
        acked++;
    }
    if (acked > 0) {
        queue->warm = true;
        queue->topic->failed_ms = 0;
        backoff_reset(&queue->topic->backoff);
        backoff_reset(&lane->backoff);
    }
    return acked;
}

void lane_unsend(struct lane *lane, struct lane_queue *queue)
{
    size_t sent = queue->sent;

    end_batch(lane, queue);
    (void)finish_acknowledged(lane, queue, sent);
    queue->warm = false;
}

/* The search for the guilty one goes on among the rest, or has found that each of them is
 * taken alone: then the batch was too large as a whole. */
static void narrow(struct lane_queue *queue, size_t acked)
{
    if (queue->bad == 0)
        return;
    if (acked >= queue->bad) {
        queue->bad = 0;
        if (queue->too_large > 1)
            queue->most = queue->too_large / 2;
    } else {
        queue->bad -= acked;
    }
    if (queue->bad == 0)
        queue->named = false;
}

/* Which of the batch says most about the cause: not one that suffers for another. */
static struct lane_item *accused_of(const struct lane_queue *queue, size_t failed,
                                    size_t *index, bool *named)
{
    struct lane_item *found = NULL;
    struct lane_item *item = queue->first;

    *named = false;
    for (size_t i = 0; i < failed; i++, item = item->next) {
        if (item->error == KAFKA_ERROR_OTHER_RECORD) {
            *named = true;
        } else if (!found) {
            found = item;
            *index = i;
        }
    }
    if (found)
        return found;
    *named = false;
    *index = 0;
    return queue->first;
}

static struct poison_case case_of(const struct lane *lane, const struct lane_queue *queue,
                                  const struct lane_item *accused, size_t failed)
{
    const struct topic *topic = queue->topic;
    struct poison_case c = {
        .error = accused->error,
        .suspects = failed,
        .own_partition = accused->record.message.partition != PARTITION_ANY,
        .doubted = accused->record.doubted,
        .attempts = accused->record.attempts,
        .topic_waited_ms = topic->failed_ms ? lane->now_ms - topic->failed_ms : 0,
    };
    const struct lane_item *item = queue->first;

    for (size_t i = 0; i < failed; i++, item = item->next) {
        if (item->record.message.given_timestamp.ptr && !item->commit_time)
            c.own_time = true;
    }
    return c;
}

static void use_commit_times(const struct lane_queue *queue, size_t failed)
{
    struct lane_item *item = queue->first;

    for (size_t i = 0; i < failed; i++, item = item->next)
        item->commit_time = item->record.message.given_timestamp.ptr != NULL;
}

/* The topic may have grown: it is looked at, and what is missing then is refused. */
static void doubt(struct lane *lane, struct lane_queue *queue)
{
    int32_t partition = queue->first->record.message.partition;

    for (struct lane_item *item = queue->first; item; item = item->next) {
        if (item->record.message.partition == partition)
            item->record.doubted = true;
    }
    producer_look_at(lane->producer, queue->topic->handle);
}

static void wait_for_topic(struct lane *lane, struct lane_queue *queue, int error)
{
    if (queue->topic->failed_ms == 0)
        queue->topic->failed_ms = lane->now_ms;
    if (poison_class_of(error) == POISON_PARTITION)
        doubt(lane, queue);
    lane_give_back(lane, queue, error);
}

static void isolate(struct lane_queue *queue, int error, size_t failed, size_t index,
                    bool named)
{
    if (queue->bad == 0)
        queue->too_large = poison_class_of(error) == POISON_SIZE ? failed : 0;
    queue->bad = named ? index + 1 : failed;
    queue->named = named;
}

/* Those of one key, which may have to wait for the one before them. */
static void give_back_key(struct lane *lane, struct lane_queue *queue, struct slice key)
{
    for (size_t n = key.ptr ? queue->n : 0; n > 0; n--) {
        struct lane_item *item = queue->first;

        if (slice_eq(item->record.message.key, key)) {
            lane_finish(lane, queue, LANE_BEHIND, 0);
        } else if (item != queue->last) { /* to the end, so that the order stays */
            queue->first = item->next;
            item->next = NULL;
            queue->last->next = item;
            queue->last = item;
        }
    }
}

/* A topic that has waited long enough is nobody's any more. */
static void refuse_all(struct lane *lane, struct lane_queue *queue, size_t n)
{
    while (n-- > 0)
        lane_finish(lane, queue, LANE_REFUSED, queue->first->error);
    lane_give_back(lane, queue, 0);
}

static void refuse_one(struct lane *lane, struct lane_queue *queue)
{
    const struct message message = queue->first->record.message;
    int error = queue->first->error;

    learn_refused(queue, &message, error);
    queue->bad = 0;
    queue->named = false;
    lane_finish(lane, queue, LANE_REFUSED, error);
    give_back_key(lane, queue, message.key);
}

static void judge(struct lane *lane, struct lane_queue *queue, size_t failed)
{
    bool named;
    size_t index;
    const struct lane_item *accused = accused_of(queue, failed, &index, &named);
    struct poison_case c = case_of(lane, queue, accused, failed);

    switch (poison_fate(&c, &lane->options.limits)) {
    case FATE_AGAIN:
        lane_spoil(lane, c.error);
        break;
    case FATE_WAIT: /* how long a topic waits counts while the cluster is well */
        queue->topic->failed_ms = 0;
        lane_give_back(lane, queue, c.error);
        break;
    case FATE_WAIT_TOPIC:
        wait_for_topic(lane, queue, c.error);
        break;
    case FATE_COMMIT_TIME:
        use_commit_times(queue, failed);
        break;
    case FATE_ISOLATE:
        isolate(queue, c.error, failed, index, named);
        break;
    case FATE_REFUSED:
        if (poison_class_of(c.error) == POISON_TOPIC)
            refuse_all(lane, queue, failed);
        else
            refuse_one(lane, queue);
        break;
    }
}

void lane_settle(struct lane *lane, struct lane_queue *queue)
{
    size_t sent = queue->sent;
    size_t acked;

    if (sent == 0 || queue->reported < sent)
        return;
    end_batch(lane, queue);
    acked = finish_acknowledged(lane, queue, sent);
    narrow(queue, acked);
    /* All of a request have one answer.  Should there be an acknowledged one behind one
     * that failed, it is sent twice. */
    if (acked < sent)
        judge(lane, queue, sent - acked);
}
