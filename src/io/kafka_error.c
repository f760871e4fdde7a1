#include "io/kafka_error.h"

#include <librdkafka/rdkafka.h>

#include <stddef.h>

_Static_assert((int)RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE == (int)KAFKA_ERROR_NO_RESOURCES,
               "librdkafka's number");
_Static_assert((int)RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC == (int)KAFKA_ERROR_UNKNOWN_TOPIC &&
                   (int)RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ==
                       (int)KAFKA_ERROR_NO_SUCH_TOPIC &&
                   (int)RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ==
                       (int)KAFKA_ERROR_NO_RIGHT,
               "librdkafka's numbers");
#if RD_KAFKA_VERSION >= 0x020400ff
_Static_assert((int)RD_KAFKA_RESP_ERR__INVALID_DIFFERENT_RECORD ==
                   (int)KAFKA_ERROR_OTHER_RECORD,
               "librdkafka's number");
#endif

struct row {
    rd_kafka_resp_err_t error;
    const char *cure;
};

static const struct row table[] = {
    /* One topic is not as it should be. */
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, "create the topic"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, "create the topic"},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
     "grant WRITE and DESCRIBE on the topic to the relay's principal"},
    {RD_KAFKA_RESP_ERR_POLICY_VIOLATION,
     "create the topic as the cluster's policy demands"},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE,
     "set compression.codec to one that the brokers know"},

    /* A record, or the batch it travelled in. */
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
     "raise max.message.bytes of the topic and message.max.bytes here"},
    {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, "raise segment.bytes of the topic"},
    {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP,
     "check the clocks, and message.timestamp.before.max.ms and "
     "message.timestamp.after.max.ms of the topic"},
    {RD_KAFKA_RESP_ERR_INVALID_RECORD, "a compacted topic takes no record without a key"},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, "the topic's name is not legal"},
    {RD_KAFKA_RESP_ERR__INVALID_ARG, "the topic's name is not legal"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, "the topic has no such partition"},

    /* The cluster. */
    {RD_KAFKA_RESP_ERR__AUTHENTICATION,
     "check sasl.mechanism, sasl.username and sasl.password"},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED,
     "check sasl.mechanism, sasl.username and sasl.password"},
    {RD_KAFKA_RESP_ERR__SSL,
     "check security.protocol, ssl.ca.location and the broker's certificate"},
    {RD_KAFKA_RESP_ERR__RESOLVE,
     "check bootstrap.servers, and advertised.listeners of the broker"},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED,
     "grant WRITE on a topic, or IDEMPOTENT_WRITE on the cluster, to the relay's "
     "principal"},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS,
     "bring the missing brokers back (min.insync.replicas)"},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND,
     "bring the missing brokers back (min.insync.replicas)"},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "check bootstrap.servers and the brokers"},
    {RD_KAFKA_RESP_ERR__TRANSPORT, "check bootstrap.servers and the brokers"},
};

static const struct row *find(int error)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if ((int)table[i].error == error)
            return &table[i];
    }
    return NULL;
}

const char *kafka_error_cure(int error)
{
    const struct row *row = find(error);

    return row ? row->cure : "";
}

const char *kafka_error_name(int error)
{
    return rd_kafka_err2name((rd_kafka_resp_err_t)error);
}

const char *kafka_error_text(int error)
{
    return rd_kafka_err2str((rd_kafka_resp_err_t)error);
}
