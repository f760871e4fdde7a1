#include "io/producer.h"

#include "base/clock.h"
#include "base/must.h"
#include "core/kafka_default.h"
#include "core/unsecured_jwt.h"

#include <librdkafka/rdkafka.h>

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct producer {
    rd_kafka_t *rk;
    rd_kafka_queue_t *queue;
    int fd;
    size_t batch_bytes;
    size_t max_message_bytes;
    struct producer_callbacks callbacks;
    struct producer_topic *topics;
    atomic_uint_fast64_t requests; /* counted by librdkafka's threads */
};

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

static void on_log(const rd_kafka_t *rk, int level, const char *fac, const char *buf)
{
    const struct producer *producer = rd_kafka_opaque(rk);

    if (!is_noise(fac, buf))
        producer->callbacks.log(producer->callbacks.arg, level, buf);
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

/* In librdkafka's background thread, at the start and when 80 % of a token's life is
 * over. */
static void on_token(rd_kafka_t *rk, const char *config, void *opaque)
{
    struct unsecured_jwt jwt;
    struct err err = {0};
    char text[512];

    (void)opaque;
    if (unsecured_jwt(config ? config : "", clock_wall_us() / 1000, &jwt, &err) != 0)
        (void)rd_kafka_oauthbearer_set_token_failure(rk, err.text);
    else if (rd_kafka_oauthbearer_set_token(rk, jwt.token, jwt.expires_ms, jwt.principal,
                                            NULL, 0, text, sizeof(text)) != 0)
        (void)rd_kafka_oauthbearer_set_token_failure(rk, text);
}

/* ---- making one --------------------------------------------------------------- */

static int set(rd_kafka_conf_t *conf, const char *name, const char *value,
               struct err *err)
{
    char text[512];

    if (rd_kafka_conf_set(conf, name, value, text, sizeof(text)) == RD_KAFKA_CONF_OK)
        return 0;
    return err_set(err, ERR_CONFIG, "[kafka] %s: %s", name, text);
}

static int set_all(rd_kafka_conf_t *conf, const struct producer_options *options,
                   struct err *err)
{
    for (size_t i = 0; i < nkafka_defaults; i++) {
        if (set(conf, kafka_defaults[i].name, kafka_defaults[i].value, err) != 0)
            return -1;
    }
    for (size_t i = 0; i < options->nproperties; i++) {
        if (set(conf, options->properties[i].name, options->properties[i].value, err) !=
            0)
            return -1;
    }
    return 0;
}

static size_t get_number(const rd_kafka_conf_t *conf, const char *name)
{
    char text[64] = "";
    size_t size = sizeof(text);

    must(rd_kafka_conf_get(conf, name, text, &size) == RD_KAFKA_CONF_OK);
    return (size_t)strtoull(text, NULL, 10);
}

/* Lowers the property called name to at most, or raises it to at least, a number. */
static int bound(rd_kafka_conf_t *conf, const char *name, size_t least, size_t most,
                 struct err *err)
{
    size_t now = get_number(conf, name);
    char text[32];

    if (now >= least && now <= most)
        return 0;
    (void)snprintf(text, sizeof(text), "%zu", now < least ? least : most);
    return set(conf, name, text, err);
}

static bool uses(const rd_kafka_conf_t *conf, const char *name, const char *prefix)
{
    char text[128] = "";
    size_t size = sizeof(text);

    return rd_kafka_conf_get(conf, name, text, &size) == RD_KAFKA_CONF_OK &&
           strncasecmp(text, prefix, strlen(prefix)) == 0;
}

static int refuse_what_is_broken(const rd_kafka_conf_t *conf, struct err *err)
{
    /* "Fixed: SASL SCRAM: use of the nonce" in librdkafka's changelog of 2.6.1: brokers
     * since Kafka 3.9 answer "invalid credentials" to older clients. */
    if (uses(conf, "sasl.mechanisms", "SCRAM") && rd_kafka_version() < 0x020601ff)
        return err_set(
            err, ERR_CONFIG,
            "[kafka] sasl.mechanism: librdkafka %s sends a wrong SCRAM nonce, "
            "which Kafka refuses; use librdkafka 2.6.1 or newer, or PLAIN over "
            "TLS",
            rd_kafka_version_str());
    return 0;
}

/* Where tokens come from: librdkafka asks a server (method=oidc), or they are made here.
 */
static int choose_tokens(rd_kafka_conf_t *conf, struct err *err)
{
    char config[512] = "";
    size_t size = sizeof(config);
    struct unsecured_jwt jwt;

    if (!uses(conf, "sasl.mechanisms", "OAUTHBEARER") ||
        uses(conf, "sasl.oauthbearer.method", "oidc"))
        return 0;
    if (!uses(conf, "enable.sasl.oauthbearer.unsecure.jwt", "true"))
        return err_set(err, ERR_CONFIG,
                       "[kafka] sasl.mechanism=OAUTHBEARER has no source of tokens; set "
                       "sasl.oauthbearer.method=oidc, or for development "
                       "enable.sasl.oauthbearer.unsecure.jwt=true");
    (void)rd_kafka_conf_get(conf, "sasl.oauthbearer.config", config, &size);
    rd_kafka_conf_set_oauthbearer_token_refresh_cb(conf, on_token);
    /* librdkafka 2.0.2 crashes when it renews a token of its own: its timer puts the
     * request into a queue that does not exist. */
    if (set(conf, "enable.sasl.oauthbearer.unsecure.jwt", "false", err) != 0)
        return -1;
    return unsecured_jwt(config, 0, &jwt, err);
}

/* A message that is larger than the window travels alone. */
static size_t queue_kbytes(const rd_kafka_conf_t *conf,
                           const struct producer_options *options)
{
    size_t largest = get_number(conf, "message.max.bytes");

    return (largest > options->max_bytes ? largest : options->max_bytes) / 1024 + 1;
}

static int configure(rd_kafka_conf_t *conf, const struct producer_options *options,
                     struct err *err)
{
    size_t batch = options->batch_bytes ? options->batch_bytes : SIZE_MAX;

    if (set_all(conf, options, err) != 0 ||
        bound(conf, "batch.size", 0, batch, err) != 0 ||
        bound(conf, "queue.buffering.max.messages", options->max_messages, SIZE_MAX,
              err) != 0 ||
        bound(conf, "queue.buffering.max.kbytes", queue_kbytes(conf, options), SIZE_MAX,
              err) != 0 ||
        /* else librdkafka chooses for messages without a key, and on_partition never
         * hears how many partitions there are */
        set(conf, "sticky.partitioning.linger.ms", "0", err) != 0)
        return -1;
    rd_kafka_conf_set_dr_msg_cb(conf, on_report);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_log_cb(conf, on_log);
    rd_kafka_conf_enable_sasl_queue(conf, 1);
    return refuse_what_is_broken(conf, err) != 0 ? -1 : choose_tokens(conf, err);
}

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
    if (configure(conf, options, err) != 0) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    producer->batch_bytes = get_number(conf, "batch.size");
    producer->max_message_bytes = get_number(conf, "message.max.bytes");
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
    if (producer->rk)
        destroy(producer);
    if (producer->fd >= 0)
        (void)close(producer->fd);
    free(producer);
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
}

void producer_push(struct producer *producer)
{
    (void)rd_kafka_flush(producer->rk, 1);
}

uint64_t producer_requests(const struct producer *producer)
{
    return atomic_load(&producer->requests);
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
