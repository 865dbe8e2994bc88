/* Windows by elements, each thread WINDOW_DEPTH of them in flight; or by vectors of 16 bytes, where
 * all columns are wanted and a row is whole vectors. The arithmetic is window_scale.h's, to the
 * bit. */
#include "transform/window_kernel.h"

typedef struct {
    float values[4];
} __attribute__((aligned(16))) vector_f32;
typedef struct {
    uint32_t values[4]; /* two halves each */
} __attribute__((aligned(16))) vector_pair;
typedef struct {
    double values[2];
} __attribute__((aligned(16))) vector_f64;

/* --- one value -------------------------------------------------------------------------------- */

DEVICE float scaled(const struct window_job *job, uint32_t column, float x)
{
    const float *tables = (const float *)job->tables;
    x = x - tables[column];
    x = x - tables[job->column_count + column];
    return x * tables[2 * job->column_count + column];
}

DEVICE float one_f32(const struct window_job *job, uint32_t column, float x)
{
    return scaled(job, column, x);
}
DEVICE uint16_t one_f16(const struct window_job *job, uint32_t column, uint16_t x)
{
    return half_bits(scaled(job, column, half_value(x)));
}
DEVICE uint16_t one_bf16(const struct window_job *job, uint32_t column, uint16_t x)
{
    return bfloat_bits(scaled(job, column, bfloat_value(x)));
}
DEVICE double one_f64(const struct window_job *job, uint32_t column, double x)
{
    const double *tables = (const double *)job->tables;
    return (x - tables[column]) * tables[job->column_count + column];
}

/* --- one vector ------------------------------------------------------------------------------- */

DEVICE vector_f32 vector_one_f32(const struct window_job *job, uint32_t column, vector_f32 x)
{
    const vector_f32 *tables = (const vector_f32 *)job->tables;
    uint32_t at = column / 4, next = job->column_count / 4;
    const vector_f32 high = tables[at], low = tables[at + next], inverse = tables[at + 2 * next];
    for (uint32_t i = 0; i < 4; i++) {
        x.values[i] = x.values[i] - high.values[i];
        x.values[i] = x.values[i] - low.values[i];
        x.values[i] = x.values[i] * inverse.values[i];
    }
    return x;
}

#define PAIRS(ONE)                                                                                 \
    DEVICE vector_pair vector_##ONE(const struct window_job *job, uint32_t column, vector_pair x)  \
    {                                                                                              \
        for (uint32_t i = 0; i < 4; i++) {                                                         \
            uint32_t low = ONE(job, column + 2 * i, (uint16_t)x.values[i]);                        \
            uint32_t high = ONE(job, column + 2 * i + 1, (uint16_t)(x.values[i] >> 16));           \
            x.values[i] = low | high << 16;                                                        \
        }                                                                                          \
        return x;                                                                                  \
    }
PAIRS(one_f16)
PAIRS(one_bf16)

DEVICE vector_f64 vector_one_f64(const struct window_job *job, uint32_t column, vector_f64 x)
{
    for (uint32_t i = 0; i < 2; i++)
        x.values[i] = one_f64(job, column + i, x.values[i]);
    return x;
}

/* --- windows ---------------------------------------------------------------------------------- */

DEVICE struct gather_task window_find(const struct window_job *job, uint64_t number)
{
    uint32_t lane = (uint32_t)GRID_X & ((1u << job->deal.lanes) - 1);
    struct gather_task task = gather_find(&job->deal, (uint32_t)number, lane, WINDOW_DEPTH);
    if (task.place < job->real)
        task.home = ((const uint64_t *)job->homes)[task.place];
    return task;
}

/* Where an element of the result comes from. */
struct window_from {
    uint64_t at;     /* in elements from the first row that is there */
    uint32_t column; /* of the result */
    int missing;     /* it is 0 */
};

DEVICE struct window_from window_from(const struct window_job *job, uint32_t element,
                                      uint32_t missing)
{
    uint32_t row = (uint32_t)((uint64_t)element * job->multiplier >> job->shift);
    struct window_from from = {0, element - row * job->column_count, row < missing};
    uint32_t stored = from.column;
    if (from.missing)
        return from;
    if (job->columns)
        stored = ((const uint32_t *)job->columns)[stored];
    from.at = (uint64_t)(row - missing) * job->row + stored;
    return from;
}

