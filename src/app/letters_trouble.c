/* letters_trouble.c - what the log says while the table of dead letters cannot be used;
 * see letters.h. */
#include "app/letters.h"
#include "app/relay_state.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>

enum {
    TELL_EVERY_MS = 60000,
    ANSWER_MS = 10000, /* longer than lock_timeout, so that its error comes first */
};

/* By SQLSTATE; the server's words name the object. */
static const struct {
    const char *sqlstate;
    const char *cure;
} cures[] = {
    {"42501", "grant SELECT, INSERT and UPDATE on it to the relay's role again: "
              "walrelay setup --apply"},
    {"42P01", "bring it back, or make it anew: walrelay setup --apply"},
    {"3F000", "bring its schema back, or make both anew: walrelay setup --apply"},
    {"42703", "it is of another version: walrelay check says what it lacks"},
    {"42P10", "its unique index is gone: walrelay setup --apply in a table made anew"},
    {"25006", "the server takes no writes: let the dsn lead to the primary "
              "(target_session_attrs=read-write)"},
    {"53100", "free space on the server's disk, or move the table: ALTER TABLE … SET "
              "TABLESPACE"},
    {"53300", "raise max_connections, or end other connections"},
    {"55P03", "somebody holds a lock on it: end that transaction (pg_locks, "
              "pg_blocking_pids)"},
};

static const char *cure_of(const char *sqlstate)
{
    for (size_t i = 0; i < sizeof(cures) / sizeof(cures[0]); i++) {
        if (strcmp(cures[i].sqlstate, sqlstate) == 0)
            return cures[i].cure;
    }
    return "";
}

/* The same once a minute. */
void relay_letters_tell(struct relay *relay, const struct err *err)
{
    struct letters *l = relay->letters;
    const char *cure = cure_of(err->code);
    struct slice code = slice_of(err->code[0] ? err->code : NULL);

    if (strcmp(l->told, err->text) == 0 && relay->now_ms - l->told_ms < TELL_EVERY_MS)
        return;
    (void)snprintf(l->told, sizeof(l->told), "%s", err->text);
    l->told_ms = relay->now_ms;
    log_event(LOG_WARNING, (struct log_field[]){{"code", code}, LOG_END},
              "the table of dead letters: %s%s%s; %s", err->text, *cure ? "; " : "", cure,
              l->loaded ? "the position waits for it" : "nothing is published before");
}

/* No timeout of the server's ends a commit that waits for a standby, so there is no
 * error to tell. */
void relay_letters_watch_answer(struct relay *relay)
{
    struct letters *l = relay->letters;
    struct err err = {0};

    if (l->op == OP_NONE || relay->now_ms - l->asked_ms < ANSWER_MS)
        return;
    l->failing = true;
    (void)err_set(&err, ERR_RETRY,
                  "PostgreSQL has not answered a statement for %d s or more; if its "
                  "session waits for SyncRep (pg_stat_activity), bring the synchronous "
                  "standby back, or take it out of synchronous_standby_names",
                  ANSWER_MS / 1000);
    relay_letters_tell(relay, &err);
}

int64_t relay_letters_answer_deadline(const struct letters *letters)
{
    int64_t late_ms = letters->asked_ms + ANSWER_MS;
    int64_t again_ms = letters->told_ms + TELL_EVERY_MS;

    return letters->failing && again_ms > late_ms ? again_ms : late_ms;
}
