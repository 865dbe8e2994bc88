#include "loader/batch_transform.h"

#include <string.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/memory.h"
#include "base/name_guess.h"
#include "transform/mix_device.h"

#define BATCH_KEY UINT64_C(0x6261746368) /* "batch": apart from the keys of samples */

/* One step and its fields. */
struct mix_step {
    const struct transform_ops *ops;
    const struct mix_args *args;
    uint32_t image, label;
    struct stk_flow flow; /* of one image */
};

struct batch_transform {
    struct chain chain;
    int device; /* images are mixed there */
    struct mix_step steps[CHAIN_MAX_STEPS];
};

/* --- fields ----------------------------------------------------------------------------------- */

static const char *field_name(const struct layout *layout, uint32_t f)
{
    return layout->fields[f].field->field.name;
}

/* What one value of a field is; a plain tensor when no chain says more. */
static struct stk_flow field_flow(const struct field_layout *field)
{
    struct stk_flow flow = {.media = STK_MEDIA_TENSOR, .real = -1};
    if (field->cut)
        flow = *pipeline_device_out(field->cut);
    else if (field->pipeline)
        flow = *pipeline_out(field->pipeline);
    flow.tensor = field->made;
    return flow;
}

static int is_label(const struct layout *layout, uint32_t f)
{
    return layout->fields[f].field->field.kind == STK_KIND_INT;
}

static int is_image(const struct layout *layout, uint32_t f)
{
    const struct field_layout *field = &layout->fields[f];
    if (field->field->field.kind != STK_KIND_TENSOR || field->place != PLACE_DENSE)
        return 0;
    enum stk_media media = field_flow(field).media;
    return media == STK_MEDIA_IMAGE || media == STK_MEDIA_VIDEO;
}

static int is_tensor(const struct layout *layout, uint32_t f)
{
    const struct field_layout *field = &layout->fields[f];
    return field->field->field.kind == STK_KIND_TENSOR && field->place == PLACE_DENSE;
}

/* The only field that fits; UINT32_MAX: none, or several. */
static uint32_t only_field(const struct layout *layout,
                           int (*fits)(const struct layout *layout, uint32_t f))
{
    uint32_t found = UINT32_MAX, count = 0;
    for (uint32_t f = 0; f < layout->field_count; f++)
        if (fits(layout, f)) {
            found = f;
            count++;
        }
    return count == 1 ? found : UINT32_MAX;
}

static stk_status find_named(const struct layout *layout, const char *name, uint32_t *out,
                             struct stk_error *err)
{
    struct name_guess guess = {.wanted = name};
    for (uint32_t f = 0; f < layout->field_count; f++)
        if (!strcmp(field_name(layout, f), name)) {
            *out = f;
            return STK_OK;
        }
    for (uint32_t f = 0; f < layout->field_count; f++)
        name_guess_add(&guess, field_name(layout, f));
    (void)name_guess_fail(&guess, "field", err);
    if (err)
        err->status = STK_USAGE;
    return STK_USAGE;
}

static stk_status find_label(const struct layout *layout, struct mix_step *step,
                             struct stk_error *err)
{
    stk_status status = STK_OK;
    step->label = only_field(layout, is_label);
    if (*step->args->label)
        status = find_named(layout, step->args->label, &step->label, err);
    if (status)
        return status;
    if (step->label == UINT32_MAX) {
        status = fail(err, STK_USAGE, "%s needs a label, and there is not just one int field",
                      step->ops->name);
        fail_remedy(err, "say which: %s(..., label=\"NAME\")", step->ops->name);
        return status;
    }
    if (!is_label(layout, step->label))
        return fail(err, STK_USAGE, "%s: the label \"%s\" is no int field", step->ops->name,
                    field_name(layout, step->label));
    return STK_OK;
}

static stk_status check_image(const struct layout *layout, const struct mix_step *step,
                              struct stk_error *err)
{
    const char *name = field_name(layout, step->image), *what = step->ops->name;
    enum stk_dtype dtype = step->flow.tensor.dtype;
    int mixes = dtype == STK_U8 || dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 ||
                dtype == STK_F64;
    if (!is_tensor(layout, step->image)) {
        stk_status status =
            fail(err, STK_USAGE, "%s: field \"%s\" is no tensor of one shape", what, name);
        fail_remedy(err, "give it a size: add Resize or RandomResizedCrop to its transforms");
        return status;
    }
    if (step->ops == &mixup_transform && !mixes) {
        stk_status status = fail(err, STK_USAGE, "%s takes uint8 and floats, but \"%s\" is %s",
                                 what, name, stk_dtype_name(dtype));
        fail_remedy(err, "add Cast(float32) to its transforms");
        return status;
    }
    if (step->ops == &cutmix_transform && mix_height_axis(&step->flow) < 0)
        return fail(err, STK_USAGE, "%s: field \"%s\" has no height and width", what, name);
    return STK_OK;
}

