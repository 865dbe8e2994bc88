/* test_device_plan.c -- where chains are cut for a device, and the parameters that are drawn for
 * its half: no device is needed to say either. */
#include "base/testing.h"
#include "codec/jpeg_making.h"

#include "pipeline/pipeline_impl.h"
#include "transform/image_kernel.h"

static struct stk_error err;

#define ENCODED_IMAGE                                                                              \
    {                                                                                              \
        .media = STK_MEDIA_IMAGE                                                                   \
    }
#define STORED(type, ...)                                                                          \
    {                                                                                              \
        .tensor = {                                                                                \
            .dtype = STK_##type,                                                                   \
            .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),                            \
            .shape = {__VA_ARGS__}                                                                 \
        }                                                                                          \
    }

/* host | device; kinds: a letter for each pass on the device. */
struct cut {
    struct pipeline_options options;
    const char *host, *device, *passes;
};

static const struct cut cuts[] = {
    /* Stored pixels: geometry and format are one pass. */
    {STORED(U8, 64, 64, 3), "", "RandomCrop(56) | RandomHorizontalFlip | Normalize(imagenet)", "i"},
    {STORED(U8, 64, 64, 3), "", "RandomHorizontalFlip | Cast('float16', True) | Layout('CHW')",
     "i"},
    {STORED(U8, 4, 32, 32, 3), "", "Resize((30, 30)) | CenterCrop(28) | Layout('CTHW')", "i"},
    /* A pass less where nothing is cut: a plain tensor's. */
    {STORED(U8, 64, 64, 3), "", "Normalize(imagenet) | Layout('CHW')", "f"},
    /* Half as many bytes again are shipped at most. */
    {STORED(U8, 256, 256, 3), "RandomResizedCrop(96)", "Normalize(0.5, 0.5)", "f"},
    {STORED(U8, 256, 256, 3), "RandomResizedCrop(96)", "RandomHorizontalFlip | Layout('CHW')", "i"},
    {STORED(U8, 64, 64, 3), "", "Resize((128, 128)) | Normalize(0.5, 0.5)", "i"},
    /* What cannot be one record is begun by the host. */
    {STORED(U8, 64, 64, 3), "Resize((60, 60))", "Resize((58, 58))", "i"},
    {STORED(U8, 64, 64, 3), "", "RandomCrop(62) | Resize((60, 60))", "i"},
    {STORED(U8, 64, 64, 3), "RandomCrop(62, 1)", "Resize((60, 60))", "i"},
    {STORED(U8, 64, 64, 3), "CenterCrop(66)", "RandomCrop(62, 1)", "i"},
    {STORED(U8, 64, 64, 3), "CenterCrop(66)", "RandomCrop(68, pad_if_needed=True)", "i"},
    {STORED(U8, 64, 64, 3), "", "CenterCrop(66) | RandomCrop(62)", "i"},
    {STORED(U8, 64, 64, 3), "RandomHorizontalFlip", "Resize((60, 60), 'nearest')", "i"},
    {STORED(U8, 64, 64, 3), "", "RandomHorizontalFlip | Resize((60, 60))", "i"},
    {STORED(U8, 64, 64, 3), "", "Resize((60, 60)) | CenterCrop(90)", "i"},
    {STORED(U8, 64, 64, 3), "Resize((60, 60))", "CenterCrop(50) | CenterCrop(70)", "i"},
    /* Steps with a twin of their own; geometry behind them would need another record. */
    {STORED(U8, 64, 64, 3), "", "RandomCrop(60) | ColorJitter(0.4) | Normalize(imagenet)", "isf"},
    {STORED(U8, 64, 64, 3), "", "ColorJitter(0.4) | Grayscale(3) | Layout('CHW')", "ssf"},
    {STORED(U8, 64, 64, 3), "ColorJitter(0.4)", "RandomCrop(60) | Normalize(imagenet)", "i"},
    {STORED(U8, 64, 64, 3), "TrivialAugment", "ColorJitter(0.4)", "s"},
    {ENCODED_IMAGE, "RandomResizedCrop(64)", "ColorJitter(0.4) | Cast('float16')", "isf"},
    /* What the device has no twin for, and what stands before it, is the host's. */
    {STORED(U8, 64, 64, 3), "RandomCrop(60) | TrivialAugment", "Normalize(imagenet)", "f"},
    {STORED(U8, 64, 64, 3), "RandomCrop(64, 4, padding_mode='reflect')", "RandomHorizontalFlip",
     "i"},
    {STORED(U8, 64, 64, 3), "", "RandomCrop(60, padding_mode='edge')", "i"},
    {STORED(U8, 64, 64, 3), "RandomRotation(30, expand=True) | CenterCrop(64)",
     "Normalize(0.5, 0.5)", "f"},
    {STORED(U8, 8, 32, 32, 3), "RandomCrop(30) | TemporalCrop(4)", "Layout('CTHW')", "f"},
    {STORED(U8, 64, 64, 3), "TrivialAugment", "", ""},
    /* Plain tensors, and floats in the form of pixels. */
    {STORED(F16, 16, 112, 112, 3), "", "Layout('CTHW')", "f"},
    {STORED(F32, 20, 30, 3), "", "Normalize(0.5, 0.25) | Layout('CHW')", "f"},
    {STORED(BF16, 20, 30, 2), "", "Layout('CHW')", "f"},
    {STORED(F32, 100), "Normalize(0, 2) | Cast('float16')", "", ""},
    {STORED(F32, -1, 30), "Normalize(0, 2)", "", ""},
    {STORED(F32, 50, 30), "TemporalCrop(40)", "Normalize(0, 2)", "f"},
    {STORED(F32, 50, 30), "", "Noise(0.1) | Normalize(0, 2)", "sf"},
    /* Encoded images: the decoder cuts. */
    {ENCODED_IMAGE, "RandomResizedCrop(64) | RandomHorizontalFlip",
     "Normalize(imagenet) | Layout('CHW')", "i"},
    {ENCODED_IMAGE, "Resize(72) | CenterCrop(64)", "Normalize(imagenet) | Cast('float16')", "i"},
    {ENCODED_IMAGE, "RandomResizedCrop(64)", "", "i"},
    {ENCODED_IMAGE, "RandomCrop(64, 4, True, padding_mode='edge')", "Layout('CHW')", "f"},
    {ENCODED_IMAGE, "DecodeImage('gray') | RandomResizedCrop(64)", "Normalize(0.5, 0.5)", "i"},
    {ENCODED_IMAGE, "DecodeImage('rgba') | RandomResizedCrop(64)", "Normalize(0.5, 0.5)", "f"},
    {ENCODED_IMAGE, "DecodeImage('rgba') | RandomResizedCrop(64)", "", ""},
    {ENCODED_IMAGE, "TrivialAugment | RandomResizedCrop(64)", "Layout('CHW')", "f"},
    {ENCODED_IMAGE, "Resize(64) | Normalize(imagenet)", "", ""},
    {ENCODED_IMAGE, "DecodeImage('keep') | RandomResizedCrop(64) | Normalize(0.5, 0.5)", "", ""},
};
#define CUTS (sizeof cuts / sizeof cuts[0])

