/* producer_conf.h - for producer.c alone: the configuration of a producer. */
#ifndef WALRELAY_IO_PRODUCER_CONF_H
#define WALRELAY_IO_PRODUCER_CONF_H

#include "io/producer.h"

struct rd_kafka_conf_s;

/* Ours, then the user's, then what must be so.  -1 with err set: ERR_CONFIG in
 * librdkafka's words. */
int producer_configure(struct rd_kafka_conf_s *conf,
                       const struct producer_options *options, struct err *err)
    __attribute__((warn_unused_result));

/* The value of a property that is a number. */
size_t producer_conf_number(const struct rd_kafka_conf_s *conf, const char *name);

#endif
