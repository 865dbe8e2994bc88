/* test_audio_run.c -- recordings through a pipeline: decoded, cut, padded, mixed, resampled, and on
 * through the steps that follow. */
#include "base/testing.h"

#include <math.h>

#include "pipeline/pipeline.h"

#define CORPUS "tests/fuzz/corpus/audio"

static struct stk_error err;
static struct pipeline_state *work;

static int make_state(void **state)
{
    (void)state;
    return pipeline_state_new(&work, &err);
}

static int free_state(void **state)
{
    (void)state;
    pipeline_state_free(work);
    return 0;
}

static struct stk_bytes load(const char *name)
{
    struct stk_bytes bytes;
    bytes.data = (uint8_t *)file_read(path_in(CORPUS, name), &bytes.len);
    return bytes;
}

static struct pipeline *compile(const char *chain)
{
    struct pipeline *pipeline;
    struct pipeline_options options = {.chain = chain, .media = STK_MEDIA_AUDIO};
    assert_int_equal(pipeline_new(&pipeline, &options, &err), STK_OK);
    return pipeline;
}

/* Runs a chain on a file of the corpus; the result is the state's. */
static stk_status run(const char *chain, const char *name, uint64_t key, struct stk_flow *result)
{
    struct pipeline *pipeline = compile(chain);
    struct stk_bytes bytes = load(name);
    struct pipeline_input input = {.bytes = bytes, .key = key};
    *result = (struct stk_flow){0};
    stk_status status = pipeline_run(pipeline, work, &input, result, &err);
    free((void *)bytes.data);
    pipeline_free(pipeline);
    if (status == STK_UNSUPPORTED)
        skip(); /* a build without libsndfile or libsoxr */
    return status;
}

static float tone(int64_t i, double hz)
{
    return (float)lrint(12000 * sin(2 * M_PI * hz * (double)i / 16000)) / 32768;
}

static void a_recording_is_decoded_whole_by_default(void **state)
{
    struct stk_flow out;
    (void)state;
    assert_int_equal(run(NULL, "tone.flac", 1, &out), STK_OK);
    assert_int_equal(out.media, STK_MEDIA_AUDIO);
    assert_int_equal(out.tensor.dtype, STK_F32);
    assert_int_equal(out.tensor.rank, 2);
    assert_int_equal(out.tensor.shape[0], 2);
    assert_int_equal(out.tensor.shape[1], 4000);
    assert_int_equal(out.real, -1);
    assert_true(out.rate == 16000);
    const float *data = out.tensor.data;
    for (int64_t i = 0; i < 4000; i++)
        assert_true(data[i] == tone(i, 440) && data[4000 + i] == tone(i, 330));
}

static void a_fixed_length_cuts_and_pads_every_channel(void **state)
{
    struct stk_flow out;
    (void)state;
    assert_int_equal(run("DecodeAudio(frames=100, crop='center')", "tone.flac", 1, &out), STK_OK);
    const float *data = out.tensor.data;
    for (int64_t i = 0; i < 100; i++)
        assert_true(data[i] == tone(1950 + i, 440) && data[100 + i] == tone(1950 + i, 330));
    assert_int_equal(out.real, 100);
    assert_int_equal(run("DecodeAudio(frames=5000)", "tone.flac", 1, &out), STK_OK);
    assert_int_equal(out.real, 4000);
    data = out.tensor.data;
    for (int64_t i = 0; i < 5000; i++) {
        assert_true(data[i] == (i < 4000 ? tone(i, 440) : 0));
        assert_true(data[5000 + i] == (i < 4000 ? tone(i, 330) : 0));
    }
    assert_int_equal(run("DecodeAudio(frames=5000, pad=False)", "tone.flac", 1, &out), STK_SHAPE);
}

