#include "io/kafka_error.h"

#include <librdkafka/rdkafka.h>

#include <stddef.h>

_Static_assert((int)RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE == (int)KAFKA_ERROR_NO_RESOURCES,
               "librdkafka's number");

struct row {
    rd_kafka_resp_err_t error;
    enum kafka_verdict verdict;
    const char *cure;
};

/* An error that is not here waits: nothing is lost by it, and the operator is told. */
static const struct row table[] = {
    /* The producer instance cannot go on; its successor can. */
    {RD_KAFKA_RESP_ERR__FATAL, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR__INCONSISTENT, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR__PURGE_QUEUE, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR__PURGE_INFLIGHT, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR_DUPLICATE_SEQUENCE_NUMBER, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_EPOCH, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR_INVALID_PRODUCER_ID_MAPPING, KAFKA_REBUILD, ""},
    {RD_KAFKA_RESP_ERR_PRODUCER_FENCED, KAFKA_REBUILD, ""},

    /* One topic is not as it should be. */
    {RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC, KAFKA_WAIT_TOPIC, "create the topic"},
    {RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, KAFKA_WAIT_TOPIC, "create the topic"},
    {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, KAFKA_WAIT_TOPIC,
     "grant WRITE and DESCRIBE on the topic to the relay's principal"},
    {RD_KAFKA_RESP_ERR_POLICY_VIOLATION, KAFKA_WAIT_TOPIC,
     "create the topic as the cluster's policy demands"},
    {RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE, KAFKA_WAIT_TOPIC,
     "set compression.codec to one that the brokers know"},

    /* A record, or the batch it travelled in. */
    {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, KAFKA_TOO_LARGE,
     "raise max.message.bytes of the topic and message.max.bytes here"},
    {RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE, KAFKA_TOO_LARGE,
     "raise segment.bytes of the topic"},
    {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, KAFKA_BAD_TIME,
     "check the clocks, and message.timestamp.before.max.ms and "
     "message.timestamp.after.max.ms of the topic"},
    {RD_KAFKA_RESP_ERR_INVALID_RECORD, KAFKA_BAD_RECORD,
     "a compacted topic takes no record without a key"},
    {RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE, KAFKA_BAD_RECORD, ""},
    {RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION, KAFKA_BAD_RECORD,
     "the topic's name is not legal"},
    {RD_KAFKA_RESP_ERR__INVALID_ARG, KAFKA_BAD_RECORD, "the topic's name is not legal"},
    {RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION, KAFKA_BAD_PARTITION,
     "the topic has no such partition"},

    /* The cluster. */
    {RD_KAFKA_RESP_ERR__AUTHENTICATION, KAFKA_WAIT,
     "check sasl.mechanism, sasl.username and sasl.password"},
    {RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED, KAFKA_WAIT,
     "check sasl.mechanism, sasl.username and sasl.password"},
    {RD_KAFKA_RESP_ERR__SSL, KAFKA_WAIT,
     "check security.protocol, ssl.ca.location and the broker's certificate"},
    {RD_KAFKA_RESP_ERR__RESOLVE, KAFKA_WAIT,
     "check bootstrap.servers, and advertised.listeners of the broker"},
    {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED, KAFKA_WAIT,
     "grant WRITE on a topic, or IDEMPOTENT_WRITE on the cluster, to the relay's "
     "principal"},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, KAFKA_WAIT,
     "bring the missing brokers back (min.insync.replicas)"},
    {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND, KAFKA_WAIT,
     "bring the missing brokers back (min.insync.replicas)"},
    {RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, KAFKA_WAIT,
     "check bootstrap.servers and the brokers"},
    {RD_KAFKA_RESP_ERR__TRANSPORT, KAFKA_WAIT, "check bootstrap.servers and the brokers"},
};

static const struct row *find(int error)
{
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if ((int)table[i].error == error)
            return &table[i];
    }
    return NULL;
}

enum kafka_verdict kafka_error_verdict(int error)
{
    const struct row *row = find(error);

    return row ? row->verdict : KAFKA_WAIT;
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
