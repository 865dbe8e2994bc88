/* fetch_stage.h -- brings the bytes of a span's samples: resolves them, then copies nothing and
 * reads what must be read straight into its place. Owns: nothing.   Threads: the worker's own.
 * Errors: a failed read makes its values HOW_ODD. Not here: decoding (fill_stage.h). */
#ifndef LOADER_FETCH_STAGE_H
#define LOADER_FETCH_STAGE_H

#include "loader/worker.h"

/* Submits the span's reads; span->open of them are not back. */
void fetch_step(struct worker *worker, struct span *span);
/* A read of a span came back. */
void fetch_done(struct store_read *read);

#endif
