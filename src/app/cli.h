/* cli.h - what people type: `walrelay COMMAND [OPTION ...]`. */
#ifndef WALRELAY_APP_CLI_H
#define WALRELAY_APP_CLI_H

#include "app/dead_letters.h"
#include "base/err.h"
#include "core/config.h"

#include <stdbool.h>
#include <stdio.h>

enum cli_command {
    CLI_RUN,
    CLI_CHECK,
    CLI_SETUP,
    CLI_DEAD_LETTERS,
    CLI_CONFIG,
    CLI_NONE,
};

struct cli {
    enum cli_command command; /* CLI_NONE: only help or version were asked for */
    const char *config_path;  /* borrowed from argv or env */
    bool help;
    bool version;
    bool apply;                  /* setup */
    bool reference;              /* config: the settings part of docs/reference.md */
    struct letters_args letters; /* dead-letters */
};

/* Reads the command line; options may stand before and after the command.  -1 with err
 * set, and *ret untouched, for what is not understood: with the nearest valid name. */
int cli_parse(int argc, char **argv, config_env_t env, struct cli *ret, struct err *err)
    __attribute__((warn_unused_result));

/* The help of one command, or of all for CLI_NONE. */
void cli_help(enum cli_command command, FILE *out);

#endif
