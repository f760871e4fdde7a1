#include "core/ledger.h"

#include "unit.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct ledger *new_ledger(size_t max_txns, lsn_t flushed)
{
    struct ledger *ledger = ledger_new(max_txns, flushed);

    assert_non_null(ledger);
    return ledger;
}

/* A transaction with one message; its ticket. */
static ticket_t one_row(struct ledger *ledger, lsn_t end)
{
    ticket_t ticket;

    ledger_begin(ledger);
    ticket = ledger_add(ledger);
    ledger_commit(ledger, end);
    return ticket;
}

static void no_rows(struct ledger *ledger, lsn_t end)
{
    ledger_begin(ledger);
    ledger_commit(ledger, end);
}

static void acks_out_of_order_hold_the_position(void **state)
{
    struct ledger *ledger = new_ledger(4, 100);
    ticket_t a = one_row(ledger, 200);
    ticket_t b = one_row(ledger, 300);

    (void)state;
    ledger_ack(ledger, b);
    assert_int_equal(ledger_flushed(ledger), 100);
    ledger_ack(ledger, a);
    assert_int_equal(ledger_flushed(ledger), 300);
    ledger_free(ledger);
}

static void a_transactions_own_end_is_known_when_it_has_been_read(void **state)
{
    struct ledger *ledger = new_ledger(4, 100);
    ticket_t a;
    ticket_t b;

    (void)state;
    ledger_begin(ledger);
    a = ledger_add(ledger);
    assert_int_equal(ledger_end(ledger, a), LSN_NONE);
    ledger_commit(ledger, 200);
    assert_int_equal(ledger_end(ledger, a), 200);
    no_rows(ledger, 300); /* raises what is confirmed with a, not where a ends */
    assert_int_equal(ledger_end(ledger, a), 200);
    b = one_row(ledger, 400);
    ledger_ack(ledger, a);
    assert_int_equal(ledger_flushed(ledger), 300);
    assert_int_equal(ledger_end(ledger, b), 400);
    ledger_ack(ledger, b);
    assert_int_equal(ledger_end(ledger, one_row(ledger, 500)), 500);
    ledger_free(ledger);
}

static void an_open_transaction_holds_the_position(void **state)
{
    struct ledger *ledger = new_ledger(4, 100);

    (void)state;
    ledger_begin(ledger);
    ledger_ack(ledger, ledger_add(ledger));
    ledger_idle(ledger, 900);
    assert_int_equal(ledger_flushed(ledger), 100);
    ledger_commit(ledger, 200);
    assert_int_equal(ledger_flushed(ledger), 200);
    ledger_idle(ledger, 900);
    assert_int_equal(ledger_flushed(ledger), 900);
    ledger_free(ledger);
}

static void every_message_of_a_transaction_must_be_acknowledged(void **state)
{
    struct ledger *ledger = new_ledger(4, 100);
    ticket_t ticket = 0;

    (void)state;
    ledger_begin(ledger);
    for (int i = 0; i < 1000; i++)
        ticket = ledger_add(ledger);
    ledger_commit(ledger, 200);
    assert_int_equal(ledger_in_flight(ledger), 1);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(ledger_flushed(ledger), 100);
        ledger_ack(ledger, ticket);
    }
    assert_int_equal(ledger_flushed(ledger), 200);
    ledger_free(ledger);
}

static void a_late_ack_after_restart_is_ignored(void **state)
{
    struct ledger *ledger = new_ledger(4, 100);
    ticket_t old = one_row(ledger, 200);
    ticket_t again;

    (void)state;
    ledger_restart(ledger, 100);
    again = one_row(ledger, 200);
    assert_true(again != old);
    ledger_ack(ledger, old);
    assert_int_equal(ledger_flushed(ledger), 100);
    ledger_ack(ledger, again);
    assert_int_equal(ledger_flushed(ledger), 200);
    ledger_free(ledger);
}