/* Of steps [first, end). */
static void part_text(const struct pipeline *pipeline, uint32_t first, uint32_t end, char *text,
                      size_t cap)
{
    struct chain part = {.count = end - first};
    memcpy(part.steps, pipeline->chain.steps + first, part.count * sizeof part.steps[0]);
    chain_text(&part, text, cap);
}

static void whole_chain(const struct cut *cut, char *text, size_t cap)
{
    snprintf(text, cap, "%s%s%s", cut->host, *cut->host && *cut->device ? " | " : "", cut->device);
}

/* The text as it would be written again. */
static void canonical(const char *chain, char *text, size_t cap)
{
    struct chain parsed;
    assert_int_equal(chain_parse(&parsed, chain, NULL, &err), STK_OK);
    chain_text(&parsed, text, cap);
    chain_reset(&parsed);
}

static struct pipeline *made(const struct pipeline_options *given, const char *chain, int device)
{
    struct pipeline_options options = *given;
    struct pipeline *pipeline;
    options.chain = chain;
    options.device = device;
    stk_status status = pipeline_new(&pipeline, &options, &err);
    if (status)
        print_error("%s: %s\n", chain, err.what);
    assert_int_equal(status, STK_OK);
    return pipeline;
}

static void passes_text(const struct pipeline *pipeline, char *text)
{
    for (uint32_t i = 0; i < pipeline->plan.count; i++)
        *text++ = "ifs"[pipeline->plan.passes[i].kind];
    *text = 0;
}

