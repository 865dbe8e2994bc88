/* clock.h -- monotonic time.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: dates. */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

int64_t clock_now(void);    /* nanoseconds, CLOCK_MONOTONIC */
int64_t clock_coarse(void); /* the same, a few milliseconds behind: a quarter of the cost */

#endif
