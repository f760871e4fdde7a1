/* kafka_error.h - the words for each error of Kafka and of librdkafka. */
#ifndef WALRELAY_IO_KAFKA_ERROR_H
#define WALRELAY_IO_KAFKA_ERROR_H

/* Numbers are librdkafka's rd_kafka_resp_err_t: the broker's are positive, librdkafka's
 * own negative, 0 is none.  What becomes of an event says core/poison.h. */

/* Librdkafka's own numbers for: no memory, no threads; and, from 2.4 on: another record
 * of the batch is to blame; a topic that does not exist, twice, and one that we may not
 * write to. */
enum {
    KAFKA_ERROR_NO_RESOURCES = -194,
    KAFKA_ERROR_OTHER_RECORD = -138,
    KAFKA_ERROR_UNKNOWN_TOPIC = -188,
    KAFKA_ERROR_NO_SUCH_TOPIC = 3,
    KAFKA_ERROR_NO_RIGHT = 29,
};

const char *kafka_error_name(int error); /* "TOPIC_AUTHORIZATION_FAILED"; static */
const char *
kafka_error_text(int error); /* "Broker: Topic authorization failed"; static */
const char *kafka_error_cure(int error); /* what an operator can do, or "" */

#endif