static void chains_are_cut_where_the_device_can_go_on(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        char chain[512], host[512], device[512], text[512], passes[CHAIN_MAX_STEPS + 2];
        whole_chain(&cuts[i], chain, sizeof chain);
        struct pipeline *pipeline = made(&cuts[i].options, chain, 1);
        part_text(pipeline, (uint32_t)pipeline->defaulted, pipeline->cut, host, sizeof host);
        part_text(pipeline, pipeline->cut, pipeline->chain.count, device, sizeof device);
        passes_text(pipeline, passes);
        canonical(cuts[i].host, text, sizeof text);
        assert_string_equal(host, text);
        canonical(cuts[i].device, text, sizeof text);
        assert_string_equal(device, text);
        assert_string_equal(passes, cuts[i].passes);
        assert_int_equal(!pipeline_params_size(pipeline), !*passes);
        pipeline_free(pipeline);
    }
}

static void the_two_halves_begin_and_end_as_the_whole(void **state)
{
    (void)state;
    for (size_t i = 0; i < CUTS; i++) {
        char chain[512];
        whole_chain(&cuts[i], chain, sizeof chain);
        struct pipeline *whole = made(&cuts[i].options, chain, 0);
        struct pipeline *halves = made(&cuts[i].options, chain, 1);
        assert_int_equal(pipeline_params_size(whole), 0);
        assert_memory_equal(pipeline_device_out(halves), pipeline_out(whole),
                            sizeof(struct stk_flow));
        assert_memory_equal(pipeline_device_out(whole), pipeline_out(whole),
                            sizeof(struct stk_flow));
        const struct device_plan *plan = &halves->plan;
        if (plan->count) {
            assert_memory_equal(&plan->passes[0].in, pipeline_out(halves), sizeof(struct stk_flow));
            assert_memory_equal(&plan->passes[plan->count - 1].out, pipeline_device_out(halves),
                                sizeof(struct stk_flow));
        }
        for (uint32_t p = 1; p < plan->count; p++)
            assert_memory_equal(&plan->passes[p].in, &plan->passes[p - 1].out,
                                sizeof(struct stk_flow));
        pipeline_free(whole);
        pipeline_free(halves);
    }
}

static void values_fill(uint8_t *data, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++)
        data[i] = (uint8_t)made_noise((uint32_t)i);
}

#define PARAMS_MOST 4096

