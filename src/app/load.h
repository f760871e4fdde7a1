/* load.h - the configuration file's bytes, and the configuration that they are. */
#ifndef WALRELAY_APP_LOAD_H
#define WALRELAY_APP_LOAD_H

#include "base/err.h"
#include "core/config.h"

/* Reads the file and hands it to config_parse.  NULL with err set: ERR_CONFIG also for
 * a file that cannot be read. */
struct config *config_load(const char *path, config_env_t env, struct err *err)
    __attribute__((warn_unused_result));

#endif
