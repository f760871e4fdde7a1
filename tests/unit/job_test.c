#include "io/job.h"

#include "unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

struct work {
    sem_t go;
    sigset_t blocked;
};

static void do_work(void *arg)
{
    struct work *work = arg;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &work->blocked);
    while (sem_wait(&work->go) != 0)
        continue;
}

static struct job *start(struct work *work)
{
    struct err err = {0};
    struct job *job = job_start(do_work, work, &err);

    if (!job)
        fail_msg("%s", err.text);
    return job;
}

static void a_job_is_left_until_it_is_finished(void **state)
{
    struct work work;
    struct job *job;

    (void)state;
    assert_int_equal(sem_init(&work.go, 0, 0), 0);
    assert_int_equal(jobs_left(), 0);
    job = start(&work);
    assert_int_equal(jobs_left(), 1);
    assert_false(job_is_done(job));
    (void)sem_post(&work.go);
    job_finish(job);
    assert_int_equal(jobs_left(), 0);
    (void)sem_destroy(&work.go);
}

static void a_job_gets_the_signals_of_its_own_faults_only(void **state)
{
    struct work work;
    struct job *job;

    (void)state;
    assert_int_equal(sem_init(&work.go, 0, 1), 0);
    job = start(&work);
    job_finish(job);
    assert_false(sigismember(&work.blocked, SIGSEGV));
    assert_false(sigismember(&work.blocked, SIGBUS));
    assert_true(sigismember(&work.blocked, SIGTERM));
    assert_true(sigismember(&work.blocked, SIGHUP));
    (void)sem_destroy(&work.go);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_left_until_it_is_finished),
        cmocka_unit_test(a_job_gets_the_signals_of_its_own_faults_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