static void parameters_are_the_same_whether_a_value_is_shipped_or_lies_there(void **state)
{
    (void)state;
    struct pipeline_options options = STORED(U8, 40, 60, 3);
    struct pipeline *pipeline =
        made(&options, "RandomCrop((36, 50)) | RandomHorizontalFlip | Normalize(0.5, 0.5)", 1);
    struct pipeline_state *own;
    static uint8_t pixels[40 * 60 * 3];
    uint8_t shipped[PARAMS_MOST], aimed[PARAMS_MOST], other[PARAMS_MOST];
    assert_int_equal(pipeline_state_new(&own, &err), STK_OK);
    assert_true(pipeline_ships_stored(pipeline));
    values_fill(pixels, sizeof pixels);
    uint32_t size = pipeline_params_size(pipeline), differ = 0;
    assert_int_equal(size, sizeof(struct image_record));
    for (uint64_t key = 0; key < 20; key++) {
        struct stk_flow result = {0};
        struct pipeline_input input = {.bytes = {pixels, sizeof pixels},
                                       .shape = &options.tensor,
                                       .key = key,
                                       .params = shipped,
                                       .place = key};
        assert_int_equal(pipeline_run(pipeline, own, &input, &result, &err), STK_OK);
        assert_ptr_equal(result.tensor.data, pixels); /* the host does nothing */
        input.params = aimed;
        assert_int_equal(pipeline_aim_stored(pipeline, &input, &err), STK_OK);
        assert_memory_equal(shipped, aimed, size);
        struct image_record record;
        memcpy(&record, shipped, sizeof record);
        assert_int_equal(record.pixels, key * sizeof pixels);
        assert_int_equal(record.source, 0);
        assert_int_equal(record.width, 60);
        assert_int_equal(record.height, 40);
        if (key && memcmp(&record.x, other, 8))
            differ++;
        memcpy(other, &record.x, 8);
    }
    assert_true(differ > 10); /* drawn for each */
    struct stk_tensor another = {.dtype = STK_U8, .rank = 3, .shape = {40, 61, 3}};
    struct pipeline_input input = {.shape = &another, .params = aimed};
    assert_int_equal(pipeline_aim_stored(pipeline, &input, &err), STK_SHAPE);
    pipeline_state_free(own);
    pipeline_free(pipeline);
}

static void a_pipeline_without_a_device_half_writes_no_parameters(void **state)
{
    (void)state;
    struct pipeline_options options = STORED(F32, 4, 5);
    struct pipeline *pipeline = made(&options, "TemporalCrop(3)", 1);
    struct pipeline_state *own;
    float values[20] = {0};
    uint8_t untouched[64] = {0}, params[64] = {0};
    struct stk_flow result = {0};
    struct pipeline_input input = {
        .bytes = {(void *)values, sizeof values}, .shape = &options.tensor, .params = params};
    assert_int_equal(pipeline_state_new(&own, &err), STK_OK);
    assert_int_equal(pipeline_params_size(pipeline), 0);
    assert_false(pipeline_ships_stored(pipeline));
    assert_int_equal(pipeline_run(pipeline, own, &input, &result, &err), STK_OK);
    assert_memory_equal(params, untouched, sizeof params);
    pipeline_state_free(own);
    pipeline_free(pipeline);
}

/* --- images that the device decodes ----------------------------------------------------------- */

static void record_geometry(const struct image_record *record, const struct stk_tensor *out,
                            struct image_geometry *geometry)
{
    *geometry = (struct image_geometry){.width = record->width,
                                        .height = record->height,
                                        .x = record->x,
                                        .y = record->y,
                                        .box_width = record->box_width,
                                        .box_height = record->box_height,
                                        .resized = record->resized,
                                        .filter = (enum image_filter)record->filter,
                                        .antialias = record->antialias,
                                        .to_width = record->to_width,
                                        .to_height = record->to_height,
                                        .out_x = record->out_x,
                                        .out_y = record->out_y,
                                        .out_width = (int32_t)out->shape[1],
                                        .out_height = (int32_t)out->shape[0],
                                        .flip_x = record->flip_x,
                                        .flip_y = record->flip_y};
    memcpy(geometry->fill, record->fill, sizeof geometry->fill);
}

