#include "transform/device_testing.h"

#include <math.h>

#include "base/half.h"
#include "transform/image_device.h"
#include "transform/image_resample.h"

#define SAMPLES 3
#define LARGEST 70

/* One batch, made by both twins. */
struct trial {
    struct dice dice;
    int32_t width, height, channels, frames;
    struct image_writer writer;
    int channels_first, resizes;
    struct image_geometry geometry[SAMPLES];
    uint8_t *pixels[2]; /* of both sources */
    uint64_t size[2], offset[SAMPLES];
    struct image_record records[SAMPLES];
    uint64_t item; /* bytes */
    uint8_t *expected, *made;
};

/* --- geometries --------------------------------------------------------------------------------
 */

static void geometry_cropped(struct trial *trial, struct image_geometry *geometry)
{
    struct dice *dice = &trial->dice;
    int32_t x = dice_below(dice, 9), y = dice_below(dice, 9);
    geometry_init(geometry, trial->width + x + dice_below(dice, 9),
                  trial->height + y + dice_below(dice, 9));
    if (dice_below(dice, 2))
        geometry_flip_x(geometry);
    geometry_crop(geometry, x, y, trial->width, trial->height);
}

static void geometry_boxed(struct dice *dice, struct image_geometry *geometry)
{
    int32_t width = dice_within(dice, 1, LARGEST), height = dice_within(dice, 1, LARGEST);
    geometry_init(geometry, width, height);
    int32_t box_width = dice_within(dice, 1, width), box_height = dice_within(dice, 1, height);
    geometry_crop(geometry, dice_within(dice, 0, width - box_width),
                  dice_within(dice, 0, height - box_height), box_width, box_height);
}

static void geometry_resized(struct trial *trial, struct image_geometry *geometry,
                             enum image_filter filter)
{
    struct dice *dice = &trial->dice;
    int antialias = dice_below(dice, 3) != 0;
    int32_t more_x = dice_below(dice, 3) ? 0 : dice_below(dice, 9);
    int32_t more_y = dice_below(dice, 3) ? 0 : dice_below(dice, 9);
    geometry_boxed(dice, geometry);
    if (dice_below(dice, 5) == 0) /* one axis stays */
        geometry_init(geometry, trial->width + more_x, dice_within(dice, 1, LARGEST));
    assert_true(geometry_resize(geometry, trial->width + more_x, trial->height + more_y, filter,
                                antialias));
    geometry_crop(geometry, dice_within(dice, 0, more_x), dice_within(dice, 0, more_y),
                  trial->width, trial->height);
}

/* A window that reaches outside, now and then wholly. */
static void geometry_covered(struct trial *trial, struct image_geometry *geometry,
                             enum image_filter filter)
{
    struct dice *dice = &trial->dice;
    const uint8_t fill[4] = {7, 250, 100, 31};
    geometry_boxed(dice, geometry);
    if (dice_below(dice, 2))
        assert_true(geometry_resize(geometry, dice_within(dice, 1, LARGEST),
                                    dice_within(dice, 1, LARGEST), filter, 1));
    int32_t x = dice_within(dice, -trial->width, geometry->out_width);
    int32_t y = dice_within(dice, -trial->height / 2, geometry->out_height / 2);
    assert_true(geometry_cover(geometry, x, y, trial->width, trial->height, fill));
}

static void geometry_any(struct trial *trial, struct image_geometry *geometry, int filter)
{
    int kind = trial->resizes ? dice_below(&trial->dice, 4) : 0;
    if (kind == 0)
        geometry_cropped(trial, geometry);
    else if (kind == 1)
        geometry_covered(trial, geometry, (enum image_filter)filter);
    else
        geometry_resized(trial, geometry, (enum image_filter)filter);
    if (dice_below(&trial->dice, 2))
        geometry_flip_x(geometry);
    if (dice_below(&trial->dice, 2))
        geometry_flip_y(geometry);
}

/* --- both twins --------------------------------------------------------------------------------
 */

/* Pixels of all samples, now in this source and now in that, at odd places. */
static void trial_pixels(struct trial *trial)
{
    int source[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        const struct image_geometry *geometry = &trial->geometry[i];
        source[i] = dice_below(&trial->dice, 2);
        trial->offset[i] = trial->size[source[i]] + (uint64_t)dice_below(&trial->dice, 4);
        trial->size[source[i]] = trial->offset[i] + (uint64_t)geometry->width *
                                                        (uint64_t)geometry->height *
                                                        (uint64_t)(trial->channels * trial->frames);
        image_record_set(&trial->records[i], geometry, (uint32_t)source[i], trial->offset[i]);
    }
    for (int s = 0; s < 2; s++) {
        trial->pixels[s] = calloc(trial->size[s] + 64, 1);
        for (uint64_t i = 0; i < trial->size[s]; i++)
            trial->pixels[s][i] = (uint8_t)random_below(trial->dice.key + 1, i, 256);
    }
}