static void a_restart_forgets_the_open_transaction(void **state)
{
    struct ledger *ledger = new_ledger(1, 100);
    ticket_t old;

    (void)state;
    ledger_begin(ledger);
    old = ledger_add(ledger);
    ledger_restart(ledger, 100);
    assert_int_equal(ledger_in_flight(ledger), 0);
    ledger_idle(ledger, 150);
    assert_int_equal(ledger_flushed(ledger), 150);
    ledger_begin(ledger);
    (void)ledger_add(ledger);
    ledger_ack(ledger, old);
    ledger_commit(ledger, 200);
    assert_int_equal(ledger_flushed(ledger), 150);
    ledger_free(ledger);
}

/* A crashed server may have lost what it was told (its slots are saved at
 * checkpoints): it sends again from where it stands. */
static void a_restart_may_move_the_position_back(void **state)
{
    struct ledger *ledger = new_ledger(4, 100);

    (void)state;
    ledger_ack(ledger, one_row(ledger, 200));
    ledger_restart(ledger, 120);
    assert_int_equal(ledger_flushed(ledger), 120);
    ledger_ack(ledger, one_row(ledger, 200));
    assert_int_equal(ledger_flushed(ledger), 200);
    ledger_free(ledger);
}

static void full_means_that_no_transaction_with_rows_can_enter(void **state)
{
    struct ledger *ledger = new_ledger(2, 0);
    ticket_t first;

    (void)state;
    assert_false(ledger_full(ledger));
    first = one_row(ledger, 10);
    assert_false(ledger_full(ledger));
    (void)one_row(ledger, 20);
    assert_true(ledger_full(ledger));
    no_rows(ledger, 30);
    ledger_begin(ledger);
    assert_true(ledger_full(ledger));
    ledger_ack(ledger, first);
    assert_false(ledger_full(ledger));
    ledger_free(ledger);
}

/* Otherwise whoever asks before each row would wait for ever for its own commit. */
static void a_transaction_that_has_entered_is_never_kept_out(void **state)
{
    struct ledger *ledger = new_ledger(1, 0);

    (void)state;
    ledger_begin(ledger);
    (void)ledger_add(ledger);
    assert_false(ledger_full(ledger));
    (void)ledger_add(ledger);
    assert_false(ledger_full(ledger));
    ledger_commit(ledger, 10);
    assert_true(ledger_full(ledger));
    ledger_free(ledger);
}

static void transactions_without_rows_need_no_room(void **state)
{
    struct ledger *ledger = new_ledger(1, 0);
    ticket_t a = one_row(ledger, 10);

    (void)state;
    for (lsn_t end = 20; end <= 1000; end += 10)
        no_rows(ledger, end);
    assert_int_equal(ledger_in_flight(ledger), 1);
    assert_int_equal(ledger_flushed(ledger), 0);
    ledger_ack(ledger, a);
    assert_int_equal(ledger_flushed(ledger), 1000);
    ledger_begin(ledger);
    ledger_idle(ledger, 2000);
    assert_int_equal(ledger_flushed(ledger), 1000);
    ledger_commit(ledger, 1010);
    assert_int_equal(ledger_flushed(ledger), 1010);
    ledger_free(ledger);
}

static void an_idle_position_never_moves_back(void **state)
{
    struct ledger *ledger = new_ledger(1, 100);

    (void)state;
    ledger_idle(ledger, 99);
    assert_int_equal(ledger_flushed(ledger), 100);
    ledger_idle(ledger, 101);
    assert_int_equal(ledger_flushed(ledger), 101);
    ledger_free(ledger);
}

static void commits_are_accepted_in_ascending_order_only(void **state)
{
    struct ledger *ledger = new_ledger(4, 100);

    (void)state;
    assert_false(ledger_accepts(ledger, 200)); /* nothing is open */
    ledger_begin(ledger);
    assert_true(ledger_accepts(ledger, 50)); /* without rows it moves nothing */
    assert_false(ledger_accepts(ledger, LSN_NONE));
    ledger_ack(ledger, ledger_add(ledger));
    assert_false(ledger_accepts(ledger, 99)); /* its row would be confirmed already */
    assert_true(ledger_accepts(ledger, 100));
    ledger_commit(ledger, 200);
    (void)one_row(ledger, 300);
    ledger_begin(ledger);
    assert_false(ledger_accepts(ledger, 300));
    assert_true(ledger_accepts(ledger, 301));
    (void)ledger_add(ledger);
    assert_false(ledger_accepts(ledger, 300));
    assert_true(ledger_accepts(ledger, 301));
    ledger_free(ledger);
}

