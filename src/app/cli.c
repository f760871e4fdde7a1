#include "app/cli.h"

#include "core/nearest.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct command {
    const char *name;
    const char *summary;
};

static const struct command commands[] = {
    [CLI_RUN] = {"run", "publish the rows of the outbox tables to Kafka"},
    [CLI_CHECK] = {"check",
                   "say whether the server has all that the configuration needs"},
    [CLI_SETUP] = {"setup", "print the SQL that makes role, tables and slot"},
    [CLI_DEAD_LETTERS] = {"dead-letters",
                          "list, show, retry, discard or export what Kafka did not take"},
    [CLI_CONFIG] = {"config", "print the effective settings and where each comes from"},
};

struct option_help {
    struct option option;     /* of getopt_long; val is the short letter */
    enum cli_command command; /* the only one that takes it; CLI_NONE: all */
    const char *usage;        /* NULL: for the project's own use */
    const char *summary;
};

static const struct option_help options[] = {
    {{"config", required_argument, NULL, 'c'},
     CLI_NONE,
     "-c, --config FILE",
     "the configuration; default: $WALRELAY_CONFIG or walrelay.conf"},
    {{"apply", no_argument, NULL, 'a'},
     CLI_SETUP,
     "    --apply",
     "run the SQL instead of printing it"},
    {{"json", no_argument, NULL, 'j'},
     CLI_DEAD_LETTERS,
     "    --json",
     "list, show: as JSON, a line each; without payloads in list"},
    {{"state", required_argument, NULL, 's'},
     CLI_DEAD_LETTERS,
     "    --state STATE",
     "only waiting, held, dead, resolved or discarded ones, or all; default: the first "
     "three"},
    {{"topic", required_argument, NULL, 't'},
     CLI_DEAD_LETTERS,
     "    --topic TOPIC",
     "only those of that topic"},
    {{"key", required_argument, NULL, 'k'},
     CLI_DEAD_LETTERS,
     "    --key KEY",
     "only those of that key"},
    {{"reason", required_argument, NULL, 'e'},
     CLI_DEAD_LETTERS,
     "    --reason TEXT",
     "only those of that reason; discard: why the events are given up"},
    {{"all", no_argument, NULL, 'A'},
     CLI_DEAD_LETTERS,
     "    --all",
     "retry: all that are waiting or dead"},
    {{"payload-file", required_argument, NULL, 'p'},
     CLI_DEAD_LETTERS,
     "    --payload-file FILE",
     "retry of one: these bytes instead of its payload, which stays in the table"},
    {{"reference", no_argument, NULL, 'r'}, CLI_CONFIG, NULL, NULL},
    {{"help", no_argument, NULL, 'h'}, CLI_NONE, "-h, --help", "print this"},
    {{"version", no_argument, NULL, 'V'}, CLI_NONE, "-V, --version", "print the version"},
};

/* ---- help ---------------------------------------------------------------------- */

static void print_options(enum cli_command command, FILE *out)
{
    (void)fputs("\nOptions:\n", out);
    for (size_t i = 0; i < COUNT(options); i++) {
        const struct option_help *option = &options[i];

        if (option->usage && (option->command == CLI_NONE || option->command == command))
            (void)fprintf(out, "  %-18s  %s\n", option->usage, option->summary);
    }
}

static void print_overview(FILE *out)
{
    (void)fputs("walrelay - transactional outbox relay from PostgreSQL's WAL to Kafka\n\n"
                "Usage: walrelay COMMAND [OPTION ...]\n\nCommands:\n",
                out);
    for (size_t i = 0; i < COUNT(commands); i++)
        (void)fprintf(out, "  %-18s  %s\n", commands[i].name, commands[i].summary);
    print_options(CLI_NONE, out);
    (void)fputs("\n`walrelay run --help` lists all settings.\n", out);
}

void cli_help(enum cli_command command, FILE *out)
{
    if (command == CLI_NONE) {
        print_overview(out);
        return;
    }
    (void)fprintf(out, "walrelay %s - %s\n\nUsage: walrelay %s [OPTION ...]\n",
                  commands[command].name, commands[command].summary,
                  commands[command].name);
    print_options(command, out);
    if (command == CLI_CONFIG || command == CLI_RUN) {
        (void)fputs("\nSettings, in the file or as WALRELAY_<SECTION>_<KEY> in the "
                    "environment:\n\n",
                    out);
        config_help(out);
    }
}

/* ---- parsing ------------------------------------------------------------------- */

static int find_command(const char *name, enum cli_command *ret, struct err *err)
{
    const char *names[COUNT(commands)];

    for (size_t i = 0; i < COUNT(commands); i++) {
        names[i] = commands[i].name;
        if (strcmp(name, names[i]) == 0) {
            *ret = (enum cli_command)i;
            return 0;
        }
    }
    return err_set(err, ERR_CONFIG, "unknown command %s, the nearest valid one is %s",
                   name, nearest_name(name, names, COUNT(commands)));
}

