/* pipeline.h -- one field's way from encoded bytes (or a stored tensor) to its finished tensor: a
 * chain compiled once, run a sample at a time.
 * Owns: a pipeline owns its chain; a pipeline_state owns decoders and scratch memory.
 * Threads: a pipeline is immutable and shared; a state is one thread's.
 * Errors: status, words; the caller adds object, sample and field.
 * Not here: when samples are run (loader/fill_stage.h), what a transform does (transform/). */
#ifndef PIPELINE_PIPELINE_H
#define PIPELINE_PIPELINE_H

#include <stdatomic.h>

#include "stoker/bytes.h"
#include "stoker/media.h"
#include "transform/chain.h"

struct pipeline;
struct pipeline_state;

struct pipeline_options {
    const char *chain; /* NULL: only decoded */
    const struct transform_registry *plugins;
    /* What goes in: encoded media, or a stored tensor. uint8 (H, W, C) or (T, H, W, C) of 1, 3 or 4
     * channels is taken for an image or a video when all its transforms take one. */
    enum stk_media media;
    struct stk_tensor tensor; /* MEDIA_TENSOR: its shape as probed, -1 where lengths differ */
};

STK_CHECK stk_status pipeline_new(struct pipeline **out, const struct pipeline_options *options,
                                  struct stk_error *err);
void pipeline_free(struct pipeline *pipeline);

/* What comes out of every sample; lengths that differ are -1. */
const struct stk_flow *pipeline_out(const struct pipeline *pipeline);
/* Some result may hold padding: `real` of the result says how much is not. */
int pipeline_pads(const struct pipeline *pipeline);
/* Its canonical text. */
size_t pipeline_text(const struct pipeline *pipeline, char *text, size_t cap);

STK_CHECK stk_status pipeline_state_new(struct pipeline_state **out, struct stk_error *err);
void pipeline_state_free(struct pipeline_state *state);
uint64_t pipeline_state_bytes(const struct pipeline_state *state); /* memory it holds now */

/* One sample. result->tensor.data NULL: the result lies in the state's memory (or is the input
 * itself), valid until the state's next run. Else it is written there, and result->tensor is the
 * shape and type there is room for: another is STK_SHAPE, with nothing written, and result->tensor
 * then tells what it would have been. */
struct pipeline_input {
    struct stk_bytes bytes;         /* encoded, or the elements of a tensor */
    const struct stk_tensor *shape; /* of the tensor; NULL: bytes are encoded */
    uint64_t key;                   /* of the sample: pipeline_key */
    const _Atomic int *stop; /* not 0 there: leave off, nobody wants the result; NULL: never */
    int slack; /* 64 bytes behind the last may be read: pixels need not be copied first */
};
STK_CHECK stk_status pipeline_run(const struct pipeline *pipeline, struct pipeline_state *state,
                                  const struct pipeline_input *input, struct stk_flow *result,
                                  struct stk_error *err);

/* The key of one sample in one epoch; each step of the chain adds its own place. */
uint64_t pipeline_key(uint64_t seed, uint64_t epoch, uint64_t sample);

#endif
