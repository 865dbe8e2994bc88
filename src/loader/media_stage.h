/* media_stage.h -- the part of fetching and filling that concerns fields with a pipeline: a room
 * for their stored bytes, and the run of the pipeline into the value's place. Owns: nothing; rooms
 * are the span's and the worker's.   Threads: the worker's own. Errors: status, words; the caller
 * adds object and sample.   Not here: what a pipeline does (pipeline/pipeline.h), fields that are
 * stored as they are used (fetch_stage.h, fill_stage.h). */
#ifndef LOADER_MEDIA_STAGE_H
#define LOADER_MEDIA_STAGE_H

#include "loader/worker.h"

/* Gives the pieces of pipelines their places in the span's room, once all lengths are known.
 * Without memory nothing of the span is read: its values are HOW_ODD. */
void media_place(struct worker *worker, struct span *span);

/* Runs the pipeline of a value that was fetched. err may be NULL. */
STK_CHECK stk_status media_fill(struct worker *worker, const struct span *span, uint32_t place,
                                uint32_t f, struct stk_error *err);

/* A value that was read alone: of the place's sample, or of a substitute. */
struct media_alone {
    uint32_t place, field;
    uint64_t sample;
    struct stk_bytes bytes;
};
STK_CHECK stk_status media_fill_alone(struct worker *worker, struct slot *slot,
                                      const struct media_alone *value, struct stk_error *err);

/* Draws the parameters of device halves for the span's samples, of fields whose values are taken as
 * they are stored. */
void media_aim(struct worker *worker, const struct span *span);

/* Counts what the worker's pipelines hold by now. */
void media_count(struct worker *worker);

#endif
