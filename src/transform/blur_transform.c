/* GaussianBlur: two passes of a small kernel, borders mirrored about the edge pixel. */
#include <math.h>
#include <stddef.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/blur_device.h"
#include "transform/blur_kernel.h"
#include "transform/pixels.h"
#include "transform/transform.h"

#define KERNEL_MOST 255

struct blur_args {
    struct transform_list kernel_size; /* odd; one number, or (width, height) */
    struct transform_list sigma;       /* one number, or a range to draw from */
};

static const struct transform_arg blur_table[] = {
    {"kernel_size", ARG_FLOATS, offsetof(struct blur_args, kernel_size), NULL, 1, KERNEL_MOST, NULL,
     1, 2},
    {"sigma", ARG_FLOATS, offsetof(struct blur_args, sigma), "(0.1, 2.0)", 1e-3, 1000, NULL, 1, 2},
    {0},
};

static stk_status blur_check(void *args, struct stk_error *err)
{
    const struct blur_args *own = args;
    for (uint32_t i = 0; i < own->kernel_size.count; i++)
        if (fmod(own->kernel_size.values[i], 2) != 1)
            return fail(err, STK_USAGE, "kernel_size of GaussianBlur must be odd");
    if (own->sigma.count == 2 && own->sigma.values[0] > own->sigma.values[1])
        return fail(err, STK_USAGE, "sigma of GaussianBlur must be a range (low, high)");
    return STK_OK;
}

static int64_t kernel_side(const struct blur_args *args, int vertical)
{
    uint32_t which = vertical && args->kernel_size.count == 2;
    return (int64_t)args->kernel_size.values[which];
}

/* A mirrored border cannot be wider than the image. */
static stk_status blur_shape(const void *args, const void *params, struct stk_flow *flow,
                             struct stk_error *err)
{
    int64_t height, width, channels;
    (void)params;
    stk_status status = pixels_check("GaussianBlur", flow, err);
    if (status)
        return status;
    pixels_axes(flow, &height, &width, &channels);
    int small = (width >= 0 && width <= kernel_side(args, 0) / 2) ||
                (height >= 0 && height <= kernel_side(args, 1) / 2);
    return small ? fail(err, STK_SHAPE,
                        "an image of %lld x %lld is too small for GaussianBlur's "
                        "kernel",
                        (long long)width, (long long)height)
                 : STK_OK;
}

static void blur_draw(const void *args, uint64_t key, const struct stk_flow *in, void *params)
{
    const struct transform_list *sigma = &((const struct blur_args *)args)->sigma;
    double low = sigma->values[0], high = sigma->values[sigma->count - 1];
    (void)in;
    ((struct blur_params *)params)->sigma = low + (high - low) * random_unit(key, 0);
}

static void kernel_make(float *kernel, int64_t side, double sigma)
{
    double sum = 0;
    for (int64_t i = 0; i < side; i++) {
        double x = ((double)i - (double)(side - 1) / 2) / sigma;
        kernel[i] = (float)exp(-0.5 * x * x);
        sum += kernel[i];
    }
    for (int64_t i = 0; i < side; i++)
        kernel[i] = (float)(kernel[i] / sum);
}

static int64_t mirrored(int64_t at, int64_t size)
{
    return at < 0 ? -at : at >= size ? 2 * size - 2 - at : at;
}

/* Rows above and below are added up, weighted: long loops that the compiler turns into vectors. */
static void blur_column(struct pixels image, const float *kernel, int64_t side, int64_t y,
                        float *row)
{
    int64_t stride = image.width * image.channels;
    for (int64_t x = 0; x < stride; x++)
        row[x] = 0;
    for (int64_t k = 0; k < side; k++) {
        const uint8_t *from = image.data + mirrored(y + k - side / 2, image.height) * stride;
        float weight = kernel[k];
        for (int64_t x = 0; x < stride; x++)
            row[x] += weight * from[x];
    }
}

/* padded: the row with its mirrored borders on both sides. */
static void blur_row(struct pixels image, const float *kernel, int64_t side, const float *padded,
                     float *sums, uint8_t *to)
{
    int64_t stride = image.width * image.channels;
    for (int64_t x = 0; x < stride; x++)
        sums[x] = 0.5f;
    for (int64_t k = 0; k < side; k++) {
        const float *from = padded + k * image.channels;
        float weight = kernel[k];
        for (int64_t x = 0; x < stride; x++)
            sums[x] += weight * from[x];
    }
    for (int64_t x = 0; x < stride; x++)
        to[x] = (uint8_t)(sums[x] < 255 ? sums[x] : 255);
}

static void pad_row(struct pixels image, int64_t side, float *padded)
{
    int64_t border = side / 2, channels = image.channels;
    float *row = padded + border * channels;
    for (int64_t i = 1; i <= border; i++)
        for (int64_t c = 0; c < channels; c++) {
            row[-i * channels + c] = row[mirrored(-i, image.width) * channels + c];
            int64_t right = image.width - 1 + i;
            row[right * channels + c] = row[mirrored(right, image.width) * channels + c];
        }
}

static stk_status blur_run(const void *args, const void *params, const struct stk_flow *in,
                           struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    struct pixels image = pixels_of(in);
    int64_t wide = kernel_side(args, 0), high = kernel_side(args, 1);
    int64_t stride = image.width * image.channels;
    uint64_t size = (uint64_t)(stride + wide * image.channels) * sizeof(float);
    float across[KERNEL_MOST], down[KERNEL_MOST];
    float *padded = scratch_take(scratch, size), *sums = scratch_take(scratch, size);
    if (!padded || !sums)
        return fail_memory(err, size);
    kernel_make(across, wide, ((const struct blur_params *)params)->sigma);
    kernel_make(down, high, ((const struct blur_params *)params)->sigma);
    for (int64_t y = 0; y < image.height; y++) {
        blur_column(image, down, high, y, padded + wide / 2 * image.channels);
        pad_row(image, wide, padded);
        blur_row(image, across, wide, padded, sums, (uint8_t *)out->tensor.data + y * stride);
    }
    return STK_OK;
}

/* --- on the device ---------------------------------------------------------------------------- */

static struct blur_sides sides_of(const void *args)
{
    return (struct blur_sides){(uint32_t)kernel_side(args, 0), (uint32_t)kernel_side(args, 1)};
}

static stk_status blur_run_device(const struct transform_device_step *step, struct stk_error *err)
{
    return blur_device_run(step, sides_of(step->args), err);
}

static int blur_refuses(const void *args, const struct stk_flow *in)
{
    (void)args;
    return blur_device_refuses(in);
}

static uint64_t blur_scratch(const void *args, const struct stk_flow *in, uint32_t count)
{
    return blur_device_scratch(in, count, sides_of(args));
}

const struct transform_ops gaussian_blur_transform = {
    .name = "GaussianBlur",
    .help = "Blurs with a Gaussian kernel of random width.",
    .media = STK_MEDIA_BIT(STK_MEDIA_IMAGE) | STK_MEDIA_BIT(STK_MEDIA_VIDEO),
    .stage = TRANSFORM_PIXELS,
    .args = blur_table,
    .size = sizeof(struct blur_args),
    .check = blur_check,
    .shape = blur_shape,
    .draw = blur_draw,
    .run = blur_run,
    .run_device = blur_run_device,
    .device_refuses = blur_refuses,
    .device_scratch = blur_scratch,
};
