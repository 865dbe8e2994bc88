/* window_kernel.h -- the job of window_kernel.cu: windows of a series, from rows on the device into
 * the places of a batch: some columns of them, scaled, zeros where a history is short. The twin of
 * window_gather.h.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: who fills it (window_device.h). */
#ifndef TRANSFORM_WINDOW_KERNEL_H
#define TRANSFORM_WINDOW_KERNEL_H

#include "transform/gather_kernel.h"

/* A home is the offset in bytes of the first row that is there, and above it how many rows are
 * missing in front of it; or GATHER_LANDED. */
#define WINDOW_OFFSET_BITS 40
#define WINDOW_MISSING_BITS 23
#define WINDOW_DEPTH 4u /* elements, or vectors of 16 bytes, that a thread has in flight */

struct window_job {
    uint64_t store;   /* rows */
    uint64_t homes;   /* uint64_t[real] of device memory */
    uint64_t values;  /* place i is at values + i * its size */
    uint64_t columns; /* uint32_t[column_count]: wanted ones of a stored row; 0: all */
    /* float high[column_count], low[], inverse[] one behind the other (F64: double center[],
     * factor[]), as window_scale.h has them; 0: values go over as they are */
    uint64_t tables;
    struct gather_deal deal; /* units: elements of a window, or vectors of 16 bytes */
    uint32_t count, real;
    uint32_t column_count, row; /* elements of a row: of the result, and as it is stored */
    /* element / column_count == element * multiplier >> shift, below 2^31 */
    uint32_t multiplier, shift;
};

#endif
