#include "app/dead_letters.h"
#include "core/nearest.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const verbs[] = {
    [LETTERS_LIST] = "list",       [LETTERS_SHOW] = "show",     [LETTERS_RETRY] = "retry",
    [LETTERS_DISCARD] = "discard", [LETTERS_EXPORT] = "export",
};

static const char *const states[] = {"waiting",  "held",      "dead",
                                     "resolved", "discarded", "all"};

static int usage(struct err *err, const char *text)
{
    return err_set(err, ERR_USAGE, "%s", text);
}

static int take_verb(const char *word, enum letters_verb *ret, struct err *err)
{
    for (size_t i = 0; i < COUNT(verbs); i++) {
        if (strcmp(word, verbs[i]) == 0) {
            *ret = (enum letters_verb)i;
            return 0;
        }
    }
    return err_set(err, ERR_USAGE,
                   "dead-letters does not know %s, the nearest valid word is %s", word,
                   nearest_name(word, verbs, COUNT(verbs)));
}

/* Up to 18 digits: within bigint. */
static bool is_id(const char *word)
{
    size_t len = strspn(word, "0123456789");

    return len > 0 && len <= 18 && word[len] == '\0';
}

static int check_ids(const struct letters_args *args, struct err *err)
{
    for (size_t i = 0; i < args->nids; i++) {
        if (!is_id(args->ids[i]))
            return err_set(err, ERR_USAGE,
                           "%s is no number of a dead letter; walrelay dead-letters list "
                           "shows them",
                           args->ids[i]);
    }
    return 0;
}

static int check_state(const struct letters_args *args, struct err *err)
{
    for (size_t i = 0; args->state && i < COUNT(states); i++) {
        if (strcmp(args->state, states[i]) == 0)
            return 0;
    }
    if (!args->state)
        return 0;
    return err_set(err, ERR_USAGE, "unknown state %s, the nearest valid one is %s",
                   args->state, nearest_name(args->state, states, COUNT(states)));
}

static int check_retry(const struct letters_args *args, struct err *err)
{
    bool filtered = args->key || args->reason || args->topic;

    if (args->nids + args->all + filtered == 0)
        return usage(err, "dead-letters retry needs the numbers of dead letters, or one "
                          "of --key, --topic, --reason and --all");
    if (args->nids > 0 && (args->all || filtered))
        return usage(err, "dead-letters retry takes numbers or filters, not both");
    if (args->state && strcmp(args->state, "waiting") != 0 &&
        strcmp(args->state, "dead") != 0)
        return usage(err, "only dead letters that are waiting or dead can be retried");
    if (args->payload_file && args->nids != 1)
        return usage(err, "--payload-file belongs to the retry of one dead letter");
    return 0;
}

static int check_verb(const struct letters_args *args, struct err *err)
{
    if (args->payload_file && args->verb != LETTERS_RETRY)
        return usage(err, "--payload-file belongs to dead-letters retry");
    if (args->all && args->verb != LETTERS_RETRY)
        return usage(err, "--all belongs to dead-letters retry");
    switch (args->verb) {
    case LETTERS_LIST:
    case LETTERS_EXPORT:
        if (args->nids > 0)
            return usage(err, "dead-letters list and export take no numbers");
        break;
    case LETTERS_SHOW:
        if (args->nids != 1)
            return usage(err, "dead-letters show needs the number of one dead letter");
        break;
    case LETTERS_RETRY:
        return check_retry(args, err);
    case LETTERS_DISCARD:
        if (args->nids == 0 || !args->reason || args->key || args->topic)
            return usage(err, "dead-letters discard needs the numbers of dead letters, "
                              "and --reason: why the events are given up");
        break;
    }
    return 0;
}

int letters_parse(int nwords, char *const *words, struct letters_args *args,
                  struct err *err)
{
    if (nwords == 0)
        return usage(err, "dead-letters needs one of list, show, retry, discard, export");
    if (take_verb(words[0], &args->verb, err) < 0)
        return -1;
    args->ids = words + 1;
    args->nids = (size_t)nwords - 1;
    if (check_ids(args, err) < 0 || check_state(args, err) < 0 ||
        check_verb(args, err) < 0)
        return -1;
    if (args->verb == LETTERS_DISCARD) { /* no filter, but the note */
        args->note = args->reason;
        args->reason = NULL;
    }
    return 0;
}
