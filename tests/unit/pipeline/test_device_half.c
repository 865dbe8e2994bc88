/* test_device_half.c -- a chain that is cut in two makes on the device what the host makes of it
 * alone: the same keys, the same values to 1 level of 255, or 1e-3 of floats. */
#include "base/testing.h"
#include "codec/jpeg_making.h"
#include "pipeline/video_fixture.h"

#include <math.h>

#include "base/half.h"
#include "pipeline/device_half.h"
#include "transform/image_kernel.h"

static struct stk_error err;
static struct gpu *gpu;
static struct gpu_stream *stream;

struct trial {
    const char *chain;
    enum stk_dtype dtype;        /* of what is stored ... */
    int64_t shape[STK_MAX_RANK]; /* ... ended by 0; none: encoded media */
    enum stk_media media;
    double level; /* floats: what one level of 255 is in the end, where a step may be off by one */
};

#define IMAGENET "Normalize(imagenet)"
#define STORED(type, ...) .dtype = STK_##type, .shape = {__VA_ARGS__}
#define ENCODED_IMAGE .media = STK_MEDIA_IMAGE
#define ENCODED_VIDEO .media = STK_MEDIA_VIDEO
static const struct trial trials[] = {
    /* crops and flips */
    {"RandomCrop(56)", STORED(U8, 64, 64, 3)},
    {"RandomCrop((31, 57)) | RandomHorizontalFlip", STORED(U8, 33, 64, 1)},
    {"RandomCrop(60, padding=4, fill=(9, 99, 199)) | RandomVerticalFlip", STORED(U8, 57, 61, 3)},
    {"CenterCrop(70) | RandomHorizontalFlip | RandomVerticalFlip", STORED(U8, 64, 80, 4)},
    {"RandomHorizontalFlip | " IMAGENET, STORED(U8, 17, 63, 3)},
    /* resizes */
    {"RandomResizedCrop(48, scale=(0.5, 1)) | " IMAGENET " | Layout('CHW')", STORED(U8, 50, 58, 3),
     .level = 0.02},
    {"Resize((50, 70)) | CenterCrop(40)", STORED(U8, 48, 44, 3)},
    {"Resize((37, 41), 'bicubic') | RandomHorizontalFlip", STORED(U8, 40, 44, 1)},
    {"Resize((80, 90), 'lanczos') | Cast('float16')", STORED(U8, 48, 64, 3), .level = 1},
    {"Resize((33, 35), 'area')", STORED(U8, 40, 40, 3)},
    {"Resize((61, 33), 'nearest') | RandomVerticalFlip", STORED(U8, 40, 42, 4)},
    {"Resize((30, 33), antialias=False) | Cast('float32', True)", STORED(U8, 36, 40, 3),
     .level = 0.004},
    {"RandomHorizontalFlip | Resize((40, 30)) | CenterCrop(44)", STORED(U8, 40, 36, 3)},
    /* the form of the result */
    {IMAGENET " | Cast('float16') | Layout('CHW')", STORED(U8, 31, 33, 3)},
    {"Normalize(0.5, 0.25) | Cast('bfloat16')", STORED(U8, 32, 32, 1)},
    {"Cast('float32', True) | Layout('CHW') | Normalize((0.1, 0.2, 0.3, 0.4), 0.5)",
     STORED(U8, 24, 40, 4)},
    {"Cast('bfloat16', True)", STORED(U8, 24, 40, 3)},
    {"RandomHorizontalFlip | Cast('float16', True) | Normalize(0.5, 0.5)", STORED(U8, 24, 40, 3)},
    {"Layout('CHW')", STORED(U8, 24, 40, 3)},
    /* video */
    {"RandomCrop(28) | RandomHorizontalFlip | Normalize(0.5, 0.5) | Layout('CTHW')",
     STORED(U8, 5, 32, 32, 3)},
    {"RandomResizedCrop(24, scale=(0.6, 1)) | " IMAGENET " | Cast('float16') | Layout('CTHW')",
     STORED(U8, 4, 28, 26, 3), .level = 0.02},
    {"Normalize(0.5, 0.5) | Layout('CTHW')", STORED(U8, 3, 20, 20, 3)},
    {"Layout('CTHW')", STORED(U8, 3, 20, 20, 1)},
    /* floats, and plain tensors */
    {"Layout('CTHW')", STORED(F16, 16, 28, 28, 3)},
    {"Layout('CHW') | Normalize((0.5, 0.4, 0.3), (0.2, 0.3, 0.4))", STORED(F16, 30, 20, 3)},
    {"Normalize(0.5, 0.25) | Layout('CHW') | Cast('float32')", STORED(F16, 30, 20, 2)},
    {"Normalize(0.25, 0.5) | Layout('CHW')", STORED(F32, 30, 20, 3)},
    {"Cast('float32') | Normalize((1, 2, 3), 2)", STORED(F16, 3, 500)},
    {"Cast('float32') | Normalize(0, 3)", STORED(BF16, 1000)},
    {"Normalize(0.1, 0.2)", STORED(F32, 7, 11, 13)},
    /* encoded images and videos */
    {"RandomResizedCrop(40) | RandomHorizontalFlip | " IMAGENET " | Layout('CHW')", ENCODED_IMAGE,
     .level = 0.02},
    {"Resize(44) | CenterCrop(40) | Cast('float16', True)", ENCODED_IMAGE, .level = 0.004},
    {"RandomResizedCrop(32)", ENCODED_IMAGE},
    {"TrivialAugment | CenterCrop(30) | " IMAGENET, ENCODED_IMAGE},
    {"DecodeVideo(4, 2) | RandomResizedCrop(32) | " IMAGENET " | Layout('CTHW')", ENCODED_VIDEO},
    {"DecodeVideo(3, clips=2) | CenterCrop(40) | Normalize((0.1, 0.2, 0.3), 0.5) | Layout('CTHW')",
     ENCODED_VIDEO},
    /* steps of their own */
    {"ColorJitter(0.4, 0.4, 0.4, 0.1) | " IMAGENET, STORED(U8, 40, 44, 3), .level = 0.02},
    {"RandomCrop(36) | GaussianBlur(5) | Normalize(0.5, 0.5) | Layout('CHW')",
     STORED(U8, 40, 44, 3), .level = 0.02},
    {"Grayscale(3) | RandomErasing(1)", STORED(U8, 40, 44, 3)},
    {"Normalize(0.5, 0.5) | Layout('CHW') | RandomErasing(1, value='random')",
     STORED(U8, 40, 44, 3)},
    {"RandomCrop(30) | ColorJitter(0.4, 0.4, 0.4, 0.1) | Layout('CTHW') | RandomErasing(1)",
     STORED(U8, 3, 32, 33, 3)},
    {"RandomResizedCrop(40) | ColorJitter(0.3) | GaussianBlur(3) | " IMAGENET, ENCODED_IMAGE,
     .level = 0.02},
    {"Normalize(0.5, 0.5) | RandomErasing(0.7) | Cast('float16')", STORED(U8, 40, 44, 3)},
    {"RandomCrop(32) | Cast('bfloat16', True) | RandomErasing(1, value=(1, 2, 3))",
     STORED(U8, 36, 37, 3)},
    {"GaussianBlur((3, 7)) | Grayscale | Cast('float16')", STORED(U8, 3, 21, 23, 3), .level = 2},
    {"RandomResizedCrop(40) | " IMAGENET " | Layout('CHW') | RandomErasing(1, value='random')",
     ENCODED_IMAGE, .level = 0.02},
    {"DecodeVideo(3, clips=2) | CenterCrop(40) | ColorJitter(0.3) | Layout('CTHW') | "
     "RandomErasing(1)",
     ENCODED_VIDEO},
    {"LogMel(n_fft=256, hop_length=100, n_mels=80, rate=16000)", STORED(F32, 2, 5000)},
};
#define TRIALS (sizeof trials / sizeof trials[0])
#define BATCH 5

