#include "base/resident.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* "total resident shared ..." in pages, see proc_pid_statm(5) */
uint64_t resident_bytes(void)
{
    char text[128];
    char *at = text;
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        (void)close(fd);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    (void)strtoull(at, &at, 10);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}
