/* tensor_input.h -- the stored bytes of one value, made ready for its field's pipeline: media as
 * they are, arrays with their shape, rows of a series gathered.
 * Owns: nothing; a room is the caller's.   Threads: one a room.   Errors: those of the codec.
 * Not here: running the pipeline (media_stage.h). */
#ifndef LOADER_TENSOR_INPUT_H
#define LOADER_TENSOR_INPUT_H

#include "dataset/dataset_view.h"
#include "loader/room.h"
#include "pipeline/pipeline.h"

struct tensor_input {
    struct pipeline_input input; /* its shape points to the one below, its key is not set */
    struct stk_tensor shape;
};

/* What is stored, and what may be used beside it. */
struct tensor_source {
    struct stk_bytes bytes;
    int slack;              /* ROOM_SLACK bytes behind them may be read */
    struct room *room;      /* for what cannot be used where it lies */
    struct budget *counted; /* of the room; NULL: none */
};

/* out lives as long as source's bytes, and until the room's next use. */
STK_CHECK stk_status tensor_input_make(struct tensor_input *out, const struct dataset_field *field,
                                       const struct tensor_source *source, struct stk_error *err);

#endif
