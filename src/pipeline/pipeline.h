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
    /* Not 0: what the device can do at the end of the chain is left to it (device_half.h), where
     * shapes are fixed there and no more bytes need be shipped than half as many again. */
    int device;
    int early; /* with device: as much as can be is left to it, however many bytes are shipped: they
                  are shipped once, and stay there */
};

STK_CHECK stk_status pipeline_new(struct pipeline **out, const struct pipeline_options *options,
                                  struct stk_error *err);
void pipeline_free(struct pipeline *pipeline);

/* What comes out of every sample; lengths that differ are -1. Of a pipeline that was cut in two:
 * what the host half makes. */
const struct stk_flow *pipeline_out(const struct pipeline *pipeline);
/* What comes out of the device half in the end; without one the same as pipeline_out. */
const struct stk_flow *pipeline_device_out(const struct pipeline *pipeline);
/* Bytes that the device half needs beside each sample; 0: there is none. */
uint32_t pipeline_params_size(const struct pipeline *pipeline);
/* Not 0: the host half does nothing and draws nothing: what is shipped is what is stored. */
int pipeline_ships_stored(const struct pipeline *pipeline);
/* Not 0: an encoded image whose decoding the device may do: its geometry, whatever the host half
 * would do of it, can be given as a record (pipeline_aim). */
int pipeline_may_aim(const struct pipeline *pipeline);
/* Some result may hold padding: `real` of the result says how much is not. */
int pipeline_pads(const struct pipeline *pipeline);
/* The transform that draws the size of the result, so that every sample has one of its own; NULL:
 * none does. */
const char *pipeline_drawn_shape(const struct pipeline *pipeline);
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
    int slack;      /* 64 bytes behind the last may be read: pixels need not be copied first */
    void *params;   /* where those of the device half are written; NULL: there is none */
    uint64_t place; /* of the sample in its batch: records say where its pixels will have landed */
};
STK_CHECK stk_status pipeline_run(const struct pipeline *pipeline, struct pipeline_state *state,
                                  const struct pipeline_input *input, struct stk_flow *result,
                                  struct stk_error *err);

/* The parameters of the device half alone, for a sample whose stored tensor is on the device
 * already (pipeline_ships_stored). shape: of the stored tensor. */
STK_CHECK stk_status pipeline_aim_stored(const struct pipeline *pipeline,
                                         const struct pipeline_input *input, struct stk_error *err);
/* The parameters of the device half for an image that the device decodes: the header is read, the
 * geometry drawn; the record's source is 1, its width and height those of its box, x and y 0.
 * *box: what is to be decoded. STK_UNSUPPORTED: this one is for the CPU (no JPEG that the device's
 * decoder takes: progressive, CMYK, 12 bits, cut short, or with an orientation that would turn it).
 */
struct pipeline_box {
    int32_t x, y, width, height; /* within the image */
    int32_t image_width, image_height, channels;
};
STK_CHECK stk_status pipeline_aim(const struct pipeline *pipeline, struct pipeline_state *state,
                                  const struct pipeline_input *input, struct pipeline_box *box,
                                  struct stk_error *err);

/* The key of one sample in one epoch; each step of the chain adds its own place. */
uint64_t pipeline_key(uint64_t seed, uint64_t epoch, uint64_t sample);

#endif
