#include "base/must.h"
#include "io/producer_conf.h"
#include "io/producer_state.h"

#include <librdkafka/rdkafka.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { LOOK_MS = 1 };

struct producer_topic {
    struct producer_topic *next;
    rd_kafka_topic_t *rkt;
    /* Written by the partitioner, which librdkafka also calls in a thread of its own
     * for a message that waited for the topic's metadata. */
    atomic_int count;
};

/* ---- callbacks ---------------------------------------------------------------- */

static window_seq_t seq_of(const void *opaque)
{
    return (window_seq_t)(uintptr_t)opaque;
}

static void on_report(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque)
{
    const struct producer *producer = opaque;

    (void)rk;
    producer->callbacks.report(producer->callbacks.arg, seq_of(message->_private),
                               message->partition, (int)message->err);
}

static void on_error(rd_kafka_t *rk, int error, const char *reason, void *opaque)
{
    const struct producer *producer = opaque;
    bool fatal = error == RD_KAFKA_RESP_ERR__FATAL;
    char text[512];

    if (fatal) {
        error = (int)rd_kafka_fatal_error(rk, text, sizeof(text));
        reason = text;
    }
    producer->callbacks.trouble(producer->callbacks.arg, error, fatal, reason);
}

/* What on_error tells too, and that a property of our own choice is experimental. */
static bool is_noise(const char *fac, const char *buf)
{
    return strcmp(fac, "FATAL") == 0 || strcmp(fac, "FAIL") == 0 ||
           (strcmp(fac, "CONFWARN") == 0 && strstr(buf, "enable.gapless.guarantee"));
}

/* Of one as in syslog(3): no line of librdkafka's is the end of the relay. */
static enum log_level level_of(int level)
{
    return level <= 3 ? LOG_WARNING : level <= 4 ? LOG_INFO : LOG_DEBUG;
}

static void on_log(const rd_kafka_t *rk, int level, const char *fac, const char *buf)
{
    const struct producer *producer = rd_kafka_opaque(rk);

    if (!is_noise(fac, buf))
        producer->callbacks.log(producer->callbacks.arg, level_of(level), buf);
}

/* Runs inside rd_kafka_producev when the topic's metadata is known, later otherwise.
 * An answer of `count` is out of range: producev refuses the message, and the sink can
 * decide again with the right count before anything is queued. */
static int32_t on_partition(const rd_kafka_topic_t *rkt, const void *key, size_t key_len,
                            int32_t count, void *topic_opaque, void *message_opaque)
{
    struct producer_topic *topic = topic_opaque;
    int known = atomic_load(&topic->count);

    if (known != count) {
        atomic_store(&topic->count, count);
        if (known != 0)
            return count;
    }
    return rd_kafka_msg_partitioner_murmur2_random(rkt, key, key_len, count, topic_opaque,
                                                   message_opaque);
}

