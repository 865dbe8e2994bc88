/* Videos: header, choice of clips, frames. */
#include "base/fail.h"
#include "base/shape.h"
#include "codec/video_codec.h"
#include "pipeline/pipeline_impl.h"

#define CLIPS_MOST ((uint64_t)1 << 34) /* bytes of one sample's frames */

/* The first frame of a clip of `count` frames. A video that is too short leaves no room: the clip
 * begins with the first frame, and the last one is repeated. */
static int64_t clip_first(int64_t frames, int64_t count, int64_t stride, double start)
{
    int64_t room = frames - 1 - (count - 1) * stride;
    if (room <= 0)
        return 0;
    int64_t first = (int64_t)(start * ((double)room + 1));
    return first < room ? first : room;
}

/* flow: what is stored -> what is decoded, with room for it. */
static stk_status place_clips(const struct pipeline *pipeline, struct pipeline_state *state,
                              const struct step_params *params, void *place, struct stk_flow *flow,
                              struct stk_error *err)
{
    const struct chain_step *step = &pipeline->chain.steps[0];
    stk_status status = step->ops->shape(step->args, params->bytes, flow, err);
    if (status)
        return status;
    uint64_t size = stk_tensor_size(&flow->tensor);
    if (size > CLIPS_MOST) {
        status = fail(err, STK_LIMIT, "the clip has more than %llu bytes",
                      (unsigned long long)CLIPS_MOST);
        fail_remedy(err, "take fewer frames: DecodeVideo(frames=16)");
        return status;
    }
    if (place && !shape_same(&flow->tensor, &pipeline->out.tensor))
        return fail(err, STK_SHAPE, "the video has another shape than the batch");
    flow->tensor.data = place ? place : scratch_take(&state->scratch, size);
    return flow->tensor.data ? STK_OK : fail_memory(err, size);
}

static stk_status read_clips(const struct pipeline *pipeline, struct pipeline_state *state,
                             const struct stk_video_header *header,
                             const struct step_params *params, struct stk_flow *flow,
                             struct stk_error *err)
{
    const struct decode_video_args *args = pipeline_decode_args(pipeline);
    const struct decode_video_params *drawn = (const void *)params->bytes;
    const struct stk_tensor *tensor = &flow->tensor;
    int64_t count = tensor->shape[tensor->rank - 4];
    uint64_t clip_bytes = stk_tensor_size(tensor) / (uint64_t)args->clips;
    uint8_t *to = tensor->data;
    stk_status status = STK_OK;
    for (int64_t i = 0; i < args->clips && !status; i++, to += clip_bytes) {
        struct video_want want = {.stride = args->stride, .count = count};
        want.first = clip_first(header->frames, count, args->stride, drawn->start[i]);
        status = video_read(state->videos, &want, to, err);
    }
    return status;
}

stk_status video_run(const struct pipeline *pipeline, struct pipeline_state *state,
                     const struct pipeline_input *input, void *place, struct stk_flow *flow,
                     struct stk_error *err)
{
    struct stk_video_header header;
    struct step_params params;
    stk_status status = STK_OK;
    if (!state->videos)
        status = video_decoder_new(&state->videos, err);
    if (!status)
        status = video_begin(state->videos, &input->bytes, &header, err);
    if (status)
        return status;
    *flow = (struct stk_flow){.media = STK_MEDIA_VIDEO, .rate = header.rate, .real = -1};
    flow->tensor = (struct stk_tensor){
        .dtype = STK_U8, .rank = 4, .shape = {header.frames, header.height, header.width, 3}};
    pipeline_draw(pipeline, 0, input->key, flow, &params);
    status = place_clips(pipeline, state, &params, place, flow, err);
    if (!status)
        status = read_clips(pipeline, state, &header, &params, flow, err);
    video_end(state->videos); /* its bytes are the caller's again */
    return status;
}

void video_run_free(struct pipeline_state *state)
{
    video_decoder_free(state->videos);
    state->videos = NULL;
}

/* What the plugin holds lives only while a sample is run, and it does not say how much that is. */
uint64_t video_run_bytes(const struct pipeline_state *state)
{
    (void)state;
    return 0;
}
