/* Crops, resizes and flips, as torchvision v2 defines them: RandomResizedCrop, Resize, CenterCrop,
 * RandomCrop, RandomHorizontalFlip, RandomVerticalFlip. They only add to an image_geometry. */
#include <math.h>
#include <stddef.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/border.h"
#include "transform/image_geometry.h"
#include "transform/transform.h"

#define MEDIA (STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO))
#define SIZE_MOST 65535

/* A box of the image, which may reach outside. */
struct crop_params {
    int32_t x, y, width, height;
};
struct flip_params {
    int32_t flip;
};
struct size {
    int32_t height, width;
};

/* --- what they share ---------------------------------------------------------------------------
 */

/* (h, w), or one number for both. */
static struct size size_of(const struct transform_list *list)
{
    return (struct size){(int32_t)list->values[0], (int32_t)list->values[list->count - 1]};
}

static stk_status list_is_whole(const char *name, const char *argument,
                                const struct transform_list *list, struct stk_error *err)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->values[i] != floor(list->values[i]))
            return fail(err, STK_USAGE, "%s of %s is in whole pixels, not %g", argument, name,
                        list->values[i]);
    return STK_OK;
}

static void flow_resize(struct stk_flow *flow, int64_t height, int64_t width)
{
    flow->tensor.shape[flow->tensor.rank - 3] = height;
    flow->tensor.shape[flow->tensor.rank - 2] = width;
}

static stk_status flow_is_drawn(const char *name, const struct stk_flow *flow,
                                struct stk_error *err)
{
    int64_t height, width, channels;
    stk_status status = pixels_check(name, flow, err);
    if (status)
        return status;
    pixels_axes(flow, &height, &width, &channels);
    if (height == 0 || width == 0)
        return fail(err, STK_SHAPE, "%s of an image without pixels", name);
    return STK_OK;
}

/* --- RandomResizedCrop --------------------------------------------------------------------------
 */

#define TRIES 10

struct resized_crop_args {
    struct transform_list size, scale, ratio;
    int interpolation, antialias;
};

static const struct transform_arg resized_crop_table[] = {
    {"size", ARG_FLOATS, offsetof(struct resized_crop_args, size), NULL, 1, SIZE_MOST, NULL, 1, 2},
    {"scale", ARG_FLOATS, offsetof(struct resized_crop_args, scale), "(0.08, 1)", 1e-9, 1e9, NULL,
     2, 2},
    {"ratio", ARG_FLOATS, offsetof(struct resized_crop_args, ratio), "(0.75, 1.3333333333333333)",
     1e-9, 1e9, NULL, 2, 2},
    {"interpolation", ARG_CHOICE, offsetof(struct resized_crop_args, interpolation), "bilinear", 0,
     0, IMAGE_FILTER_CHOICES, 0, 0},
    {"antialias", ARG_BOOL, offsetof(struct resized_crop_args, antialias), "True", 0, 0, NULL, 0,
     0},
    {0},
};

static stk_status resized_crop_check(void *args, struct stk_error *err)
{
    struct resized_crop_args *own = args;
    own->interpolation = image_filter_of(own->interpolation);
    if (own->scale.values[0] > own->scale.values[1] || own->ratio.values[0] > own->ratio.values[1])
        return fail(err, STK_USAGE, "scale and ratio of RandomResizedCrop are ranges (low, high)");
    return list_is_whole("RandomResizedCrop", "size", &own->size, err);
}

static stk_status resized_crop_shape(const void *args, const void *params, struct stk_flow *flow,
                                     struct stk_error *err)
{
    const struct resized_crop_args *own = args;
    struct size size = size_of(&own->size);
    (void)params;
    stk_status status = flow_is_drawn("RandomResizedCrop", flow, err);
    if (!status)
        flow_resize(flow, size.height, size.width);
    return status;
}

/* Where no try fits: the largest box in the middle whose ratio is within the range. */
static struct crop_params central_crop(const double ratio[2], int64_t width, int64_t height)
{
    double has = (double)width / (double)height;
    int64_t w = width, h = height;
    if (has < ratio[0])
        h = (int64_t)rint((double)w / ratio[0]);
    else if (has > ratio[1])
        w = (int64_t)rint((double)h * ratio[1]);
    h = h < 1 ? 1 : h > height ? height : h;
    w = w < 1 ? 1 : w > width ? width : w;
    return (struct crop_params){(int32_t)((width - w) / 2), (int32_t)((height - h) / 2), (int32_t)w,
                                (int32_t)h};
}

