#include "app/cli.h"

#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const nothing[] = {NULL};

/* What the results of parse borrow from. */
static char words[256];

/* line: the words after "walrelay", one blank between them. */
static int parse(const char *line, config_env_t env, struct cli *ret, struct err *err)
{
    char *argv[16] = {words};
    int argc = 1;
    char *rest = words + sizeof("walrelay");

    (void)snprintf(words, sizeof(words), "walrelay%c%s", '\0', line);
    for (char *word = strtok(rest, " "); word; word = strtok(NULL, " "))
        argv[argc++] = word;
    return cli_parse(argc, argv, env, ret, err);
}

static struct cli accept_with(const char *line, config_env_t env)
{
    struct cli cli = {0};
    struct err err = {0};

    if (parse(line, env, &cli, &err) < 0)
        fail_msg("%s: %s", line, err.text);
    return cli;
}

static struct cli accept_line(const char *line)
{
    return accept_with(line, nothing);
}

static void refuse(const char *line, const char *why)
{
    struct cli cli = {.command = CLI_SETUP};
    struct err err = {0};

    assert_int_equal(parse(line, nothing, &cli, &err), -1);
    assert_string_equal(err.text, why);
    assert_int_equal(cli.command, CLI_SETUP);
}

static void a_command_is_known_by_its_name(void **state)
{
    (void)state;
    assert_int_equal(accept_line("run").command, CLI_RUN);
    assert_int_equal(accept_line("check").command, CLI_CHECK);
    assert_int_equal(accept_line("setup").command, CLI_SETUP);
    assert_int_equal(accept_line("config").command, CLI_CONFIG);
}

static void options_may_stand_before_and_after_the_command(void **state)
{
    (void)state;
    assert_string_equal(accept_line("run -c a.conf").config_path, "a.conf");
    assert_string_equal(accept_line("-c a.conf run").config_path, "a.conf");
    assert_string_equal(accept_line("run --config=a.conf").config_path, "a.conf");
    assert_string_equal(accept_line("--config a.conf run").config_path, "a.conf");
    assert_true(accept_line("setup --apply").apply);
    assert_false(accept_line("setup").apply);
    assert_true(accept_line("config --reference").reference);
}

static void the_configuration_has_a_default_place(void **state)
{
    const char *const env[] = {"HOME=/", "WALRELAY_CONFIG=/etc/walrelay.conf", NULL};
    const char *const empty[] = {"WALRELAY_CONFIG=", NULL};

    (void)state;
    assert_string_equal(accept_line("run").config_path, "walrelay.conf");
    assert_string_equal(accept_with("run", empty).config_path, "walrelay.conf");
    assert_string_equal(accept_with("run", env).config_path, "/etc/walrelay.conf");
    assert_string_equal(accept_with("run -c x", env).config_path, "x");
}

static void help_and_version_need_no_command(void **state)
{
    (void)state;
    assert_true(accept_line("--help").help);
    assert_true(accept_line("-h").help);
    assert_true(accept_line("run --help").help);
    assert_int_equal(accept_line("run --help").command, CLI_RUN);
    assert_true(accept_line("--version").version);
    assert_true(accept_line("-V").version);
}

static void what_is_not_understood_is_refused_with_the_nearest_name(void **state)
{
    (void)state;
    refuse("rum", "unknown command rum, the nearest valid one is run");
    refuse("Setup", "unknown command Setup, the nearest valid one is setup");
    refuse("setup --aply", "unknown option --aply, the nearest valid one is --apply");
    refuse("run --confg=x", "unknown option --confg, the nearest valid one is --config");
    refuse("run -x", "unknown option -x, walrelay --help lists the valid ones");
    refuse("run -xc", "unknown option -x, walrelay --help lists the valid ones");
    refuse("run -c", "option -c needs a value");
    refuse("run --config", "option --config needs a value");
    refuse("dead-letters list --key", "option --key needs a value");
    refuse("run now", "unexpected argument now");
    refuse("run --apply", "--apply belongs to walrelay setup");
    refuse("run --reference", "--reference belongs to walrelay config");
    refuse("", "a command is missing; walrelay --help lists the commands");
    refuse("-c x", "a command is missing; walrelay --help lists the commands");
}

