/* test_pipeline.c -- what holds for every chain: memory it takes and keeps, allocations that fail,
 * and arrays that are no images. */
#include "base/testing.h"

#include "stoker/pipeline.h"
#include "pipeline/pipeline.h"

static struct stk_error err;

/* A chain with a value that it takes. */
struct trial {
    const char *chain;
    enum stk_dtype dtype;
    int32_t rank;
    int64_t shape[4];
};

#define IMAGE                                                                                      \
    STK_U8, 3,                                                                                     \
    {                                                                                              \
        40, 60, 3                                                                                  \
    }
#define VIDEO                                                                                      \
    STK_U8, 4,                                                                                     \
    {                                                                                              \
        3, 30, 20, 3                                                                               \
    }
#define SOUND                                                                                      \
    STK_F32, 2,                                                                                    \
    {                                                                                              \
        2, 5000                                                                                    \
    }
#define CLOUD                                                                                      \
    STK_F32, 2,                                                                                    \
    {                                                                                              \
        500, 4                                                                                     \
    }
static const struct trial trials[] = {
    {"RandomResizedCrop(32) | RandomHorizontalFlip | Normalize(imagenet) | Layout('CHW')", IMAGE},
    {"Resize((20, 90), 'lanczos') | Cast('float16')", IMAGE},
    {"Resize(70) | CenterCrop(90) | RandomCrop(50, padding=4) | RandomVerticalFlip", IMAGE},
    {"ColorJitter(0.5, 0.5, 0.5, 0.2) | Grayscale(3) | Pad(3, padding_mode='reflect')", IMAGE},
    {"GaussianBlur(5) | RandomRotation(30, 'bilinear') | RandomErasing(1, value='random')", IMAGE},
    {"TrivialAugment | Cast('int32') | Cast('float32') | Noise", IMAGE},
    {"GaussianBlur(3) | RandomResizedCrop(16) | TrivialAugment", VIDEO},
    {"TemporalCrop(2) | Resize(12) | Normalize(0.5, 0.5) | Layout('CTHW') | RandomErasing(1)",
     VIDEO},
    {"Gain((-3, 3)) | LogMel(n_fft=256, n_mels=20, rate=16000) | SpecAugment", SOUND},
    {"Rotate | Scale | Jitter | Drop(0.2)", CLOUD},
    {"Rotate | Drop(0.5, replace=False) | Noise(0.1)", CLOUD},
    {"TemporalCrop(100, axis=1) | Normalize(0, 2) | Cast('bfloat16') | Noise", SOUND},
};
#define TRIALS (sizeof trials / sizeof trials[0])

struct work {
    struct pipeline *pipeline;
    struct pipeline_state *state;
    struct stk_tensor value;
    struct stk_flow result;
};

static void work_value(struct work *work, const struct trial *trial)
{
    *work = (struct work){.value = {.dtype = trial->dtype, .rank = trial->rank}};
    memcpy(work->value.shape, trial->shape, sizeof trial->shape);
    uint64_t size = stk_tensor_size(&work->value);
    uint8_t *data = calloc(1, size + 1);
    assert_non_null(data);
    for (uint64_t i = 0; i < size; i++)
        data[i] = (uint8_t)(trial->dtype == STK_U8 || i % 4 == 1 ? i * 7 : 0);
    work->value.data = data;
}

static stk_status work_new(struct work *work, const char *chain)
{
    struct pipeline_options options = {.chain = chain, .tensor = work->value};
    stk_status status = pipeline_new(&work->pipeline, &options, &err);
    return status ? status : pipeline_state_new(&work->state, &err);
}

static stk_status work_run(struct work *work, uint64_t key)
{
    struct pipeline_input input = {.bytes = {work->value.data, stk_tensor_size(&work->value)},
                                   .shape = &work->value,
                                   .key = key};
    work->result = (struct stk_flow){0};
    return pipeline_run(work->pipeline, work->state, &input, &work->result, &err);
}

static void work_reset(struct work *work)
{
    pipeline_state_free(work->state);
    pipeline_free(work->pipeline);
    work->state = NULL;
    work->pipeline = NULL;
}

static void work_free(struct work *work)
{
    work_reset(work);
    free(work->value.data);
}

struct counted {
    int64_t calls, fails; /* the call that fails, from 1 on; 0: none */
};

static int count_call(void *user, size_t size)
{
    struct counted *counted = user;
    (void)size;
    return ++counted->calls == counted->fails;
}

static void no_chain_allocates_once_it_is_warm(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++) {
        struct work work;
        struct counted counted = {0};
        work_value(&work, &trials[i]);
        assert_int_equal(work_new(&work, trials[i].chain), STK_OK);
        for (uint64_t key = 0; key < 80; key++) /* some draws take more than others */
            assert_int_equal(work_run(&work, key % 40), STK_OK);
        memory_set_hook(count_call, &counted);
        for (uint64_t key = 0; key < 40; key++)
            assert_int_equal(work_run(&work, key), STK_OK);
        memory_set_hook(NULL, NULL);
        if (counted.calls)
            print_error("%s: %lld allocations\n", trials[i].chain, (long long)counted.calls);
        assert_int_equal(counted.calls, 0);
        work_free(&work);
    }
}

