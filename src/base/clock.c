#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now); /* cannot fail: the clock exists, the pointer is good */
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t clock_coarse(void)
{
    return read_clock(CLOCK_MONOTONIC_COARSE);
}
