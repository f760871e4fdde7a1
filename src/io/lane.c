#include "io/lane.h"

#include "base/clock.h"
#include "base/must.h"
#include "base/random.h"
#include "io/kafka_error.h"
#include "io/lane_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    QUEUE_MAX = 2 * PRODUCER_LANE_BATCH, /* one under way, one to come */
    REBUILD_MS = 100,
    REBUILD_MAX_MS = 10000,
    QUIET_MS = 10000, /* a producer that lasted that long may fail once for free */
    WARN_EVERY_MS = 60000,
    PUSH_WAIT_MS = 1,
    PUSH_WAIT_MAX_MS = 100,
    SWEEP_EVERY_MS = 10000,
    FORGET_AFTER_MS = 60000, /* what is known of a queue that is empty */
};

static void tell(struct lane *lane, enum log_level level, const struct log_field *fields,
                 const char *text)
{
    lane->options.notice(lane->options.notice_arg, level, fields, text);
}

/* ---- callbacks of the producer -------------------------------------------------- */

static void on_report(void *arg, window_seq_t seq, int32_t partition, int error)
{
    struct lane_item *item = (struct lane_item *)(uintptr_t)seq;

    (void)arg;
    must(!item->reported);
    item->reported = true;
    item->error = error;
    item->partition = partition;
    item->queue->reported++;
}

static void tell_trouble(struct lane *lane, int error, const char *reason)
{
    struct log_field fields[] = {{"code", slice_of(kafka_error_name(error))}, LOG_END};
    const char *cure = kafka_error_cure(error);
    char text[ERR_TEXT_MAX];

    if (error == lane->trouble && lane->now_ms - lane->trouble_ms < WARN_EVERY_MS)
        return;
    lane->trouble = error;
    lane->trouble_ms = lane->now_ms;
    (void)snprintf(text, sizeof(text), "Kafka, producer of refused events: %s%s%s",
                   reason, *cure ? "; " : "", cure);
    tell(lane, LOG_WARNING, fields, text);
}

static void on_trouble(void *arg, int error, bool fatal, const char *reason)
{
    struct lane *lane = arg;

    tell_trouble(lane, error, reason);
    if (fatal)
        lane_spoil(lane, error);
}

static void on_log(void *arg, enum log_level level, const char *text)
{
    tell(arg, level, NULL, text);
}

/* ---- queues --------------------------------------------------------------------- */

static struct lane_queue *queue_of(struct lane *lane, struct topic *topic,
                                   int32_t partition)
{
    struct lane_queue *queue = lane->queues;

    while (queue && (queue->topic != topic || queue->partition != partition))
        queue = queue->next;
    if (queue)
        return queue;
    queue = calloc(1, sizeof(*queue));
    if (!queue)
        return NULL;
    queue->topic = topic;
    queue->partition = partition;
    queue->most = PRODUCER_LANE_BATCH;
    queue->used_ms = lane->now_ms;
    queue->next = lane->queues;
    lane->queues = queue;
    return queue;
}

static void append(struct lane *lane, struct lane_queue *queue, struct lane_item *item)
{
    if (queue->n > 0)
        queue->last->next = item;
    else
        queue->first = item;
    queue->last = item;
    queue->n++;
    lane->n++;
}

static struct lane_item *take_first(struct lane *lane, struct lane_queue *queue)
{
    struct lane_item *item = queue->first;

    queue->first = item->next;
    item->next = NULL;
    queue->n--;
    lane->n--;
    return item;
}

void lane_finish(struct lane *lane, struct lane_queue *queue, enum lane_outcome outcome,
                 int error)
{
    struct lane_item *item = take_first(lane, queue);

    item->outcome = outcome;
    item->error = error;
    if (lane->ndone++ > 0)
        lane->last_done->next = item;
    else
        lane->done = item;
    lane->last_done = item;
}

static void free_items(struct lane_item *item)
{
    struct lane_item *next;

    for (; item; item = next) {
        next = item->next;
        free(item);
    }
}

static void forget_all(struct lane *lane)
{
    struct lane_queue *next;

    for (struct lane_queue *queue = lane->queues; queue; queue = next) {
        next = queue->next;
        if (queue->n > 0)
            free_items(queue->first);
        free(queue);
    }
    lane->queues = NULL;
    if (lane->ndone > 0)
        free_items(lane->done);
    lane->done = NULL;
    lane->n = lane->ndone = lane->in_flight = 0;
}

/* Queues that have been empty for a while. */
static void sweep(struct lane *lane)
{
    struct lane_queue **at = &lane->queues;

    if (lane->now_ms < lane->sweep_ms)
        return;
    lane->sweep_ms = lane->now_ms + SWEEP_EVERY_MS;
    while (*at) {
        struct lane_queue *queue = *at;

        if (queue->n > 0 || lane->now_ms - queue->used_ms < FORGET_AFTER_MS) {
            at = &queue->next;
            continue;
        }
        *at = queue->next;
        free(queue);
    }
}

