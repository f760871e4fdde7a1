/* walrelay.pml - the position rule, as the C code has it.  README.md says how to read and run it.
 *
 *   WAL ──> walsender ──> publish ──> ledger and sink ──> Kafka, dead letters
 *              ^                        │      ^               │
 *              └──── status update ─────┘      └─── report ────┘
 *
 * Who acts: Relay (one process of walrelay each; a second one is the hot standby), Partition (the
 * broker's side of one partition, for one producer), PostgreSQL (the slot), Fate (what goes wrong).
 * Each option of their loops is one step that nothing interrupts; everything else may happen
 * between any two steps.  A relay that is frozen is one that takes no step. */

/* ---- bounds: -D of spin ------------------------------------------------------------------- */

#ifndef RELAYS
#define RELAYS 2
#endif
#ifndef TXNS
#define TXNS 2 /* transactions in the WAL */
#endif
#ifndef ROWS
#define ROWS 3 /* of the outbox, in all of them together */
#endif
#ifndef ROWS_EACH
#define ROWS_EACH 2 /* of one transaction and one key, at most */
#endif
#ifndef SPREAD
#define SPREAD 3 /* 1: one key, 2: two, 3: two and dead letters */
#endif
#ifndef ANY_WAL
#define ANY_WAL 0 /* 1: with fewer rows, too, as random runs like it */
#endif
#ifndef CAP
#define CAP 2 /* room of a ledger */
#endif
#ifndef FAULTS
#define FAULTS 2 /* how often Fate strikes */
#endif
#ifndef REST
#define REST 0 /* steps between two blows, for random runs */
#endif

/* Mutations, one -D each: the rule with one mistake.  spin must find each of them.
 *
 *   M_IDLE_WHILE_OPEN    a keepalive's position counts whatever is under way
 *   M_IDLE_WHILE_UNACKED ... counts while nothing is open, acknowledged or not
 *   M_COMMIT_START       confirms where the commit record begins, not where it ends
 *   M_START_PLUS_LENGTH  confirms start + length of the data
 *   M_ACK_WITHOUT_ORDER  confirms the end of any transaction that is acknowledged
 *   M_OLD_TICKET         an acknowledgement from before a reconnect counts
 *   M_TICKETS_REUSED     tickets begin again with each connection
 *   M_FAILED_IS_ACKED    a failed delivery report gives its ticket back
 *   M_DEAD_LETTER_EARLY  a dead letter's ticket comes back before it is durable
 *   M_START_AT_WAL_END   streams from where IDENTIFY_SYSTEM says the WAL ends
 *   M_START_AT_READ      streams from where the last connection had read to
 *   M_FIRST_NOT_ALONE    the first message to a partition does not travel alone
 *   M_REBUILD_FORGETS    the next producer does not send what the last one could not */

/* ---- the WAL ------------------------------------------------------------------------------- */

/* What a key stands for: whatever keeps an order of its own.  DEAD: a row that Kafka refuses for
 * ever; its outlet is the table of dead letters.  Rows that are filtered need no name: a
 * transaction has any number of them, and whoever counts messages does not see them. */
#define A    0
#define B    1
#define DEAD 2
#define KEYS 3

/* Transaction 1 is the first to commit.  Its commit record lies at [commit_at, commit_at + 1);
 * its messages of key k are number upto[k] of the transaction before to number upto[k] - 1.
 * Transaction 0 stands for all before. */
typedef Txn {
  byte commit_at;
  byte upto[KEYS]
};
Txn T[TXNS + 1];
byte wal_end;
bool dismissed;

#define END(t) (T[t].commit_at + 1)

/* What begin and rows of a transaction name in their frames: where they were written, and that
 * may be before the end of one that committed earlier.  No room between the two commits: it
 * began before the other one, here before everything. */
#define WRITTEN_AT(t) (T[t].commit_at > END(t - 1) -> END(t - 1) : END(0))

/* ---- PostgreSQL and Kafka -------------------------------------------------------------------- */

byte confirmed = 1; /* the slot's confirmed_flush_lsn */
byte walsender = 0; /* 1 + the relay that it streams to, 0: there is none */

byte kafka[KEYS];   /* the first so many messages of a key are durable, each in its order */
byte acked[KEYS];   /* ... and a relay was told so */

