#include "core/kafka_default.h"

const struct kafka_default kafka_defaults[] = {
    {"client.id", NULL, "walrelay"},
    {"acks", "request.required.acks", "all"},
    {"enable.idempotence", NULL, "true"},
    {"enable.gapless.guarantee", NULL, "true"},
    {"message.timeout.ms", "delivery.timeout.ms", "0"},
    {"compression.codec", "compression.type", "lz4"},
    /* producer_push cuts it short while little is to do */
    {"linger.ms", "queue.buffering.max.ms", "5"},
    /* a missing topic waits */
    {"topic.metadata.propagation.max.ms", NULL, "1800000"},
    {"socket.nagle.disable", NULL, "true"},
    {"reconnect.backoff.max.ms", NULL, "2000"},
    {"log.connection.close", NULL, "false"},
    {"log.queue", NULL, "true"},
};
const size_t nkafka_defaults = sizeof(kafka_defaults) / sizeof(kafka_defaults[0]);