/* ---- the producer --------------------------------------------------------------- */

void lane_spoil(struct lane *lane, int error)
{
    if (lane->spoiled == 0)
        lane->spoiled = error;
}

static void begin_destroying(struct lane *lane)
{
    topics_forget_producer(lane->topics);
    lane->job = producer_retire(lane->producer);
    lane->producer = NULL;
    lane->phase = LANE_DESTROYING;
}

static void replace_producer(struct lane *lane)
{
    bool quiet = lane->failed_ms == 0 || lane->now_ms - lane->failed_ms >= QUIET_MS;

    if (quiet)
        backoff_reset(&lane->backoff);
    lane->restart_ms = lane->now_ms;
    if (!quiet || poison_class_of(lane->spoiled) != POISON_PRODUCER)
        lane->restart_ms += backoff_next(&lane->backoff, random_next(&lane->random));
    lane->failed_ms = lane->now_ms;
    for (struct lane_queue *queue = lane->queues; queue; queue = queue->next)
        lane_unsend(lane, queue);
    begin_destroying(lane);
}

/* What librdkafka borrowed is free again. */
static void end_destroying(struct lane *lane)
{
    bool give_back = poison_class_of(lane->spoiled) != POISON_PRODUCER;

    if (lane->job)
        job_finish(lane->job);
    lane->job = NULL;
    if (!lane->dropping && lane->spoiled != 0 && give_back) {
        for (struct lane_queue *queue = lane->queues; queue; queue = queue->next)
            lane_give_back(lane, queue, lane->spoiled);
    }
    lane->dropping = false;
    lane->spoiled = 0;
    lane->phase = LANE_WAITING;
}

static int make_producer(struct lane *lane, struct err *err)
{
    struct producer_options options = {
        .properties = lane->options.properties,
        .nproperties = lane->options.nproperties,
        .lane = true,
        .missing_ms = lane->options.missing_ms,
        .max_messages = (size_t)PRODUCER_LANE_BATCH * 100,
        .callbacks = {on_report, on_trouble, on_log, NULL, lane},
    };

    lane->producer = producer_new(&options, err);
    if (!lane->producer)
        return -1;
    lane->phase = LANE_RUNNING;
    return 0;
}

static int serve_producer(struct lane *lane, struct err *err)
{
    struct err failed = {0};

    if (lane->phase == LANE_DESTROYING && (!lane->job || job_is_done(lane->job)))
        end_destroying(lane);
    if (lane->phase == LANE_WAITING && lane->now_ms >= lane->restart_ms)
        lane->phase = LANE_EMPTY;
    if (lane->phase != LANE_EMPTY || lane->n == 0 || make_producer(lane, &failed) == 0)
        return 0;
    if (failed.class != ERR_RETRY) {
        *err = failed;
        return -1;
    }
    lane->phase = LANE_WAITING;
    lane->restart_ms =
        lane->now_ms + backoff_next(&lane->backoff, random_next(&lane->random));
    return 0;
}

/* ---- the interface ---------------------------------------------------------------- */

struct lane *lane_new(const struct lane_options *options, struct err *err)
{
    struct lane *lane = calloc(1, sizeof(*lane));

    if (lane)
        lane->topics = topics_new();
    if (!lane || !lane->topics) {
        (void)err_set(err, ERR_INTERNAL, "out of memory for a second Kafka producer");
        free(lane);
        return NULL;
    }
    lane->options = *options;
    lane->random = (uint64_t)clock_wall_us() | 1;
    backoff_init(&lane->backoff, REBUILD_MS, REBUILD_MAX_MS);
    lane->now_ms = clock_mono_ms();
    return lane;
}

void lane_free(struct lane *lane)
{
    if (!lane)
        return;
    if (lane->job)
        job_finish(lane->job);
    producer_free(lane->producer);
    forget_all(lane);
    topics_free(lane->topics);
    free(lane->headers);
    free(lane);
}

/* All topics are forgotten together, with the producer, when nothing is there. */
static int no_topic(struct lane *lane, struct slice name, struct err *err)
{
    if (!topics_full(lane->topics))
        return err_set(err, ERR_INTERNAL, "out of memory for topic %.*s",
                       SLICE_ARG(name));
    if (lane_pending(lane) > 0)
        return 0;
    forget_all(lane);
    if (lane->phase == LANE_RUNNING)
        begin_destroying(lane);
    topics_clear(lane->topics);
    return 0;
}

