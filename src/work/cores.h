/* cores.h -- how many cores this process may use, and which; and how a worker thread is started.
 * Owns: nothing.   Threads: any.   Errors: status from cores_start.   Not here: what threads do. */
#ifndef WORK_CORES_H
#define WORK_CORES_H

#include <pthread.h>
#include <stdint.h>

#include "stoker/error.h"

/* Cores by affinity and by cgroup quota (v1 and v2, nested; rounded up), at least 1. */
uint32_t cores_usable(void);
/* The cgroup quota alone, found under `root` (NULL: the real one; tests have their own); 0: no
 * limit. */
uint32_t cores_quota(const char *root);
/* The share of one of `ranks` processes on this machine: at least 1. */
uint32_t cores_share(uint32_t ranks);

struct cores_place {
    uint32_t number;  /* this worker's number among all workers of all local ranks */
    int pin;          /* not 0: on the number-th allowed core (modulo), else left alone */
    int nice;         /* added to this thread's nice value; 0: none */
    const char *name; /* at most 15 characters */
};

/* Starts a joinable thread with all signals blocked but the synchronous ones (SIGBUS, SIGSEGV,
 * SIGFPE, SIGILL), named, placed and of lower priority. EAGAIN gives STK_RESOURCE with advice. */
STK_CHECK stk_status cores_start(pthread_t *thread, void *(*run)(void *), void *user,
                                 const struct cores_place *place, struct stk_error *err);

#endif