static void trial_begin(struct trial *trial, int filter)
{
    static const enum stk_dtype dtypes[] = {STK_U8, STK_F16, STK_BF16, STK_F32};
    struct dice *dice = &trial->dice;
    enum stk_dtype dtype = dtypes[dice_below(dice, 4)];
    trial->width = dice_below(dice, 2) ? dice_within(dice, 1, 60) : 8 * dice_within(dice, 1, 8);
    trial->height = dice_within(dice, 1, 50);
    trial->channels = dice_within(dice, 1, 4);
    trial->frames = dice_below(dice, 2) ? 1 : dice_within(dice, 2, 4);
    trial->channels_first = dice_below(dice, 2);
    image_writer_init(&trial->writer, dtype, trial->width, trial->height, trial->channels,
                      trial->channels_first);
    if (dice_below(dice, 3)) {
        trial->writer.plain = 0;
        for (int c = 0; c < 4; c++) {
            trial->writer.multiply[c] = dtype == STK_U8 ? 0.9f : 0.011f + 0.003f * (float)c;
            trial->writer.add[c] = dtype == STK_U8 ? 3.0f * (float)c : -0.5f - 0.25f * (float)c;
        }
    }
    for (int i = 0; i < SAMPLES; i++)
        geometry_any(trial, &trial->geometry[i], filter);
    trial_pixels(trial);
    trial->item = (uint64_t)trial->frames * (uint64_t)trial->width * (uint64_t)trial->height *
                  (uint64_t)trial->channels * stk_dtype_size(dtype);
    trial->expected = calloc(SAMPLES, trial->item);
    trial->made = calloc(SAMPLES, trial->item);
}

static void trial_end(struct trial *trial)
{
    free(trial->pixels[0]);
    free(trial->pixels[1]);
    free(trial->expected);
    free(trial->made);
}

static void twin_cpu(struct trial *trial)
{
    struct scratch scratch = {0};
    int64_t plane = (int64_t)trial->width * trial->height;
    struct image_writer writer = trial->writer;
    if (trial->channels_first)
        writer.channel = plane * trial->frames;
    int64_t step = (trial->channels_first ? plane : plane * trial->channels) *
                   (int64_t)stk_dtype_size(writer.dtype);
    for (int i = 0; i < SAMPLES; i++)
        for (int frame = 0; frame < trial->frames; frame++) {
            const struct image_geometry *g = &trial->geometry[i];
            int64_t row = (int64_t)frame * g->height + g->y;
            struct image_view view = {.pixels = trial->pixels[trial->records[i].source] +
                                                trial->offset[i] +
                                                (row * g->width + g->x) * trial->channels,
                                      .stride = (int64_t)g->width * trial->channels,
                                      .width = g->box_width,
                                      .height = g->box_height,
                                      .channels = trial->channels,
                                      .x1 = g->box_width,
                                      .y1 = g->box_height};
            uint8_t *to = trial->expected + (uint64_t)i * trial->item + frame * step;
            assert_int_equal(image_resample(&view, g, &writer, to, &scratch, NULL), STK_OK);
        }
    scratch_free(&scratch);
}

static void twin_device(struct trial *trial, struct device *device)
{
    struct stk_error err = {0};
    struct image_job job = {.record_stride = sizeof(struct image_record),
                            .count = SAMPLES,
                            .item = trial->item,
                            .frames = (uint32_t)trial->frames,
                            .width = (uint32_t)trial->width,
                            .height = (uint32_t)trial->height,
                            .channels = (uint32_t)trial->channels,
                            .dtype = trial->writer.dtype,
                            .channels_first = (uint32_t)trial->channels_first,
                            .plain = (uint32_t)trial->writer.plain};
    memcpy(job.multiply, trial->writer.multiply, sizeof job.multiply);
    memcpy(job.add, trial->writer.add, sizeof job.add);
    job.records = device_put(device, trial->records, sizeof trial->records);
    job.landed = device_put(device, trial->pixels[0], trial->size[0]);
    job.decoded = device_put(device, trial->pixels[1], trial->size[1]);
    job.out = device_put(device, trial->made, SAMPLES * trial->item);
    assert_int_equal(image_device_run(device->gpu, &job, trial->resizes, device->stream, &err),
                     STK_OK);
    device_get(device, trial->made, job.out, SAMPLES * trial->item);
    gpu_free(device->gpu, job.records);
    gpu_free(device->gpu, job.landed);
    gpu_free(device->gpu, job.decoded);
    gpu_free(device->gpu, job.out);
}

static float value_at(enum stk_dtype dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case STK_U8:
        return ((const uint8_t *)data)[i];
    case STK_F16:
        return half_to_float(((const uint16_t *)data)[i]);
    case STK_BF16:
        return bfloat_to_float(((const uint16_t *)data)[i]);
    default:
        return ((const float *)data)[i];
    }
}