/* Requests of producers that are gone, still in some buffer: messages [late_from, late_to). */
byte late_from[KEYS];
byte late_to[KEYS];

byte faults = FAULTS;
byte rest = REST;

/* ---- the relay ------------------------------------------------------------------------------- */

mtype = { CONNECTING, STARTING, STREAMING };

typedef Ledger { /* struct ledger of core/ledger.c */
  byte flushed;
  byte oldest;
  byte next;
  bool open;
  bool has_rows;
  byte end[CAP]; /* struct txn */
  byte pending[CAP]
};

typedef Outlet { /* one partition of io/sink.c, or the dead letters */
  byte done;     /* messages up to here are acknowledged: their tickets were taken */
  byte durable;  /* ... are in the log, the report is under way */
  byte sent;     /* ... are with the producer */
  byte put;      /* ... are in the window */
  bool known;    /* the broker has a state of this producer */
  bool warm      /* it has acknowledged something to this producer */
};

typedef Process { /* struct relay of app/relay_state.h, and its struct slot */
  mtype phase;    /* CONNECTING is WAITING and STANDBY, too */
  bool connected; /* false: the other side has ended this connection */
  byte start;     /* of START_REPLICATION; 0: where the slot stands */
  bool history;   /* there was a stream before */

  /* the stream: what the walsender has sent; it may be read when the connection is gone */
  byte txn;       /* under way, or the next */
  bool inside;    /* its begin was read */
  bool named;     /* received of io/slot.c: not less than the ledger's position */
#ifdef M_START_AT_READ
  byte read;
#endif

  byte ticket[TXNS + 1]
};

Process R[RELAYS];
Ledger L[RELAYS];
typedef Sink {
  Outlet o[KEYS]
};
Sink S[RELAYS];

/* Acknowledgements that outlive a reconnect.  sink_drop forgets them; that the ledger does not
 * depend on it is part of what is shown. */
chan late_acks[RELAYS] = [2] of { byte, byte, byte }; /* ticket, key, message */

hidden byte i; /* scratch, in one step only */
hidden byte j;
hidden byte ticket;
hidden byte n;

/* ---- what must hold --------------------------------------------------------------------------- */

/* Nothing unacknowledged lies below position p: PostgreSQL does not send again what commits
 * below it. */
inline nothing_is_lost_below(p)
{
  j = 1;
  do
  :: j <= TXNS && T[j].commit_at < p ->
    assert(acked[A] >= T[j].upto[A]);
    assert(acked[B] >= T[j].upto[B]);
    assert(acked[DEAD] >= T[j].upto[DEAD]);
    j++
  :: else -> break
  od;
  assert(p <= wal_end)
}

/* Message number m of key k becomes durable.  The first time, all before it must be. */
inline append(k, m)
{
  assert(m <= kafka[k]);
  if
  :: m == kafka[k] -> kafka[k]++
  :: else
  fi
}

/* ---- core/ledger.c ----------------------------------------------------------------------------- */

#define IN_FLIGHT(r) (L[r].next - L[r].oldest)
#define IDLE(r)      (!L[r].open && L[r].oldest == L[r].next)
/* ledger_full, as publish.c asks: may a row of the open transaction enter? */
#define ROOM(r)      (L[r].has_rows || IN_FLIGHT(r) < CAP)

/* The same call to the C code itself, in the search (c_ledger.pml), and a line of a trace that
 * tests/model/replay.c calls it with. */
#ifdef C_LEDGER
#include "c_ledger.pml"
#else
#define REAL(r, op, value)
#endif
#define STEP(r, op, value) \
  REAL(r, op, value) \
  printf("ledger %d %c %d %d %d\n", r, op, value, L[r].flushed, IN_FLIGHT(r))

inline retire(r)
{
  do
  :: L[r].oldest != L[r].next && L[r].end[L[r].oldest % CAP] != 0 && L[r].pending[L[r].oldest % CAP] == 0 ->
    assert(L[r].end[L[r].oldest % CAP] >= L[r].flushed); /* must() */
    L[r].flushed = L[r].end[L[r].oldest % CAP];
    L[r].end[L[r].oldest % CAP] = 0;
    L[r].oldest++
  :: else -> break
  od
}

