/* quantile_sketch.h -- quantiles of a stream in constant memory: a KLL sketch (levels of items, an
 * item of level i standing for 2^i values; a full level is sorted and every other item moves up),
 * with a sampler before it once many values were seen. Sketches are mergeable.
 * Owns: its one block, until quantile_sketch_free.   Threads: one at a time for one sketch.
 * Errors: STK_MEMORY.   Not here: what is done with quantiles (scaler.h).
 *
 * Exact while at most QUANTILE_SKETCH_EXACT values were seen. Then the rank of a quantile is off by
 * at most QUANTILE_SKETCH_ERROR of the values, with 99 % confidence. Coins come from a counter and
 * a key made of the seed and the first value: the same calls give the same bits. */
#ifndef TRANSFORM_QUANTILE_SKETCH_H
#define TRANSFORM_QUANTILE_SKETCH_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

#define QUANTILE_SKETCH_EXACT 4096
#define QUANTILE_SKETCH_ERROR 0.005

struct quantile_sketch;

size_t quantile_sketch_bytes(void); /* of memory, for each */
STK_CHECK stk_status quantile_sketch_new(struct quantile_sketch **out, uint64_t seed,
                                         struct stk_error *err);
void quantile_sketch_free(struct quantile_sketch *sketch);  /* NULL is fine */
void quantile_sketch_reset(struct quantile_sketch *sketch); /* as new */
/* n values, none of them NaN. */
void quantile_sketch_add(struct quantile_sketch *sketch, const double *values, size_t n);
void quantile_sketch_merge(struct quantile_sketch *into, const struct quantile_sketch *from);
uint64_t quantile_sketch_seen(const struct quantile_sketch *sketch);
/* out[i]: the quantile at shares[i] of [0, 1], between two items by a straight line, as numpy's
 * quantile does. 0 when nothing was seen. */
STK_CHECK stk_status quantile_sketch_at(const struct quantile_sketch *sketch, const double *shares,
                                        size_t count, double *out, struct stk_error *err);

#endif
