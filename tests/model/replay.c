/* replay.c - the ledger calls of a run of docs/model/walrelay.pml, on core/ledger.c.
 *
 * Reads lines "ledger RELAY CALL VALUE FLUSHED IN_FLIGHT": after the call, position and
 * transactions in flight must be what the model says.  Exit code 0: they were, always;
 * 1: not in the line that is printed; 2: there is no such line, or a strange one. */
#include "core/ledger.h"

#include <stdio.h>

enum { RELAYS = 4 };

struct call {
    int relay;
    char name;
    unsigned value;
    unsigned flushed;
    unsigned in_flight;
};

static bool parse(const char *line, struct call *ret)
{
    return sscanf(line, "ledger %d %c %u %u %u", &ret->relay, &ret->name, &ret->value,
                  &ret->flushed, &ret->in_flight) == 5 &&
           ret->relay >= 0 && ret->relay < RELAYS;
}

static struct ledger *begin_again(struct ledger *ledger, size_t max_txns)
{
    ledger_free(ledger);
    return ledger_new(max_txns, LSN_NONE);
}

/* False: it gave another ticket, or there is no such call. */
static bool do_call(struct ledger *ledger, const struct call *call)
{
    switch (call->name) {
    case 'b':
        ledger_begin(ledger);
        return true;
    case 'a':
        return !ledger_full(ledger) && ledger_add(ledger) == call->value;
    case 'c':
        ledger_commit(ledger, call->value);
        return true;
    case 'k':
        ledger_ack(ledger, call->value);
        return true;
    case 'i':
        ledger_idle(ledger, call->value);
        return true;
    case 'r':
        ledger_restart(ledger, call->value);
        return true;
    default:
        return false;
    }
}

static bool agree(struct ledger **ledger, const struct call *call)
{
    if (call->name == 'n')
        *ledger = begin_again(*ledger, call->value);
    else if (!*ledger || !do_call(*ledger, call))
        return false;
    return *ledger && ledger_flushed(*ledger) == call->flushed &&
           ledger_in_flight(*ledger) == call->in_flight;
}

static int differ(size_t number, const char *line, const struct ledger *ledger)
{
    printf("line %zu: %s", number, line);
    if (ledger)
        printf("the ledger: flushed %u, in flight %zu\n",
               (unsigned)ledger_flushed(ledger), ledger_in_flight(ledger));
    return 1;
}

static int replay(struct ledger *ledgers[RELAYS])
{
    char line[256];
    struct call call;
    size_t calls = 0;

    while (fgets(line, sizeof(line), stdin)) {
        calls++;
        if (!parse(line, &call)) {
            printf("line %zu is no ledger call: %s", calls, line);
            return 2;
        }
        if (!agree(&ledgers[call.relay], &call))
            return differ(calls, line, ledgers[call.relay]);
    }
    printf("%zu calls\n", calls);
    return calls > 0 ? 0 : 2;
}

int main(void)
{
    struct ledger *ledgers[RELAYS] = {0};
    int rc = replay(ledgers);

    for (size_t i = 0; i < RELAYS; i++)
        ledger_free(ledgers[i]);
    return rc;
}