/* E: the type of an element, of which T holds WIDTH. Loads come before the first store, so that
 * they are in flight together. */
#define WINDOW(NAME, T, E, WIDTH, ONE)                                                             \
    DEVICE void copy_##NAME(const struct window_job *job, const struct gather_task *task, T *to)   \
    {                                                                                              \
        const E *from =                                                                            \
            (const E *)(job->store + (task->home & (((uint64_t)1 << WINDOW_OFFSET_BITS) - 1)));    \
        uint32_t missing = (uint32_t)(task->home >> WINDOW_OFFSET_BITS);                           \
        uint32_t stride = 1u << job->deal.lanes, columns[WINDOW_DEPTH];                            \
        T units[WINDOW_DEPTH];                                                                     \
        int real[WINDOW_DEPTH];                                                                    \
        for (uint32_t k = 0; k < WINDOW_DEPTH; k++) {                                              \
            const T zero = {0};                                                                    \
            units[k] = zero;                                                                       \
            real[k] = 0;                                                                           \
            columns[k] = 0;                                                                        \
            if (k * stride < task->left) {                                                         \
                uint32_t element = (task->first + k * stride) * WIDTH;                             \
                struct window_from where = window_from(job, element, missing);                     \
                columns[k] = where.column;                                                         \
                real[k] = !where.missing;                                                          \
                if (real[k])                                                                       \
                    units[k] = *(const T *)(from + where.at);                                      \
            }                                                                                      \
        }                                                                                          \
        for (uint32_t k = 0; k < WINDOW_DEPTH; k++)                                                \
            if (k * stride < task->left)                                                           \
                to[k * stride] =                                                                   \
                    job->tables && real[k] ? ONE(job, columns[k], units[k]) : units[k];            \
    }                                                                                              \
    DEVICE void clear_##NAME(const struct window_job *job, const struct gather_task *task, T *to)  \
    {                                                                                              \
        const T zero = {0};                                                                        \
        for (uint32_t k = 0; k < WINDOW_DEPTH; k++)                                                \
            if ((k << job->deal.lanes) < task->left)                                               \
                to[k << job->deal.lanes] = zero;                                                   \
    }                                                                                              \
    KERNEL(NAME)(struct window_job job)                                                            \
    {                                                                                              \
        uint64_t tasks = (uint64_t)job.count * job.deal.chunks;                                    \
        uint64_t step = GRID_WIDTH >> job.deal.lanes, number = GRID_X >> job.deal.lanes;           \
        struct gather_task next = {0, 0, 0, GATHER_LANDED};                                        \
        if (number < tasks)                                                                        \
            next = window_find(&job, number);                                                      \
        for (; number < tasks; number += step) {                                                   \
            struct gather_task task = next;                                                        \
            T *to = (T *)job.values + (uint64_t)task.place * job.deal.units + task.first;          \
            if (number + step < tasks)                                                             \
                next = window_find(&job, number + step);                                           \
            if (task.place >= job.real)                                                            \
                clear_##NAME(&job, &task, to);                                                     \
            else if (task.home != GATHER_LANDED)                                                   \
                copy_##NAME(&job, &task, to);                                                      \
        }                                                                                          \
    }

WINDOW(window_f32, float, float, 1, one_f32)
WINDOW(window_f16, uint16_t, uint16_t, 1, one_f16)
WINDOW(window_bf16, uint16_t, uint16_t, 1, one_bf16)
WINDOW(window_f64, double, double, 1, one_f64)
WINDOW(window_vector_f32, vector_f32, float, 4, vector_one_f32)
WINDOW(window_vector_f16, vector_pair, uint16_t, 8, vector_one_f16)
WINDOW(window_vector_bf16, vector_pair, uint16_t, 8, vector_one_bf16)
WINDOW(window_vector_f64, vector_f64, double, 2, vector_one_f64)
