/* gather_kernel.h -- the jobs of gather_kernel.cu: values of equal size, from all over a store on
 * the device into the places of a batch, and from there into the store.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: who fills them (gather_device.h). */
#ifndef TRANSFORM_GATHER_KERNEL_H
#define TRANSFORM_GATHER_KERNEL_H

#include "gpu/kernel_language.h"

#define GATHER_LANDED (~(uint64_t)0) /* a home: the value is in its place already */
#define GATHER_DEPTH_16 4u           /* units of 16 bytes that a thread has in flight */
#define GATHER_DEPTH 8u              /* smaller ones */
#define GATHER_LANES 5               /* log2 of the threads that a value is for, at most */
#define KEEP_MOST 480                /* values in one job */

/* How values are dealt to threads. A value is `units` units of 16, 8, 4, 2 or 1 bytes; it is cut
 * into chunks, and 1 << lanes threads copy a chunk side by side. */
struct gather_deal {
    uint32_t units, chunks, lanes;
};

struct gather_job {
    uint64_t store;  /* a value lies at store + its home */
    uint64_t homes;  /* uint64_t[real] of device memory */
    uint64_t values; /* place i is at values + i * its size */
    struct gather_deal deal;
    uint32_t count, real; /* places; from `real` on they are cleared */
};

struct keep_move {
    uint32_t place, row;
};

/* Into the store: row i is at store + i * its size. */
struct keep_job {
    uint64_t store, values;
    struct gather_deal deal;
    uint32_t count;
    struct keep_move moves[KEEP_MOST];
};

/* Where a thread's share of a task begins, and how many units lie from there to the value's end. */
struct gather_task {
    uint32_t place, first, left;
    uint64_t home;
};

/* lane: of the threads side by side; depth: units that each of them copies of a chunk. */
DEVICE struct gather_task gather_find(const struct gather_deal *deal, uint32_t number,
                                      uint32_t lane, uint32_t depth)
{
    struct gather_task task = {number, lane, 0, GATHER_LANDED};
    if (deal->chunks > 1) { /* the same for all threads */
        task.place = number / deal->chunks;
        task.first += (number - task.place * deal->chunks) * (depth << deal->lanes);
    }
    task.left = task.first < deal->units ? deal->units - task.first : 0;
    return task;
}

#endif
