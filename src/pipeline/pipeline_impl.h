/* pipeline_impl.h -- what the files of a pipeline share.
 * Owns: see pipeline.h.   Threads: see pipeline.h.   Errors: none.   Not here: any behaviour.
 *
 * A run: the runner of the media decodes into a flow (scratch memory, or the stored tensor itself),
 * and pipeline_steps takes it through the steps that are left. Images and videos take their leading
 * geometry, pixel and format steps themselves (image_run.c), because these are folded. */
#ifndef PIPELINE_PIPELINE_IMPL_H
#define PIPELINE_PIPELINE_IMPL_H

#include "base/scratch.h"
#include "pipeline/device_plan.h"
#include "pipeline/pipeline.h"
#include "transform/decode_transform.h"
#include "transform/image_resample.h"

struct image_decoder;
struct audio_decoder;
struct audio_resampler;
struct video_decoder;

struct pipeline {
    struct chain chain;      /* of encoded media: begins with a step of stage DECODE */
    int defaulted;           /* ... that nobody wrote */
    enum stk_media media;    /* TENSOR: what comes in is a plain tensor */
    int stored;              /* the input is a tensor that is stored as it is used */
    struct stk_flow in, out; /* out: of the host half */
    int pads;
    const char *drawn; /* the step that draws the height and width of the result; NULL: none */
    uint32_t cut;      /* the first step that is the device's; the chain's end: none is */
    struct device_plan plan;
    int early;                  /* cut as early as can be */
    struct stk_flow device_out; /* of the whole chain */
    uint32_t first;             /* the first step that is not of stage DECODE: 0 or 1 */
    uint32_t format;            /* images, videos: the first step behind geometry and pixels ... */
    uint32_t rest; /* ... and the first that is not folded into the writer; others: `first` */
    struct image_writer writer; /* images, videos: strides are set for each sample */
    int channels_first;         /* ... what it makes */
};

struct pipeline_state {
    struct scratch scratch;
    struct image_decoder *images; /* each made when first needed */
    struct audio_decoder *audio;
    struct audio_resampler *resampler;
    struct video_decoder *videos;
};

/* Arguments of the decoding step. */
static inline const void *pipeline_decode_args(const struct pipeline *pipeline)
{
    return pipeline->chain.steps[0].args;
}
/* The parameters of a step: zeros where it draws none. */
struct step_params {
    _Alignas(16) uint8_t bytes[TRANSFORM_PARAMS];
};
void pipeline_draw(const struct pipeline *pipeline, uint32_t step, uint64_t key,
                   const struct stk_flow *in, struct step_params *params);

/* Runners: input -> *flow, decoded into scratch memory (or pointing into the input). The decoding
 * step's draw is called with the flow of what is stored. place: not NULL when no step follows and
 * the result is wanted there; a runner may then decode straight into it and set flow's data to it.
 */
stk_status audio_run(const struct pipeline *pipeline, struct pipeline_state *state,
                     const struct pipeline_input *input, void *place, struct stk_flow *flow,
                     struct stk_error *err);
stk_status points_run(const struct pipeline *pipeline, struct pipeline_state *state,
                      const struct pipeline_input *input, void *place, struct stk_flow *flow,
                      struct stk_error *err);
/* All frames, (clips, T, H, W, C) or (T, H, W, C), uint8. */
stk_status video_run(const struct pipeline *pipeline, struct pipeline_state *state,
                     const struct pipeline_input *input, void *place, struct stk_flow *flow,
                     struct stk_error *err);
/* Frees what a runner keeps in the state. */
void audio_run_free(struct pipeline_state *state);
void video_run_free(struct pipeline_state *state);
uint64_t audio_run_bytes(const struct pipeline_state *state);
uint64_t video_run_bytes(const struct pipeline_state *state);

/* Images, and the frames of a decoded video: through geometry, pixels and format, up to step
 * `rest`. want: as of pipeline_run when no step follows, else NULL. */
stk_status image_run(const struct pipeline *pipeline, struct pipeline_state *state,
                     const struct pipeline_input *input, const struct stk_tensor *want,
                     struct stk_flow *flow, struct stk_error *err);
stk_status frames_run(const struct pipeline *pipeline, struct pipeline_state *state,
                      const struct pipeline_input *input, const struct stk_tensor *want,
                      struct stk_flow *flow, struct stk_error *err);

/* Folds the host's format steps from `format` on into the writer; sets rest, writer and
 * channels_first. flow: what reaches them. */
void format_fold(struct pipeline *pipeline, const struct stk_flow *flow);
/* The same a step at a time. 0: it cannot be folded. */
void format_fold_begin(struct image_writer *writer, int *channels_first);
int format_fold_step(struct image_writer *writer, int *channels_first, enum stk_media media,
                     const struct chain_step *step);
/* Room for flow's tensor: want's own when it is of that shape (then it is the last step), else
 * scratch. STK_SHAPE: it is wanted, and of another shape. */
stk_status flow_place(struct pipeline_state *state, const struct stk_tensor *want,
                      struct stk_flow *flow, struct stk_error *err);
/* One step of stage PIXELS, FORMAT or TENSOR. borrowed: flow's data is not ours to change. */
stk_status step_run(const struct pipeline *pipeline, struct pipeline_state *state, uint32_t step,
                    const struct step_params *params, const struct stk_tensor *want, int borrowed,
                    struct stk_flow *flow, struct stk_error *err);

/* Draws the device half's parameters and writes all of them but the record. flow: what reaches the
 * first step of the device, lengths known; becomes the result's. geometry: of its pixels; takes the
 * steps that are folded. NULL: there are no pixels. */
stk_status device_params_draw(const struct pipeline *pipeline, const struct pipeline_input *input,
                              struct image_geometry *geometry, struct stk_flow *flow,
                              struct stk_error *err);
/* All of them, for pixels or a tensor that lands in its place. */
stk_status device_params_set(const struct pipeline *pipeline, const struct pipeline_input *input,
                             struct stk_flow *flow, struct stk_error *err);

#endif
