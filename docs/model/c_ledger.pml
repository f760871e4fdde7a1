/* c_ledger.pml - with -DC_LEDGER the search calls src/core/ledger.c itself beside the model's ledger,
 * and both must agree after every call, in every state.  The C state is restored when the search
 * goes back, but does not tell states apart: it is a function of the model's. */
c_decl {
\#include "base/must.h"
\#undef must
\#define must(cond) ((cond) ? (void)0 : (void)(broken = 1))
static int broken;
extern void (*uerror)(char *);
\#include "core/ledger.c"
static union { struct ledger ledger; char bytes[sizeof(struct ledger) + CAP * sizeof(struct txn)]; } real[RELAYS];
static void real_step(int r, int op, int value, int flushed, int in_flight);
}

c_code {
static void real_step(int r, int op, int value, int flushed, int in_flight)
{
    struct ledger *l = &real[r].ledger;

    broken = 0;
    switch (op) {
    case 'n':
        memset(&real[r], 0, sizeof(real[r]));
        l->cap = (size_t)value;
        break;
    case 'b':
        ledger_begin(l);
        break;
    case 'a':
        broken = ledger_add(l) != (ticket_t)value;
        break;
    case 'c':
        ledger_commit(l, (lsn_t)value);
        break;
    case 'k':
        ledger_ack(l, (ticket_t)value);
        break;
    case 'i':
        ledger_idle(l, (lsn_t)value);
        break;
    case 'r':
        ledger_restart(l, (lsn_t)value);
        break;
    }
    if (broken || ledger_flushed(l) != (lsn_t)flushed || ledger_in_flight(l) != (size_t)in_flight)
        uerror("the C ledger differs from the model's");
}
}

c_track "&real" "sizeof(real)" "UnMatched"

hidden byte real_r;
hidden byte real_op;
hidden byte real_value;

#define REAL(r, op, value) \
  real_r = r; \
  real_op = op; \
  real_value = value; \
  c_code { real_step(real_r, real_op, real_value, now.L[real_r].flushed, now.L[real_r].next - now.L[real_r].oldest); };