/* Try number t takes the numbers 4t (area), 4t + 1 (ratio), 4t + 2 (y) and 4t + 3 (x). */
static void resized_crop_draw(const void *args, uint64_t key, const struct stk_flow *in,
                              void *params)
{
    const struct resized_crop_args *own = args;
    const double *scale = own->scale.values, *ratio = own->ratio.values;
    double low = log(ratio[0]), high = log(ratio[1]);
    int64_t height, width, channels;
    pixels_axes(in, &height, &width, &channels);
    for (uint64_t at = 0; at < 4 * TRIES; at += 4) {
        double area = (double)height * (double)width;
        area *= scale[0] + (scale[1] - scale[0]) * random_unit(key, at);
        double aspect = exp(low + (high - low) * random_unit(key, at + 1));
        double w = rint(sqrt(area * aspect)), h = rint(sqrt(area / aspect));
        if (w < 1 || w > (double)width || h < 1 || h > (double)height)
            continue;
        *(struct crop_params *)params = (struct crop_params){
            .x = (int32_t)(random_unit(key, at + 3) * ((double)width - w + 1)),
            .y = (int32_t)(random_unit(key, at + 2) * ((double)height - h + 1)),
            .width = (int32_t)w,
            .height = (int32_t)h};
        return;
    }
    *(struct crop_params *)params = central_crop(ratio, width, height);
}

static int resized_crop_fold(const void *args, const void *params, struct image_geometry *geometry)
{
    const struct resized_crop_args *own = args;
    const struct crop_params *box = params;
    struct size size = size_of(&own->size);
    struct image_geometry folded = *geometry;
    geometry_crop(&folded, box->x, box->y, box->width, box->height);
    if (!geometry_resize(&folded, size.width, size.height, (enum image_filter)own->interpolation,
                         own->antialias))
        return 0;
    *geometry = folded;
    return 1;
}

const struct transform_ops random_resized_crop_transform = {
    .name = "RandomResizedCrop",
    .help = "Cuts a box of random area and aspect ratio and resizes it to one size.",
    .media = MEDIA,
    .stage = TRANSFORM_GEOMETRY,
    .args = resized_crop_table,
    .size = sizeof(struct resized_crop_args),
    .check = resized_crop_check,
    .shape = resized_crop_shape,
    .draw = resized_crop_draw,
    .fold = resized_crop_fold,
};

/* --- Resize -------------------------------------------------------------------------------------
 */

struct resize_args {
    struct transform_list size; /* count 0: the longer edge becomes max_size */
    int interpolation;
    int64_t max_size; /* 0: none */
    int antialias;
};

static const struct transform_arg resize_table[] = {
    {"size", ARG_FLOATS, offsetof(struct resize_args, size), "None", 1, SIZE_MOST, NULL, 1, 2},
    {"interpolation", ARG_CHOICE, offsetof(struct resize_args, interpolation), "bilinear", 0, 0,
     IMAGE_FILTER_CHOICES, 0, 0},
    {"max_size", ARG_INT, offsetof(struct resize_args, max_size), "None", 1, SIZE_MOST, NULL, 0, 0},
    {"antialias", ARG_BOOL, offsetof(struct resize_args, antialias), "True", 0, 0, NULL, 0, 0},
    {0},
};

static stk_status resize_check(void *args, struct stk_error *err)
{
    struct resize_args *own = args;
    own->interpolation = image_filter_of(own->interpolation);
    if (!own->max_size && !own->size.count)
        return fail(err, STK_USAGE, "Resize needs size, or max_size for the longer edge");
    if (own->max_size && own->size.count == 2)
        return fail(err, STK_USAGE, "max_size of Resize goes with a size of one number");
    if (own->max_size && own->size.count && own->max_size <= own->size.values[0])
        return fail(err, STK_USAGE, "max_size of Resize is %lld, but must be above size, %g",
                    (long long)own->max_size, own->size.values[0]);
    return list_is_whole("Resize", "size", &own->size, err);
}

/* One number is for the shorter edge, max_size alone for the longer; the other one keeps the ratio,
 * rounded down, and neither vanishes. Both known, at least 1. */
