/* pattern.h -- the values of synthetic tensors: two waves whose directions tell the class, a level
 * of each channel that hints at it, and noise over both. A pure function of (shape, classes, seed,
 * sample) in whole numbers: every machine and any number of threads makes the same bytes.
 * Owns: its tables.   Threads: immutable once made; each thread brings its own scratch.
 * Errors: STK_MEMORY.   Not here: files (gen_tensors.c). */
#ifndef PACK_PATTERN_H
#define PACK_PATTERN_H

#include "stoker/error.h"
#include "stoker/tensor.h"

struct pattern;

/* shape: rank 1 .. STK_MAX_RANK, no empty axis; its size was checked. */
STK_CHECK stk_status pattern_new(struct pattern **out, const struct stk_tensor *shape,
                                 uint32_t classes, uint64_t samples, uint64_t seed,
                                 struct stk_error *err);
void pattern_free(struct pattern *pattern);

/* Classes are dealt out evenly, in a shuffled order. */
uint32_t pattern_label(const struct pattern *pattern, uint64_t sample);
/* to: as large as the tensor, aligned to its elements. scratch: pattern_scratch_size bytes. */
void pattern_fill(const struct pattern *pattern, uint64_t sample, void *to, void *scratch);
size_t pattern_scratch_size(const struct pattern *pattern);

#endif