/* One chain, whole and cut, and the values that go through both. */
struct work {
    struct pipeline *whole, *halves;
    struct pipeline_state *state;
    enum stk_media media;
    struct stk_tensor value;
    struct stk_bytes bytes[BATCH];
    uint64_t landed_size, params_size, out_size;
    uint8_t *landed, *params, *out;
    uint8_t *decoded; /* what the device's decoder would have made; NULL: nothing */
    uint64_t decoded_size;
};

static void put_value(const struct stk_tensor *value, uint64_t i, uint32_t noise, uint8_t *to)
{
    float number = (float)(noise % 4001) / 1000 - 2;
    uint16_t half = value->dtype == STK_F16 ? half_of_float(number) : bfloat_of_float(number);
    if (value->dtype == STK_U8)
        to[i] = (uint8_t)noise;
    else if (value->dtype == STK_F32)
        memcpy(to + 4 * i, &number, 4);
    else
        memcpy(to + 2 * i, &half, 2);
}

static struct stk_bytes made_value(const struct work *work, uint32_t b)
{
    uint64_t size = stk_tensor_size(&work->value), item = stk_dtype_size(work->value.dtype);
    uint8_t *data = malloc(size);
    for (uint64_t i = 0; i < size / item; i++)
        put_value(&work->value, i, made_noise((uint32_t)(b * 7919 + i)), data);
    return (struct stk_bytes){data, size};
}