static void resize_to(const struct resize_args *args, int64_t *height, int64_t *width)
{
    if (args->size.count == 2) {
        *height = size_of(&args->size).height;
        *width = size_of(&args->size).width;
        return;
    }
    int64_t *shorter = *width <= *height ? width : height;
    int64_t *longer = *width <= *height ? height : width;
    double edge = (double)args->max_size, other = args->size.values[0];
    if (args->size.count)
        edge = floor(other * (double)*longer / (double)*shorter);
    else
        other = floor(edge * (double)*shorter / (double)*longer);
    if (args->max_size && edge > (double)args->max_size) {
        other = floor((double)args->max_size * other / edge);
        edge = (double)args->max_size;
    }
    *longer = edge < PIXELS_MOST ? (int64_t)edge : PIXELS_MOST;
    *shorter = other < 1 ? 1 : (int64_t)other;
}

static stk_status resize_shape(const void *args, const void *params, struct stk_flow *flow,
                               struct stk_error *err)
{
    const struct resize_args *own = args;
    int64_t height, width, channels;
    (void)params;
    stk_status status = flow_is_drawn("Resize", flow, err);
    if (status)
        return status;
    pixels_axes(flow, &height, &width, &channels);
    if (own->size.count < 2 && (height < 0 || width < 0)) {
        flow_resize(flow, -1, -1);
        return STK_OK;
    }
    int64_t from_height = height, from_width = width;
    resize_to(own, &height, &width);
    if (height > PIXELS_MOST / width) {
        status =
            fail(err, STK_LIMIT, "Resize makes %lld x %lld pixels of %lld x %lld", (long long)width,
                 (long long)height, (long long)from_width, (long long)from_height);
        fail_remedy(err, "give Resize a max_size, or both sizes, as Resize((224, 224))");
        return status;
    }
    flow_resize(flow, height, width);
    return STK_OK;
}

static int resize_fold(const void *args, const void *params, struct image_geometry *geometry)
{
    const struct resize_args *own = args;
    int64_t height = geometry->out_height, width = geometry->out_width;
    (void)params;
    resize_to(own, &height, &width);
    return geometry_resize(geometry, (int32_t)width, (int32_t)height,
                           (enum image_filter)own->interpolation, own->antialias);
}

const struct transform_ops resize_transform = {
    .name = "Resize",
    .help = "Resizes the shorter edge to a length, or both edges to (height, width).",
    .media = MEDIA,
    .stage = TRANSFORM_GEOMETRY,
    .args = resize_table,
    .size = sizeof(struct resize_args),
    .check = resize_check,
    .shape = resize_shape,
    .fold = resize_fold,
};

/* --- CenterCrop ---------------------------------------------------------------------------------
 */

struct center_crop_args {
    struct transform_list size;
};

static const struct transform_arg center_crop_table[] = {
    {"size", ARG_FLOATS, offsetof(struct center_crop_args, size), NULL, 1, SIZE_MOST, NULL, 1, 2},
    {0},
};

static stk_status center_crop_check(void *args, struct stk_error *err)
{
    const struct center_crop_args *own = args;
    return list_is_whole("CenterCrop", "size", &own->size, err);
}

static stk_status center_crop_shape(const void *args, const void *params, struct stk_flow *flow,
                                    struct stk_error *err)
{
    const struct center_crop_args *own = args;
    struct size size = size_of(&own->size);
    (void)params;
    stk_status status = flow_is_drawn("CenterCrop", flow, err);
    if (!status)
        flow_resize(flow, size.height, size.width);
    return status;
}

/* Where the middle `want` of `has` begins. A half goes to the even side; what is missing is added
 * half before, rounded down. */
static int32_t center_start(int32_t has, int32_t want)
{
    return want > has ? -((want - has) / 2) : (int32_t)rint((has - want) / 2.0);
}

static int center_crop_fold(const void *args, const void *params, struct image_geometry *geometry)
{
    static const uint8_t black[4];
    const struct center_crop_args *own = args;
    struct size size = size_of(&own->size);
    (void)params;
    return geometry_cover(geometry, center_start(geometry->out_width, size.width),
                          center_start(geometry->out_height, size.height), size.width, size.height,
                          black);
}

const struct transform_ops center_crop_transform = {
    .name = "CenterCrop",
    .help = "Cuts the middle; an image that is too small is surrounded with black.",
    .media = MEDIA,
    .stage = TRANSFORM_GEOMETRY,
    .args = center_crop_table,
    .size = sizeof(struct center_crop_args),
    .check = center_crop_check,
    .shape = center_crop_shape,
    .fold = center_crop_fold,
};

