#include "app/setup_slot.h"

#include "app/sqlscript.h"
#include "base/clock.h"
#include "io/job.h"

#include <signal.h>
#include <string.h>
#include <time.h>

enum { FIRST_REPORT_MS = 3000, NEXT_REPORT_MS = 30000, LOOK_MS = 50 };

/* What the thread that waits for the server has in hand. */
struct maker {
    struct pg *pg;
    const char *script;
    int rc;
    int changes;
    struct err err;
};

static void make(void *arg)
{
    struct maker *maker = arg;

    maker->rc = sqlscript_run(maker->pg, maker->script, &maker->changes, &maker->err);
}

/* Should this process be killed, the server notices and stops waiting, so that no half
 * of a slot stays (client_connection_check_interval exists since 14). */
static int leave_nothing(struct pg *pg, struct err *err)
{
    if (pg_server_version(pg) < 140000)
        return 0;
    return pg_execute(pg, "SET client_connection_check_interval = '1s'", 0, NULL, err);
}

/* Every transaction with an xid that was running when the slot was begun is waited
 * for, in any database.  NULL, or none: this role may not see whose they are. */
static const char waits_query[] =
    "SELECT string_agg(what, ', ' ORDER BY since) FROM ("
    "SELECT format('PID %s (%s)', pid, concat_ws(', ', usename, datname, state)),"
    " xact_start"
    " FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
    " UNION ALL SELECT format('prepared transaction %L of database %s', gid, database),"
    " prepared FROM pg_prepared_xacts) AS waits(what, since)";

static void say_waits(struct pg *pg, FILE *out)
{
    struct pg_result *found = pg_query(pg, waits_query, 0, NULL, NULL);
    const char *who = found ? pg_value(found, 0, 0) : NULL;

    (void)fprintf(
        out, "%-11s  slot: the server waits for the end of %s\n", "waiting",
        who ? who : "transactions that this role may not see (GRANT pg_monitor TO it)");
    (void)fflush(out);
    pg_result_free(found);
}

/* Waits for the thread.  True: a signal asked to stop. */
static bool wait_for(struct job *job, struct maker *maker, const sigset_t *signals,
                     struct pg *pg, FILE *out)
{
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000L};
    int64_t report = clock_mono_ms() + FIRST_REPORT_MS;
    bool stop = false;

    while (!job_is_done(job)) {
        stop = sigtimedwait(signals, NULL, &look) > 0 || stop;
        if (stop)
            pg_cancel(maker->pg);
        if (!stop && clock_mono_ms() >= report) {
            say_waits(pg, out);
            report = clock_mono_ms() + NEXT_REPORT_MS;
        }
    }
    return stop;
}

static int judge(const struct maker *maker, bool stopped, struct err *err)
{
    if (maker->rc == 0)
        return 0;
    if (stopped)
        return err_set_code(err, ERR_RETRY, maker->err.code,
                            "interrupted; it was not made and nothing of it is left");
    if (strcmp(maker->err.code, "55P03") == 0) /* lock_not_available */
        return err_set_code(
            err, ERR_RETRY, maker->err.code,
            "it was not made and nothing of it is left, because transactions named above "
            "did not end in time: end them (SELECT pg_terminate_backend(pid); ROLLBACK "
            "PREPARED 'gid') and run setup again");
    return err_set_code(err, maker->err.class, maker->err.code, "%s", maker->err.text);
}

static int make_in_a_thread(struct maker *maker, struct pg *pg, FILE *out,
                            struct err *err)
{
    sigset_t signals;
    sigset_t before;
    struct job *job;
    bool stopped = false;

    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    job = job_start(make, maker, err);
    if (job) {
        stopped = wait_for(job, maker, &signals, pg, out);
        job_finish(job);
    }
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return job ? judge(maker, stopped, err) : -1;
}

int setup_slot(struct pg *pg, const char *dsn, const char *script, FILE *out, bool *made,
               struct err *err)
{
    struct maker maker = {.pg = pg_connect(dsn, PG_SQL, err), .script = script};
    int rc = -1;

    if (maker.pg)
        pg_wait_for_ever(maker.pg);
    if (maker.pg && leave_nothing(maker.pg, err) == 0)
        rc = make_in_a_thread(&maker, pg, out, err);
    if (rc == 0)
        *made = maker.changes > 0;
    pg_close(maker.pg);
    return rc;
}
