/* test_nvjpeg_decoder.c -- JPEGs through nvJPEG: on a GPU where there is one, else on the simulated
 * driver, whose nvJPEG decodes with libjpeg. The oracle is libjpeg. */
#include "image_checking.h"
#include "jpeg_making.h"

#include "codec/nvjpeg_decoder.h"

/* Levels of 255 by which pixels may differ from libjpeg's. nvJPEG rounds in other places, and the
 * images here are noise with hard edges of colour: the worst there is for interpolation. */
#define LEVELS 3
#define MOST 16

struct device {
    struct gpu *gpu;
    struct gpu_stream *stream;
    struct nvjpeg_decoder *decoder;
};

static void expect_ok(stk_status status, const struct stk_error *err)
{
    if (status)
        print_error("%s: %s (%s)\n", stk_status_name(status), err->what, err->remedy);
    assert_int_equal(status, STK_OK);
}

static struct device device_open(void)
{
    struct device device = {0};
    struct stk_error err = {0};
    if (gpu_count(&err) == 0) {
        print_message("skipped: %s\n", err.what);
        skip();
    }
    expect_ok(gpu_open(&device.gpu, 0, &err), &err);
    expect_ok(gpu_enter(device.gpu, &err), &err);
    expect_ok(gpu_stream_new(device.gpu, GPU_NORMAL, &device.stream, &err), &err);
    expect_ok(nvjpeg_decoder_new(&device.decoder, device.gpu, MOST, &err), &err);
    return device;
}

static void device_close(struct device *device)
{
    nvjpeg_decoder_free(device->decoder);
    gpu_stream_free(device->gpu, device->stream);
    gpu_leave(device->gpu);
    gpu_close(device->gpu);
}

/* A box that is neither all of the image nor on the borders of blocks. */
static struct nvjpeg_image image_of(const struct stk_bytes *bytes, int width, int height,
                                    int channels)
{
    return (struct nvjpeg_image){.bytes = *bytes,
                                 .x = width / 5,
                                 .y = height / 3,
                                 .width = width / 2,
                                 .height = height / 2,
                                 .image_width = width,
                                 .image_height = height,
                                 .channels = channels};
}

static void run(const struct device *device, struct nvjpeg_image *images, uint32_t count)
{
    struct stk_error err = {0};
    expect_ok(nvjpeg_decoder_run(device->decoder, images, count, device->stream, &err), &err);
}

/* Takes an image, and gives it memory of its own. */
static void take(const struct device *device, struct nvjpeg_image *image)
{
    struct stk_error err = {0};
    nvjpeg_decoder_take(device->decoder, image);
    assert_int_not_equal(image->part, NVJPEG_NOTHING);
    expect_ok(gpu_alloc(device->gpu, nvjpeg_image_size(image), &image->out, &err), &err);
    assert_int_equal(image->out % NVJPEG_ALIGN, 0);
}

/* The pixels of the image's box, brought home; free() them. */
static uint8_t *box_pixels(const struct device *device, const struct nvjpeg_image *image)
{
    struct stk_error err = {0};
    uint64_t size = nvjpeg_image_size(image);
    uint8_t *all = malloc(size), *box = malloc(size);
    expect_ok(gpu_copy_out(device->gpu, all, image->out, size, device->stream, &err), &err);
    expect_ok(gpu_stream_sync(device->gpu, device->stream, &err), &err);
    int whole = image->part == NVJPEG_WHOLE;
    size_t row = (size_t)(whole ? image->image_width : image->width) * (size_t)image->channels;
    size_t from = whole ? (size_t)image->y * row + (size_t)(image->x * image->channels) : 0;
    size_t cut = (size_t)(image->width * image->channels);
    for (int32_t y = 0; y < image->height; y++)
        memcpy(box + (size_t)y * cut, all + from + (size_t)y * row, cut);
    free(all);
    return box;
}

static void check_image(const struct device *device, const struct nvjpeg_image *image)
{
    int width, height;
    J_COLOR_SPACE space = image->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    uint8_t *oracle = jpeg_oracle(&image->bytes, space, 8, &width, &height);
    uint8_t *pixels = box_pixels(device, image);
    struct image_view view = {.pixels = pixels,
                              .stride = (int64_t)image->width * image->channels,
                              .width = image->width,
                              .height = image->height,
                              .channels = image->channels};
    assert_in_range(view_error(&view, oracle, width, image->x, image->y), 0, LEVELS);
    free(oracle);
    free(pixels);
}

static void forget(const struct device *device, const struct nvjpeg_image *image)
{
    gpu_free(device->gpu, image->out);
    free((void *)(uintptr_t)image->bytes.data);
}