/* --- RandomCrop ---------------------------------------------------------------------------------
 */

struct random_crop_args {
    struct transform_list size, padding;
    int pad_if_needed;
    struct transform_list fill;
    int mode; /* enum border_mode */
};

static const struct transform_arg random_crop_table[] = {
    {"size", ARG_FLOATS, offsetof(struct random_crop_args, size), NULL, 1, SIZE_MOST, NULL, 1, 2},
    {"padding", ARG_FLOATS, offsetof(struct random_crop_args, padding), "None", 0, SIZE_MOST, NULL,
     1, 4},
    {"pad_if_needed", ARG_BOOL, offsetof(struct random_crop_args, pad_if_needed), "False", 0, 0,
     NULL, 0, 0},
    {"fill", ARG_FLOATS, offsetof(struct random_crop_args, fill), "0", 0, 255, NULL, 1, 4},
    {"padding_mode", ARG_CHOICE, offsetof(struct random_crop_args, mode), "constant", 0, 0,
     BORDER_CHOICES, 0, 0},
    {0},
};

static stk_status random_crop_check(void *args, struct stk_error *err)
{
    const struct random_crop_args *own = args;
    stk_status status = list_is_whole("RandomCrop", "size", &own->size, err);
    if (!status)
        status = list_is_whole("RandomCrop", "padding", &own->padding, err);
    if (!status && own->padding.count == 3)
        status = fail(err, STK_USAGE,
                      "padding of RandomCrop is one number, two (left and right, "
                      "top and bottom) or four (left, top, right, bottom)");
    return status;
}

/* One axis: room for the crop, in pixels of the image, which begins at 0. */
struct crop_room {
    int64_t first, len;
};

static struct crop_room crop_room(const struct random_crop_args *args, int vertical, int64_t has,
                                  int64_t want)
{
    const struct transform_list *padding = &args->padding;
    struct crop_room room = {0, has};
    if (padding->count) {
        int64_t before = (int64_t)padding->values[padding->count == 1 ? 0 : vertical];
        int64_t behind = padding->count == 4 ? (int64_t)padding->values[vertical + 2] : before;
        room = (struct crop_room){-before, before + has + behind};
    }
    if (args->pad_if_needed && room.len < want) {
        int64_t missing = want - room.len; /* on each side, as torchvision does it */
        room.first -= missing;
        room.len += 2 * missing;
    }
    return room;
}

static stk_status random_crop_shape(const void *args, const void *params, struct stk_flow *flow,
                                    struct stk_error *err)
{
    const struct random_crop_args *own = args;
    struct size size = size_of(&own->size);
    int64_t height, width, channels;
    (void)params;
    stk_status status = flow_is_drawn("RandomCrop", flow, err);
    if (!status)
        status = pixels_fill_check("RandomCrop", &own->fill, flow, err);
    if (status)
        return status;
    pixels_axes(flow, &height, &width, &channels);
    if ((height >= 0 && crop_room(own, 1, height, size.height).len < size.height) ||
        (width >= 0 && crop_room(own, 0, width, size.width).len < size.width)) {
        status = fail(err, STK_SHAPE, "RandomCrop of %d x %d pixels from an image of %lld x %lld",
                      size.width, size.height, (long long)width, (long long)height);
        fail_remedy(err, "say pad_if_needed=True, or put Resize before RandomCrop");
        return status;
    }
    flow_resize(flow, size.height, size.width);
    return STK_OK;
}

/* Number 0: y, number 1: x. An image that is too small leaves a width of 0: shape refuses it. */
static void random_crop_draw(const void *args, uint64_t key, const struct stk_flow *in,
                             void *params)
{
    const struct random_crop_args *own = args;
    struct size size = size_of(&own->size);
    int64_t height, width, channels;
    pixels_axes(in, &height, &width, &channels);
    struct crop_room down = crop_room(own, 1, height, size.height);
    struct crop_room across = crop_room(own, 0, width, size.width);
    if (down.len < size.height || across.len < size.width)
        return;
    double y = random_unit(key, 0) * (double)(down.len - size.height + 1);
    double x = random_unit(key, 1) * (double)(across.len - size.width + 1);
    *(struct crop_params *)params = (struct crop_params){.x = (int32_t)(across.first + (int64_t)x),
                                                         .y = (int32_t)(down.first + (int64_t)y),
                                                         .width = size.width,
                                                         .height = size.height};
}