static void work_values(struct work *work, const struct trial *trial)
{
    struct jpeg_recipe recipe = {.width = 90, .height = 70, .h = 2, .v = 2};
    work->media = trial->media;
    work->value.dtype = trial->dtype;
    while (trial->shape[work->value.rank]) {
        work->value.shape[work->value.rank] = trial->shape[work->value.rank];
        work->value.rank++;
    }
    for (uint32_t b = 0; b < BATCH; b++) {
        recipe.width += 10;
        work->bytes[b] = work->media == STK_MEDIA_IMAGE   ? jpeg_made(&recipe)
                         : work->media == STK_MEDIA_VIDEO ? video_bytes("run.avi")
                                                          : made_value(work, b);
    }
}

static struct pipeline *compiled(const struct work *work, const char *chain, int device)
{
    struct pipeline_options options = {
        .chain = chain, .media = work->media, .tensor = work->value, .device = device};
    struct pipeline *pipeline;
    stk_status status = pipeline_new(&pipeline, &options, &err);
    if (status)
        print_error("%s: %s\n", chain, err.what);
    assert_int_equal(status, STK_OK);
    return pipeline;
}

static void work_new(struct work *work, const struct trial *trial)
{
    *work = (struct work){0};
    work_values(work, trial);
    work->whole = compiled(work, trial->chain, 0);
    work->halves = compiled(work, trial->chain, 1);
    assert_int_equal(pipeline_state_new(&work->state, &err), STK_OK);
    work->landed_size = stk_tensor_size(&pipeline_out(work->halves)->tensor);
    work->params_size = pipeline_params_size(work->halves);
    work->out_size = stk_tensor_size(&pipeline_device_out(work->halves)->tensor);
    assert_true(work->params_size > 0);
    work->landed = malloc(BATCH * work->landed_size);
    work->params = malloc(BATCH * work->params_size);
    work->out = malloc(BATCH * work->out_size);
}

static void work_free(struct work *work)
{
    for (uint32_t b = 0; b < BATCH; b++)
        free((void *)work->bytes[b].data);
    pipeline_free(work->whole);
    pipeline_free(work->halves);
    pipeline_state_free(work->state);
    free(work->landed);
    free(work->params);
    free(work->out);
    free(work->decoded);
}

static struct pipeline_input input_of(const struct work *work, uint32_t b, uint64_t key)
{
    return (struct pipeline_input){.bytes = work->bytes[b],
                                   .shape = work->media ? NULL : &work->value,
                                   .key = pipeline_key(key, b, 0),
                                   .place = b};
}

static void run_host_half(struct work *work, uint64_t key)
{
    for (uint32_t b = 0; b < BATCH; b++) {
        struct pipeline_input input = input_of(work, b, key);
        struct stk_flow result = *pipeline_out(work->halves);
        result.tensor.data = work->landed + b * work->landed_size;
        input.params = work->params + b * work->params_size;
        assert_int_equal(pipeline_run(work->halves, work->state, &input, &result, &err), STK_OK);
    }
}