static void any_allocation_may_fail_and_nothing_is_lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < TRIALS; i++) {
        struct work work;
        stk_status status = STK_MEMORY;
        work_value(&work, &trials[i]);
        for (int64_t n = 1; status; n++) {
            struct counted counted = {.fails = n};
            memory_set_hook(count_call, &counted);
            status = work_new(&work, trials[i].chain);
            if (!status)
                status = work_run(&work, 7);
            memory_set_hook(NULL, NULL);
            if (status && status != STK_MEMORY)
                print_error("%s: call %lld: %s\n", trials[i].chain, (long long)n, err.what);
            assert_true(!status || status == STK_MEMORY);
            assert_true(n < 1000);
            if (status && work.state) /* the next sample is none the worse for it */
                assert_int_equal(work_run(&work, 7), STK_OK);
            work_reset(&work);
        }
        work_free(&work);
    }
}

/* Bytes that a state holds after videos of so many frames. */
static uint64_t held_after(const char *chain, int64_t frames)
{
    struct trial trial = {chain, STK_U8, 4, {frames, 64, 64, 3}};
    struct work work;
    work_value(&work, &trial);
    assert_int_equal(work_new(&work, chain), STK_OK);
    for (uint64_t key = 0; key < 2; key++)
        assert_int_equal(work_run(&work, key), STK_OK);
    uint64_t held = pipeline_state_bytes(work.state);
    work_free(&work);
    return held;
}

static void frames_of_a_video_share_what_their_work_takes(void **state)
{
    static const char *const chains[] = {"Resize((512, 8))", "GaussianBlur(3) | Resize((512, 8))"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        uint64_t few = held_after(chains[i], 2), many = held_after(chains[i], 66);
        uint64_t frames = 64 * (64 * 64 * 3 * 2 + 512 * 8 * 3); /* in, a copy, and out */
        assert_true(many < few + 2 * frames);
    }
}

static void what_failed_leaves_no_memory_behind(void **state)
{
    struct trial trial = {"Pad(1000) | RandomCrop(3000)", IMAGE};
    struct work work;
    (void)state;
    work_value(&work, &trial);
    work.value.shape[0] = work.value.shape[1] = -1; /* not known before a sample comes */
    assert_int_equal(work_new(&work, trial.chain), STK_OK);
    memcpy(work.value.shape, trial.shape, sizeof trial.shape);
    for (uint64_t key = 0; key < 3; key++)
        assert_int_equal(work_run(&work, key), STK_SHAPE);
    assert_true(pipeline_state_bytes(work.state) < 1000000);
    work_free(&work);
}

static void an_image_without_pixels_is_refused(void **state)
{
    static const char *const chains[] = {"Normalize(0.5, 0.5)", "RandomErasing", "Cast('int16')",
                                         "Pad(2)", "Grayscale"};
    static const struct trial empty[] = {{"", STK_U8, 3, {0, 5, 3}}, {"", STK_U8, 3, {5, 0, 1}}};
    (void)state;
    for (size_t i = 0; i < sizeof empty / sizeof empty[0]; i++)
        for (size_t k = 0; k < sizeof chains / sizeof chains[0]; k++) {
            struct work work;
            work_value(&work, &empty[i]);
            stk_status status = work_new(&work, chains[k]);
            if (!status)
                status = work_run(&work, 1);
            assert_int_equal(status, STK_SHAPE);
            assert_non_null(strstr(err.what, "pixels"));
            work_free(&work);
        }
}

static void a_fill_that_does_not_fit_the_channels_is_refused(void **state)
{
    static const char *const chains[] = {"Pad(2, fill=(1, 2))", "RandomCrop(9, fill=(1, 2))",
                                         "RandomRotation(9, fill=(1, 2))",
                                         "TrivialAugment(fill=(1, 2))"};
    struct trial trial = {"", IMAGE};
    (void)state;
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        struct work work;
        work_value(&work, &trial);
        assert_int_equal(work_new(&work, chains[i]), STK_USAGE);
        assert_non_null(strstr(err.what, "2 numbers for 3 channels"));
        work_free(&work);
    }
}

static void an_array_that_is_not_aligned_is_refused(void **state)
{
    struct stk_pipeline *pipeline;
    struct stk_flow result;
    float values[5] = {0};
    struct stk_tensor array = {.dtype = STK_F32, .rank = 1, .shape = {4}};
    struct stk_pipeline_input input = {.array = &array};
    (void)state;
    assert_int_equal(stk_pipeline_new(NULL, &pipeline, "Noise", STK_MEDIA_TENSOR, &err), STK_OK);
    array.data = values;
    assert_int_equal(stk_pipeline_run(pipeline, &input, &result, &err), STK_OK);
    array.data = (uint8_t *)values + 1;
    assert_int_equal(stk_pipeline_run(pipeline, &input, &result, &err), STK_USAGE);
    stk_pipeline_free(pipeline);
}