/* What a device makes of the box: libjpeg's pixels of it alone, by the record. */
static void make_by_record(const struct stk_bytes *bytes, const struct pipeline_box *box,
                           const struct image_record *record, const struct stk_tensor *out,
                           uint8_t *to)
{
    int width, height;
    uint8_t *full = jpeg_oracle(bytes, JCS_RGB, 8, &width, &height);
    struct image_geometry geometry;
    struct image_writer writer;
    struct scratch scratch = {0};
    assert_int_equal(box->image_width, width);
    assert_int_equal(box->image_height, height);
    assert_true(box->x >= 0 && box->y >= 0 && box->width > 0 && box->height > 0);
    assert_true(box->x + box->width <= width && box->y + box->height <= height);
    assert_true(record->source == 1 && record->x == 0 && record->y == 0);
    assert_true(record->width == box->width && record->height == box->height);
    size_t row = (size_t)box->width * 3;
    uint8_t *pixels = calloc(1, row * (size_t)box->height + 64);
    for (int32_t y = 0; y < box->height; y++)
        memcpy(pixels + row * (size_t)y,
               full + ((size_t)(box->y + y) * (size_t)width + (size_t)box->x) * 3, row);
    struct image_view view = {.pixels = pixels,
                              .stride = (int64_t)row,
                              .width = box->width,
                              .height = box->height,
                              .channels = 3,
                              .x1 = box->width,
                              .y1 = box->height};
    record_geometry(record, out, &geometry);
    image_writer_init(&writer, STK_U8, (int32_t)out->shape[1], (int32_t)out->shape[0], 3, 0);
    assert_int_equal(image_resample(&view, &geometry, &writer, to, &scratch, &err), STK_OK);
    scratch_free(&scratch);
    free(pixels);
    free(full);
}

static const char *const aimed_chains[] = {
    "RandomResizedCrop(32) | RandomHorizontalFlip",
    "Resize(48) | CenterCrop(40)",
    "CenterCrop(150) | RandomVerticalFlip",
    "RandomCrop(64, padding=4) | RandomHorizontalFlip",
};

static void an_aimed_box_and_its_record_make_what_the_cpu_makes(void **state)
{
    (void)state;
    struct jpeg_recipe recipe = {.width = 120, .height = 90, .h = 2, .v = 2};
    struct stk_bytes bytes = jpeg_made(&recipe);
    struct pipeline_options options = ENCODED_IMAGE;
    struct pipeline_state *own;
    static uint8_t made_so[150 * 150 * 3];
    assert_int_equal(pipeline_state_new(&own, &err), STK_OK);
    for (size_t i = 0; i < sizeof aimed_chains / sizeof aimed_chains[0]; i++) {
        struct pipeline *whole = made(&options, aimed_chains[i], 0);
        struct pipeline *halves = made(&options, aimed_chains[i], 1);
        assert_true(pipeline_may_aim(halves));
        assert_false(pipeline_may_aim(whole));
        for (uint64_t key = 0; key < 10; key++) {
            uint8_t params[PARAMS_MOST];
            struct pipeline_box box;
            struct image_record record;
            struct stk_flow result = {0};
            struct pipeline_input input = {.bytes = bytes, .key = key, .params = params};
            assert_int_equal(pipeline_aim(halves, own, &input, &box, &err), STK_OK);
            memcpy(&record, params, sizeof record);
            const struct stk_tensor *out = &pipeline_out(halves)->tensor;
            make_by_record(&bytes, &box, &record, out, made_so);
            assert_int_equal(pipeline_run(whole, own, &input, &result, &err), STK_OK);
            assert_memory_equal(result.tensor.data, made_so, stk_tensor_size(out));
        }
        pipeline_free(whole);
        pipeline_free(halves);
    }
    pipeline_state_free(own);
    free((void *)bytes.data);
}

