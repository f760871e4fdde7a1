/* kafka_error.h - what to do about each error of Kafka and of librdkafka: one table. */
#ifndef WALRELAY_IO_KAFKA_ERROR_H
#define WALRELAY_IO_KAFKA_ERROR_H

/* Numbers are librdkafka's rd_kafka_resp_err_t: the broker's are positive, librdkafka's
 * own negative, 0 is none. */
enum kafka_verdict {
    KAFKA_REBUILD,    /* the producer's own state is spoiled: a new one goes on at once */
    KAFKA_WAIT,       /* a state of the cluster: a new producer, after a growing delay */
    KAFKA_WAIT_TOPIC, /* a state of one topic: the others go on */
    KAFKA_TOO_LARGE,  /* a batch, or the one record in it, is over the topic's limit */
    KAFKA_BAD_TIME,   /* the timestamp of a record in the batch is refused */
    KAFKA_BAD_RECORD, /* a record in the batch can never be published */
    KAFKA_BAD_PARTITION, /* the topic has no such partition, or not yet, or no longer */
};

/* Librdkafka's own number for: no memory, no threads. */
enum { KAFKA_ERROR_NO_RESOURCES = -194 };

enum kafka_verdict kafka_error_verdict(int error);
const char *kafka_error_name(int error); /* "TOPIC_AUTHORIZATION_FAILED"; static */
const char *
kafka_error_text(int error); /* "Broker: Topic authorization failed"; static */
const char *kafka_error_cure(int error); /* what an operator can do, or "" */

#endif
