/* resident_series.h -- the part of resident.h for windows: the stored arrays go to the device as
 * they are, and windows are gathered from them.
 * Owns: its device memory; a thread that reads the arrays, until all was read.   Threads, Errors:
 * see resident.h.   Not here: tensors (resident_tensors.h), the kernels
 * (transform/window_device.h).
 */
#ifndef LOADER_RESIDENT_SERIES_H
#define LOADER_RESIDENT_SERIES_H

#include "loader/resident.h"

struct resident_series;

/* Not 0: the dataset's samples are windows. */
int resident_series_fits(const struct stk_dataset *dataset);

STK_CHECK stk_status resident_series_new(struct resident_series **out,
                                         const struct resident_options *options,
                                         struct layout *layout, struct stk_error *err);
void resident_series_free(struct resident_series *series); /* NULL is fine */
uint64_t resident_series_bytes(const struct resident_series *series);
int resident_series_whole(const struct resident_series *series); /* all of it is there */

uint32_t resident_series_find(const struct resident_series *series,
                              const struct resident_span *span);
STK_CHECK stk_status resident_series_gather(struct resident_series *series,
                                            const struct resident_batch *batch,
                                            struct stk_error *err);
int resident_series_feed(struct resident_series *series, struct gpu_stream *stream);

#endif
