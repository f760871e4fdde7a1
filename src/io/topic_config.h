/* topic_config.h - what the brokers say of each topic, so that most of what Kafka would
 * refuse is known before it is sent.
 *
 * Asked when a topic is first used and every five minutes, for many topics in one
 * request. Nobody waits for the answer: until it is there nothing is refused here.
 * Describing configurations is a right that many principals lack; then the brokers'
 * defaults are assumed, which is said once.
 *
 * Nothing here blocks; the answers come in the callbacks of a producer. */
#ifndef WALRELAY_IO_TOPIC_CONFIG_H
#define WALRELAY_IO_TOPIC_CONFIG_H

#include "base/log.h"
#include "io/producer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct topic_configs;

enum topic_config_state {
    TOPIC_CONFIG_UNKNOWN, /* no answer yet, or the topic does not exist yet */
    TOPIC_CONFIG_ASSUMED, /* the brokers do not tell */
    TOPIC_CONFIG_KNOWN,
};

/* Limits that are not known are as wide as can be, but for max_message_bytes of what is
 * assumed. */
struct topic_config {
    enum topic_config_state state;
    size_t max_message_bytes; /* of a batch, after compression */
    bool compacted;           /* a record must have a key */
    int64_t before_max_ms;    /* a timestamp may be that much older than the broker's
                                 clock, */
    int64_t after_max_ms;     /* or newer */
};

struct topic_configs_options {
    void (*notice)(void *arg, enum log_level level, const struct log_field *fields,
                   const char *text);
    void *notice_arg;
};

/* NULL: no memory. */
struct topic_configs *topic_configs_new(const struct topic_configs_options *options)
    __attribute__((warn_unused_result));
void topic_configs_free(struct topic_configs *configs);

/* A topic that is used for the first time; once for each name, which is borrowed until
 * topic_configs_clear, and so long the result lives.  NULL: no memory. */
const struct topic_config *topic_configs_add(struct topic_configs *configs,
                                             const char *name)
    __attribute__((warn_unused_result));
void topic_configs_clear(struct topic_configs *configs);

/* Who is asked from now on; what another one was asked is asked again.  NULL: nobody. */
void topic_configs_use(struct topic_configs *configs, struct producer *producer);

/* The callback `described` of that producer. */
void topic_configs_described(struct topic_configs *configs,
                             const struct producer_description *description);

/* Asks if it is time to. */
void topic_configs_serve(struct topic_configs *configs, int64_t now_ms);

/* When topic_configs_serve has something to do. */
int64_t topic_configs_deadline(const struct topic_configs *configs);

/* The smallest max_message_bytes of what is known: no batch should be larger.  SIZE_MAX:
 * nothing is known. */
size_t topic_configs_smallest(const struct topic_configs *configs);

/* What the topic would say of a record. */
enum topic_config_verdict {
    TOPIC_CONFIG_FITS,
    TOPIC_CONFIG_NO_KEY,    /* can never be taken */
    TOPIC_CONFIG_LARGE,     /* unless compression makes it smaller */
    TOPIC_CONFIG_TIMESTAMP, /* out of range, by our clock */
};

/* bytes: of the record, uncompressed, with all that surrounds it.  config may be NULL. */
enum topic_config_verdict topic_config_judge(const struct topic_config *config,
                                             bool has_key, size_t bytes,
                                             int64_t timestamp_ms, int64_t wall_ms);

#endif
