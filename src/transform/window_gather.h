/* window_gather.h -- copies rows of a series into a batch: some columns of them, scaled on the way.
 * Owns: its tables, until window_gather_free.   Threads: immutable once made; any number copy.
 * Errors: STK_MEMORY from new.   Not here: which rows (index/windows_index.h). */
#ifndef TRANSFORM_WINDOW_GATHER_H
#define TRANSFORM_WINDOW_GATHER_H

#include <stddef.h>
#include <stdint.h>

#include "transform/scaler.h"

struct window_gather;
struct window_scale; /* window_scale.h */

struct window_gather_options {
    enum stk_dtype dtype;    /* of the stored rows and of the result: F32, F16, BF16, F64 */
    uint32_t row_columns;    /* in a stored row */
    const uint32_t *columns; /* those that are wanted, in this order */
    uint32_t count;
    const struct scaler *scaler; /* of all row_columns; NULL: values go over as they are */
};

STK_CHECK stk_status window_gather_new(struct window_gather **out,
                                       const struct window_gather_options *options,
                                       struct stk_error *err);
void window_gather_free(struct window_gather *gather);

/* Not 0: `to` may be `from` (all columns, in order). */
int window_gather_in_place(const struct window_gather *gather);
uint64_t window_gather_row_bytes(const struct window_gather *gather); /* stored */
uint64_t window_gather_to_bytes(const struct window_gather *gather);  /* of a row of the result */
/* rows * row_bytes stored bytes -> rows * count elements. Scaling is (x - center) * (1 / scale), in
 * float32 (F64: float64; see window_scale.h). Any alignment of `from` and `to`. */
void window_gather_copy(const struct window_gather *gather, const uint8_t *from, uint64_t rows,
                        uint8_t *to);
/* The same for many: other threads may look at what was written after window_gather_fence. next:
 * where the one after it will be taken from, if that is known; else NULL. It is only asked for. */
void window_gather_stream(const struct window_gather *gather, const uint8_t *from, uint64_t rows,
                          uint8_t *to, const uint8_t *next);
void window_gather_fence(void);

/* What it is made of, for its twin on the device (window_device.h). */
struct window_gather_parts {
    enum stk_dtype dtype;
    const uint32_t *columns; /* [count] of a stored row */
    uint32_t count;
    int whole;                        /* all columns of a stored row, in order */
    const struct window_scale *scale; /* NULL: values go over as they are */
};
void window_gather_tell(const struct window_gather *gather, struct window_gather_parts *parts);

#endif
