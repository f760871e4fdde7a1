/* letters_tally.c - how many dead letters there are; see letters.h.
 *
 * The table is the only one who knows: people change it, too, and what is dead is of no
 * other use to us.  It is counted on the writer's connection when it has changed, at most
 * every other second, and once a minute because of rows that somebody deleted. */
#include "app/letters.h"
#include "app/relay_state.h"
#include "base/clock.h"

#include <stdlib.h>

enum { TALLY_AGAIN_MS = 2000, TALLY_EVERY_MS = 60000 };

void relay_tally_changed(struct letters *letters)
{
    letters->tally.stale = true;
}

int64_t relay_tally_deadline(const struct relay *relay)
{
    const struct tally *t = &relay->letters->tally;

    if (!t->wanted || !relay->letters->writer || relay->phase != STREAMING)
        return CLOCK_NEVER;
    return t->stale ? t->at_ms : t->at_ms + TALLY_EVERY_MS;
}

bool relay_tally_is_due(const struct relay *relay)
{
    return relay->now_ms >= relay_tally_deadline(relay);
}

int relay_tally_ask(struct relay *relay, struct err *err)
{
    struct letters *l = relay->letters;

    if (deadletters_tally(l->writer, err) != 0)
        return -1;
    l->tally.stale = false; /* what changes from now on is counted next time */
    l->tally.at_ms = relay->now_ms + TALLY_AGAIN_MS;
    l->op = OP_TALLY;
    return 1;
}

static int64_t number(const struct pg_result *answer, int column)
{
    const char *text = pg_value(answer, 0, column);

    return text ? strtoll(text, NULL, 10) : 0;
}

void relay_tally_answered(struct relay *relay)
{
    struct tally *t = &relay->letters->tally;
    struct pg_result *answer = deadletters_take(relay->letters->writer);

    t->known = true;
    t->waiting = number(answer, TALLY_WAITING);
    t->held = number(answer, TALLY_HELD);
    t->dead = number(answer, TALLY_DEAD);
    t->oldest_ms = relay->now_ms - number(answer, TALLY_AGE_MS);
    pg_result_free(answer);
}