static void mono_is_the_mean_of_the_channels(void **state)
{
    struct stk_flow out;
    (void)state;
    assert_int_equal(run("DecodeAudio(mono=True)", "tone.flac", 1, &out), STK_OK);
    assert_int_equal(out.tensor.shape[0], 1);
    const float *data = out.tensor.data;
    for (int64_t i = 0; i < 4000; i++)
        assert_true(fabsf(data[i] - (tone(i, 440) + tone(i, 330)) / 2) < 1e-6f);
}

static void a_resampled_cut_is_that_of_the_resampled_whole(void **state)
{
    struct stk_flow out;
    (void)state;
    assert_int_equal(run("DecodeAudio(44100)", "tone.flac", 1, &out), STK_OK);
    assert_int_equal(out.tensor.shape[1], 11025);
    assert_true(out.rate == 44100);
    float *whole = malloc(2 * 11025 * sizeof(float));
    memcpy(whole, out.tensor.data, 2 * 11025 * sizeof(float));
    assert_int_equal(run("DecodeAudio(44100, frames=1000, crop='center')", "tone.flac", 1, &out),
                     STK_OK);
    const float *data = out.tensor.data;
    for (int64_t i = 0; i < 2000; i++) {
        int64_t place = i / 1000 * 11025 + 5013 + i % 1000;
        assert_true(fabsf(data[i] - whole[place]) < 1e-4f);
    }
    free(whole);
}

static void a_random_cut_follows_the_key_alone(void **state)
{
    static const char chain[] = "DecodeAudio(frames=500, crop='random')";
    struct stk_flow out;
    float first[1000], other[1000];
    int different = 0;
    (void)state;
    for (uint64_t key = 0; key < 10; key++) {
        assert_int_equal(run(chain, "tone.flac", key, &out), STK_OK);
        memcpy(first, out.tensor.data, sizeof first);
        assert_int_equal(run(chain, "tone.flac", key, &out), STK_OK);
        assert_memory_equal(first, out.tensor.data, sizeof first);
        different += key && memcmp(first, other, sizeof first);
        memcpy(other, first, sizeof first);
    }
    assert_true(different >= 8);
}

static void steps_follow_and_the_result_goes_to_its_place(void **state)
{
    static const char chain[] = "DecodeAudio(mono=True, frames=4096) | Gain((-3, 3)) | "
                                "LogMel(256, 128, n_mels=20, rate=16000) | SpecAugment(1, 4, 1, 5)";
    struct pipeline *pipeline = compile(chain);
    const struct stk_flow *out = pipeline_out(pipeline);
    (void)state;
    assert_int_equal(out->tensor.rank, 3);
    assert_int_equal(out->tensor.shape[0], 1);
    assert_int_equal(out->tensor.shape[1], 20);
    assert_int_equal(out->tensor.shape[2], 33);
    assert_true(pipeline_pads(pipeline));
    struct stk_bytes bytes = load("tone.flac");
    struct pipeline_input input = {.bytes = bytes, .key = 3};
    float place[20 * 33], again[20 * 33];
    struct stk_flow result = *out;
    result.tensor.data = place;
    stk_status status = pipeline_run(pipeline, work, &input, &result, &err);
    if (!status) {
        assert_ptr_equal(result.tensor.data, place);
        assert_int_equal(result.real, 32);
        result = *out;
        result.tensor.data = again;
        status = pipeline_run(pipeline, work, &input, &result, &err);
        assert_memory_equal(place, again, sizeof place);
    }
    free((void *)bytes.data);
    pipeline_free(pipeline);
    if (status == STK_UNSUPPORTED)
        skip();
    assert_int_equal(status, STK_OK);
}