static stk_status find_image(const struct layout *layout, struct mix_step *step,
                             struct stk_error *err)
{
    stk_status status = STK_OK;
    step->image = only_field(layout, is_image);
    if (step->image == UINT32_MAX)
        step->image = only_field(layout, is_tensor);
    if (*step->args->image)
        status = find_named(layout, step->args->image, &step->image, err);
    if (status)
        return status;
    if (step->image == UINT32_MAX) {
        status = fail(err, STK_USAGE, "%s needs an image, and there is not just one such field",
                      step->ops->name);
        fail_remedy(err, "say which: %s(..., image=\"NAME\")", step->ops->name);
        return status;
    }
    step->flow = field_flow(&layout->fields[step->image]);
    return check_image(layout, step, err);
}

/* --- making ----------------------------------------------------------------------------------- */

/* The label becomes rows of classes; a second step must mean as many. */
static stk_status spread_label(struct layout *layout, const struct mix_step *step,
                               struct stk_error *err)
{
    const struct field_layout *label = &layout->fields[step->label];
    if (!label->classes)
        return layout_spread(layout, step->label, (uint32_t)step->args->classes, err);
    if (label->classes == step->args->classes)
        return STK_OK;
    return fail(err, STK_USAGE, "%s has %lld classes, but a transform before it has %u",
                step->ops->name, (long long)step->args->classes, label->classes);
}

static stk_status make_step(struct batch_transform *transform, uint32_t i, struct layout *layout,
                            struct stk_error *err)
{
    const struct chain_step *from = &transform->chain.steps[i];
    struct mix_step *step = &transform->steps[i];
    *step = (struct mix_step){.ops = from->ops, .args = from->args};
    if (from->ops != &mixup_transform && from->ops != &cutmix_transform) {
        stk_status status =
            fail(err, STK_USAGE, "%s is no transform of whole batches", from->ops->name);
        fail_remedy(err, "give it in the transforms of its field; of batches are MixUp and CutMix");
        return status;
    }
    stk_status status = find_label(layout, step, err);
    if (!status)
        status = find_image(layout, step, err);
    if (!status)
        status = spread_label(layout, step, err);
    if (status)
        return status;
    uint64_t image = layout->device ? 0 : layout->fields[step->image].item,
             label = layout->fields[step->label].item;
    layout->mix = image > layout->mix ? image : layout->mix;
    layout->mix = label > layout->mix ? label : layout->mix;
    return STK_OK;
}

stk_status batch_transform_new(struct batch_transform **out, struct layout *layout,
                               const char *chain, struct stk_error *err)
{
    struct batch_transform *transform = memory_zero(1, sizeof *transform);
    *out = NULL;
    if (!transform)
        return fail_memory(err, sizeof *transform);
    transform->device = layout->device;
    stk_status status = chain_parse(&transform->chain, chain, NULL, err);
    for (uint32_t i = 0; !status && i < transform->chain.count; i++)
        status = make_step(transform, i, layout, err);
    if (status)
        goto done;
    *out = transform;
    transform = NULL;
done:
    batch_transform_free(transform);
    return status;
}

void batch_transform_free(struct batch_transform *transform)
{
    if (!transform)
        return;
    chain_reset(&transform->chain);
    memory_free(transform);
}

/* --- mixing ----------------------------------------------------------------------------------- */

static void mix_u8(uint8_t *own, const uint8_t *other, uint64_t n, double lam)
{
    uint32_t mine = (uint32_t)(lam * 65536 + 0.5), theirs = 65536 - mine;
    for (uint64_t i = 0; i < n; i++)
        own[i] = (uint8_t)((own[i] * mine + other[i] * theirs + 32768) >> 16);
}

static void mix_f32(float *own, const float *other, uint64_t n, double lam)
{
    float mine = (float)lam, theirs = (float)(1 - lam);
    for (uint64_t i = 0; i < n; i++)
        own[i] = own[i] * mine + other[i] * theirs;
}

static void mix_f64(double *own, const double *other, uint64_t n, double lam)
{
    for (uint64_t i = 0; i < n; i++)
        own[i] = own[i] * lam + other[i] * (1 - lam);
}

static void mix_f16(uint16_t *own, const uint16_t *other, uint64_t n, double lam)
{
    float mine = (float)lam, theirs = (float)(1 - lam);
    for (uint64_t i = 0; i < n; i++)
        own[i] = half_of_float(half_to_float(own[i]) * mine + half_to_float(other[i]) * theirs);
}

static void mix_bf16(uint16_t *own, const uint16_t *other, uint64_t n, double lam)
{
    float mine = (float)lam, theirs = (float)(1 - lam);
    for (uint64_t i = 0; i < n; i++)
        own[i] =
            bfloat_of_float(bfloat_to_float(own[i]) * mine + bfloat_to_float(other[i]) * theirs);
}

