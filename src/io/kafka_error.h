/* kafka_error.h - the words for each error of Kafka and of librdkafka. */
#ifndef WALRELAY_IO_KAFKA_ERROR_H
#define WALRELAY_IO_KAFKA_ERROR_H

/* Numbers are librdkafka's rd_kafka_resp_err_t: the broker's are positive, librdkafka's
 * own negative, 0 is none.  What becomes of an event says core/poison.h. */

/* Librdkafka's own numbers for: no memory, no threads; and, from 2.4 on: another record
 * of the batch is to blame. */
enum { KAFKA_ERROR_NO_RESOURCES = -194, KAFKA_ERROR_OTHER_RECORD = -138 };

const char *kafka_error_name(int error); /* "TOPIC_AUTHORIZATION_FAILED"; static */
const char *
kafka_error_text(int error); /* "Broker: Topic authorization failed"; static */
const char *kafka_error_cure(int error); /* what an operator can do, or "" */

#endif
