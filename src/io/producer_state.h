/* producer_state.h - what the files of the producer share; nobody else includes it.
 *
 *   producer.c          makes one, sends and reports
 *   producer_conf.c     what librdkafka is told before there is one
 *   producer_describe.c asks brokers for the configuration of topics */
#ifndef WALRELAY_IO_PRODUCER_STATE_H
#define WALRELAY_IO_PRODUCER_STATE_H

#include "io/producer.h"

#include <stdatomic.h>

struct rd_kafka_s;
struct rd_kafka_queue_s;

struct producer {
    struct rd_kafka_s *rk;
    struct rd_kafka_queue_s *queue;
    struct rd_kafka_queue_s *answers; /* to what was asked; NULL: nothing was */
    int fd;
    size_t batch_bytes;
    size_t max_message_bytes;
    struct producer_callbacks callbacks;
    struct producer_topic *topics;
    atomic_uint_fast64_t requests; /* counted by librdkafka's threads */
};

/* producer_describe.c: hands out the answers that have come. */
void producer_take_answers(struct producer *producer);

#endif
