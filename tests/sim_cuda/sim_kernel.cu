/* Numbers the places of a table; threads beyond its width do nothing, and fewer take several. */
#include "sim_kernel.h"

KERNEL(sim_count)(struct sim_count_job job)
{
    uint32_t *out = (uint32_t *)job.out;
    for (uint64_t i = GRID_X; i < job.count; i += GRID_WIDTH)
        if (GRID_Y < job.rows)
            out[GRID_Y * (uint64_t)job.count + i] = GRID_Y * 1000 + (uint32_t)i;
}
