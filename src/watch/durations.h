/* durations.h -- the median and other quantiles of many lengths of time, in little memory: every
 * one is kept until there are many, then every second, every fourth, and so on.
 * Owns: nothing.   Threads: one.   Errors: none.   Not here: sums. */
#ifndef WATCH_DURATIONS_H
#define WATCH_DURATIONS_H

#include <stddef.h>
#include <stdint.h>

#define DURATIONS_KEPT 256u

struct durations { /* all zero is none */
    uint64_t count;
    uint32_t kept, every; /* of so many one is kept; 0 is 1 */
    uint64_t most;
    uint64_t values[DURATIONS_KEPT];
};

void durations_add(struct durations *durations, uint64_t ns);
/* The value that a share of all lies below: 0.5 is the median. 0 where there are none. */
uint64_t durations_at(const struct durations *durations, double share);

#endif