/* After each call. */
inline position_holds(r)
{
  nothing_is_lost_below(L[r].flushed);
  /* All acknowledged: nothing that was read is sent again, without waiting for a keepalive. */
  assert(!IDLE(r) || !R[r].named || L[r].flushed >= END(R[r].txn - 1))
}

inline ledger_new(r)
{
  STEP(r, 'n', CAP)
}

inline ledger_begin(r)
{
  assert(!L[r].open);
  L[r].open = true;
  L[r].has_rows = false;
  STEP(r, 'b', 0)
}

/* Gives ticket. */
inline ledger_add(r)
{
  assert(L[r].open);
  if
  :: !L[r].has_rows ->
    assert(IN_FLIGHT(r) < CAP);
    L[r].end[L[r].next % CAP] = 0;
    L[r].pending[L[r].next % CAP] = 0;
    L[r].next++;
    L[r].has_rows = true
  :: else
  fi;
  ticket = L[r].next - 1;
  L[r].pending[ticket % CAP]++;
  STEP(r, 'a', ticket)
}

inline ledger_commit(r, position)
{
  assert(L[r].open);
  n = position;
#ifdef M_COMMIT_START
  n = position - 1;
#endif
#ifdef M_START_PLUS_LENGTH
  n = position + 1;
#endif
  L[r].open = false;
  L[r].has_rows = false;
  if
  :: L[r].oldest != L[r].next ->
    i = (L[r].next - 1) % CAP;
    assert(n > L[r].end[i]);
    L[r].end[i] = n
  :: else ->
    if
    :: n > L[r].flushed -> L[r].flushed = n
    :: else
    fi
  fi;
  retire(r);
  STEP(r, 'c', position);
  position_holds(r)
}

inline ledger_ack(r, t)
{
  if
#ifdef M_OLD_TICKET
  :: t < L[r].oldest && L[r].pending[t % CAP] > 0 -> L[r].pending[t % CAP]--
  :: t < L[r].oldest && L[r].pending[t % CAP] == 0
#else
  :: t < L[r].oldest /* from before a reconnect */
#endif
  :: else ->
#if defined(M_TICKETS_REUSED) || defined(M_OLD_TICKET)
    if
    :: L[r].pending[t % CAP] > 0 -> L[r].pending[t % CAP]--
    :: else
    fi
#else
    assert(t < L[r].next && L[r].pending[t % CAP] > 0); /* must() */
    L[r].pending[t % CAP]--
#endif
#ifdef M_ACK_WITHOUT_ORDER
    ;
    if
    :: L[r].pending[t % CAP] == 0 && L[r].end[t % CAP] > L[r].flushed -> L[r].flushed = L[r].end[t % CAP]
    :: else
    fi
#endif
  fi;
  retire(r);
  STEP(r, 'k', t);
  position_holds(r)
}

inline ledger_idle(r, position)
{
  if
#ifdef M_IDLE_WHILE_OPEN
  :: position > L[r].flushed -> L[r].flushed = position
#else
#ifdef M_IDLE_WHILE_UNACKED
  :: !L[r].open && position > L[r].flushed -> L[r].flushed = position
#else
  :: IDLE(r) && position > L[r].flushed -> L[r].flushed = position
#endif
#endif
  :: else
  fi;
  STEP(r, 'i', position);
  position_holds(r)
}

inline ledger_restart(r, position)
{
  i = 0;
  do /* so that what is forgotten makes no difference */
  :: i < CAP -> L[r].end[i] = 0; L[r].pending[i] = 0; i++
  :: else -> break
  od;
#ifdef M_TICKETS_REUSED
  L[r].next = 0;
#endif
#ifndef EXACT_TICKETS
  /* Only for a smaller search: when no old ticket is left, the numbers may begin again. */
  if
  :: len(late_acks[r]) == 0 -> L[r].next = 0
  :: else
  fi;
#endif
  L[r].oldest = L[r].next;
  L[r].open = false;
  L[r].has_rows = false;
  L[r].flushed = position;
  STEP(r, 'r', position)
}

/* ---- io/sink.c --------------------------------------------------------------------------------- */

