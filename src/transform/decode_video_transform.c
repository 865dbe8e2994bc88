/* DecodeVideo: which frames of a video are decoded. */
#include "base/fail.h"
#include "base/random.h"
#include "transform/decode_transform.h"

#define FRAME_MOST 65536 /* of one clip */

static const struct transform_arg args_table[] = {
    {.name = "frames",
     .type = ARG_INT,
     .offset = offsetof(struct decode_video_args, frames),
     .preset = "16",
     .least = 0,
     .most = FRAME_MOST},
    {.name = "stride",
     .type = ARG_INT,
     .offset = offsetof(struct decode_video_args, stride),
     .preset = "1",
     .least = 1,
     .most = 1e6},
    {.name = "clips",
     .type = ARG_INT,
     .offset = offsetof(struct decode_video_args, clips),
     .preset = "1",
     .least = 1,
     .most = DECODE_VIDEO_CLIPS},
    {.name = "start",
     .type = ARG_CHOICE,
     .offset = offsetof(struct decode_video_args, start),
     .preset = "random",
     .choices = CLIP_FROM_CHOICES},
    {0},
};

static stk_status check(void *args, struct stk_error *err)
{
    const struct decode_video_args *own = args;
    if (own->frames || own->clips == 1)
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "%lld clips of all frames", (long long)own->clips);
    fail_remedy(err, "say how many frames a clip has: frames=16");
    return status;
}

/* (frames, H, W, C) as stored -> a clip, or clips. frames=0: all of them, every stride-th. */
static stk_status shape(const void *args, const void *params, struct stk_flow *flow,
                        struct stk_error *err)
{
    const struct decode_video_args *own = args;
    struct stk_tensor *tensor = &flow->tensor;
    (void)params;
    if (tensor->rank != 4)
        return fail(err, STK_USAGE, "a video of %d axes: it has 4", (int)tensor->rank);
    int64_t stored = tensor->shape[0];
    int64_t all = stored < 0 ? -1 : (stored + own->stride - 1) / own->stride;
    tensor->shape[0] = own->frames ? own->frames : all;
    if (own->clips > 1) {
        for (int i = 4; i > 0; i--)
            tensor->shape[i] = tensor->shape[i - 1];
        tensor->shape[0] = own->clips;
        tensor->rank = 5;
    }
    flow->rate /= (double)own->stride;
    return STK_OK;
}

/* Not at random: one clip at the start or in the middle. Several: "start" spreads them from the
 * first frame to the last, "center" puts each into the middle of its share. */
static void draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct decode_video_args *own = args;
    struct decode_video_params *drawn = params;
    double count = (double)own->clips;
    (void)in;
    for (int64_t i = 0; i < own->clips; i++) {
        double place = (double)i;
        if (own->start == CLIP_RANDOM)
            drawn->start[i] = random_unit(key, (uint64_t)i);
        else if (own->start == CLIP_CENTER)
            drawn->start[i] = (place + 0.5) / count;
        else
            drawn->start[i] = count > 1 ? place / (count - 1) : 0;
    }
}

const struct transform_ops decode_video_transform = {
    .name = "DecodeVideo",
    .help = "Chooses which frames of a video are decoded: clips of every stride-th frame.",
    .media = STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_DECODE,
    .args = args_table,
    .size = sizeof(struct decode_video_args),
    .check = check,
    .shape = shape,
    .draw = draw,
};
