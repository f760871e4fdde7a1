#include "io/signals.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

static void ours(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
}

int signals_open(struct err *err)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    sigset_t set;
    int fd;

    ours(&set);
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0)
        return err_set(err, ERR_INTERNAL, "signalfd: %s", strerror(errno));
    return fd;
}

int signals_take(int fd)
{
    struct signalfd_siginfo info;

    if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
        return 0;
    return (int)info.ssi_signo;
}

void signals_close(int fd)
{
    sigset_t set;

    ours(&set);
    (void)close(fd);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}