/* sink_offer: what waits may be sent, the first message to a partition alone (decision 3). */
inline offer(r, k)
{
  do
  :: S[r].o[k].sent < S[r].o[k].put && (k == DEAD || S[r].o[k].warm || S[r].o[k].sent == S[r].o[k].done) ->
    S[r].o[k].sent++
#ifdef M_FIRST_NOT_ALONE
  :: S[r].o[k].sent < S[r].o[k].put -> S[r].o[k].sent++
#endif
  :: else -> break
  od;
  skip
}

/* The producer is gone.  What it was sending never arrives, or much later. */
inline let_go(r, k)
{
  if
#ifdef LATE_REQUESTS
  :: S[r].o[k].sent > S[r].o[k].durable && S[r].o[k].sent > kafka[k] && late_to[k] == 0 ->
    late_from[k] = S[r].o[k].durable;
    late_to[k] = S[r].o[k].sent
#endif
  :: true
  fi;
  S[r].o[k].known = false;
  S[r].o[k].warm = false
}

/* sink_failure.c: the next producer sends again, in order, what is not acknowledged. */
inline send_again(r, k)
{
#ifdef M_FAILED_IS_ACKED
  do
  :: S[r].o[k].done < S[r].o[k].sent -> take_ticket(r, k, S[r].o[k].done); ledger_ack(r, ticket); S[r].o[k].done++
  :: else -> break
  od;
#endif
#ifdef M_REBUILD_FORGETS
  S[r].o[k].done = S[r].o[k].sent;
#endif
  S[r].o[k].durable = S[r].o[k].done;
  S[r].o[k].sent = S[r].o[k].done;
  offer(r, k)
}

inline rebuild(r)
{
  let_go(r, A);
  send_again(r, A);
  let_go(r, B);
  send_again(r, B)
}

/* The ticket that message m of key k was put with. */
inline take_ticket(r, k, m)
{
  i = 1;
  do
  :: T[i].upto[k] <= m -> i++
  :: else -> break
  od;
  ticket = R[r].ticket[i]
}

/* sink_drop, for one outlet. */
inline drop(r, k)
{
  if
#ifdef LATE_ACKS
  :: S[r].o[k].durable > S[r].o[k].done && nfull(late_acks[r]) ->
    take_ticket(r, k, S[r].o[k].done);
    late_acks[r] ! ticket, k, S[r].o[k].done
#endif
  :: true
  fi;
  let_go(r, k);
  S[r].o[k].done = 0;
  S[r].o[k].durable = 0;
  S[r].o[k].sent = 0;
  S[r].o[k].put = 0
}

inline note_ack(k, m)
{
  if
  :: acked[k] <= m -> acked[k] = m + 1
  :: else
  fi
}

/* sink_done and take_acks: the oldest report of one outlet. */
inline take_ack(r, k)
{
  take_ticket(r, k, S[r].o[k].done);
  note_ack(k, S[r].o[k].done);
  S[r].o[k].done++;
  S[r].o[k].warm = true;
  ledger_ack(r, ticket);
  offer(r, k)
}

/* sink_put, by publish.c. */
inline put_row(r, k)
{
  ledger_add(r);
  R[r].ticket[R[r].txn] = ticket;
#ifdef M_DEAD_LETTER_EARLY
  if
  :: k == DEAD ->
    ledger_ack(r, ticket)
  :: else
  fi;
#endif
  S[r].o[k].put++;
  offer(r, k)
}

/* ---- io/slot.c ------------------------------------------------------------------------------- */

/* The server names a position.  Once it has named the ledger's, all that raises that was named on
 * this connection, too: one bit tells what io/slot.c compares. */
inline receive(r, position)
{
  if
  :: position >= L[r].flushed -> R[r].named = true
  :: else
  fi
}

/* A keepalive names a position up to which the server has read and sent everything: here the
 * largest one.  Within a transaction it names that transaction's end, as if the server moved its
 * position before it sends; PostgreSQL 15 does so after.  The ledger need not know. */
#define KEEPALIVE(r) \
  (R[r].txn > TXNS -> wal_end : (R[r].inside -> END(R[r].txn) : T[R[r].txn].commit_at))

/* One may come at any time.  When progress is the question, only those count that say something
 * new: that a server repeats itself for ever is no progress. */