/* Stands in for the device's decoder: the box of pixels that libjpeg makes. */
static void decode_box(struct work *work, uint32_t b, const struct pipeline_box *box)
{
    struct image_record record;
    int width, height;
    uint8_t *full = jpeg_oracle(&work->bytes[b], JCS_RGB, 8, &width, &height);
    size_t row = (size_t)box->width * 3;
    memcpy(&record, work->params + b * work->params_size, sizeof record);
    record.pixels = work->decoded_size;
    memcpy(work->params + b * work->params_size, &record, sizeof record);
    work->decoded = realloc(work->decoded, work->decoded_size + row * (size_t)box->height);
    for (int32_t y = 0; y < box->height; y++, work->decoded_size += row)
        memcpy(work->decoded + work->decoded_size,
               full + ((size_t)(box->y + y) * (size_t)width + (size_t)box->x) * 3, row);
    free(full);
}

/* Every second image of the batch is the device's. */
static void aim_some(struct work *work, uint64_t key)
{
    work->decoded_size = 0;
    for (uint32_t b = 0; b < BATCH; b += 2) {
        struct pipeline_input input = input_of(work, b, key);
        struct pipeline_box box;
        input.params = work->params + b * work->params_size;
        memset(work->landed + b * work->landed_size, 77, work->landed_size);
        assert_int_equal(pipeline_aim(work->halves, work->state, &input, &box, &err), STK_OK);
        decode_box(work, b, &box);
    }
}

static gpu_address on_device(const void *data, uint64_t size)
{
    gpu_address address;
    assert_int_equal(gpu_alloc(gpu, size ? size : 1, &address, &err), STK_OK);
    if (data)
        assert_int_equal(gpu_copy_in(gpu, address, data, size, stream, &err), STK_OK);
    return address;
}