static void a_decoded_recording_goes_straight_to_its_place(void **state)
{
    struct pipeline *pipeline = compile("DecodeAudio(mono=True, frames=4100)");
    struct stk_bytes bytes = load("tone.mp3");
    struct pipeline_input input = {.bytes = bytes, .key = 3};
    struct stk_flow result = *pipeline_out(pipeline);
    float *place = malloc(4100 * sizeof(float));
    (void)state;
    for (int i = 0; i < 4100; i++)
        place[i] = 9;
    result.tensor.data = place;
    stk_status status = pipeline_run(pipeline, work, &input, &result, &err);
    if (!status) {
        assert_ptr_equal(result.tensor.data, place);
        assert_int_equal(result.real, 4000);
        for (int i = 4000; i < 4100; i++)
            assert_true(place[i] == 0);
        assert_true(fabsf(place[2000] - tone(2000, 440)) < 0.05f);
    }
    free(place);
    free((void *)bytes.data);
    pipeline_free(pipeline);
    if (status == STK_UNSUPPORTED)
        skip();
    assert_int_equal(status, STK_OK);
}

static void bad_bytes_are_an_error_and_the_next_sample_is_fine(void **state)
{
    struct stk_flow out;
    (void)state;
    assert_int_equal(run(NULL, "html", 1, &out), STK_CORRUPT);
    assert_int_equal(run(NULL, "empty", 1, &out), STK_CORRUPT);
    assert_int_equal(run(NULL, "mp3_cut", 1, &out), STK_TRUNCATED);
    assert_int_equal(run(NULL, "flac_says_too_much", 1, &out), STK_CORRUPT);
    assert_int_equal(run(NULL, "tone.ogg", 1, &out), STK_OK);
}

static int count_calls(void *user, size_t size)
{
    (void)size;
    ++*(int *)user;
    return 0;
}

static void after_the_first_samples_nothing_is_allocated(void **state)
{
    struct pipeline *pipeline =
        compile("DecodeAudio(8000, mono=True, frames=1500) | Gain(3) | LogMel(256, 128)");
    struct stk_bytes bytes = load("tone.flac");
    struct pipeline_input input = {.bytes = bytes, .key = 3};
    stk_status status = STK_OK;
    int calls = 0;
    (void)state;
    for (int i = 0; i < 6 && !status; i++) {
        struct stk_flow result = {0};
        memory_set_hook(i < 3 ? NULL : count_calls, &calls);
        status = pipeline_run(pipeline, work, &input, &result, &err);
    }
    memory_set_hook(NULL, NULL);
    free((void *)bytes.data);
    pipeline_free(pipeline);
    if (status == STK_UNSUPPORTED)
        skip();
    assert_int_equal(status, STK_OK);
    assert_int_equal(calls, 0);
}

static int run_once(void *user)
{
    const struct stk_bytes *bytes = user;
    struct pipeline *pipeline = NULL;
    struct pipeline_state *own = NULL;
    struct pipeline_options options = {
        .chain = "DecodeAudio(8000, mono=True, frames=600) | Resample(4000) | LogMel(64, 32)",
        .media = STK_MEDIA_AUDIO};
    struct pipeline_input input = {.bytes = *bytes, .key = 3};
    struct stk_flow result = {0};
    stk_status status = pipeline_new(&pipeline, &options, NULL);
    if (!status)
        status = pipeline_state_new(&own, NULL);
    if (!status)
        status = pipeline_run(pipeline, own, &input, &result, NULL);
    pipeline_state_free(own);
    pipeline_free(pipeline);
    return status != STK_MEMORY;
}

static void failing_memory_is_an_error_and_leaks_nothing(void **state)
{
    struct stk_bytes bytes = load("tone.flac");
    (void)state;
    fail_each_allocation(run_once, &bytes);
    free((void *)bytes.data);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_state, free_state)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_recording_is_decoded_whole_by_default),
        TEST(a_fixed_length_cuts_and_pads_every_channel),
        TEST(mono_is_the_mean_of_the_channels),
        TEST(a_resampled_cut_is_that_of_the_resampled_whole),
        TEST(a_random_cut_follows_the_key_alone),
        TEST(steps_follow_and_the_result_goes_to_its_place),
        TEST(a_decoded_recording_goes_straight_to_its_place),
        TEST(bad_bytes_are_an_error_and_the_next_sample_is_fine),
        TEST(after_the_first_samples_nothing_is_allocated),
        TEST(failing_memory_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