#ifdef PROGRESS
#define KEEPALIVE_DUE(r) \
  ((IDLE(r) && KEEPALIVE(r) > L[r].flushed) || (!R[r].named && KEEPALIVE(r) >= L[r].flushed))
#else
#define KEEPALIVE_DUE(r) (KEEPALIVE(r) > L[r].flushed || !R[r].named)
#endif

/* moved() and may_tell(): never above what this connection has named.  A server takes a position
 * below the slot's for nothing (seen of 15.20); with -DOLD_SERVER it moves the slot back. */
#ifdef OLD_SERVER
#define MAY_TELL(r) (R[r].named && L[r].flushed != confirmed)
#else
#define MAY_TELL(r) (R[r].named && L[r].flushed > confirmed)
#endif

/* ---- app/relay_connect.c ----------------------------------------------------------------------- */

inline forget_stream(r)
{
  R[r].txn = 0;
  R[r].inside = false;
  R[r].named = false
}

/* relay_lost: the ledger and the sink stay as they are, acknowledgements still come. */
inline lost(r)
{
#ifdef M_START_AT_READ
  if
  :: R[r].phase == STREAMING -> R[r].read = END(R[r].txn - 1)
  :: else
  fi;
#endif
  R[r].phase = CONNECTING;
  R[r].connected = false;
  R[r].start = 0;
  forget_stream(r)
}

/* The checks, once nobody streams (connection.c), and stream(): the ledger's position counts if
 * this process has streamed before. */
inline stream(r)
{
  drop(r, A);
  drop(r, B);
  drop(r, DEAD);
  i = 0;
  do
  :: i <= TXNS -> R[r].ticket[i] = 0; i++
  :: else -> break
  od;
  R[r].start = (R[r].history -> L[r].flushed : 0);
#ifdef M_START_AT_WAL_END
  R[r].start = wal_end;
#endif
#ifdef M_START_AT_READ
  R[r].start = (R[r].history -> R[r].read : 0);
#endif
  n = (R[r].start > confirmed -> R[r].start : confirmed);
  R[r].history = true;
  R[r].connected = true;
  R[r].phase = STARTING;
  ledger_restart(r, n)
}

/* The walsender starts at the larger of both, and skips what commits below. */
inline accepted(r)
{
  walsender = r + 1;
  n = (R[r].start > confirmed -> R[r].start : confirmed);
  nothing_is_lost_below(n);
  R[r].start = 0;
  R[r].txn = 1;
  do
  :: R[r].txn <= TXNS && T[R[r].txn].commit_at < n -> R[r].txn++
  :: else -> break
  od;
  i = 0;
  do
  :: i < KEYS ->
    S[r].o[i].done = T[R[r].txn - 1].upto[i];
    S[r].o[i].durable = S[r].o[i].done;
    S[r].o[i].sent = S[r].o[i].done;
    S[r].o[i].put = S[r].o[i].done;
    i++
  :: else -> break
  od;
  R[r].phase = STREAMING
}

/* kill -9, and the next process: what is in the kernel's buffers goes on without it. */
inline kill(r)
{
  drop(r, A);
  drop(r, B);
  drop(r, DEAD);
  do
  :: late_acks[r] ? _, _, _
  :: empty(late_acks[r]) -> break
  od;
  i = 0;
  do
  :: i <= TXNS -> R[r].ticket[i] = 0; i++
  :: else -> break
  od;
  lost(r);
#ifdef M_START_AT_READ
  R[r].read = 0;
#endif
  R[r].history = false;
  i = 0;
  do
  :: i < CAP -> L[r].end[i] = 0; L[r].pending[i] = 0; i++
  :: else -> break
  od;
  L[r].flushed = 0;
  L[r].oldest = 0;
  L[r].next = 0;
  L[r].open = false;
  L[r].has_rows = false;
  ledger_new(r)
}

/* ---- who acts ------------------------------------------------------------------------------------ */

#define MORE_ROWS(r, k) (S[r].o[k].put < T[R[r].txn].upto[k])
#define READING(r)      (R[r].phase == STREAMING && R[r].txn <= TXNS)

/* One process of walrelay: the loop of app/relay.c.  That the connection is gone does not keep it
 * from reading what had arrived before: a relay that was frozen does so when it goes on. */