static rd_kafka_resp_err_t on_request_sent(rd_kafka_t *rk, int sockfd, const char *broker,
                                           int32_t broker_id, int16_t api_key,
                                           int16_t api_version, int32_t correlation_id,
                                           size_t size, void *opaque)
{
    enum { PRODUCE = 0 };
    struct producer *producer = opaque;

    (void)rk, (void)sockfd, (void)broker, (void)broker_id;
    (void)api_version, (void)correlation_id, (void)size;
    if (api_key == PRODUCE)
        atomic_fetch_add(&producer->requests, 1);
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static rd_kafka_resp_err_t on_new(rd_kafka_t *rk, const rd_kafka_conf_t *conf,
                                  void *opaque, char *text, size_t size)
{
    (void)conf, (void)text, (void)size;
    return rd_kafka_interceptor_add_on_request_sent(rk, "walrelay", on_request_sent,
                                                    opaque);
}

/* ---- making one --------------------------------------------------------------- */

/* The token refresh of OAUTHBEARER, which may ask a server over HTTP, runs in
 * librdkafka's own background thread.  Other mechanisms have no queue for it. */
static int refresh_tokens(struct producer *producer, struct err *err)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_get_sasl(producer->rk);
    rd_kafka_error_t *error;

    if (!queue)
        return 0;
    rd_kafka_queue_destroy(queue);
    error = rd_kafka_sasl_background_callbacks_enable(producer->rk);
    if (!error)
        return 0;
    (void)err_set(err, ERR_INTERNAL, "rd_kafka_sasl_background_callbacks_enable: %s",
                  rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return -1;
}

/* Reports, errors, log lines make the fd readable. */
static int start(struct producer *producer, struct err *err)
{
    if (rd_kafka_set_log_queue(producer->rk, NULL) != RD_KAFKA_RESP_ERR_NO_ERROR)
        return err_set(err, ERR_INTERNAL, "rd_kafka_set_log_queue failed");
    producer->queue = rd_kafka_queue_get_main(producer->rk);
    rd_kafka_queue_io_event_enable(producer->queue, producer->fd, &(uint64_t){1},
                                   sizeof(uint64_t));
    return refresh_tokens(producer, err);
}

static rd_kafka_t *make(struct producer *producer, const struct producer_options *options,
                        struct err *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_t *rk;
    char text[512];

    rd_kafka_conf_set_opaque(conf, producer);
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_log_cb(conf, on_log);
    if (producer_configure(conf, options, err) != 0) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    producer->batch_bytes = producer_conf_number(conf, "batch.size");
    producer->max_message_bytes = producer_conf_number(conf, "message.max.bytes");
    must(rd_kafka_conf_interceptor_add_on_new(conf, "walrelay", on_new, producer) ==
         RD_KAFKA_RESP_ERR_NO_ERROR);
    errno = 0;
    rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    if (!rk) {
        bool passes = rd_kafka_last_error() == RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;

        rd_kafka_conf_destroy(conf);
        (void)err_set(err, passes ? ERR_RETRY : ERR_CONFIG, "[kafka] %s", text);
    }
    return rk;
}

struct producer *producer_new(const struct producer_options *options, struct err *err)
{
    struct producer *producer = calloc(1, sizeof(*producer));

    if (!producer) {
        (void)err_set(err, ERR_RETRY, "out of memory for a Kafka producer");
        return NULL;
    }
    producer->callbacks = options->callbacks;
    /* Readable at first: what is in the queue before start() raises no event, nor does
     * anything behind it. */
    producer->fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    if (producer->fd < 0)
        (void)err_set(err, ERR_RETRY, "eventfd: %s", strerror(errno));
    else
        producer->rk = make(producer, options, err);
    if (!producer->rk || start(producer, err) != 0) {
        producer_free(producer);
        return NULL;
    }
    return producer;
}

/* librdkafka wants its topics back first, but may still ask on_partition about a message
 * that it holds, so what that looks at goes last. */
static void destroy(struct producer *producer)
{
    struct producer_topic *next;

    (void)rd_kafka_purge(producer->rk, RD_KAFKA_PURGE_F_QUEUE |
                                           RD_KAFKA_PURGE_F_INFLIGHT |
                                           RD_KAFKA_PURGE_F_NON_BLOCKING);
    for (struct producer_topic *topic = producer->topics; topic; topic = topic->next)
        rd_kafka_topic_destroy(topic->rkt);
    rd_kafka_destroy(producer->rk);
    for (struct producer_topic *topic = producer->topics; topic; topic = next) {
        next = topic->next;
        free(topic);
    }
}

void producer_free(struct producer *producer)
{
    if (!producer)
        return;
    if (producer->queue)
        rd_kafka_queue_destroy(producer->queue);
    if (producer->answers)
        rd_kafka_queue_destroy(producer->answers);
    if (producer->rk)
        destroy(producer);
    if (producer->fd >= 0)
        (void)close(producer->fd);
    free(producer);
}

static void free_producer(void *arg)
{
    producer_free(arg);
}

struct job *producer_retire(struct producer *producer)
{
    struct job *job = job_start(free_producer, producer, NULL);

    if (!job)
        producer_free(producer);
    return job;
}

/* ---- using it ----------------------------------------------------------------- */

int producer_fd(const struct producer *producer)
{
    return producer->fd;
}

void producer_poll(struct producer *producer)
{
    uint64_t count;

    /* First the fd, then the queue: the other way round an event could be lost. */
    (void)!read(producer->fd, &count, sizeof(count));
    while (rd_kafka_poll(producer->rk, 0) > 0) {
    }
    producer_take_answers(producer);
}

void producer_push(struct producer *producer)
{
    (void)rd_kafka_flush(producer->rk, 1);
}

uint64_t producer_requests(const struct producer *producer)
{
    return atomic_load(&producer->requests);
}

/* Librdkafka looks at the pause under the lock of the partition, each time it is about to
 * take messages from there; and it waits until that is set. */
static bool set_pause(struct producer *producer, const struct producer_topic *topic,
                      int32_t partition, bool on)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *only = rd_kafka_topic_partition_list_add(
        list, rd_kafka_topic_name(topic->rkt), partition);
    bool done;

    if (on)
        (void)rd_kafka_pause_partitions(producer->rk, list);
    else
        (void)rd_kafka_resume_partitions(producer->rk, list);
    done = only->err == RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_topic_partition_list_destroy(list);
    return done;
}

