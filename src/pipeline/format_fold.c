/* Normalize, Cast and Layout behind the last geometry of an image: instead of three passes over the
 * result they become one multiply and one add while each pixel is written. */
#include <string.h>

#include "pipeline/pipeline_impl.h"
#include "transform/format_transform.h"

static double listed(const struct transform_list *list, uint32_t channel)
{
    return list->values[list->count == 1 ? 0 : channel];
}

/* Float16 would be rounded between two steps: what follows it is not folded. */
static int fold_normalize(struct image_writer *writer, const struct normalize_args *args)
{
    double scale = writer->dtype == STK_U8 ? 255 : 1;
    if (writer->dtype != STK_U8 && writer->dtype != STK_F32)
        return 0;
    for (uint32_t c = 0; c < 4; c++) {
        int known = args->mean.count == 1 || c < args->mean.count;
        double mean = known ? listed(&args->mean, c) : 0, std = known ? listed(&args->std, c) : 1;
        writer->multiply[c] = (float)(writer->multiply[c] / (scale * std));
        writer->add[c] = (float)((writer->add[c] / scale - mean) / std);
    }
    writer->dtype = STK_F32;
    writer->plain = 0;
    return 1;
}

static int fold_cast(struct image_writer *writer, const struct cast_args *args)
{
    enum stk_dtype to = (enum stk_dtype)args->dtype;
    int small = to == STK_F32 || to == STK_F16 || to == STK_BF16;
    if (to == writer->dtype)
        return 1;
    if (writer->dtype == STK_F32 && small) {
        writer->dtype = to;
        return 1;
    }
    if (writer->dtype != STK_U8 || !small)
        return 0;
    for (uint32_t c = 0; args->scale && c < 4; c++)
        writer->multiply[c] /= 255;
    writer->plain = !args->scale;
    writer->dtype = to;
    return 1;
}

static int fold_layout(int *channels_first, enum stk_media media, const struct layout_args *args)
{
    int video = media == STK_MEDIA_VIDEO;
    int first = args->order == (video ? LAYOUT_CTHW : LAYOUT_CHW);
    if (!first && args->order != (video ? LAYOUT_THWC : LAYOUT_HWC))
        return 0;
    *channels_first = first;
    return 1;
}

void format_fold_begin(struct image_writer *writer, int *channels_first)
{
    *writer = (struct image_writer){.dtype = STK_U8, .plain = 1, .multiply = {1, 1, 1, 1}};
    *channels_first = 0;
}

int format_fold_step(struct image_writer *writer, int *channels_first, enum stk_media media,
                     const struct chain_step *step)
{
    if (step->ops == &normalize_transform)
        return fold_normalize(writer, step->args);
    if (step->ops == &cast_transform)
        return fold_cast(writer, step->args);
    if (step->ops == &layout_transform)
        return fold_layout(channels_first, media, step->args);
    return 0;
}

void format_fold(struct pipeline *pipeline, const struct stk_flow *flow)
{
    format_fold_begin(&pipeline->writer, &pipeline->channels_first);
    pipeline->rest = pipeline->format;
    if (flow->tensor.dtype != STK_U8 || flow->channels_first)
        return;
    while (pipeline->rest < pipeline->cut &&
           format_fold_step(&pipeline->writer, &pipeline->channels_first, pipeline->media,
                            &pipeline->chain.steps[pipeline->rest]))
        pipeline->rest++;
}
