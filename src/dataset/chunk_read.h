/* chunk_read.h -- decodes one chunk whole: reads it from its object and runs it through its filter.
 * Owns: a read buffer and the filter, for the length of the call.   Threads: any, each its own
 * call. Errors: status, words that name object and offset.   Not here: keeping chunks
 * (loader/chunk_cache.h). */
#ifndef DATASET_CHUNK_READ_H
#define DATASET_CHUNK_READ_H

#include "dataset/dataset_view.h"

/* to: chunk->decoded bytes. STK_CANCELLED as soon as *cancel is not 0 (looked at every MiB; may be
 * NULL). */
STK_CHECK stk_status chunk_read(const struct stk_dataset *dataset, uint32_t chunk, uint8_t *to,
                                const _Atomic int *cancel, struct stk_error *err);
/* len decoded bytes from offset on, and no more: for a look at one value. Costs the decoding of
 * what lies before it; a Fortran array is read whole. */
STK_CHECK stk_status chunk_read_part(const struct stk_dataset *dataset, uint32_t chunk,
                                     uint64_t offset, uint64_t len, uint8_t *to,
                                     struct stk_error *err);

#endif
