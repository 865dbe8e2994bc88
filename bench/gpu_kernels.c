/* gpu_kernels.c -- how many bytes a second the kernels of images and tensors read and write, each
 * alone on the first device, beside a copy within it.
 *
 *     gpu_kernels [--quick]
 *
 * Prints one JSON object a line: name, value (bytes/s), bytes (of one launch, read and written),
 * seconds (of one launch), note. The line "hbm" is the copy. Launches follow each other in one
 * stream over buffers that together are several times the second cache; the clock runs from before
 * the first to after the last. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "stoker/tensor.h"
#include "base/random.h"
#include "gpu/gpu.h"
#include "transform/image_device.h"
#include "transform/tensor_device.h"

enum {
    BATCH = 256,
    SIDE = 224,   /* of a finished image */
    STORED = 256, /* of a stored one, where it is only cropped */
    WIDTH = 500,  /* of one that is resized */
    HEIGHT = 375,
    CHANNELS = 3,
    TURNS = 4,  /* buffers that are used in turn */
    CLIPS = 32, /* of 16 frames of 112 x 112 */
    CLIP = 16 * 112 * 112,
    LAUNCHES = 400,
    QUICK_LAUNCHES = 40
};

struct bench {
    struct gpu *gpu;
    struct gpu_stream *stream;
    gpu_address from[TURNS], to[TURNS];
    gpu_address records; /* BATCH of struct image_record */
    int launches;
    struct stk_error err;
};

/* One kernel: launch enqueues it on the buffers number `turn`. */
struct subject {
    const char *name, *note;
    uint64_t bytes; /* of one launch, read and written */
    stk_status (*launch)(struct bench *bench, const struct subject *subject, int turn);
    struct image_job image;
    struct tensor_job tensor;
    int resizes;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* --- launches ------------------------------------------------------------------------------------
 */

static stk_status launch_copy(struct bench *bench, const struct subject *subject, int turn)
{
    return gpu_copy_within(bench->gpu, bench->to[turn], bench->from[turn], subject->bytes / 2,
                           bench->stream, &bench->err);
}

static stk_status launch_image(struct bench *bench, const struct subject *subject, int turn)
{
    struct image_job job = subject->image;
    job.records = bench->records;
    job.landed = bench->from[turn];
    job.out = bench->to[turn];
    return image_device_run(bench->gpu, &job, subject->resizes, bench->stream, &bench->err);
}

static stk_status launch_tensor(struct bench *bench, const struct subject *subject, int turn)
{
    struct tensor_job job = subject->tensor;
    job.from = bench->from[turn];
    job.to = bench->to[turn];
    return tensor_device_run(bench->gpu, &job, bench->stream, &bench->err);
}

static stk_status repeat(struct bench *bench, const struct subject *subject, int launches)
{
    stk_status status = STK_OK;
    for (int i = 0; i < launches && !status; i++)
        status = subject->launch(bench, subject, i % TURNS);
    if (!status)
        status = gpu_stream_sync(bench->gpu, bench->stream, &bench->err);
    return status;
}

static stk_status measure(struct bench *bench, const struct subject *subject)
{
    stk_status status = repeat(bench, subject, 2 * TURNS);
    double start = now();
    if (!status)
        status = repeat(bench, subject, bench->launches);
    if (status)
        return status;
    double seconds = (now() - start) / bench->launches;
    printf("{\"name\": \"%s\", \"value\": %.0f, \"bytes\": %llu, \"seconds\": %.9f, \"note\": "
           "\"%s\"}\n",
           subject->name, (double)subject->bytes / seconds, (unsigned long long)subject->bytes,
           seconds, subject->note);
    fflush(stdout);
    return STK_OK;
}

/* --- subjects ------------------------------------------------------------------------------------
 */

static uint64_t finished_bytes(enum stk_dtype dtype)
{
    return (uint64_t)BATCH * SIDE * SIDE * CHANNELS * stk_dtype_size(dtype);
}

/* Normalised images, channels first. */
static struct subject image_subject(const char *name, const char *note, enum stk_dtype dtype)
{
    static const float mean[] = {0.485f, 0.456f, 0.406f}, std[] = {0.229f, 0.224f, 0.225f};
    struct subject subject = {.name = name, .note = note, .launch = launch_image};
    subject.image = (struct image_job){.record_stride = sizeof(struct image_record),
                                       .count = BATCH,
                                       .item = finished_bytes(dtype) / BATCH,
                                       .frames = 1,
                                       .width = SIDE,
                                       .height = SIDE,
                                       .channels = CHANNELS,
                                       .dtype = dtype,
                                       .channels_first = 1,
                                       .plain = dtype == STK_U8};
    for (int c = 0; c < CHANNELS; c++) {
        subject.image.multiply[c] = 1 / (255 * std[c]);
        subject.image.add[c] = -mean[c] / std[c];
    }
    subject.bytes = (uint64_t)BATCH * SIDE * SIDE * CHANNELS + finished_bytes(dtype);
    return subject;
}

static stk_status records_put(struct bench *bench, const struct image_record *records)
{
    stk_status status = gpu_copy_in(bench->gpu, bench->records, records, BATCH * sizeof *records,
                                    bench->stream, &bench->err);
    if (!status)
        status = gpu_stream_sync(bench->gpu, bench->stream, &bench->err);
    return status;
}

/* Crops and flips that differ from sample to sample. */
static stk_status measure_crops(struct bench *bench)
{
    static const char note[] = "256 x (256, 256, 3) uint8, cropped to 224, flipped, normalised";
    const struct subject subjects[] = {
        image_subject("fused", note, STK_F16), image_subject("fused_float32", note, STK_F32),
        image_subject("fused_bfloat16", note, STK_BF16),
        image_subject("fused_uint8", "the same, only laid out", STK_U8)};
    struct image_record records[BATCH];
    for (uint64_t i = 0; i < BATCH; i++) {
        struct image_geometry geometry;
        geometry_init(&geometry, STORED, STORED);
        geometry_crop(&geometry, (int32_t)random_below(1, 3 * i, STORED - SIDE + 1),
                      (int32_t)random_below(1, 3 * i + 1, STORED - SIDE + 1), SIDE, SIDE);
        if (random_below(1, 3 * i + 2, 2))
            geometry_flip_x(&geometry);
        image_record_set(&records[i], &geometry, 0, i * STORED * STORED * CHANNELS);
    }
    stk_status status = records_put(bench, records);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0] && !status; i++)
        status = measure(bench, &subjects[i]);
    return status;
}

