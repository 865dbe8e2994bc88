#include "transform/gather_device.h"

#include <assert.h>
#include <string.h>

/* Blocks on a multiprocessor: with 4 to 8 units in flight a thread, half of its threads keep the
 * memory busy, and leave room for whatever else runs. */
#define BLOCKS_EACH 4

static_assert(sizeof(struct keep_job) <= 4096, "a kernel's argument");

stk_status gather_device_init(struct gather_device *device, struct gpu *gpu, uint32_t blocks,
                              struct stk_error *err)
{
    static const char *const names[GATHER_UNITS][2] = {{"gather_unit_1", "keep_unit_1"},
                                                       {"gather_unit_2", "keep_unit_2"},
                                                       {"gather_unit_4", "keep_unit_4"},
                                                       {"gather_unit_8", "keep_unit_8"},
                                                       {"gather_unit_16", "keep_unit_16"}};
    stk_status status = STK_OK;
    *device = (struct gather_device){.gpu = gpu, .blocks = blocks};
    if (!blocks)
        device->blocks = BLOCKS_EACH * (uint32_t)gpu_info(gpu)->multiprocessors;
    for (int i = 0; i < GATHER_UNITS && !status; i++) {
        status = gpu_kernel(gpu, "gather_kernel", names[i][0], &device->gather[i], err);
        if (!status)
            status = gpu_kernel(gpu, "gather_kernel", names[i][1], &device->keep[i], err);
    }
    return status;
}

struct gpu_grid gather_deal(struct gather_deal *deal, uint64_t units, uint32_t depth,
                            uint32_t count, uint32_t blocks)
{
    *deal = (struct gather_deal){.units = (uint32_t)units};
    while (deal->lanes < GATHER_LANES && ((uint64_t)1 << deal->lanes) < units)
        deal->lanes++;
    uint64_t chunk = (uint64_t)depth << deal->lanes;
    uint64_t chunks = (units + chunk - 1) / chunk;
    uint64_t threads = (count * chunks) << deal->lanes;
    uint64_t wanted = (threads + GATHER_THREADS - 1) / GATHER_THREADS;
    assert(units > 0 && units <= UINT32_MAX && count * chunks <= UINT32_MAX);
    deal->chunks = (uint32_t)chunks;
    return (struct gpu_grid){.x = wanted < blocks ? (uint32_t)wanted : blocks,
                             .threads = GATHER_THREADS};
}

/* log2 of the largest unit, of 16 bytes at most, that all of these are multiples of. */
static uint32_t unit_of(uint64_t bits)
{
    return (uint32_t)__builtin_ctzll(bits | 16);
}

static uint32_t unit_depth(uint32_t unit)
{
    return unit == 4 ? GATHER_DEPTH_16 : GATHER_DEPTH;
}

stk_status gather_device_run(const struct gather_device *device, const struct gather_run *run,
                             struct stk_error *err)
{
    uint32_t unit = unit_of(run->store | run->values | run->item | run->grain);
    struct gather_job job = {.store = run->store,
                             .homes = run->homes,
                             .values = run->values,
                             .count = run->count,
                             .real = run->real};
    if (!run->count || !run->item)
        return STK_OK;
    uint32_t blocks = run->blocks ? run->blocks : device->blocks;
    struct gpu_grid grid =
        gather_deal(&job.deal, run->item >> unit, unit_depth(unit), run->count, blocks);
    return gpu_launch(device->gpu, device->gather[unit], &grid, &job, sizeof job, run->stream, err);
}

stk_status gather_device_keep(const struct gather_device *device, const struct keep_run *run,
                              struct stk_error *err)
{
    uint32_t unit = unit_of(run->store | run->values | run->item);
    struct keep_job job = {.store = run->store, .values = run->values};
    stk_status status = STK_OK;
    for (uint32_t at = 0; at < run->count && run->item && !status; at += job.count) {
        job.count = run->count - at < KEEP_MOST ? run->count - at : KEEP_MOST;
        memcpy(job.moves, run->moves + at, job.count * sizeof *job.moves);
        struct gpu_grid grid =
            gather_deal(&job.deal, run->item >> unit, unit_depth(unit), job.count, device->blocks);
        status =
            gpu_launch(device->gpu, device->keep[unit], &grid, &job, sizeof job, run->stream, err);
    }
    return status;
}
