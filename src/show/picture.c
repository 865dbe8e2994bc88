#include "show/picture.h"

#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "transform/cast.h"
#include "transform/image_resample.h"

#define PAPER 0xee /* what shows through alpha */

struct box picture_fit(struct box box, int64_t width, int64_t height)
{
    double scale = (double)box.width / (double)width;
    if (scale * (double)height > box.height)
        scale = (double)box.height / (double)height;
    if (scale >= 1)
        scale = floor(scale); /* whole pixels: nothing is made up */
    int32_t wide = (int32_t)lrint((double)width * scale),
            high = (int32_t)lrint((double)height * scale);
    wide = wide > 1 ? wide : 1;
    high = high > 1 ? high : 1;
    return (struct box){box.x + (box.width - wide) / 2, box.y + (box.height - high) / 2, wide,
                        high};
}

/* --- values -> RGB ---------------------------------------------------------------------------- */

static const uint8_t *element(const struct pixels *pixels, int64_t y, int64_t channel)
{
    int64_t at = y * pixels->row + channel * pixels->channel;
    return (const uint8_t *)pixels->data + (size_t)at * stk_dtype_size(pixels->dtype);
}

/* A row of `channels` interleaved values as floats. row: room for them; plane: for one of them. */
static void read_row(const struct pixels *pixels, int64_t y, int64_t channels, float *row,
                     float *plane)
{
    if (pixels->channel == 1 && channels == pixels->channels) {
        cast_elements(element(pixels, y, 0), pixels->dtype, row, STK_F32, CAST_VALUES,
                      (uint64_t)(pixels->width * channels));
        return;
    }
    for (int64_t c = 0; c < channels; c++) {
        /* Interleaved: all channels of the row are read to get at one. */
        int64_t step = pixels->pixel;
        cast_elements(element(pixels, y, step == 1 ? c : 0), pixels->dtype, plane, STK_F32,
                      CAST_VALUES, (uint64_t)(pixels->width * step));
        for (int64_t x = 0; x < pixels->width; x++)
            row[x * channels + c] = plane[x * step + (step == 1 ? 0 : c)];
    }
}

static uint8_t level(double value)
{
    return value >= 254.5 ? 255 : value > 0 ? (uint8_t)(value + 0.5) : 0; /* not-a-number: 0 */
}

static void write_row(const float *row, int64_t width, int64_t channels,
                      const struct pixel_levels *levels, uint8_t *rgb)
{
    for (int64_t x = 0; x < width; x++, row += channels, rgb += 3) {
        double alpha = 255;
        if (channels == 4)
            alpha = level(row[3] * levels->multiply[3] + levels->add[3]);
        for (int c = 0; c < 3; c++) {
            int from = channels >= 3 ? c : 0;
            double value = level(row[from] * levels->multiply[from] + levels->add[from]);
            rgb[c] = level(value * (alpha / 255) + PAPER * (1 - alpha / 255));
        }
    }
}

struct range {
    double least, most; /* of finite values; least > most: there are none */
};

static void range_add(struct range *range, const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (isfinite(values[i])) {
            range->least = values[i] < range->least ? values[i] : range->least;
            range->most = values[i] > range->most ? values[i] : range->most;
        }
}

static struct pixel_levels levels_of_range(enum stk_dtype dtype, const struct range *range)
{
    struct pixel_levels levels = {.count = PICTURE_CHANNELS};
    double multiply = 1, add = 0;
    if (dtype == STK_U8)
        ;
    else if (dtype == STK_U16)
        multiply = 1.0 / 257;
    else if (range->least >= 0 && range->most <= 1)
        multiply = 255;
    else if (!(range->least >= 0 && range->most <= 255) && range->most > range->least) {
        multiply = 255 / (range->most - range->least);
        add = -range->least * multiply;
    }
    for (int c = 0; c < PICTURE_CHANNELS; c++) {
        levels.multiply[c] = multiply;
        levels.add[c] = add;
    }
    return levels;
}

static stk_status to_rgb(const struct pixels *pixels, const struct pixel_levels *given,
                         struct scratch *scratch, uint8_t **rgb, struct stk_error *err)
{
    int64_t channels = pixels->channels == 3 || pixels->channels == 4 ? pixels->channels : 1;
    uint64_t width = (uint64_t)pixels->width;
    float *row = scratch_take(scratch, width * (uint64_t)channels * sizeof *row);
    float *plane = scratch_take(scratch, width * (uint64_t)pixels->channels * sizeof *plane);
    *rgb = scratch_take(scratch, width * (uint64_t)pixels->height * 3);
    if (!row || !plane || !*rgb)
        return fail_memory(err, width * (uint64_t)pixels->height * 3);
    struct pixel_levels levels = *given;
    if (!levels.count) {
        struct range range = {INFINITY, -INFINITY};
        for (int64_t y = 0; y < pixels->height && pixels->dtype != STK_U8; y++) {
            read_row(pixels, y, channels, row, plane);
            range_add(&range, row, pixels->width * channels);
        }
        levels = levels_of_range(pixels->dtype, &range);
    }
    for (int64_t y = 0; y < pixels->height; y++) {
        read_row(pixels, y, channels, row, plane);
        write_row(row, pixels->width, channels, &levels, *rgb + (uint64_t)y * width * 3);
    }
    return STK_OK;
}

/* --- RGB -> the box --------------------------------------------------------------------------- */

stk_status picture_draw(struct canvas *canvas, struct box box, const struct pixels *pixels,
                        const struct pixel_levels *levels, struct scratch *scratch,
                        struct stk_error *err)
{
    struct image_geometry geometry;
    struct image_writer writer;
    uint8_t *rgb;
    if (pixels->width < 1 || pixels->height < 1 || pixels->channels < 1 ||
        pixels->width > INT32_MAX / 16 || pixels->height > INT32_MAX / 16)
        return fail(err, STK_SHAPE, "it has no pixels that can be drawn");
    struct box to = picture_fit(box, pixels->width, pixels->height);
    stk_status status = to_rgb(pixels, levels, scratch, &rgb, err);
    if (status)
        return status;
    int32_t width = (int32_t)pixels->width, height = (int32_t)pixels->height;
    struct image_view view = {rgb, (int64_t)width * 3, width, height, 3, 0, 0, width, height};
    uint8_t *fitted = scratch_take(scratch, (uint64_t)to.width * (uint64_t)to.height * 3);
    if (!fitted)
        return fail_memory(err, (uint64_t)to.width * (uint64_t)to.height * 3);
    geometry_init(&geometry, width, height);
    (void)geometry_resize(&geometry, to.width, to.height,
                          to.width > width ? IMAGE_NEAREST : IMAGE_BILINEAR, 1);
    image_writer_init(&writer, STK_U8, to.width, to.height, 3, 0);
    status = image_resample(&view, &geometry, &writer, fitted, scratch, err);
    if (!status)
        canvas_copy(canvas, to.x, to.y, fitted, to.width, to.height);
    return status;
}
