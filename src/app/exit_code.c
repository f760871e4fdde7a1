#include "app/exit_code.h"

enum exit_code exit_code_of(enum err_class class)
{
    switch (class) {
    case ERR_NONE:
        return EXIT_STOPPED;
    case ERR_POISON:
        return EXIT_POISON;
    case ERR_SLOT:
        return EXIT_SLOT;
    case ERR_DENIED:
        return EXIT_DENIED;
    case ERR_CONFIG:
        return EXIT_CONFIG;
    case ERR_USAGE:
        return EXIT_USAGE;
    case ERR_RETRY: /* never ends run; a command that people type gives up */
    case ERR_INTERNAL:
        break;
    }
    return EXIT_INTERNAL;
}
