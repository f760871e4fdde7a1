/* dead_letters.h - `walrelay dead-letters`: people and the events that Kafka did not
 * take.
 *
 * The rows are those of sql/dead_letters.sql, of the configured slot.  A running relay
 * notices what is changed here by itself. */
#ifndef WALRELAY_APP_DEAD_LETTERS_H
#define WALRELAY_APP_DEAD_LETTERS_H

#include "base/err.h"
#include "core/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum letters_verb {
    LETTERS_LIST,    /* a line each */
    LETTERS_SHOW,    /* all there is of one */
    LETTERS_RETRY,   /* try again, now and as often as at first */
    LETTERS_DISCARD, /* give up */
    LETTERS_EXPORT,  /* all there is of each, as JSON, a line each */
};

/* What was typed; strings are borrowed from argv. */
struct letters_args {
    enum letters_verb verb;
    char *const *ids; /* decimal numbers */
    size_t nids;
    const char *key; /* the filters; NULL: any */
    const char *reason;
    const char *topic;
    const char *state; /* one of the table's, or "all"; NULL: unresolved ones */
    bool all;          /* RETRY: no filter is needed */
    bool json;
    const char *note;         /* DISCARD: why */
    const char *payload_file; /* RETRY of one: what is sent instead */
};

/* Sets verb, ids and nids from words, `list`, `show 42`, and checks the whole.  -1 with
 * err set (ERR_USAGE). */
int letters_parse(int nwords, char *const *words, struct letters_args *args,
                  struct err *err) __attribute__((warn_unused_result));

/* Connects with config's dsn and does it; results go to out.  -1 with err set. */
int letters_run(const struct config *config, const struct letters_args *args, FILE *out,
                struct err *err) __attribute__((warn_unused_result));

#endif
