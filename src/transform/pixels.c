#include "transform/pixels.h"

#include "base/fail.h"
#include "transform/transform.h"

stk_status pixels_check(const char *name, const struct stk_flow *flow, struct stk_error *err)
{
    if (flow->tensor.dtype == STK_U8 && !flow->channels_first && flow->tensor.rank >= 3)
        return STK_OK;
    stk_status status = fail(err, STK_USAGE, "%s works on uint8 images with channels last", name);
    fail_remedy(err, "put %s before Normalize, Cast and Layout", name);
    return status;
}

stk_status pixels_fill_check(const char *name, const struct transform_list *fill,
                             const struct stk_flow *flow, struct stk_error *err)
{
    int64_t height, width, channels;
    pixels_axes(flow, &height, &width, &channels);
    if (fill->count <= 1 || channels < 0 || channels == fill->count)
        return STK_OK;
    return fail(err, STK_USAGE, "fill of %s has %u numbers for %lld channels", name, fill->count,
                (long long)channels);
}

void pixels_fill(const struct transform_list *fill, uint8_t out[4])
{
    for (uint32_t c = 0; c < 4; c++)
        out[c] = (uint8_t)fill->values[fill->count == 1 ? 0 : c];
}

struct pixels pixels_of(const struct stk_flow *flow)
{
    const int64_t *shape = flow->tensor.shape + flow->tensor.rank - 3;
    return (struct pixels){.data = flow->tensor.data,
                           .height = shape[0],
                           .width = shape[1],
                           .channels = shape[2],
                           .colors = shape[2] >= 3 ? 3 : 1};
}

void pixels_axes(const struct stk_flow *flow, int64_t *height, int64_t *width, int64_t *channels)
{
    const int64_t *shape = flow->tensor.shape;
    int32_t rank = flow->tensor.rank;
    int first = flow->channels_first;
    int video = flow->media == STK_MEDIA_VIDEO;
    *height = shape[rank - (first ? 2 : 3)];
    *width = shape[rank - (first ? 1 : 2)];
    *channels = shape[first ? rank - (video ? 4 : 3) : rank - 1];
}
