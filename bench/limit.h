/* limit.h -- what the limit programs share: clock, failure, a core for each thread.
 * Owns: nothing.   Threads: any.   Errors: limit_fail ends the program with status 1. */
#ifndef BENCH_LIMIT_H
#define BENCH_LIMIT_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline _Noreturn void limit_fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, strerror(errno));
    exit(1);
}

static inline void sit_on_core(int number)
{
    cpu_set_t allowed, mine;
    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return;
    int wanted = number % CPU_COUNT(&allowed);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed) || wanted-- > 0)
            continue;
        CPU_ZERO(&mine);
        CPU_SET(core, &mine);
        pthread_setaffinity_np(pthread_self(), sizeof(mine), &mine);
        return;
    }
}

#endif