/* A box as RandomResizedCrop draws them. */
static void geometry_draw(struct image_geometry *geometry, uint64_t key)
{
    geometry_init(geometry, WIDTH, HEIGHT);
    double area = (0.08 + 0.92 * random_unit(key, 0)) * WIDTH * HEIGHT;
    double ratio = exp((2 * random_unit(key, 1) - 1) * log(4.0 / 3));
    int32_t width = (int32_t)sqrt(area * ratio), height = (int32_t)sqrt(area / ratio);
    width = width < WIDTH ? width : WIDTH;
    height = height < HEIGHT ? height : HEIGHT;
    geometry_crop(geometry, (int32_t)random_below(key, 2, (uint64_t)(WIDTH - width) + 1),
                  (int32_t)random_below(key, 3, (uint64_t)(HEIGHT - height) + 1), width, height);
    (void)geometry_resize(geometry, SIDE, SIDE, IMAGE_BILINEAR, 1);
    if (random_below(key, 4, 2))
        geometry_flip_x(geometry);
}

static stk_status measure_resizes(struct bench *bench)
{
    static const char note[] = "256 x (375, 500, 3) uint8: random boxes resized (bilinear, "
                               "antialias) to 224, flipped, normalised; bytes of the boxes";
    struct subject subjects[] = {image_subject("resize", note, STK_F16),
                                 image_subject("resize_float32", note, STK_F32)};
    struct image_record records[BATCH];
    uint64_t boxes = 0;
    for (uint64_t i = 0; i < BATCH; i++) {
        struct image_geometry geometry;
        geometry_draw(&geometry, random_key(2, i));
        image_record_set(&records[i], &geometry, 0, i * WIDTH * HEIGHT * CHANNELS);
        boxes += (uint64_t)geometry.box_width * (uint64_t)geometry.box_height * CHANNELS;
    }
    stk_status status = records_put(bench, records);
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0] && !status; i++) {
        enum stk_dtype dtype = (enum stk_dtype)subjects[i].image.dtype;
        subjects[i].resizes = 1;
        subjects[i].bytes = boxes + finished_bytes(dtype);
        status = measure(bench, &subjects[i]);
    }
    return status;
}

