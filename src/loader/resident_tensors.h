/* resident_tensors.h -- the part of resident.h for tensors and numbers: an array a field with a row
 * for every sample, filled as batches pass.
 * Owns: its device memory and its table of samples.   Threads, Errors: see resident.h.
 * Not here: series (resident_series.h). */
#ifndef LOADER_RESIDENT_TENSORS_H
#define LOADER_RESIDENT_TENSORS_H

#include "loader/resident.h"

struct resident_tensors;

STK_CHECK stk_status resident_tensors_new(struct resident_tensors **out,
                                          const struct resident_options *options,
                                          struct layout *layout, struct stk_error *err);
void resident_tensors_free(struct resident_tensors *tensors); /* NULL is fine */
uint64_t resident_tensors_bytes(const struct resident_tensors *tensors);
uint64_t resident_tensors_samples(const struct resident_tensors *tensors);

uint32_t resident_tensors_find(const struct resident_tensors *tensors,
                               const struct resident_span *span);
int resident_tensors_has(const struct resident_tensors *tensors, uint64_t sample);

STK_CHECK stk_status resident_tensors_gather(struct resident_tensors *tensors,
                                             const struct resident_batch *batch,
                                             struct stk_error *err);
STK_CHECK stk_status resident_tensors_keep(struct resident_tensors *tensors,
                                           const struct resident_batch *batch,
                                           struct stk_error *err);
void resident_tensors_found(struct resident_tensors *tensors, const uint64_t *samples,
                            uint32_t count);

#endif