proctype Relay(byte r)
{
  end:
  do
  :: atomic { R[r].phase == CONNECTING && walsender == 0 -> stream(r) }

  /* START_REPLICATION is accepted, or refused because somebody else was faster, or lost */
  :: d_step { R[r].phase == STARTING && R[r].connected && walsender == 0 -> accepted(r) }
  :: d_step { R[r].phase == STARTING && (!R[r].connected || walsender != 0) -> lost(r) }
  :: d_step { R[r].phase == STREAMING && !R[r].connected -> lost(r) }

  /* take_changes: publish.c for each kind of change */
  :: d_step { READING(r) && !R[r].inside ->
      n = WRITTEN_AT(R[r].txn); receive(r, n); R[r].inside = true; ledger_begin(r) }
  :: d_step { READING(r) && R[r].inside && ROOM(r) && MORE_ROWS(r, A) ->
      n = WRITTEN_AT(R[r].txn); receive(r, n); put_row(r, A) }
  :: d_step { READING(r) && R[r].inside && ROOM(r) && !MORE_ROWS(r, A) && MORE_ROWS(r, B) ->
      n = WRITTEN_AT(R[r].txn); receive(r, n); put_row(r, B) }
  :: d_step { READING(r) && R[r].inside && ROOM(r) && !MORE_ROWS(r, A) && !MORE_ROWS(r, B) && MORE_ROWS(r, DEAD) ->
      n = WRITTEN_AT(R[r].txn); receive(r, n); put_row(r, DEAD) }
  :: d_step { READING(r) && R[r].inside && !MORE_ROWS(r, A) && !MORE_ROWS(r, B) && !MORE_ROWS(r, DEAD) ->
      receive(r, END(R[r].txn)); R[r].inside = false; R[r].txn++;
      ledger_commit(r, END(R[r].txn - 1)) }
  :: d_step { R[r].phase == STREAMING && KEEPALIVE_DUE(r) ->
      n = KEEPALIVE(r); receive(r, n); ledger_idle(r, n) }

  /* take_acks, in every phase */
  :: d_step { S[r].o[A].durable > S[r].o[A].done -> take_ack(r, A) }
  :: d_step { S[r].o[B].durable > S[r].o[B].done -> take_ack(r, B) }
  :: d_step { S[r].o[DEAD].durable > S[r].o[DEAD].done -> take_ack(r, DEAD) }
  :: d_step { late_acks[r] ? ticket, i, j -> note_ack(i, j); ledger_ack(r, ticket) }

  /* confirm: io/slot.c, tell(), and the walsender that reads it.  What it does not read any more
   * is the same as what was not told. */
  :: d_step { R[r].phase == STREAMING && R[r].connected && MAY_TELL(r) ->
      confirmed = L[r].flushed; nothing_is_lost_below(confirmed) }
  od
}

/* A partition appends what one producer sends, in order; or the table of dead letters. */
proctype Partition(byte r; byte k)
{
  end:
  do
  :: d_step { S[r].o[k].durable < S[r].o[k].sent ->
      append(k, S[r].o[k].durable); S[r].o[k].durable++; S[r].o[k].known = true }
  od
}

inline arrive_late(k)
{
  append(k, late_from[k]);
  late_from[k]++;
  if
  :: late_from[k] == late_to[k] -> late_from[k] = 0; late_to[k] = 0
  :: else
  fi
}

proctype PostgreSQL()
{
  end:
  do
  /* The walsender ends, because the relay has gone. */
  :: d_step { walsender != 0 && !R[walsender - 1].connected -> walsender = 0 }

  /* Nobody's: requests of producers that are gone. */
  :: d_step { late_to[A] != 0 -> arrive_late(A) }
  :: d_step { late_to[B] != 0 -> arrive_late(B) }
  :: d_step { late_to[DEAD] != 0 -> arrive_late(DEAD) }
  od
}

/* The broker refuses the first message on its way.  Those behind it are refused, too, as their
 * sequence numbers do not follow; but a broker that knows nothing of the producer takes them. */
