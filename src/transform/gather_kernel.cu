/* Copies of values, a chunk at a time: 1 << lanes threads side by side, each with some units in
 * flight. There is a kernel for every size of unit: the larger, the fewer instructions. */
#include "transform/gather_kernel.h"

typedef struct kernel_quad unit_16;
typedef uint64_t unit_8;
typedef uint32_t unit_4;
typedef uint16_t unit_2;
typedef uint8_t unit_1;

DEVICE uint32_t gather_lane(const struct gather_deal *deal)
{
    return (uint32_t)GRID_X & ((1u << deal->lanes) - 1);
}

/* All loads before the first store, so that they are in flight together. */
#define COPY(T, DEPTH, LOAD, STORE)                                                                \
    DEVICE void copy_##T(const T *from, T *to, uint32_t left, uint32_t stride)                     \
    {                                                                                              \
        T units[DEPTH];                                                                            \
        if ((DEPTH - 1) * stride < left) {                                                         \
            for (uint32_t k = 0; k < DEPTH; k++)                                                   \
                units[k] = LOAD(from + k * stride);                                                \
            for (uint32_t k = 0; k < DEPTH; k++)                                                   \
                STORE(to + k * stride, units[k]);                                                  \
            return;                                                                                \
        }                                                                                          \
        for (uint32_t k = 0; k < DEPTH; k++)                                                       \
            if (k * stride < left)                                                                 \
                units[k] = LOAD(from + k * stride);                                                \
        for (uint32_t k = 0; k < DEPTH; k++)                                                       \
            if (k * stride < left)                                                                 \
                STORE(to + k * stride, units[k]);                                                  \
    }                                                                                              \
    DEVICE void clear_##T(T *to, uint32_t left, uint32_t stride)                                   \
    {                                                                                              \
        const T zero = {0};                                                                        \
        for (uint32_t k = 0; k < DEPTH; k++)                                                       \
            if (k * stride < left)                                                                 \
                to[k * stride] = zero;                                                             \
    }

/* The next task's home is asked for before this one's value is copied: one wait less a task. */
#define GATHER(T, DEPTH)                                                                           \
    DEVICE struct gather_task task_##T(const struct gather_job *job, uint64_t number) {            \
        struct gather_task task =                                                                  \
            gather_find(&job->deal, (uint32_t)number, gather_lane(&job->deal), DEPTH);             \
        if (task.place < job->real)                                                                \
            task.home = ((const uint64_t *)job->homes)[task.place];                                \
        return task;                                                                               \
    } KERNEL(gather_##T)(struct gather_job job)                                                    \
    {                                                                                              \
        uint64_t tasks = (uint64_t)job.count * job.deal.chunks;                                    \
        uint64_t step = GRID_WIDTH >> job.deal.lanes, number = GRID_X >> job.deal.lanes;           \
        struct gather_task next = {0, 0, 0, GATHER_LANDED};                                        \
        if (number < tasks)                                                                        \
            next = task_##T(&job, number);                                                         \
        for (; number < tasks; number += step) {                                                   \
            struct gather_task task = next;                                                        \
            T *to = (T *)job.values + (uint64_t)task.place * job.deal.units + task.first;          \
            if (number + step < tasks)                                                             \
                next = task_##T(&job, number + step);                                              \
            if (task.place >= job.real)                                                            \
                clear_##T(to, task.left, 1u << job.deal.lanes);                                    \
            else if (task.home != GATHER_LANDED)                                                   \
                copy_##T((const T *)(job.store + task.home) + task.first, to, task.left,           \
                         1u << job.deal.lanes);                                                    \
        }                                                                                          \
    }

#define KEEP(T, DEPTH)                                                                             \
    KERNEL(keep_##T)(struct keep_job job)                                                          \
    {                                                                                              \
        uint64_t tasks = (uint64_t)job.count * job.deal.chunks;                                    \
        uint64_t step = GRID_WIDTH >> job.deal.lanes, number = GRID_X >> job.deal.lanes;           \
        for (; number < tasks; number += step) {                                                   \
            struct gather_task task =                                                              \
                gather_find(&job.deal, (uint32_t)number, gather_lane(&job.deal), DEPTH);           \
            uint64_t from = job.moves[task.place].place, to = job.moves[task.place].row;           \
            copy_##T((const T *)job.values + from * job.deal.units + task.first,                   \
                     (T *)job.store + to * job.deal.units + task.first, task.left,                 \
                     1u << job.deal.lanes);                                                        \
        }                                                                                          \
    }

#define LOAD_PLAIN(from) (*(from))
#define STORE_PLAIN(to, unit) (*(to) = (unit))
#define KERNELS(T, DEPTH, LOAD, STORE) COPY(T, DEPTH, LOAD, STORE) GATHER(T, DEPTH) KEEP(T, DEPTH)
KERNELS(unit_16, GATHER_DEPTH_16, load_once, store_once)
KERNELS(unit_8, GATHER_DEPTH, LOAD_PLAIN, STORE_PLAIN)
KERNELS(unit_4, GATHER_DEPTH, LOAD_PLAIN, STORE_PLAIN)
KERNELS(unit_2, GATHER_DEPTH, LOAD_PLAIN, STORE_PLAIN)
KERNELS(unit_1, GATHER_DEPTH, LOAD_PLAIN, STORE_PLAIN)