/* ---- what must never happen ends the process ----------------------------------- */

static void rows_out_of_commit_order(struct ledger *ledger)
{
    (void)one_row(ledger, 200);
    no_rows(ledger, 150);
}

static void a_commit_below_the_position(struct ledger *ledger)
{
    ledger_ack(ledger, one_row(ledger, 50));
}

static void an_ack_too_many(struct ledger *ledger)
{
    ticket_t ticket = one_row(ledger, 200);

    ledger_begin(ledger);
    ledger_ack(ledger, ledger_add(ledger));
    ledger_ack(ledger, ticket + 1);
}

static void an_ack_of_what_was_never_given(struct ledger *ledger)
{
    ledger_ack(ledger, one_row(ledger, 200) + 1);
}

static void a_row_outside_a_transaction(struct ledger *ledger)
{
    (void)ledger_add(ledger);
}

static void a_row_without_room(struct ledger *ledger)
{
    (void)one_row(ledger, 200);
    (void)one_row(ledger, 300);
    (void)one_row(ledger, 400);
}

static void a_begin_within_a_transaction(struct ledger *ledger)
{
    ledger_begin(ledger);
    ledger_begin(ledger);
}

static void a_commit_without_a_begin(struct ledger *ledger)
{
    ledger_commit(ledger, 200);
}

static void assert_ends_the_process(void (*step)(struct ledger *ledger))
{
    struct ledger *ledger = new_ledger(2, 100);
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        (void)signal(SIGABRT, SIG_DFL); /* cmocka catches it */
        (void)close(STDERR_FILENO);
        step(ledger);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    ledger_free(ledger);
}

static void a_broken_promise_ends_the_process(void **state)
{
    (void)state;
    assert_ends_the_process(rows_out_of_commit_order);
    assert_ends_the_process(a_commit_below_the_position);
    assert_ends_the_process(an_ack_too_many);
    assert_ends_the_process(an_ack_of_what_was_never_given);
    assert_ends_the_process(a_row_outside_a_transaction);
    assert_ends_the_process(a_row_without_room);
    assert_ends_the_process(a_begin_within_a_transaction);
    assert_ends_the_process(a_commit_without_a_begin);
}

/* ---- a model: a plain list of all transactions since the start ------------------ */

enum { SCHEDULES = 3000, STEPS = 250, MAX_UNACKED = 64 };

struct model_txn {
    lsn_t end; /* LSN_NONE: open */
    int rows;
    int acked;
};

struct message {
    ticket_t ticket;
    int txn; /* -1: of a connection that was lost */
};

struct model {
    size_t cap;
    lsn_t start;
    bool open;
    struct model_txn txns[STEPS];
    int ntxns;
    struct message unacked[MAX_UNACKED];
    int nunacked;
    lsn_t wal; /* the server's */
};

static unsigned below(uint64_t *random, unsigned n)
{
    *random ^= *random >> 12;
    *random ^= *random << 25;
    *random ^= *random >> 27;
    return (unsigned)((*random * UINT64_C(2685821657736338717)) >> 33) % n;
}

/* How many transactions, from the first, are committed and acknowledged. */
static int finished(const struct model *m)
{
    int n = 0;

    while (n < m->ntxns && m->txns[n].end != LSN_NONE &&
           m->txns[n].acked == m->txns[n].rows)
        n++;
    return n;
}

static lsn_t model_flushed(const struct model *m)
{
    int n = finished(m);

    return n == 0 ? m->start : m->txns[n - 1].end;
}

static size_t model_in_flight(const struct model *m)
{
    size_t with_rows = 0;

    for (int i = finished(m); i < m->ntxns; i++)
        with_rows += m->txns[i].rows > 0;
    return with_rows;
}

static bool model_full(const struct model *m)
{
    if (m->open && m->txns[m->ntxns - 1].rows > 0)
        return false;
    return model_in_flight(m) == m->cap;
}

static void begin(struct model *m, struct ledger *ledger)
{
    m->open = true;
    m->txns[m->ntxns++] = (struct model_txn){0};
    ledger_begin(ledger);
}

