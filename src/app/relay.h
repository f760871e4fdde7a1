/* relay.h - `walrelay run`: the phases and the only poll(). */
#ifndef WALRELAY_APP_RELAY_H
#define WALRELAY_APP_RELAY_H

#include "base/err.h"
#include "core/config.h"

/* Streams until SIGTERM or SIGINT, or until something that waiting cannot mend.
 * config_path is read again on SIGHUP.
 *
 * 0: stopped as asked; -1: err is set.  Either way a thread may be left that still
 * connects to a silent host (jobs_left): config must stay for it. */
int relay_run(const struct config *config, const char *config_path, struct err *err)
    __attribute__((warn_unused_result));

#endif