static void run_device_half(struct work *work, uint32_t count)
{
    struct device_half *half;
    assert_int_equal(device_half_new(&half, work->halves, gpu, BATCH, &err), STK_OK);
    struct device_half_run run = {.count = count,
                                  .landed = on_device(work->landed, BATCH * work->landed_size),
                                  .params = on_device(work->params, BATCH * work->params_size),
                                  .decoded = on_device(work->decoded, work->decoded_size),
                                  .out = on_device(NULL, BATCH * work->out_size),
                                  .resizes = work->decoded != NULL,
                                  .scratch = on_device(NULL, device_half_scratch(half)),
                                  .stream = stream};
    stk_status status = device_half_run(half, &run, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    assert_int_equal(gpu_copy_out(gpu, work->out, run.out, count * work->out_size, stream, &err),
                     STK_OK);
    assert_int_equal(gpu_stream_sync(gpu, stream, &err), STK_OK);
    gpu_free(gpu, run.landed);
    gpu_free(gpu, run.params);
    gpu_free(gpu, run.decoded);
    gpu_free(gpu, run.out);
    gpu_free(gpu, run.scratch);
    device_half_free(half);
}

/* --- comparing -------------------------------------------------------------------------------- */

static double value_at(const struct stk_tensor *tensor, const uint8_t *data, uint64_t i)
{
    float number;
    uint16_t half;
    switch (tensor->dtype) {
    case STK_U8:
        return data[i];
    case STK_F32:
        memcpy(&number, data + 4 * i, 4);
        return (double)number;
    default:
        memcpy(&half, data + 2 * i, 2);
        return (double)(tensor->dtype == STK_F16 ? half_to_float(half) : bfloat_to_float(half));
    }
}

/* One level of bytes; of floats 1e-3, of small ones the last bit. */
static double allowed(const struct trial *trial, enum stk_dtype dtype, double value)
{
    double least = dtype == STK_BF16 ? 1.0 / 128 : 1e-3;
    return dtype == STK_U8 ? 1 : fmax(trial->level, least * fmax(1, fabs(value)));
}

static void check_batch(struct work *work, const struct trial *trial, uint64_t key, uint32_t count)
{
    const struct stk_tensor *shape = &pipeline_device_out(work->halves)->tensor;
    uint64_t elements = work->out_size / stk_dtype_size(shape->dtype);
    for (uint32_t b = 0; b < count; b++) {
        struct pipeline_input input = input_of(work, b, key);
        struct stk_flow result = {0};
        assert_int_equal(pipeline_run(work->whole, work->state, &input, &result, &err), STK_OK);
        assert_int_equal(stk_tensor_size(&result.tensor), work->out_size);
        for (uint64_t i = 0; i < elements; i++) {
            double host = value_at(shape, result.tensor.data, i);
            double device = value_at(shape, work->out + b * work->out_size, i);
            if (!(fabs(host - device) <= allowed(trial, shape->dtype, host))) {
                print_error("%s: sample %u, element %llu: %g on the host, %g on the device\n",
                            trial->chain, b, (unsigned long long)i, host, device);
                assert_true(0);
            }
        }
    }
}

/* What this machine, or this build, cannot try: videos, and steps of its own without a twin. */
static int is_out(const struct trial *trial)
{
    struct chain chain;
    int out = trial->media == STK_MEDIA_VIDEO && !video_ready;
    assert_int_equal(chain_parse(&chain, trial->chain, NULL, &err), STK_OK);
    for (uint32_t i = 0; i < chain.count; i++) {
        const struct transform_ops *ops = chain.steps[i].ops;
        int own = ops->stage == TRANSFORM_PIXELS || ops->stage == TRANSFORM_TENSOR;
        out |= own && !ops->run_device && ops != transform_find("TrivialAugment");
    }
    chain_reset(&chain);
    return out;
}

static void both_halves_make_what_the_whole_chain_makes(void **state)
{
    (void)state;
    if (!gpu)
        skip(); /* no device, real or simulated */
    for (size_t i = 0; i < TRIALS; i++) {
        struct work work;
        if (is_out(&trials[i]))
            continue;
        work_new(&work, &trials[i]);
        for (uint64_t key = 0; key < 4; key++) {
            run_host_half(&work, key);
            run_device_half(&work, BATCH);
            check_batch(&work, &trials[i], key, BATCH);
        }
        work_free(&work);
    }
}

static void a_batch_may_be_short_or_empty(void **state)
{
    (void)state;
    if (!gpu)
        skip(); /* no device, real or simulated */
    for (size_t i = 0; i < TRIALS; i += 3) {
        struct work work;
        if (is_out(&trials[i]))
            continue;
        work_new(&work, &trials[i]);
        run_host_half(&work, 9);
        for (uint32_t count = 0; count < BATCH; count += 2) {
            memset(work.out, 0, BATCH * work.out_size);
            run_device_half(&work, count);
            check_batch(&work, &trials[i], 9, count);
        }
        work_free(&work);
    }
}

static void images_that_the_device_decoded_go_the_same_way(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    for (size_t i = 0; i < TRIALS; i++) {
        struct work work;
        if (trials[i].media != STK_MEDIA_IMAGE || is_out(&trials[i]))
            continue;
        work_new(&work, &trials[i]);
        for (uint64_t key = 0; key < 3 && pipeline_may_aim(work.halves); key++) {
            run_host_half(&work, key);
            aim_some(&work, key);
            run_device_half(&work, BATCH);
            check_batch(&work, &trials[i], key, BATCH);
        }
        work_free(&work);
    }
}

static int open_device(void **state)
{
    video_setup(state);
    if (video_ready)
        assert_true(video_make(0.5, "-c:v mjpeg run.avi"));
    if (!gpu_count(&err))
        return 0;
    if (gpu_open(&gpu, 0, &err) || gpu_enter(gpu, &err) ||
        gpu_stream_new(gpu, GPU_NORMAL, &stream, &err)) {
        print_error("%s\n", err.what);
        return -1;
    }
    return 0;
}

static int close_device(void **state)
{
    if (gpu) {
        gpu_stream_free(gpu, stream);
        gpu_leave(gpu);
        gpu_close(gpu);
    }
    return video_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_halves_make_what_the_whole_chain_makes),
        cmocka_unit_test(a_batch_may_be_short_or_empty),
        cmocka_unit_test(images_that_the_device_decoded_go_the_same_way),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