static void add(struct model *m, struct ledger *ledger)
{
    if (model_full(m) || m->nunacked == MAX_UNACKED)
        return;
    m->txns[m->ntxns - 1].rows++;
    m->unacked[m->nunacked++] = (struct message){ledger_add(ledger), m->ntxns - 1};
}

static void commit(struct model *m, struct ledger *ledger, uint64_t *random)
{
    m->wal += 1 + below(random, 50);
    m->open = false;
    m->txns[m->ntxns - 1].end = m->wal;
    ledger_commit(ledger, m->wal);
}

static void ack(struct model *m, struct ledger *ledger, uint64_t *random)
{
    struct message message;
    int which;

    if (m->nunacked == 0)
        return;
    which = (int)below(random, (unsigned)m->nunacked);
    message = m->unacked[which];
    m->unacked[which] = m->unacked[--m->nunacked];
    if (message.txn >= 0)
        m->txns[message.txn].acked++;
    ledger_ack(ledger, message.ticket);
}

/* To the model the server's idle position is one more empty transaction. */
static void idle(struct model *m, struct ledger *ledger, uint64_t *random)
{
    lsn_t wal_end = m->wal + below(random, 50);

    if (finished(m) == m->ntxns && m->ntxns < STEPS) {
        m->wal = wal_end;
        m->txns[m->ntxns++] = (struct model_txn){.end = wal_end};
    }
    ledger_idle(ledger, wal_end);
}

static void restart(struct model *m, struct ledger *ledger, uint64_t *random)
{
    lsn_t flushed = model_flushed(m);

    m->start = below(random, 4) ? flushed : flushed - below(random, 20);
    m->wal = m->start;
    m->ntxns = 0;
    m->open = false;
    for (int i = 0; i < m->nunacked; i++)
        m->unacked[i].txn = -1;
    ledger_restart(ledger, m->start);
}

static void random_step(struct model *m, struct ledger *ledger, uint64_t *random)
{
    unsigned dice = below(random, 100);

    if (dice < 2)
        restart(m, ledger, random);
    else if (dice < 10)
        idle(m, ledger, random);
    else if (dice < 40)
        ack(m, ledger, random);
    else if (!m->open)
        begin(m, ledger);
    else if (dice < 75)
        add(m, ledger);
    else
        commit(m, ledger, random);
}

static void any_schedule_gives_the_position_of_the_model(void **state)
{
    uint64_t random = UINT64_C(88172645463325252);

    (void)state;
    for (int schedule = 0; schedule < SCHEDULES; schedule++) {
        struct model m = {.cap = 1 + below(&random, 6), .start = 1000, .wal = 1000};
        struct ledger *ledger = new_ledger(m.cap, m.start);

        for (int step = 0; step < STEPS; step++) {
            random_step(&m, ledger, &random);
            assert_true(ledger_flushed(ledger) == model_flushed(&m));
            assert_int_equal(ledger_in_flight(ledger), model_in_flight(&m));
            assert_int_equal(ledger_full(ledger), model_full(&m));
        }
        ledger_free(ledger);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acks_out_of_order_hold_the_position),
        cmocka_unit_test(a_transactions_own_end_is_known_when_it_has_been_read),
        cmocka_unit_test(an_open_transaction_holds_the_position),
        cmocka_unit_test(every_message_of_a_transaction_must_be_acknowledged),
        cmocka_unit_test(a_late_ack_after_restart_is_ignored),
        cmocka_unit_test(a_restart_forgets_the_open_transaction),
        cmocka_unit_test(a_restart_may_move_the_position_back),
        cmocka_unit_test(full_means_that_no_transaction_with_rows_can_enter),
        cmocka_unit_test(a_transaction_that_has_entered_is_never_kept_out),
        cmocka_unit_test(transactions_without_rows_need_no_room),
        cmocka_unit_test(an_idle_position_never_moves_back),
        cmocka_unit_test(commits_are_accepted_in_ascending_order_only),
        cmocka_unit_test(a_broken_promise_ends_the_process),
        cmocka_unit_test(any_schedule_gives_the_position_of_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
