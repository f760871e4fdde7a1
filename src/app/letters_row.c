/* letters_row.c - an entry of the sink as a row of the table of dead letters; see
 * letters.h. */
#include "app/letters.h"
#include "app/relay_state.h"

int64_t relay_retry_delay(const struct relay *relay, unsigned attempts)
{
    struct backoff backoff;

    backoff_init(&backoff, relay->config->dead_letters.retry_initial_ms,
                 relay->config->dead_letters.retry_max_ms);
    backoff_resume(&backoff, attempts > 0 ? attempts - 1 : 0);
    return backoff_next(&backoff, relay_random(relay));
}

static struct slice aggregate_type_of(const struct entry *e)
{
    struct slice topic = sink_topic_of(e);

    if (!topic.ptr || e->type_len == 0)
        return (struct slice){NULL, 0};
    return (struct slice){topic.ptr + e->type_from, e->type_len};
}

struct dead_letter relay_letter(const struct relay *relay, const struct entry *e,
                                struct message *message)
{
    unsigned most = (unsigned)relay->config->dead_letters.max_attempts;
    unsigned attempts = e->attempts > 0 ? e->attempts : 1;

    *message = window_message(e);
    message->topic = sink_topic_of(e);
    if (e->refusal.held)
        attempts = 0;
    else if (e->refusal.for_ever || attempts > most)
        attempts = most;
    return (struct dead_letter){
        .place = e->place,
        .begin = e->begin_lsn,
        .end = ledger_end(relay->ledger, e->ticket),
        .message = message,
        .aggregate_type = aggregate_type_of(e),
        .held = e->refusal.held,
        .dead = attempts == most,
        .reason = slice_of(e->refusal.reason),
        .error_code = slice_of(e->refusal.code),
        .error = slice_of(e->refusal.text),
        .attempts = attempts,
        .retry_ms = relay_retry_delay(relay, attempts),
    };
}
