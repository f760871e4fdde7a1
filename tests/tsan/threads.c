/* C11 threads on top of POSIX threads, for the thread sanitizer only.
 *
 * librdkafka uses <threads.h>, which the sanitizer does not intercept: it would crash in
 * threads it does not know, and miss every hand-over.  glibc's types are those of POSIX
 * under another name. */
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

_Static_assert(sizeof(mtx_t) == sizeof(pthread_mutex_t), "glibc's mtx_t");
_Static_assert(sizeof(cnd_t) == sizeof(pthread_cond_t), "glibc's cnd_t");

struct start {
    thrd_start_t function;
    void *arg;
};

static void *run(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    start.function(start.arg);
    return NULL;
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *arg)
{
    struct start *start = malloc(sizeof(*start));

    if (!start)
        return thrd_nomem;
    *start = (struct start){function, arg};
    return pthread_create(thread, NULL, run, start) == 0 ? thrd_success : thrd_error;
}

int thrd_join(thrd_t thread, int *result)
{
    if (result)
        *result = 0;
    return pthread_join(thread, NULL) == 0 ? thrd_success : thrd_error;
}

int mtx_init(mtx_t *mutex, int type)
{
    (void)type; /* librdkafka has only plain ones */
    return pthread_mutex_init((pthread_mutex_t *)mutex, NULL);
}

int mtx_lock(mtx_t *mutex)
{
    return pthread_mutex_lock((pthread_mutex_t *)mutex);
}

int mtx_unlock(mtx_t *mutex)
{
    return pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

void mtx_destroy(mtx_t *mutex)
{
    (void)pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int cnd_init(cnd_t *condition)
{
    return pthread_cond_init((pthread_cond_t *)condition, NULL);
}

int cnd_signal(cnd_t *condition)
{
    return pthread_cond_signal((pthread_cond_t *)condition);
}

int cnd_broadcast(cnd_t *condition)
{
    return pthread_cond_broadcast((pthread_cond_t *)condition);
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex);
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
    return pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex,
                                  until) == 0
               ? thrd_success
               : thrd_timedout;
}

void cnd_destroy(cnd_t *condition)
{
    (void)pthread_cond_destroy((pthread_cond_t *)condition);
}
