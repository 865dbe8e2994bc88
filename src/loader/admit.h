/* admit.h -- the one place where a batch gets its memory: a slot, a box, and its missing chunks, in
 * plan order, before any reading. After it nothing waits for memory. Owns: nothing.   Threads:
 * under the loader's lock.   Errors: a batch that cannot be resolved is admitted as an error.   Not
 * here: reading (fetch_stage.h).
 *
 * Why it cannot dead-lock: batches are admitted in order, all that a batch needs at once or not at
 * all, and the oldest one always, over the budget if need be. So the oldest batch never waits for a
 * younger one, and what an admitted batch needs is only CPU and the store. */
#ifndef LOADER_ADMIT_H
#define LOADER_ADMIT_H

#include "loader/loader_impl.h"

/* Admits the next batch when there is a free slot and memory. 1: it did. */
int admit_next(struct stk_loader *loader);
/* Takes a finished batch's slot back: its chunks are let go of. The box is the caller's by now, or
 * NULL. */
void admit_retire(struct stk_loader *loader, struct slot *slot);
/* A chunk was decoded: slots that waited for it alone may go on. */
void admit_chunk_done(struct stk_loader *loader);
/* Lets go of the chunks that are held ahead. */
void admit_reset_ahead(struct stk_loader *loader);
#endif
