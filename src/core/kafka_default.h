/* kafka_default.h - what librdkafka is told unless the [kafka] section says otherwise.
 *
 * Those that keep the promise of delivery cannot be overruled: config_parse refuses
 * other values. */
#ifndef WALRELAY_CORE_KAFKA_DEFAULT_H
#define WALRELAY_CORE_KAFKA_DEFAULT_H

#include <stddef.h>

struct kafka_default {
    const char *name;
    const char *alias; /* librdkafka's other name for it, or NULL */
    const char *value;
};

extern const struct kafka_default kafka_defaults[];
extern const size_t nkafka_defaults;

#endif
