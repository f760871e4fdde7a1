/* signals.h - signals as events in poll(2). */
#ifndef WALRELAY_IO_SIGNALS_H
#define WALRELAY_IO_SIGNALS_H

#include "base/err.h"

/* Blocks SIGTERM, SIGINT and SIGHUP, ignores SIGPIPE, and gives a descriptor that is
 * readable when one of them came.  Called before the first thread starts, as threads
 * inherit the mask.  -1 with err set. */
int signals_open(struct err *err) __attribute__((warn_unused_result));

/* The next signal's number, 0 when there is none. */
int signals_take(int fd);

/* Everything as it was for a new process. */
void signals_close(int fd);

#endif
