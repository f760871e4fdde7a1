/* failing.c - an allocator that fails once, for tests.
 *
 * The four layers are linked a second time with their calls of malloc and the like
 * leading here (CMakeLists.txt), so that what fails are allocations of our own code: not
 * those of the test around it, and not those inside of libraries.
 *
 *   WALRELAY_FAIL_ALLOC=N,M
 *     These allocations fail, counted from 1; all others succeed.
 *   WALRELAY_FAIL_REPORT=F
 *     Appends for each its number and where it came from to the file F.
 *   WALRELAY_FAIL_SITES=F
 *     Appends to the file F a line for each allocation that comes from a place, the
 *     innermost calls, that was not seen before.
 *
 * A thread that does not start and a file that does not open for lack of memory count
 * too. */
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DEPTH = 8, /* of a place; some four of them are our own and the sanitizer's */
    STACK_MAX = 24,
    SITES_MAX = 1 << 16,
    CHOSEN_MAX = 32,
    NOTED_MAX = 10000, /* to look at a stack takes time */
};

/* For tests that are made for this: larger allocations fail from now on; 0: none do. */
void failing_above(size_t bytes);
/* The nth from now fails, counted from 1. */
void failing_next(long n);

void *failing_malloc(size_t size);
void *failing_calloc(size_t n, size_t size);
void *failing_realloc(void *old, size_t size);
char *failing_strdup(const char *text);
char *failing_strndup(const char *text, size_t n);
FILE *failing_fopen(const char *path, const char *mode);
int failing_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                           void *(*function)(void *), void *arg);

static atomic_long count;
static atomic_size_t largest;
static long chosen[CHOSEN_MAX]; /* 0 where there are no more */
static const char *report_path;
static const char *sites_path;
static pthread_mutex_t sites_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t sites[SITES_MAX]; /* a hash table; 0: free */

/* Before main, and before what the test does to the environment. */
__attribute__((constructor)) static void read_environment(void)
{
    const char *number = getenv("WALRELAY_FAIL_ALLOC");

    for (int i = 0; number && *number && i < CHOSEN_MAX; i++) {
        char *end;

        chosen[i] = strtol(number, &end, 10);
        number = *end == ',' ? end + 1 : end;
    }
    report_path = getenv("WALRELAY_FAIL_REPORT");
    sites_path = getenv("WALRELAY_FAIL_SITES");
    /* walrelay takes them for settings */
    (void)unsetenv("WALRELAY_FAIL_ALLOC");
    (void)unsetenv("WALRELAY_FAIL_REPORT");
    (void)unsetenv("WALRELAY_FAIL_SITES");
}

static void append(const char *path, long number, void *const *stack, int depth)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "%ld\n", number);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    if (fd < 0)
        return;
    (void)!write(fd, text, (size_t)len);
    if (depth > 0)
        backtrace_symbols_fd(stack, depth, fd);
    (void)close(fd);
}

/* FNV-1a over the innermost callers. */
static uint64_t site_of(void *const *stack, int depth)
{
    uint64_t hash = UINT64_C(14695981039346656037);

    for (int i = 0; i < depth && i < DEPTH; i++)
        hash = (hash ^ (uint64_t)(uintptr_t)stack[i]) * UINT64_C(1099511628211);
    return hash ? hash : 1;
}

static bool is_new(uint64_t site)
{
    size_t at = site % SITES_MAX;
    bool ret;

    (void)pthread_mutex_lock(&sites_lock);
    while (sites[at] != 0 && sites[at] != site)
        at = (at + 1) % SITES_MAX;
    ret = sites[at] == 0;
    sites[at] = site;
    (void)pthread_mutex_unlock(&sites_lock);
    return ret;
}

static void note_site(long number)
{
    void *stack[STACK_MAX];
    int depth = backtrace(stack, STACK_MAX);

    if (is_new(site_of(stack, depth)))
        append(sites_path, number, NULL, 0);
}

static void report(long number)
{
    void *stack[STACK_MAX];

    if (report_path)
        append(report_path, number, stack, backtrace(stack, STACK_MAX));
}

static bool is_chosen(long number)
{
    for (int i = 0; i < CHOSEN_MAX && chosen[i] != 0; i++) {
        if (chosen[i] == number)
            return true;
    }
    return false;
}

static bool fails(void)
{
    long number = atomic_fetch_add(&count, 1) + 1;

    if (sites_path && number <= NOTED_MAX)
        note_site(number);
    if (!is_chosen(number))
        return false;
    report(number);
    errno = ENOMEM;
    return true;
}

void failing_above(size_t bytes)
{
    atomic_store(&largest, bytes);
}

void failing_next(long n)
{
    chosen[0] = atomic_load(&count) + n;
}

static bool too_large(size_t size)
{
    size_t most = atomic_load(&largest);

    return most > 0 && size > most;
}

void *failing_malloc(size_t size)
{
    return fails() || too_large(size) ? NULL : malloc(size);
}

void *failing_calloc(size_t n, size_t size)
{
    return fails() ? NULL : calloc(n, size);
}

void *failing_realloc(void *old, size_t size)
{
    return fails() ? NULL : realloc(old, size);
}

char *failing_strdup(const char *text)
{
    return fails() ? NULL : strdup(text);
}

char *failing_strndup(const char *text, size_t n)
{
    return fails() ? NULL : strndup(text, n);
}

FILE *failing_fopen(const char *path, const char *mode)
{
    return fails() ? NULL : fopen(path, mode);
}

int failing_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                           void *(*function)(void *), void *arg)
{
    return fails() ? EAGAIN : pthread_create(thread, attributes, function, arg);
}

/* In place of libc's, for librdkafka too: its threads block all signals, and a fault in
 * one of them would end the process without the sanitizer's report. */
int pthread_sigmask(int how, const sigset_t *set, sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t others;

    if (set)
        others = *set;
    for (size_t i = 0; set && i < sizeof(faults) / sizeof(faults[0]); i++)
        (void)sigdelset(&others, faults[i]);
    return sigprocmask(how, set ? &others : NULL, before) == 0 ? 0 : errno;
}