static void a_bad_file_has_a_remedy_whatever_it_is(void **state)
{
    static const char *const files[] = {"FIELDS x\n", "VERSION 9\nDATA ascii\n"};
    (void)state;
    for (int media = STK_MEDIA_IMAGE; media < 2 * STK_MEDIA_COUNT; media++) {
        if (media % STK_MEDIA_COUNT == STK_MEDIA_TENSOR)
            continue;
        const char *file = files[media / STK_MEDIA_COUNT];
        struct pipeline_options options = {.media = (enum stk_media)(media % STK_MEDIA_COUNT)};
        struct pipeline_input input = {.bytes = {(const uint8_t *)file, strlen(file)}};
        struct stk_flow result = {0};
        struct work work = {0};
        assert_int_equal(pipeline_new(&work.pipeline, &options, &err), STK_OK);
        assert_int_equal(pipeline_state_new(&work.state, &err), STK_OK);
        assert_int_not_equal(pipeline_run(work.pipeline, work.state, &input, &result, &err),
                             STK_OK);
        if (!err.remedy[0])
            print_error("%s: %s\n", stk_media_name(options.media), err.what);
        assert_true(err.remedy[0]);
        work_free(&work);
    }
}

/* (T, H, W, C) -> (C, T, H, W) of each float, element by element. */
static void floats_in_the_form_of_pixels_are_laid_out(void **state)
{
    static const enum stk_dtype dtypes[] = {STK_F16, STK_BF16, STK_F32, STK_F64};
    static const struct trial shapes[] = {{"Layout('CHW')", STK_F16, 3, {6, 5, 3}},
                                          {"Layout('CHW')", STK_F16, 3, {6, 5, 2}},
                                          {"Layout('CTHW')", STK_F16, 4, {4, 3, 5, 3}}};
    (void)state;
    for (size_t i = 0; i < 12; i++) {
        struct trial trial = shapes[i % 3];
        struct work work;
        trial.dtype = dtypes[i / 3];
        work_value(&work, &trial);
        uint64_t size = stk_dtype_size(trial.dtype),
                 channels = (uint64_t)trial.shape[trial.rank - 1];
        uint64_t places = stk_tensor_size(&work.value) / size / channels;
        const uint8_t *from = work.value.data;
        assert_int_equal(work_new(&work, trial.chain), STK_OK);
        assert_int_equal(work_run(&work, 0), STK_OK);
        assert_int_equal(work.result.tensor.shape[0], channels);
        const uint8_t *to = work.result.tensor.data;
        for (uint64_t c = 0; c < channels; c++)
            for (uint64_t at = 0; at < places; at++)
                assert_memory_equal(to + (c * places + at) * size,
                                    from + (at * channels + c) * size, size);
        work_free(&work);
    }
}

static void floats_are_pixels_for_nothing_but_layout(void **state)
{
    struct trial trial = {"", STK_F32, 3, {3, 5, 3}};
    struct work work;
    (void)state;
    work_value(&work, &trial);
    assert_int_equal(work_new(&work, "Resize(4) | Layout('CHW')"), STK_USAGE);
    assert_int_equal(work_new(&work, "Layout('CHW') | RandomErasing"), STK_USAGE);
    for (int i = 0; i < 45; i++)
        ((float *)work.value.data)[i] = 1;
    /* channels of a plain tensor come first, those of an image last */
    assert_int_equal(work_new(&work, "Normalize((1, 2, 3), 1)"), STK_OK);
    assert_int_equal(work_run(&work, 0), STK_OK);
    assert_true(((float *)work.result.tensor.data)[1] == 0);
    work_reset(&work);
    assert_int_equal(work_new(&work, "Normalize((1, 2, 3), 1) | Layout('HWC')"), STK_OK);
    assert_int_equal(work_run(&work, 0), STK_OK);
    assert_true(((float *)work.result.tensor.data)[1] == -1);
    work_free(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_chain_allocates_once_it_is_warm),
        cmocka_unit_test(any_allocation_may_fail_and_nothing_is_lost),
        cmocka_unit_test(frames_of_a_video_share_what_their_work_takes),
        cmocka_unit_test(what_failed_leaves_no_memory_behind),
        cmocka_unit_test(an_image_without_pixels_is_refused),
        cmocka_unit_test(a_fill_that_does_not_fit_the_channels_is_refused),
        cmocka_unit_test(an_array_that_is_not_aligned_is_refused),
        cmocka_unit_test(a_bad_file_has_a_remedy_whatever_it_is),
        cmocka_unit_test(floats_in_the_form_of_pixels_are_laid_out),
        cmocka_unit_test(floats_are_pixels_for_nothing_but_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
