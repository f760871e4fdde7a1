#include "io/job.h"

#include "base/must.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct job {
    void (*work)(void *arg);
    void *arg;
    pthread_t thread;
    int done_fd;
    atomic_bool done;
};

static atomic_int left;

static void *run(void *arg)
{
    struct job *job = arg;
    uint64_t one = 1;

    job->work(job->arg);
    atomic_store(&job->done, true);
    must(write(job->done_fd, &one, sizeof(one)) == (ssize_t)sizeof(one));
    return NULL;
}

/* The loop's signals must never be delivered to the thread, which inherits the mask.  A
 * fault of its own is not the loop's: blocked, it would end the process without a word of
 * a handler that is there for it. */
static int start_without_signals(struct job *job)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t others;
    sigset_t before;
    int rc;

    (void)sigfillset(&others);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
        (void)sigdelset(&others, faults[i]);
    (void)pthread_sigmask(SIG_SETMASK, &others, &before);
    rc = pthread_create(&job->thread, NULL, run, job);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}

struct job *job_start(void (*work)(void *arg), void *arg, struct err *err)
{
    struct job *job = calloc(1, sizeof(*job));
    int rc;

    if (!job) {
        (void)err_set(err, ERR_RETRY, "out of memory for a thread");
        return NULL;
    }
    job->work = work;
    job->arg = arg;
    job->done_fd = eventfd(0, EFD_CLOEXEC);
    if (job->done_fd < 0) {
        (void)err_set(err, ERR_RETRY, "eventfd: %s", strerror(errno));
        free(job);
        return NULL;
    }
    rc = start_without_signals(job);
    if (rc != 0) {
        (void)err_set(err, ERR_RETRY, "cannot start a thread: %s", strerror(rc));
        (void)close(job->done_fd);
        free(job);
        return NULL;
    }
    (void)atomic_fetch_add(&left, 1);
    return job;
}

int job_fd(const struct job *job)
{
    return job->done_fd;
}

bool job_is_done(const struct job *job)
{
    return atomic_load(&job->done);
}

void job_finish(struct job *job)
{
    must(pthread_join(job->thread, NULL) == 0);
    (void)close(job->done_fd);
    free(job);
    (void)atomic_fetch_sub(&left, 1);
}

int jobs_left(void)
{
    return atomic_load(&left);
}
