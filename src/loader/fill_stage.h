/* fill_stage.h -- turns the bytes of a span's samples into values in their places.
 * Owns: nothing.   Threads: the worker's own; fill_part_done by whoever finished a part.
 * Errors: a bad sample is an entry of the slot; the policy is applied here.
 * Not here: how a field is decoded (codec/). */
#ifndef LOADER_FILL_STAGE_H
#define LOADER_FILL_STAGE_H

#include "loader/worker.h"

/* Bytes: of values that are longer, so many are asked for while the ones before are copied. */
#define FILL_LONG 512
#define FILL_LINE 64

/* A copy of so many bytes from a map took that long: when it went to the disk, the next spans are
 * taken for cold. */
void fill_look_for_faults(struct worker *worker, uint64_t bytes, int64_t ns);

/* A sample that cannot be delivered: another takes its place, or the slot has an entry. Any thread
 * that has the place; worker: its reader and rooms are used. */
void fill_bad(struct worker *worker, struct slot *slot, uint32_t place,
              const struct stk_error *error);

/* Needs no thread; run when all reads of the span are back. */
void fill_step(struct worker *worker, struct span *span);
/* One part of a slot is finished. 1: it was the last, and the batch is complete; the caller stores
 * slot->done under the loader's lock. */
int fill_part_done(struct stk_loader *loader, struct slot *slot);

#endif
