/* producer_conf.c - what librdkafka is told about a producer before there is one. */
#include "io/producer_conf.h"

#include "base/clock.h"
#include "base/must.h"
#include "core/kafka_default.h"
#include "core/unsecured_jwt.h"

#include <librdkafka/rdkafka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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

size_t producer_conf_number(const rd_kafka_conf_t *conf, const char *name)
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
    size_t now = producer_conf_number(conf, name);
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
    size_t largest = producer_conf_number(conf, "message.max.bytes");

    return (largest > options->max_bytes ? largest : options->max_bytes) / 1024 + 1;
}

/* What differs for a producer of which a record may be refused. */
static int set_lane(rd_kafka_conf_t *conf, struct err *err)
{
    static const struct {
        const char *name;
        const char *value;
    } lane[] = {
        {"enable.gapless.guarantee", "false"},
        {"linger.ms", "0"}, /* what belongs together is held by producer_pause */
        {"message.timeout.ms", "30000"},
        {"topic.metadata.propagation.max.ms", "10000"},
    };

    for (size_t i = 0; i < sizeof(lane) / sizeof(lane[0]); i++) {
        if (set(conf, lane[i].name, lane[i].value, err) != 0)
            return -1;
    }
    return bound(conf, "batch.num.messages", PRODUCER_LANE_BATCH, SIZE_MAX, err);
}

int producer_configure(rd_kafka_conf_t *conf, const struct producer_options *options,
                       struct err *err)
{
    size_t batch = options->batch_bytes ? options->batch_bytes : SIZE_MAX;
    size_t missing_ms = options->missing_ms ? (size_t)options->missing_ms : SIZE_MAX;

    if (set_all(conf, options, err) != 0 || (options->lane && set_lane(conf, err) != 0) ||
        bound(conf, "batch.size", 0, batch, err) != 0 ||
        bound(conf, "topic.metadata.propagation.max.ms", 0, missing_ms, err) != 0 ||
        bound(conf, "queue.buffering.max.messages", options->max_messages, SIZE_MAX,
              err) != 0 ||
        bound(conf, "queue.buffering.max.kbytes", queue_kbytes(conf, options), SIZE_MAX,
              err) != 0 ||
        /* else librdkafka chooses for messages without a key, and on_partition never
         * hears how many partitions there are */
        set(conf, "sticky.partitioning.linger.ms", "0", err) != 0)
        return -1;
    rd_kafka_conf_enable_sasl_queue(conf, 1);
    return refuse_what_is_broken(conf, err) != 0 ? -1 : choose_tokens(conf, err);
}