int lane_put(struct lane *lane, const struct lane_record *record, struct err *err)
{
    struct slice name = record->message.topic;
    struct topic *topic = topics_get(lane->topics, name);
    struct lane_queue *queue;
    struct lane_item *item;

    if (lane->dropping)
        return 0;
    if (!topic)
        return no_topic(lane, name, err);
    queue = queue_of(lane, topic, record->partition);
    if (queue && queue->n >= QUEUE_MAX)
        return 0;
    item = queue ? calloc(1, sizeof(*item)) : NULL;
    if (!item)
        return err_set(err, ERR_INTERNAL, "out of memory for an event of topic %.*s",
                       SLICE_ARG(name));
    item->queue = queue;
    item->record = *record;
    item->record.message.topic = (struct slice){topic->name, topic->name_len};
    append(lane, queue, item);
    return 1;
}

bool lane_done(struct lane *lane, struct lane_result *ret)
{
    struct lane_item *item = lane->done;

    if (lane->ndone == 0)
        return false;
    *ret = (struct lane_result){
        .tag = item->record.tag,
        .outcome = item->outcome,
        .partition = item->partition,
        .error = item->error,
        .attempts = item->record.attempts,
        .doubted = item->record.doubted,
        .commit_time = item->commit_time,
    };
    if (item->error != 0)
        (void)snprintf(ret->text, sizeof(ret->text), "%s", kafka_error_text(item->error));
    lane->done = item->next;
    lane->ndone--;
    free(item);
    return true;
}

/* librdkafka's threads may sleep through a push on a busy machine, and what it sends
 * again by itself waits for them: at growing distances. */
static void push(struct lane *lane, bool new)
{
    uint64_t before;

    if (new)
        lane->push_wait_ms = PUSH_WAIT_MS;
    else if (lane->in_flight == 0 || lane->now_ms < lane->push_ms)
        return;
    before = producer_requests(lane->producer);
    lane->push_ms = lane->now_ms + lane->push_wait_ms;
    producer_push(lane->producer);
    if (producer_requests(lane->producer) == before && new)
        lane->push_ms = lane->now_ms;
    else if (lane->push_wait_ms < PUSH_WAIT_MAX_MS)
        lane->push_wait_ms *= 2;
}

static void settle_all(struct lane *lane)
{
    for (struct lane_queue *queue = lane->queues; queue; queue = queue->next)
        lane_settle(lane, queue);
}

static void send_all(struct lane *lane)
{
    size_t before = lane->in_flight;

    for (struct lane_queue *queue = lane->queues; queue; queue = queue->next)
        lane_send(lane, queue);
    push(lane, lane->in_flight > before);
}

int lane_serve(struct lane *lane, int64_t now_ms, struct err *err)
{
    lane->now_ms = now_ms;
    sweep(lane);
    if (serve_producer(lane, err) != 0)
        return -1;
    if (lane->phase != LANE_RUNNING)
        return 0;
    producer_poll(lane->producer);
    settle_all(lane);
    if (lane->spoiled == 0)
        send_all(lane);
    settle_all(lane); /* the push took reports, too */
    if (lane->spoiled != 0)
        replace_producer(lane);
    return 0;
}

size_t lane_fds(const struct lane *lane, struct pollfd *fds)
{
    if (lane->phase == LANE_RUNNING)
        fds[0] = (struct pollfd){producer_fd(lane->producer), POLLIN, 0};
    else if (lane->phase == LANE_DESTROYING && lane->job)
        fds[0] = (struct pollfd){job_fd(lane->job), POLLIN, 0};
    else
        return 0;
    return 1;
}

static bool may_send(const struct lane *lane)
{
    const struct lane_queue *queue = lane->queues;

    while (queue && (queue->n == 0 || queue->sent > 0))
        queue = queue->next;
    return queue != NULL;
}

int64_t lane_deadline(const struct lane *lane)
{
    if (lane->ndone > 0)
        return lane->now_ms;
    if (lane->phase == LANE_DESTROYING)
        return lane->job ? CLOCK_NEVER : lane->now_ms;
    if (lane->n == 0)
        return CLOCK_NEVER;
    if (lane->phase == LANE_WAITING)
        return lane->restart_ms;
    if (lane->phase == LANE_EMPTY || may_send(lane))
        return lane->now_ms;
    return lane->push_ms;
}

size_t lane_pending(const struct lane *lane)
{
    return lane->n + lane->ndone;
}

void lane_drop(struct lane *lane)
{
    forget_all(lane);
    if (lane->phase == LANE_RUNNING)
        begin_destroying(lane);
    lane->dropping = lane->phase == LANE_DESTROYING;
    lane->restart_ms = lane->now_ms;
}

bool lane_borrows(const struct lane *lane)
{
    return lane->dropping;
}
