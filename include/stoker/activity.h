/* activity.h -- how long a GPU was busy: every kernel and copy of this process, timed by the device
 * (CUPTI, opened with dlopen). Exact where polling sees only whether anything ran of late.
 * Owns: a recording, until it is stopped; one at a time in a process.   Threads: any, one at a
 * time. Errors: STK_UNSUPPORTED (no GPU, no CUPTI), STK_BUSY (another recording, or
 * a profiler that holds CUPTI), STK_MEMORY.   Not here: power, clocks, other processes. */
#ifndef STOKER_ACTIVITY_H
#define STOKER_ACTIVITY_H

#include <stdint.h>

#include "stoker/error.h"

struct stk_activity;

/* All zero: the first device, bins of 10 ms. */
struct stk_activity_options {
    uint32_t device; /* its number in this process */
    uint64_t bin_ns; /* time is cut into bins of this length, 1 ms at least; 0: 10 ms */
};

/* Since the start. Kernels that ran side by side count once; copies and clears are apart. */
struct stk_activity_sums {
    uint64_t wall_ns;
    uint64_t kernel_ns, copy_ns; /* in which at least one kernel, one copy or clear ran */
    uint64_t kernels, copies;
    uint64_t copied_bytes;
    uint64_t lost;         /* records that were not timed, or had no room: the sums are too small */
    uint64_t bin_ns, bins; /* bins that have begun */
};

/* Costs a microsecond or so a launch from now on. */
STK_API STK_CHECK stk_status stk_activity_start(struct stk_activity **out,
                                                const struct stk_activity_options *options,
                                                struct stk_error *err);
/* What is over and was reported: work that still runs may be missing with what was launched just
 * before it. Complete when the device was waited for (cudaDeviceSynchronize) before. */
STK_API STK_CHECK stk_status stk_activity_read(struct stk_activity *activity,
                                               struct stk_activity_sums *out,
                                               struct stk_error *err);
/* Busy nanoseconds of the first `count` bins, as of the last read. */
STK_API void stk_activity_bins(struct stk_activity *activity, uint64_t *kernel_ns,
                               uint64_t *copy_ns, uint64_t count);
STK_API void stk_activity_stop(struct stk_activity *activity); /* NULL is fine */

#endif
