/* relay_family.c - a row of a table that was made, or attached, after the catalog was
 * read; see relay_state.h.
 *
 * Nothing behind the row is published, so no position moves past it, before it is known
 * whether its table belongs to a configured one. */
#include "app/relay_state.h"

void relay_inquire(struct relay *relay)
{
    struct inquiry *inquiry = &relay->inquiry;
    struct err err = {0};

    if (inquiry->job)
        return; /* its answer is awaited, or it was asked by a stream that is gone */
    inquiry->job =
        family_ask(&inquiry->family, relay->change.schema, relay->change.table, &err);
    inquiry->awaited = inquiry->job != NULL;
    if (!inquiry->job)
        relay_lost(relay, &err, 0);
}

/* The row itself came before the question, whatever the clocks say. */
static void pass(struct relay *relay)
{
    const struct change *change = &relay->change;
    int64_t before_us = relay->inquiry.family.asked_us;
    struct err err = {0};

    if (before_us <= change->commit_us)
        before_us = change->commit_us + 1;
    if (router_pass(relay->publisher.router, change->schema, change->table, before_us) ==
        0)
        return;
    (void)err_set(&err, ERR_INTERNAL, "out of memory for a table's name");
    relay_stop_with(relay, &err);
}

static void read_catalog_anew(struct relay *relay)
{
    const struct family *family = &relay->inquiry.family;
    struct err err = {0};

    (void)err_set(&err, ERR_RETRY, "table %s.%s is a new partition: streaming again",
                  family->schema, family->name);
    relay_lost(relay, &err, 0);
}

static void stop_before_it(struct relay *relay)
{
    const struct family *family = &relay->inquiry.family;
    struct err err = {0};

    (void)err_set(&err, ERR_POISON,
                  "a row at %" LSN_FMT " is of table %s.%s, which has the columns of a "
                  "configured table and was dropped, renamed or detached since: whether "
                  "the row is an event cannot be told.  Make a table of that name, as a "
                  "partition or child to publish the row or as an ordinary table to pass "
                  "over it, and start again",
                  LSN_ARG(relay->change.lsn), family->schema, family->name);
    relay->has_change = false;
    relay_stop_with(relay, &err);
}

static void take_answer(struct relay *relay)
{
    struct err err = relay->inquiry.family.err;

    if (err.class != ERR_NONE) {
        relay_lost(relay, &err, 0);
        return;
    }
    switch (relay->inquiry.family.verdict) {
    case FAMILY_MEMBER:
        read_catalog_anew(relay);
        break;
    case FAMILY_STRANGER:
        pass(relay);
        break;
    case FAMILY_LEFT:
        stop_before_it(relay);
        break;
    }
}

void relay_serve_inquiry(struct relay *relay)
{
    struct inquiry *inquiry = &relay->inquiry;

    if (!inquiry->job || !job_is_done(inquiry->job))
        return;
    job_finish(inquiry->job);
    inquiry->job = NULL;
    if (inquiry->awaited && relay->has_change)
        take_answer(relay);
    inquiry->awaited = false;
}
