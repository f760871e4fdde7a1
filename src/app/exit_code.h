/* exit_code.h - how `walrelay run` ends, after sysexits.h. */
#ifndef WALRELAY_APP_EXIT_CODE_H
#define WALRELAY_APP_EXIT_CODE_H

#include "base/err.h"

enum exit_code {
    EXIT_STOPPED = 0,   /* asked to stop, and everything confirmed */
    EXIT_USAGE = 64,    /* the command line */
    EXIT_POISON = 65,   /* an event cannot be published and the policy is stop */
    EXIT_SLOT = 66,     /* the slot is missing, lost or of another server; not retried */
    EXIT_INTERNAL = 70, /* a bug, or no memory */
    EXIT_DENIED = 77,   /* authentication or rights */
    EXIT_CONFIG = 78,   /* the configuration, or the server's */
};

enum exit_code exit_code_of(enum err_class class);

#endif