static int unknown_option(const char *argument, struct err *err)
{
    const char *names[COUNT(options)];
    size_t n = 0;
    size_t len = strcspn(argument, "=");

    for (size_t i = 0; i < COUNT(options); i++) {
        if (options[i].usage)
            names[n++] = options[i].option.name;
    }
    if (strncmp(argument, "--", 2) == 0)
        return err_set(err, ERR_CONFIG,
                       "unknown option %.*s, the nearest valid one is --%s", (int)len,
                       argument, nearest_name(argument + 2, names, n));
    return err_set(err, ERR_CONFIG,
                   "unknown option -%c, walrelay --help lists the valid ones", optopt);
}

/* The bit of an option in a set of those that are given. */
static unsigned bit_of(int letter)
{
    for (size_t i = 0; i < COUNT(options); i++) {
        if (options[i].option.val == letter)
            return 1u << i;
    }
    return 0;
}

static int take_option(int letter, const char *argument, struct cli *cli, struct err *err)
{
    switch (letter) {
    case 'c':
        cli->config_path = optarg;
        return 0;
    case 'a':
        cli->apply = true;
        return 0;
    case 'j':
        cli->letters.json = true;
        return 0;
    case 's':
        cli->letters.state = optarg;
        return 0;
    case 't':
        cli->letters.topic = optarg;
        return 0;
    case 'k':
        cli->letters.key = optarg;
        return 0;
    case 'e':
        cli->letters.reason = optarg;
        return 0;
    case 'A':
        cli->letters.all = true;
        return 0;
    case 'p':
        cli->letters.payload_file = optarg;
        return 0;
    case 'r':
        cli->reference = true;
        return 0;
    case 'h':
        cli->help = true;
        return 0;
    case 'V':
        cli->version = true;
        return 0;
    case ':':
        return err_set(err, ERR_CONFIG, "option %s needs a value", argument);
    default:
        return unknown_option(argument, err);
    }
}

static int take_options(int argc, char **argv, struct cli *cli, unsigned *given,
                        struct err *err)
{
    struct option list[COUNT(options) + 1] = {0};

    for (size_t i = 0; i < COUNT(options); i++)
        list[i] = options[i].option;
    optind = 0; /* forget earlier calls, see getopt(3) */
    opterr = 0;
    for (;;) {
        int letter = getopt_long(argc, argv, ":c:hV", list, NULL);

        if (letter < 0)
            return 0;
        if (take_option(letter, argv[optind - 1], cli, err) < 0)
            return -1;
        *given |= bit_of(letter);
    }
}

static int check_options(const struct cli *cli, unsigned given, struct err *err)
{
    for (size_t i = 0; i < COUNT(options); i++) {
        enum cli_command owner = options[i].command;

        if ((given & 1u << i) && owner != CLI_NONE && owner != cli->command)
            return err_set(err, ERR_CONFIG, "--%s belongs to walrelay %s",
                           options[i].option.name, commands[owner].name);
    }
    if (cli->command == CLI_NONE && !cli->help && !cli->version)
        return err_set(err, ERR_CONFIG,
                       "a command is missing; walrelay --help lists the commands");
    return 0;
}

/* What stands behind the command. */
static int take_words(int nwords, char **words, struct cli *cli, struct err *err)
{
    if (cli->command == CLI_DEAD_LETTERS && !cli->help)
        return letters_parse(nwords, words, &cli->letters, err);
    if (cli->command != CLI_DEAD_LETTERS && nwords > 0)
        return err_set(err, ERR_CONFIG, "unexpected argument %s", words[0]);
    return 0;
}

static const char *default_path(config_env_t env)
{
    size_t len = strlen("WALRELAY_CONFIG=");

    for (; *env; env++) {
        if (strncmp(*env, "WALRELAY_CONFIG=", len) == 0 && (*env)[len])
            return *env + len;
    }
    return "walrelay.conf";
}

int cli_parse(int argc, char **argv, config_env_t env, struct cli *ret, struct err *err)
{
    struct cli cli = {.command = CLI_NONE, .config_path = default_path(env)};
    unsigned given = 0;
    int words;

    if (take_options(argc, argv, &cli, &given, err) < 0)
        return -1;
    words = optind < argc ? optind + 1 : argc;
    if (optind < argc && find_command(argv[optind], &cli.command, err) < 0)
        return -1;
    if (take_words(argc - words, argv + words, &cli, err) < 0 ||
        check_options(&cli, given, err) < 0)
        return -1;
    *ret = cli;
    return 0;
}