/* How far a value of a level more or less may be, with what rounding to its type adds. */
static float tolerance(const struct trial *trial, float value)
{
    enum stk_dtype dtype = trial->writer.dtype;
    float largest = trial->writer.plain ? 1 : trial->writer.multiply[3];
    float fraction = dtype == STK_BF16 ? 0x1p-7f : dtype == STK_F16 ? 0x1p-10f : 0x1p-22f;
    return dtype == STK_U8 ? 1 : largest + (fabsf(value) + largest) * fraction;
}

/* Within a level; returns how many are not the same. */
static uint64_t trial_differs(const struct trial *trial)
{
    enum stk_dtype dtype = trial->writer.dtype;
    uint64_t count = SAMPLES * trial->item / stk_dtype_size(dtype), others = 0;
    for (uint64_t i = 0; i < count; i++) {
        float a = value_at(dtype, trial->expected, i), b = value_at(dtype, trial->made, i);
        float level = tolerance(trial, a);
        others += fabsf(a - b) > 0.3f * level;
        if (!(fabsf(a - b) <= level))
            print_error("key %llu, element %llu: %g, not %g\n", (unsigned long long)trial->dice.key,
                        (unsigned long long)i, (double)b, (double)a);
        assert_true(fabsf(a - b) <= level);
    }
    return others;
}

/* `share` of all values, in thousandths, may be a level off. */
static void twins_agree(void **state, int filter, int resizes, int trials, uint64_t share)
{
    struct device *device = device_or_skip(state);
    uint64_t others = 0, all = 0;
    for (int i = 0; i < trials; i++) {
        struct trial trial = {.dice = {.key = (uint64_t)(filter * 1000 + i + 1)},
                              .resizes = resizes};
        trial_begin(&trial, filter);
        twin_cpu(&trial);
        twin_device(&trial, device);
        others += trial_differs(&trial);
        all += SAMPLES * trial.item / stk_dtype_size(trial.writer.dtype);
        trial_end(&trial);
    }
    if (others * 1000 > all * share)
        print_error("%llu of %llu differ\n", (unsigned long long)others, (unsigned long long)all);
    assert_true(others * 1000 <= all * share);
}

static void crops_and_flips_are_the_cpu_twins(void **state)
{
    twins_agree(state, IMAGE_BILINEAR, 0, 80, 0);
}

static void bilinear_is_the_cpu_twins_to_a_level(void **state)
{
    twins_agree(state, IMAGE_BILINEAR, 1, 80, 1);
}

static void bicubic_is_the_cpu_twins_to_a_level(void **state)
{
    twins_agree(state, IMAGE_BICUBIC, 1, 40, 1);
}

static void area_is_the_cpu_twins_to_a_level(void **state)
{
    twins_agree(state, IMAGE_AREA, 1, 40, 1);
}

static void nearest_takes_the_cpu_twins_pixels(void **state)
{
    twins_agree(state, IMAGE_NEAREST, 1, 40, 0);
}

static void lanczos_is_the_cpu_twins_to_a_level(void **state)
{
    twins_agree(state, IMAGE_LANCZOS, 1, 40, 1);
}

/* A grid has 65,535 rows at most. */
static void batches_may_be_larger_than_a_grid(void **state)
{
    enum { MANY = 66000 };
    struct device *device = device_or_skip(state);
    struct image_record *records = calloc(MANY, sizeof *records);
    uint8_t *pixels = calloc(MANY, 1), *made = calloc(MANY, 1);
    struct image_geometry geometry;
    geometry_init(&geometry, 1, 1);
    for (uint64_t i = 0; i < MANY; i++) {
        pixels[i] = (uint8_t)random_below(7, i, 256);
        image_record_set(&records[i], &geometry, 0, i);
    }
    struct image_job job = {.records = device_put(device, records, MANY * sizeof *records),
                            .record_stride = sizeof *records,
                            .count = MANY,
                            .landed = device_put(device, pixels, MANY),
                            .out = device_put(device, made, MANY),
                            .item = 1,
                            .frames = 1,
                            .width = 1,
                            .height = 1,
                            .channels = 1,
                            .dtype = STK_U8,
                            .plain = 1};
    assert_int_equal(image_device_run(device->gpu, &job, 0, device->stream, NULL), STK_OK);
    device_get(device, made, job.out, MANY);
    assert_memory_equal(made, pixels, MANY);
    gpu_free(device->gpu, job.records);
    gpu_free(device->gpu, job.landed);
    gpu_free(device->gpu, job.out);
    free(records);
    free(pixels);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crops_and_flips_are_the_cpu_twins),
        cmocka_unit_test(bilinear_is_the_cpu_twins_to_a_level),
        cmocka_unit_test(bicubic_is_the_cpu_twins_to_a_level),
        cmocka_unit_test(area_is_the_cpu_twins_to_a_level),
        cmocka_unit_test(nearest_takes_the_cpu_twins_pixels),
        cmocka_unit_test(lanczos_is_the_cpu_twins_to_a_level),
        cmocka_unit_test(batches_may_be_larger_than_a_grid),
    };
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