bool producer_pause(struct producer *producer, const struct producer_topic *topic,
                    int32_t partition)
{
    return set_pause(producer, topic, partition, true);
}

void producer_resume(struct producer *producer, const struct producer_topic *topic,
                     int32_t partition)
{
    (void)set_pause(producer, topic, partition, false);
}

void producer_purge(struct producer *producer)
{
    (void)rd_kafka_purge(producer->rk,
                         RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

size_t producer_batch_bytes(const struct producer *producer)
{
    return producer->batch_bytes;
}

size_t producer_max_message_bytes(const struct producer *producer)
{
    return producer->max_message_bytes;
}

struct producer_topic *producer_topic_new(struct producer *producer, const char *name,
                                          int *error)
{
    struct producer_topic *topic = calloc(1, sizeof(*topic));
    rd_kafka_topic_conf_t *conf = rd_kafka_default_topic_conf_dup(producer->rk);

    if (!topic) {
        rd_kafka_topic_conf_destroy(conf);
        *error = RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE;
        return NULL;
    }
    atomic_init(&topic->count, 0);
    rd_kafka_topic_conf_set_opaque(conf, topic);
    rd_kafka_topic_conf_set_partitioner_cb(conf, on_partition);
    topic->rkt = rd_kafka_topic_new(producer->rk, name, conf); /* takes conf, always */
    if (!topic->rkt) {
        *error = rd_kafka_last_error();
        free(topic);
        return NULL;
    }
    topic->next = producer->topics;
    producer->topics = topic;
    return topic;
}

void producer_look_at(struct producer *producer, const struct producer_topic *topic)
{
    const struct rd_kafka_metadata *metadata = NULL;

    if (rd_kafka_metadata(producer->rk, 0, topic->rkt, &metadata, LOOK_MS) ==
        RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(metadata);
}

int32_t producer_partition_count(const struct producer_topic *topic)
{
    return atomic_load(&topic->count);
}

int32_t producer_partition_of(const struct producer_topic *topic, struct slice key,
                              int32_t count)
{
    return rd_kafka_msg_partitioner_murmur2_random(topic->rkt, key.ptr, key.len, count,
                                                   NULL, NULL);
}

static rd_kafka_headers_t *headers_of(const struct entry *entry)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(entry->nheaders);

    for (size_t i = 0; i < entry->nheaders; i++) {
        const struct header *h = &entry->headers[i];

        (void)rd_kafka_header_add(headers, h->name.ptr, (ssize_t)h->name.len,
                                  h->value.ptr, (ssize_t)h->value.len);
    }
    return headers;
}

int producer_send(struct producer *producer, struct producer_topic *topic,
                  const struct entry *entry, int32_t partition, window_seq_t seq)
{
    rd_kafka_headers_t *headers = headers_of(entry);
    rd_kafka_resp_err_t error;

    /* No RD_KAFKA_MSG_F_COPY: the payload stays in the window, key and headers are
     * copied.  An absent slice has a NULL pointer, which is a NULL key or value. */
    error = rd_kafka_producev(
        producer->rk, RD_KAFKA_V_RKT(topic->rkt), RD_KAFKA_V_PARTITION(partition),
        RD_KAFKA_V_MSGFLAGS(0), RD_KAFKA_V_KEY(entry->key.ptr, entry->key.len),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)entry->payload.ptr, entry->payload.len),
        RD_KAFKA_V_TIMESTAMP(entry->timestamp_ms), RD_KAFKA_V_HEADERS(headers),
        RD_KAFKA_V_OPAQUE((void *)(uintptr_t)seq), RD_KAFKA_V_END);
    if (error != RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_headers_destroy(headers); /* taken only on success */
    return (int)error;
}
