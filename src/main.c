/* main.c - the command line to one call, and the way it ended to an exit code. */
#include "app/check.h"
#include "app/cli.h"
#include "app/dead_letters.h"
#include "app/exit_code.h"
#include "app/load.h"
#include "app/relay.h"
#include "app/setup.h"
#include "base/log.h"
#include "io/job.h"

#include <stdio.h>
#include <unistd.h>

extern char **environ;

static int call(const struct cli *cli, const struct config *config, struct err *err)
{
    switch (cli->command) {
    case CLI_RUN:
        return relay_run(config, cli->config_path, err);
    case CLI_CHECK:
        return check_print(config, stdout, err);
    case CLI_SETUP:
        return setup_run(config, cli->apply, stdout, err);
    case CLI_DEAD_LETTERS:
        return letters_run(config, &cli->letters, stdout, err);
    case CLI_CONFIG:
        config_print(config, stdout);
        return 0;
    case CLI_NONE:
        break;
    }
    return err_set(err, ERR_INTERNAL, "there is no such command");
}

static int run_command(const struct cli *cli, struct err *err)
{
    struct config *config = config_load(cli->config_path, (config_env_t)environ, err);
    int rc;

    if (!config)
        return -1;
    log_init(config->relay.log_level, config->relay.log_format);
    rc = call(cli, config, err);
    if (jobs_left() == 0) /* a thread may still look at it */
        config_free(config);
    return rc;
}

static int obey(const struct cli *cli, struct err *err)
{
    int rc = 0;

    if (cli->version)
        (void)puts("walrelay " WALRELAY_VERSION);
    else if (cli->help)
        cli_help(cli->command, stdout);
    else if (cli->reference)
        config_reference(stdout);
    else
        rc = run_command(cli, err);
    if (fflush(stdout) != 0 && rc == 0)
        return err_set(err, ERR_INTERNAL, "cannot write to standard output");
    return rc;
}

/* A thread that still connects to a silent host is not waited for. */
static int leave(int code)
{
    if (jobs_left() == 0)
        return code;
    (void)fflush(NULL);
    _exit(code);
}

int main(int argc, char **argv)
{
    struct err err = {0};
    struct cli cli;

    log_init(LOG_INFO, LOG_TEXT);
    if (cli_parse(argc, argv, (config_env_t)environ, &cli, &err) < 0) {
        log_err(LOG_ERROR, &err);
        return EXIT_USAGE;
    }
    if (obey(&cli, &err) == 0)
        return leave(EXIT_STOPPED);
    log_err(LOG_ERROR, &err);
    return leave((int)exit_code_of(err.class));
}
