/* window_scale.h -- the arithmetic of window_gather.h: scaled = (raw - center) / scale, for values
 * of columns that come round and round.
 * Owns: its tables, until window_scale_reset.   Threads: immutable once made; any number run.
 * Errors: STK_MEMORY from init.   Not here: which columns (window_gather.h), fitting (scaler.h).
 *
 * F32, F16 and BF16 are scaled in float32. The center is kept as a float32 and what is left over:
 * ((x - high) - low) * (1 / scale). So a column far from 0 (a price of 40,000 that moves by 1)
 * loses nothing that float32 can hold. F64 is scaled in float64. */
#ifndef TRANSFORM_WINDOW_SCALE_H
#define TRANSFORM_WINDOW_SCALE_H

#include <stdint.h>

#include "transform/scaler.h"

/* Tables of `period` values, the columns' own repeated, so that whole vectors fit them whatever the
 * number of columns. */
struct window_scale {
    uint64_t period; /* a multiple of the number of columns */
    float *high, *low, *inverse;
    double *center, *factor; /* F64 */
    void (*run)(const struct window_scale *scale, const void *from, uint64_t n, void *to);
    void (*plain)(const struct window_scale *scale, const void *from, uint64_t n, void *to);
    /* As run, past the caches; `to` is aligned to a line. NULL: there is none. */
    void (*past)(const struct window_scale *scale, const void *from, uint64_t n, void *to,
                 const void *next);
};

/* Columns of the scaler, in the order in which their values come. run is the fastest that this
 * processor has; plain gives the same bits in plain C. */
STK_CHECK stk_status window_scale_init(struct window_scale *scale, const struct scaler *scaler,
                                       const uint32_t *columns, uint32_t count,
                                       enum stk_dtype dtype, struct stk_error *err);
void window_scale_reset(struct window_scale *scale); /* zeroed and half-built are fine */

/* n values, from the first column on. `to` may be `from`; any alignment of both. */
static inline void window_scale_run(const struct window_scale *scale, const void *from, uint64_t n,
                                    void *to)
{
    scale->run(scale, from, n, to);
}

/* As window_scale_run, but what is written may go past the caches: to get lines that are only
 * overwritten costs more than the arithmetic (measured with windows of 3,840 bytes: 9 % of the
 * loader's time, and more when another core then reads them). Other threads may look after
 * window_scale_fence. next: as many values that will be scaled after these, or NULL. They are asked
 * for line by line meanwhile: a plain copy has the processor's own string move for that (measured:
 * 7 % more windows a second). */
void window_scale_stream(const struct window_scale *scale, const void *from, uint64_t n, void *to,
                         const void *next);
void window_scale_fence(void);

#endif
