/* inject_allowance.h -- how much may be recorded before that costs the program more than a
 * hundredth of its time. Owns: nothing.   Threads: one at a time.   Errors: none.   Not here: what
 * is recorded (inject_recorder.h), what is made of the time after it (watch/judge.c).
 *
 * A record costs the thread that launches 6 to 10 us in a training loop on an H200 (the row
 * "every" of results/gpu/watch_launches.json), and the device about 1 us (cupti.json there). Where
 * the device is busy all the time the thread's are hidden. So a loop that launches up to 1,250
 * kernels a second, or keeps the device busy with up to 10,000, is recorded from beginning to end;
 * what launches more has used up its allowance after a while, a loop of tiny kernels (67,000 a
 * second) after two seconds. A device that waits has no records and uses nothing up.
 */
#ifndef INJECT_ALLOWANCE_H
#define INJECT_ALLOWANCE_H

#include <stdint.h>

struct inject_allowance { /* all zero at first */
    int64_t left_ns;
    uint64_t time, records, busy_ns;
};

/* What there was until now; busy_ns: the sum of all kernels' lengths. Returns 1: it is used up. */
int inject_allowance_spend(struct inject_allowance *allowance, uint64_t now, uint64_t records,
                           uint64_t busy_ns);

#endif