/* n elements. */
static void mix_values(enum stk_dtype dtype, void *own, const void *other, uint64_t n, double lam)
{
    switch (dtype) {
    case STK_U8:
        mix_u8(own, other, n, lam);
        break;
    case STK_F16:
        mix_f16(own, other, n, lam);
        break;
    case STK_BF16:
        mix_bf16(own, other, n, lam);
        break;
    case STK_F32:
        mix_f32(own, other, n, lam);
        break;
    default:
        mix_f64(own, other, n, lam);
    }
}

/* The box of one image over that of another, in every plane or frame. */
static void cut_image(const struct mix_step *step, const struct mix_params *params, uint8_t *own,
                      const uint8_t *other)
{
    const struct stk_tensor *image = &step->flow.tensor;
    int32_t axis = mix_height_axis(&step->flow);
    uint64_t planes = 1, pixel = stk_dtype_size(image->dtype);
    for (int32_t i = 0; i < axis; i++)
        planes *= (uint64_t)image->shape[i];
    for (int32_t i = axis + 2; i < image->rank; i++)
        pixel *= (uint64_t)image->shape[i];
    uint64_t row = (uint64_t)image->shape[axis + 1] * pixel;
    uint64_t plane = (uint64_t)image->shape[axis] * row;
    uint64_t bytes = (uint64_t)(params->x1 - params->x0) * pixel;
    for (uint64_t p = 0; p < planes; p++)
        for (int64_t y = params->y0; y < params->y1; y++) {
            uint64_t at = p * plane + (uint64_t)y * row + (uint64_t)params->x0 * pixel;
            memcpy(own + at, other + at, bytes);
        }
}

static void mix_image(const struct mix_step *step, const struct mix_params *params, uint8_t *own,
                      const uint8_t *other, uint64_t size)
{
    enum stk_dtype dtype = step->flow.tensor.dtype;
    if (step->ops == &cutmix_transform)
        cut_image(step, params, own, other);
    else
        mix_values(dtype, own, other, size / stk_dtype_size(dtype), params->lam);
}

/* From the last to the first, each finds the one before it unchanged; but for the first, whose
 * other is the last. */
static void mix_images(const struct mix_step *step, const struct mix_params *params,
                       struct slot *slot)
{
    const struct stk_tensor *images = &slot->box->fields[step->image].tensor;
    uint32_t real = slot->share.real;
    uint64_t size = stk_tensor_size(images) / slot->share.count;
    uint8_t *image = images->data;
    memcpy(slot->mix, image + size * (real - 1), size);
    for (uint32_t i = real; i-- > 0;)
        mix_image(step, params, image + size * i, i ? image + size * (i - 1) : slot->mix, size);
}

static void mix_labels(const struct mix_step *step, const struct mix_params *params,
                       struct slot *slot)
{
    const struct stk_tensor *labels = &slot->box->fields[step->label].tensor;
    uint32_t real = slot->share.real;
    uint64_t classes = (uint64_t)labels->shape[1];
    float *label = labels->data;
    memcpy(slot->mix, label + classes * (real - 1), classes * sizeof *label);
    for (uint32_t i = real; i-- > 0;)
        mix_f32(label + classes * i,
                i ? label + classes * (i - 1) : (const float *)(const void *)slot->mix, classes,
                params->lam);
}

/* What step i does to the slot's batch; lam 1: nothing. */
static struct mix_params draw_step(const struct batch_transform *transform, uint32_t i,
                                   const struct slot *slot, uint64_t seed)
{
    const struct mix_step *step = &transform->steps[i];
    struct mix_params params = {.lam = 1};
    uint64_t key =
        random_key(random_key(random_key(seed, slot->epoch), slot->share.first), BATCH_KEY);
    if (slot->share.real > 1)
        step->ops->draw(step->args, random_key(key, i), &step->flow, &params);
    return params;
}

void batch_transform_run(const struct batch_transform *transform, struct slot *slot, uint64_t seed)
{
    for (uint32_t i = 0; i < transform->chain.count; i++) {
        struct mix_params params = draw_step(transform, i, slot, seed);
        if (params.lam >= 1)
            continue;
        if (!transform->device)
            mix_images(&transform->steps[i], &params, slot);
        mix_labels(&transform->steps[i], &params, slot);
    }
}

stk_status batch_transform_run_device(const struct batch_transform *transform,
                                      const struct slot *slot, uint64_t seed,
                                      const struct batch_transform_device *device,
                                      struct stk_error *err)
{
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < transform->chain.count && !status; i++) {
        const struct mix_step *step = &transform->steps[i];
        struct mix_params params = draw_step(transform, i, slot, seed);
        const struct mix_device_run run = {.ops = step->ops,
                                           .params = &params,
                                           .flow = &step->flow,
                                           .images = device->values(device->user, step->image),
                                           .count = slot->share.real,
                                           .stream = device->stream};
        if (params.lam < 1)
            status = mix_device_run(device->gpu, &run, err);
    }
    return status;
}