inline refuse(r, k)
{
  if
  :: !S[r].o[k].known ->
    i = S[r].o[k].durable + 1;
    do
    :: i < S[r].o[k].sent -> append(k, i); i++
    :: else -> break
    od
  :: else
  fi;
  S[r].o[k].sent = S[r].o[k].durable; /* nothing of it comes late */
  rebuild(r)
}

#define STRIKES (faults > 0 && rest == 0)
#define STRUCK  faults--; rest = REST

inline crash()
{
  STRUCK;
  do
  :: confirmed > 1 -> confirmed--
  :: true -> break
  od;
  walsender = 0;
  i = 0;
  do
  :: i < RELAYS -> R[i].connected = false; i++
  :: else -> break
  od
}

/* What goes wrong, a bounded number of times. */
proctype Fate(byte r)
{
  end:
  do
  /* kill -9 */
  :: atomic { STRIKES && (R[r].phase != CONNECTING || R[r].history) -> STRUCK; kill(r) }

  /* The connection breaks: the server notices first (wal_sender_timeout), or the relay does. */
  :: d_step { STRIKES && R[r].phase == STREAMING && R[r].connected ->
      STRUCK; R[r].connected = false; walsender = 0 }
  :: d_step { STRIKES && R[r].phase == STREAMING && R[r].connected -> STRUCK; lost(r) }

  /* The connection to Kafka breaks, a fatal error: the producer is rebuilt. */
  :: atomic { STRIKES && (S[r].o[A].sent > S[r].o[A].done || S[r].o[B].sent > S[r].o[B].done) -> STRUCK; rebuild(r) }
  :: atomic { STRIKES && S[r].o[A].sent > S[r].o[A].durable -> STRUCK; refuse(r, A) }
  :: atomic { STRIKES && S[r].o[B].sent > S[r].o[B].durable -> STRUCK; refuse(r, B) }

  /* The server crashes: the slot stands where a checkpoint saved it, anywhere before. */
  :: atomic { r == 0 && STRIKES -> crash() }

  :: d_step { r == 0 && faults > 0 && rest > 0 -> rest-- }
  /* ... and for good. */
#ifdef PROGRESS
  :: d_step { r == 0 && STRIKES -> faults = 0 }
#endif
  od
}

/* ---- the beginning --------------------------------------------------------------------------------- */

/* Messages of key k of transaction t: any number for which there is room. */
inline write(t, k)
{
  T[t].upto[k] = T[t - 1].upto[k];
  do
  :: k < SPREAD && j < ROWS && T[t].upto[k] - T[t - 1].upto[k] < ROWS_EACH -> T[t].upto[k]++; j++
  :: true -> break
  od
}

inline start(r)
{
  R[r].phase = CONNECTING;
  ledger_new(r);
  run Relay(r);
  run Partition(r, A);
#if SPREAD > 1
  run Partition(r, B);
#endif
#if SPREAD > 2
  run Partition(r, DEAD);
#endif
  run Fate(r)
}

/* Any WAL within the bounds. */
init
{
  atomic {
    i = 1;
    j = 0;
    T[1].commit_at = 2;
    do
    :: i <= TXNS ->
      write(i, A);
      write(i, B);
      write(i, DEAD);
      if
      :: i == TXNS
      :: i < TXNS -> T[i + 1].commit_at = END(i)
      :: i < TXNS -> T[i + 1].commit_at = END(i) + 1
      fi;
      i++
    :: else -> break
    od;
    wal_end = END(TXNS) + 1;
    if
    :: ANY_WAL || (j == ROWS && T[TXNS].upto[A] >= T[TXNS].upto[B]) ->
      run PostgreSQL();
      start(0);
#if RELAYS > 1
      start(1)
#endif
    :: else -> dismissed = true /* contained in another, or the same with the keys exchanged */
    fi
  }
}

/* ---- progress ---------------------------------------------------------------------------------------- */

/* Fate ends, and then, whatever the order of the rest, everything is in Kafka or a dead letter,
 * and all of the WAL is confirmed. */
#define finished (dismissed || confirmed == wal_end && kafka[A] == T[TXNS].upto[A] && kafka[B] == T[TXNS].upto[B] \
                  && kafka[DEAD] == T[TXNS].upto[DEAD])

#ifdef PROGRESS
ltl progress { <> [] finished }
#endif
