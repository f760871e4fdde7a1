#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t id, int64_t per_second)
{
    struct timespec ts;

    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * per_second + ts.tv_nsec / (1000000000 / per_second);
}

int64_t clock_mono_ms(void)
{
    return read_clock(CLOCK_MONOTONIC, 1000);
}

int64_t clock_wall_us(void)
{
    return read_clock(CLOCK_REALTIME, 1000000);
}

int64_t clock_cpu_ms(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID, 1000);
}
