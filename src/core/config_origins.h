/* config_origins.h - every value as text and where it was written; private to
 * config*.c. */
#ifndef WALRELAY_CORE_CONFIG_ORIGINS_H
#define WALRELAY_CORE_CONFIG_ORIGINS_H

#include "core/config.h"
#include "core/settings.h"

struct config_value {
    const struct setting *setting;
    size_t table; /* index of the [table] section; 0 for others */
    char *key;    /* setting->key, or the name of a property */
    char *text;
    char *origin; /* "walrelay.conf:3", "WALRELAY_RELAY_MEMORY", "default" */
    bool from_environment;
};

struct config_origins {
    struct config_value *values;
    size_t n;
};

/* NULL if it has no value yet. */
struct config_value *origins_find(const struct config_origins *origins,
                                  const struct setting *setting, size_t table,
                                  const char *key);

/* Adds a value, or puts it in the place of an earlier one.  -1: out of memory. */
int origins_set(struct config_origins *origins, struct config_value value,
                struct err *err) __attribute__((warn_unused_result));

void origins_free(struct config_origins *origins); /* NULL is allowed */

/* Lets the environment's variables win over the values that are there. */
int origins_read_environment(struct config_origins *origins, config_env_t env,
                             struct err *err) __attribute__((warn_unused_result));

#endif