/* --- what is decoded -------------------------------------------------------------------------- */

static void baseline_images_come_out_as_libjpeg_decodes_them(void **state)
{
    (void)state;
    static const struct jpeg_recipe recipes[] = {
        {.width = 160, .height = 120, .h = 1, .v = 1},
        {.width = 161, .height = 121, .h = 2, .v = 1},
        {.width = 163, .height = 119, .h = 2, .v = 2},
        {.width = 160, .height = 120, .h = 2, .v = 2, .restart = 3},
        {.width = 90, .height = 70, .in = JCS_GRAYSCALE},
        {.width = 20, .height = 14, .h = 2, .v = 2}, /* asked for by itself */
    };
    enum { COUNT = sizeof recipes / sizeof *recipes };
    struct device device = device_open();
    struct nvjpeg_image images[2 * COUNT];
    for (int i = 0; i < 2 * COUNT; i++) { /* each in colour and in grey */
        const struct jpeg_recipe *recipe = &recipes[i % COUNT];
        struct stk_bytes bytes = jpeg_made(recipe);
        images[i] = image_of(&bytes, recipe->width, recipe->height, i < COUNT ? 3 : 1);
        take(&device, &images[i]);
    }
    run(&device, images, 2 * COUNT);
    for (int i = 0; i < 2 * COUNT; i++) {
        assert_int_not_equal(images[i].part, NVJPEG_NOTHING);
        check_image(&device, &images[i]);
        forget(&device, &images[i]);
    }
    device_close(&device);
}

static void batches_follow_one_another_without_waiting(void **state)
{
    (void)state;
    enum { COUNT = 3 * MOST + 5, BATCHES = 7 }; /* more images than fit at once, more than turns */
    struct device device = device_open();
    struct nvjpeg_image images[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct jpeg_recipe recipe = {.width = 80 + i % 7, .height = 70 + i % 5, .quality = 40 + i};
        struct stk_bytes bytes = jpeg_made(&recipe);
        images[i] = image_of(&bytes, recipe.width, recipe.height, 3);
        take(&device, &images[i]);
    }
    for (int b = 0; b < BATCHES; b++)
        run(&device, images + b, COUNT - (uint32_t)b);
    for (int i = 0; i < COUNT; i++) {
        check_image(&device, &images[i]);
        forget(&device, &images[i]);
    }
    device_close(&device);
}

/* A GPU with a hardware decoder, one without, and an nvJPEG that repeats colours: it decodes boxes
 * alone. The words are for the simulated one; a real one does what it always does. */
static void every_way_of_decoding_gives_the_same_pixels(void **state)
{
    (void)state;
    static const char *const ways[] = {"gpu", "hardware", "old"};
    for (int w = 0; w < 3; w++) {
        setenv("SIM_NVJPEG", ways[w], 1);
        struct device device = device_open();
        struct nvjpeg_image images[2];
        for (int i = 0; i < 2; i++) {
            struct jpeg_recipe recipe = {.width = 120, .height = 90, .h = 1, .v = 1};
            recipe.in = i ? JCS_GRAYSCALE : JCS_RGB;
            struct stk_bytes bytes = jpeg_made(&recipe);
            images[i] = image_of(&bytes, recipe.width, recipe.height, i ? 1 : 3);
            take(&device, &images[i]);
        }
        run(&device, images, 2);
        for (int i = 0; i < 2; i++) {
            check_image(&device, &images[i]);
            forget(&device, &images[i]);
        }
        device_close(&device);
    }
    unsetenv("SIM_NVJPEG");
}

/* --- what is not ------------------------------------------------------------------------------ */

static void what_the_hardware_cannot_do_is_not_taken(void **state)
{
    (void)state;
    static const struct jpeg_recipe recipes[] = {
        {.width = 160, .height = 120, .progressive = 1},
        {.width = 160, .height = 120, .progressive = 3}, /* a scan for each colour */
        {.width = 160, .height = 120, .in = JCS_CMYK},
        {.width = 160, .height = 120, .h = 4, .v = 1},
        {.width = 160, .height = 120, .stored = JCS_RGB},
    };
    static const uint8_t png[64] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    struct device device = device_open();
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++) {
        struct stk_bytes bytes = jpeg_made(&recipes[i]);
        struct nvjpeg_image image = image_of(&bytes, 160, 120, 3);
        nvjpeg_decoder_take(device.decoder, &image);
        assert_int_equal(image.part, NVJPEG_NOTHING);
        assert_int_equal(nvjpeg_image_size(&image), 0);
        free((void *)(uintptr_t)bytes.data);
    }
    struct stk_bytes made = jpeg_made(&(struct jpeg_recipe){.width = 160, .height = 120});
    struct nvjpeg_image odd[] = {
        image_of(&(struct stk_bytes){png, sizeof png}, 160, 120, 3),
        image_of(&(struct stk_bytes){made.data, made.len / 2}, 160, 120, 3), /* cut short */
        image_of(&made, 160, 120, 4),                                        /* with alpha */
        image_of(&made, 160, 112, 3), /* not the size that room was made for */
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        nvjpeg_decoder_take(device.decoder, &odd[i]);
        assert_int_equal(odd[i].part, NVJPEG_NOTHING);
    }
    free((void *)(uintptr_t)made.data);
    device_close(&device);
}