static int random_crop_fold(const void *args, const void *params, struct image_geometry *geometry)
{
    const struct random_crop_args *own = args;
    const struct crop_params *box = params;
    uint8_t fill[4];
    if (!box->width)
        return 1;
    pixels_fill(&own->fill, fill);
    return geometry_cover(geometry, box->x, box->y, box->width, box->height, fill);
}

/* The same box of pixels that are made already: padding of the image's own pixels needs them. */
static stk_status random_crop_run(const void *args, const void *params, const struct stk_flow *in,
                                  struct stk_flow *out, struct scratch *scratch,
                                  struct stk_error *err)
{
    const struct random_crop_args *own = args;
    const struct crop_params *box = params;
    struct border border = {.mode = (enum border_mode)own->mode, .x = box->x, .y = box->y};
    (void)scratch, (void)err;
    border_run(&border, pixels_of(in), pixels_of(out));
    return STK_OK;
}

#define RANDOM_CROP_HELP                                                                           \
    "Cuts a box of one size at a random place, of the image or of the image with padding."

static const struct transform_ops bordered_crop_transform = {
    .name = "RandomCrop",
    .help = RANDOM_CROP_HELP,
    .media = MEDIA,
    .stage = TRANSFORM_PIXELS,
    .args = random_crop_table,
    .size = sizeof(struct random_crop_args),
    .shape = random_crop_shape,
    .draw = random_crop_draw,
    .run = random_crop_run,
};

static const struct transform_ops *random_crop_instead(const void *args)
{
    const struct random_crop_args *own = args;
    int pads = own->padding.count || own->pad_if_needed;
    return pads && own->mode != BORDER_CONSTANT ? &bordered_crop_transform : NULL;
}

const struct transform_ops random_crop_transform = {
    .name = "RandomCrop",
    .help = RANDOM_CROP_HELP,
    .media = MEDIA,
    .stage = TRANSFORM_GEOMETRY,
    .args = random_crop_table,
    .size = sizeof(struct random_crop_args),
    .check = random_crop_check,
    .instead = random_crop_instead,
    .shape = random_crop_shape,
    .draw = random_crop_draw,
    .fold = random_crop_fold,
};

/* --- flips --------------------------------------------------------------------------------------
 */

struct flip_args {
    double p;
};

static const struct transform_arg flip_table[] = {
    {"p", ARG_FLOAT, offsetof(struct flip_args, p), "0.5", 0, 1, NULL, 0, 0},
    {0},
};

static void flip_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct flip_args *own = args;
    (void)in;
    ((struct flip_params *)params)->flip = random_unit(key, 0) < own->p;
}

static stk_status flip_x_shape(const void *args, const void *params, struct stk_flow *flow,
                               struct stk_error *err)
{
    (void)args, (void)params;
    return flow_is_drawn("RandomHorizontalFlip", flow, err);
}

static stk_status flip_y_shape(const void *args, const void *params, struct stk_flow *flow,
                               struct stk_error *err)
{
    (void)args, (void)params;
    return flow_is_drawn("RandomVerticalFlip", flow, err);
}

static int flip_x_fold(const void *args, const void *params, struct image_geometry *geometry)
{
    (void)args;
    if (((const struct flip_params *)params)->flip)
        geometry_flip_x(geometry);
    return 1;
}

static int flip_y_fold(const void *args, const void *params, struct image_geometry *geometry)
{
    (void)args;
    if (((const struct flip_params *)params)->flip)
        geometry_flip_y(geometry);
    return 1;
}

const struct transform_ops random_horizontal_flip_transform = {
    .name = "RandomHorizontalFlip",
    .help = "Mirrors left and right with probability p.",
    .media = MEDIA,
    .stage = TRANSFORM_GEOMETRY,
    .args = flip_table,
    .size = sizeof(struct flip_args),
    .shape = flip_x_shape,
    .draw = flip_draw,
    .fold = flip_x_fold,
};

const struct transform_ops random_vertical_flip_transform = {
    .name = "RandomVerticalFlip",
    .help = "Mirrors top and bottom with probability p.",
    .media = MEDIA,
    .stage = TRANSFORM_GEOMETRY,
    .args = flip_table,
    .size = sizeof(struct flip_args),
    .shape = flip_y_shape,
    .draw = flip_draw,
    .fold = flip_y_fold,
};