static void what_the_device_cannot_decode_is_for_the_cpu(void **state)
{
    (void)state;
    struct pipeline_options options = ENCODED_IMAGE;
    struct jpeg_recipe progressive = {.width = 64, .height = 48, .progressive = 1};
    struct stk_bytes bytes = jpeg_made(&progressive);
    struct pipeline *small =
        made(&options, "DecodeImage(max_pixels=100) | RandomResizedCrop(8)", 1);
    struct pipeline *pipeline = made(&options, "RandomResizedCrop(8)", 1);
    /* Twice resized: some draws are one step, others are not. */
    struct pipeline *twice = made(&options, "Resize(32) | RandomResizedCrop(8)", 1);
    uint8_t params[PARAMS_MOST];
    struct pipeline_box box;
    struct pipeline_input input = {.bytes = bytes, .params = params};
    assert_int_equal(pipeline_aim(pipeline, NULL, &input, &box, &err), STK_UNSUPPORTED);
    free((void *)bytes.data);
    struct jpeg_recipe plain = {.width = 64, .height = 48};
    bytes = input.bytes = jpeg_made(&plain);
    assert_int_equal(pipeline_aim(pipeline, NULL, &input, &box, &err), STK_OK);
    assert_int_equal(pipeline_aim(small, NULL, &input, &box, &err), STK_UNSUPPORTED);
    assert_int_equal(pipeline_aim(twice, NULL, &input, &box, &err), STK_UNSUPPORTED);
    free((void *)bytes.data);
    pipeline_free(small);
    pipeline_free(pipeline);
    pipeline_free(twice);
}

/* --- memory ----------------------------------------------------------------------------------- */

struct counted {
    int64_t calls, fails; /* the call that fails, from 1 on; 0: none */
};

static int count_call(void *user, size_t size)
{
    struct counted *counted = user;
    (void)size;
    return ++counted->calls == counted->fails;
}

static void drawing_for_the_device_allocates_nothing(void **state)
{
    (void)state;
    struct pipeline_options options = STORED(U8, 40, 60, 3);
    struct pipeline *pipeline =
        made(&options, "RandomCrop((38, 56)) | ColorJitter(0.3) | Normalize(0.5, 0.5)", 1);
    struct pipeline_state *own;
    struct counted counted = {0};
    static uint8_t pixels[40 * 60 * 3];
    uint8_t params[PARAMS_MOST];
    struct pipeline_input input = {
        .bytes = {pixels, sizeof pixels}, .shape = &options.tensor, .params = params};
    assert_int_equal(pipeline_state_new(&own, &err), STK_OK);
    memory_set_hook(count_call, &counted);
    for (; input.key < 20; input.key++) {
        struct stk_flow result = {0};
        assert_int_equal(pipeline_run(pipeline, own, &input, &result, &err), STK_OK);
        assert_int_equal(pipeline_aim_stored(pipeline, &input, &err), STK_OK);
    }
    memory_set_hook(NULL, NULL);
    assert_int_equal(counted.calls, 0);
    pipeline_state_free(own);
    pipeline_free(pipeline);
}

static void any_allocation_may_fail_while_a_chain_is_cut(void **state)
{
    (void)state;
    struct pipeline_options options = STORED(U8, 40, 60, 3);
    stk_status status = STK_MEMORY;
    options.chain = "RandomCrop((38, 56)) | ColorJitter(0.3) | Normalize(0.5, 0.5)";
    options.device = 1;
    for (int64_t n = 1; status; n++) {
        struct counted counted = {.fails = n};
        struct pipeline *pipeline;
        memory_set_hook(count_call, &counted);
        status = pipeline_new(&pipeline, &options, &err);
        memory_set_hook(NULL, NULL);
        assert_true(!status || (status == STK_MEMORY && !pipeline));
        assert_true(n < 100);
        pipeline_free(pipeline);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_are_the_same_whether_a_value_is_shipped_or_lies_there),
        cmocka_unit_test(a_pipeline_without_a_device_half_writes_no_parameters),
        cmocka_unit_test(an_aimed_box_and_its_record_make_what_the_cpu_makes),
        cmocka_unit_test(what_the_device_cannot_decode_is_for_the_cpu),
        cmocka_unit_test(drawing_for_the_device_allocates_nothing),
        cmocka_unit_test(any_allocation_may_fail_while_a_chain_is_cut),
        cmocka_unit_test(chains_are_cut_where_the_device_can_go_on),
        cmocka_unit_test(the_two_halves_begin_and_end_as_the_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