static void bad_images_are_marked_and_the_others_decoded(void **state)
{
    (void)state;
    enum { COUNT = MOST };
    struct device device = device_open();
    struct nvjpeg_image images[COUNT];
    for (int i = 0; i < COUNT; i++) {
        struct jpeg_recipe recipe = {.width = 96, .height = 80, .quality = 40 + i};
        struct stk_bytes bytes = jpeg_made(&recipe);
        images[i] = image_of(&bytes, recipe.width, recipe.height, 3);
        take(&device, &images[i]);
    }
    for (int i = 5; i < COUNT; i += 6) /* changed behind its back: nvJPEG itself must refuse it */
        memset((uint8_t *)(uintptr_t)images[i].bytes.data, 0, 64);
    run(&device, images, COUNT);
    for (int i = 0; i < COUNT; i++) {
        int bad = i >= 5 && (i - 5) % 6 == 0;
        assert_int_equal(images[i].part == NVJPEG_NOTHING, bad);
        if (!bad)
            check_image(&device, &images[i]);
        forget(&device, &images[i]);
    }
    device_close(&device);
}

/* --- memory ----------------------------------------------------------------------------------- */

static void its_memory_is_counted_and_given_back(void **state)
{
    (void)state;
    struct stk_error err = {0};
    struct device device = device_open();
    uint64_t before, after, total;
    nvjpeg_decoder_free(device.decoder);
    expect_ok(gpu_memory(device.gpu, &before, &total, &err), &err);
    for (int i = 0; i < 3; i++) {
        struct stk_bytes bytes = jpeg_made(&(struct jpeg_recipe){.width = 640, .height = 480});
        struct nvjpeg_image image = image_of(&bytes, 640, 480, 3);
        expect_ok(nvjpeg_decoder_new(&device.decoder, device.gpu, MOST, &err), &err);
        assert_non_null(strstr(nvjpeg_decoder_name(device.decoder), "nvJPEG"));
        take(&device, &image);
        run(&device, &image, 1);
        check_image(&device, &image);
        assert_in_range(nvjpeg_decoder_bytes(device.decoder), 1, (uint64_t)1 << 30);
        forget(&device, &image);
        nvjpeg_decoder_free(device.decoder);
    }
    expect_ok(gpu_memory(device.gpu, &after, &total, &err), &err);
    /* a real driver keeps some for itself when first used */
    uint64_t kept = strstr(gpu_info(device.gpu)->name, "Simulated") ? 0 : (uint64_t)128 << 20;
    assert_true(after + kept >= before);
    device.decoder = NULL;
    device_close(&device);
}

static void failed_allocations_leave_nothing_behind(void **state)
{
    (void)state;
    struct device device = device_open();
    stk_status status = STK_MEMORY;
    uint64_t failures = 0;
    nvjpeg_decoder_free(device.decoder);
    device.decoder = NULL;
    while (status) {
        struct counted counted = {.fail_at = ++failures};
        struct stk_error err = {0};
        memory_set_hook(count_call, &counted);
        status = nvjpeg_decoder_new(&device.decoder, device.gpu, MOST, &err);
        memory_set_hook(NULL, NULL);
        assert_true(status == STK_OK || status == STK_MEMORY);
        assert_true(!status == (device.decoder != NULL));
    }
    assert_in_range(failures, 4, 100);
    device_close(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(baseline_images_come_out_as_libjpeg_decodes_them),
        cmocka_unit_test(batches_follow_one_another_without_waiting),
        cmocka_unit_test(every_way_of_decoding_gives_the_same_pixels),
        cmocka_unit_test(what_the_hardware_cannot_do_is_not_taken),
        cmocka_unit_test(bad_images_are_marked_and_the_others_decoded),
        cmocka_unit_test(its_memory_is_counted_and_given_back),
        cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