static void dead_letters_have_words_of_their_own(void **state)
{
    struct cli cli = accept_line("dead-letters retry 5 17 -c a.conf");

    (void)state;
    assert_int_equal(cli.command, CLI_DEAD_LETTERS);
    assert_int_equal(cli.letters.verb, LETTERS_RETRY);
    assert_int_equal(cli.letters.nids, 2);
    assert_string_equal(cli.letters.ids[0], "5");
    assert_string_equal(cli.letters.ids[1], "17");
    assert_int_equal(accept_line("dead-letters list").letters.verb, LETTERS_LIST);
    assert_true(accept_line("dead-letters list --json --state all").letters.json);
    assert_int_equal(accept_line("dead-letters export --topic t").letters.nids, 0);
    assert_true(accept_line("dead-letters retry --all --state dead").letters.all);
    assert_string_equal(accept_line("dead-letters retry --key k").letters.key, "k");
    assert_string_equal(
        accept_line("dead-letters retry 1 --payload-file f").letters.payload_file, "f");
    assert_true(accept_line("dead-letters --help").help);
}

static void the_reason_of_a_discard_is_a_note_and_no_filter(void **state)
{
    struct cli cli = accept_line("dead-letters discard 5 --reason test");

    (void)state;
    assert_string_equal(cli.letters.note, "test");
    assert_null(cli.letters.reason);
}

static void what_dead_letters_do_not_understand_is_refused(void **state)
{
    (void)state;
    refuse("dead-letters",
           "dead-letters needs one of list, show, retry, discard, export");
    refuse("dead-letters lst",
           "dead-letters does not know lst, the nearest valid word is list");
    refuse("dead-letters show 4x",
           "4x is no number of a dead letter; walrelay dead-letters list shows them");
    refuse("dead-letters show", "dead-letters show needs the number of one dead letter");
    refuse("dead-letters list 5", "dead-letters list and export take no numbers");
    refuse("dead-letters list --state old",
           "unknown state old, the nearest valid one is held");
    refuse("dead-letters retry",
           "dead-letters retry needs the numbers of dead letters, or one of --key, "
           "--topic, --reason and --all");
    refuse("dead-letters retry 5 --all",
           "dead-letters retry takes numbers or filters, not both");
    refuse("dead-letters retry --all --state resolved",
           "only dead letters that are waiting or dead can be retried");
    refuse("dead-letters retry 5 6 --payload-file f",
           "--payload-file belongs to the retry of one dead letter");
    refuse(
        "dead-letters discard 5",
        "dead-letters discard needs the numbers of dead letters, and --reason: why the "
        "events are given up");
    refuse("dead-letters list --all", "--all belongs to dead-letters retry");
    refuse("check --json", "--json belongs to walrelay dead-letters");
}

/* To be freed. */
static char *help(enum cli_command command)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    cli_help(command, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void the_help_lists_commands_and_options(void **state)
{
    char *all = help(CLI_NONE);
    char *setup = help(CLI_SETUP);

    (void)state;
    assert_non_null(strstr(all, "\n  run "));
    assert_non_null(strstr(all, "\n  check "));
    assert_non_null(strstr(all, "\n  setup "));
    assert_non_null(strstr(all, "\n  config "));
    assert_non_null(strstr(all, "\n  -c, --config FILE "));
    assert_null(strstr(all, "--apply"));
    assert_null(strstr(all, "--reference"));
    assert_non_null(strstr(setup, "\n      --apply "));
    free(all);
    free(setup);
}

static void the_help_of_run_lists_the_settings(void **state)
{
    char *text = help(CLI_RUN);

    (void)state;
    assert_non_null(strstr(text, "walrelay run - "));
    assert_non_null(strstr(text, "\n[relay]\n"));
    assert_non_null(strstr(text, "\n  memory = 4MB"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_command_is_known_by_its_name),
        cmocka_unit_test(options_may_stand_before_and_after_the_command),
        cmocka_unit_test(the_configuration_has_a_default_place),
        cmocka_unit_test(help_and_version_need_no_command),
        cmocka_unit_test(what_is_not_understood_is_refused_with_the_nearest_name),
        cmocka_unit_test(dead_letters_have_words_of_their_own),
        cmocka_unit_test(the_reason_of_a_discard_is_a_note_and_no_filter),
        cmocka_unit_test(what_dead_letters_do_not_understand_is_refused),
        cmocka_unit_test(the_help_lists_commands_and_options),
        cmocka_unit_test(the_help_of_run_lists_the_settings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
