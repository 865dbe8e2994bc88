/* inject_clock.h -- the clock of all records: CLOCK_MONOTONIC in nanoseconds.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: CUPTI's clock (inject_cupti.h). */
#ifndef INJECT_CLOCK_H
#define INJECT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t inject_clock_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t inject_clock_now(void)
{
    return inject_clock_of(CLOCK_MONOTONIC);
}

#endif