static stk_status measure_turns(struct bench *bench)
{
    struct subject subjects[] = {
        {.name = "turn", .note = "(32, 16, 112, 112, 3) float16 to (32, 3, 16, 112, 112)"},
        {.name = "turn_back", .note = "(32, 3, 16, 112, 112) float16 to (32, 16, 112, 112, 3)"},
        {.name = "turn_cast",
         .note = "(32, 16, 112, 112, 3) float32 to (32, 3, 16, 112, 112) "
                 "float16, normalised"},
        {.name = "cast", .note = "uint8 to float16, normalised by one number"}};
    stk_status status = STK_OK;
    for (int i = 0; i < 4 && !status; i++) {
        struct tensor_job *job = &subjects[i].tensor;
        *job = (struct tensor_job){.count = CLIPS,
                                   .rows = i == 1 ? CHANNELS : CLIP,
                                   .columns = i == 1 ? CLIP : CHANNELS,
                                   .turned = i < 3,
                                   .from_dtype = i == 2   ? STK_F32
                                                 : i == 3 ? STK_U8
                                                          : STK_F16,
                                   .to_dtype = STK_F16,
                                   .affine = i >= 2,
                                   .channels = i == 2 ? CHANNELS : 1,
                                   .channel_run = 1,
                                   .multiply = {4, 5, 6},
                                   .add = {-0.5, -0.25, 0.5}};
        uint64_t moved = stk_dtype_size((enum stk_dtype)job->from_dtype) + stk_dtype_size(STK_F16);
        subjects[i].bytes = moved * CLIPS * CLIP * CHANNELS;
        subjects[i].launch = launch_tensor;
        status = measure(bench, &subjects[i]);
    }
    return status;
}

/* --- the bench -----------------------------------------------------------------------------------
 */

/* Room for the largest of the subjects; what lies in it is random, so that nothing is compressed.
 */
static stk_status bench_open(struct bench *bench)
{
    uint64_t in = (uint64_t)BATCH * WIDTH * HEIGHT * CHANNELS, out = finished_bytes(STK_F32);
    stk_status status = gpu_open(&bench->gpu, 0, &bench->err);
    if (!status)
        status = gpu_enter(bench->gpu, &bench->err);
    if (!status)
        status = gpu_stream_new(bench->gpu, GPU_NORMAL, &bench->stream, &bench->err);
    if (!status)
        status = gpu_alloc(bench->gpu, BATCH * sizeof(struct image_record), &bench->records,
                           &bench->err);
    uint64_t *noise = status ? NULL : malloc(in + 8);
    for (uint64_t i = 0; noise && i < in / 8; i++)
        noise[i] = random_at(3, i);
    for (int i = 0; i < TURNS && noise && !status; i++) {
        status = gpu_alloc(bench->gpu, in, &bench->from[i], &bench->err);
        if (!status)
            status = gpu_alloc(bench->gpu, out, &bench->to[i], &bench->err);
        if (!status)
            status = gpu_copy_in(bench->gpu, bench->from[i], noise, in, bench->stream, &bench->err);
        if (!status)
            status = gpu_stream_sync(bench->gpu, bench->stream, &bench->err);
    }
    free(noise);
    return status;
}

static void bench_close(struct bench *bench)
{
    for (int i = 0; i < TURNS && bench->stream; i++) {
        gpu_free(bench->gpu, bench->from[i]);
        gpu_free(bench->gpu, bench->to[i]);
    }
    if (bench->stream) {
        gpu_free(bench->gpu, bench->records);
        gpu_stream_free(bench->gpu, bench->stream);
        gpu_leave(bench->gpu);
    }
    gpu_close(bench->gpu);
}

int main(int count, char **words)
{
    int quick = count > 1 && !strcmp(words[1], "--quick");
    struct bench bench = {.launches = quick ? QUICK_LAUNCHES : LAUNCHES};
    const struct subject copy = {.name = "hbm",
                                 .note = "a copy within the device",
                                 .bytes = (uint64_t)2 * BATCH * WIDTH * HEIGHT * CHANNELS,
                                 .launch = launch_copy};
    stk_status status = bench_open(&bench);
    if (!status)
        status = measure(&bench, &copy);
    if (!status)
        status = measure_crops(&bench);
    if (!status)
        status = measure_resizes(&bench);
    if (!status)
        status = measure_turns(&bench);
    if (status)
        fprintf(stderr, "gpu_kernels: %s %s\n", bench.err.what, bench.err.remedy);
    bench_close(&bench);
    return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
