/* test_audio_transform.c -- DecodeAudio's choice of frames, resampling, Gain, Resample and
 * SpecAugment. */
#include "base/testing.h"

#include <math.h>

#include "base/random.h"
#include "transform/audio_range.h"
#include "transform/audio_resample.h"
#include "transform/chain.h"

static struct stk_error err;

static struct stk_flow sound(float *data, int64_t channels, int64_t frames, double rate)
{
    return (struct stk_flow){
        .media = STK_MEDIA_AUDIO,
        .tensor = {.data = data, .dtype = STK_F32, .rank = 2, .shape = {channels, frames}},
        .rate = rate,
        .real = -1};
}

/* --- DecodeAudio ------------------------------------------------------------------------------ */

/* The range that a text chooses of a recording, and the flow that comes out. */
static stk_status choose(const char *text, uint64_t key, int64_t frames, struct audio_range *range,
                         struct stk_flow *flow)
{
    _Alignas(16) uint8_t params[TRANSFORM_PARAMS] = {0};
    struct chain chain;
    *flow = sound(NULL, 2, frames, 44100);
    stk_status status = chain_parse(&chain, text, NULL, &err);
    if (status)
        return status;
    const struct chain_step *step = &chain.steps[0];
    step->ops->draw(step->args, key, flow, params);
    audio_range_find(step->args, (const void *)params, flow, range);
    status = step->ops->shape(step->args, params, flow, &err);
    chain_reset(&chain);
    return status;
}

static void all_of_a_recording_is_taken_when_nothing_is_said(void **state)
{
    struct audio_range range;
    struct stk_flow flow;
    (void)state;
    assert_int_equal(choose("DecodeAudio", 1, 1000, &range, &flow), STK_OK);
    assert_int_equal(range.first, 0);
    assert_int_equal(range.count, 1000);
    assert_int_equal(range.length, 1000);
    assert_int_equal(flow.tensor.shape[0], 2);
    assert_int_equal(flow.tensor.shape[1], 1000);
    assert_int_equal(flow.real, -1);
    assert_true(flow.rate == 44100);
}

static void a_longer_recording_is_cut_where_crop_says(void **state)
{
    struct audio_range range;
    struct stk_flow flow;
    (void)state;
    assert_int_equal(choose("DecodeAudio(frames=100)", 1, 1000, &range, &flow), STK_OK);
    assert_int_equal(range.first, 0);
    assert_int_equal(range.count, 100);
    assert_int_equal(choose("DecodeAudio(frames=100, crop='center')", 1, 1000, &range, &flow),
                     STK_OK);
    assert_int_equal(range.first, 450);
    int64_t least = 1000, most = 0;
    for (uint64_t key = 0; key < 500; key++) {
        assert_int_equal(choose("DecodeAudio(frames=998, crop='random')", key, 1000, &range, &flow),
                         STK_OK);
        least = range.first < least ? range.first : least;
        most = range.first > most ? range.first : most;
        assert_int_equal(range.count, 998);
    }
    assert_int_equal(least, 0);
    assert_int_equal(most, 2); /* both ends are possible */
}

static void a_shorter_recording_is_padded_or_refused(void **state)
{
    struct audio_range range;
    struct stk_flow flow;
    (void)state;
    assert_int_equal(choose("DecodeAudio(frames=1500, mono=True)", 1, 1000, &range, &flow), STK_OK);
    assert_int_equal(range.count, 1000);
    assert_int_equal(range.length, 1500);
    assert_int_equal(flow.real, 1000);
    assert_int_equal(flow.tensor.shape[0], 1);
    assert_int_equal(flow.tensor.shape[1], 1500);
    assert_int_equal(choose("DecodeAudio(frames=1500, pad=False)", 1, 1000, &range, &flow),
                     STK_SHAPE);
    assert_non_null(strstr(err.remedy, "pad=True"));
}

static void seconds_are_counted_at_the_rate_that_comes_out(void **state)
{
    struct audio_range range;
    struct stk_flow flow;
    (void)state;
    assert_int_equal(choose("DecodeAudio(16000, seconds=0.5)", 1, 44100, &range, &flow), STK_OK);
    assert_int_equal(range.length, 8000);
    assert_int_equal(range.count, 8000);
    assert_true(flow.rate == 16000);
    assert_int_equal(choose("DecodeAudio(seconds=0.5)", 1, 44100, &range, &flow), STK_OK);
    assert_int_equal(range.length, 22050);
}

static void arguments_that_contradict_are_refused(void **state)
{
    struct audio_range range;
    struct stk_flow flow;
    (void)state;
    assert_int_equal(choose("DecodeAudio(seconds=1, frames=2)", 1, 10, &range, &flow), STK_USAGE);
    assert_int_equal(choose("DecodeAudio(16000.5)", 1, 10, &range, &flow), STK_USAGE);
    assert_int_equal(choose("DecodeAudio(crop='end')", 1, 10, &range, &flow), STK_USAGE);
    assert_int_equal(choose("DecodeAudio(1e6, seconds=1e6)", 1, 10, &range, &flow), STK_USAGE);
}

static void the_shape_is_known_before_a_sample_is(void **state)
{
    static const struct {
        const char *text;
        int64_t channels, frames, real;
    } cases[] = {{"DecodeAudio", -1, -1, -1},
                 {"DecodeAudio(mono=True)", 1, -1, -1},
                 {"DecodeAudio(frames=100)", -1, 100, 100},
                 {"DecodeAudio(frames=100, pad=False)", -1, 100, -1},
                 {"DecodeAudio(8000, mono=True, seconds=2)", 1, 16000, 16000},
                 {"DecodeAudio(seconds=2)", -1, -1, 0},
                 {"DecodeAudio(seconds=2, pad=False)", -1, -1, -1}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct chain chain;
        struct stk_flow flow = sound(NULL, -1, -1, 0);
        assert_int_equal(chain_parse(&chain, cases[i].text, NULL, &err), STK_OK);
        assert_int_equal(chain.steps[0].ops->shape(chain.steps[0].args, NULL, &flow, &err), STK_OK);
        assert_int_equal(flow.tensor.shape[0], cases[i].channels);
        assert_int_equal(flow.tensor.shape[1], cases[i].frames);
        assert_int_equal(flow.real, cases[i].real);
        chain_reset(&chain);
    }
}

/* --- resampling ------------------------------------------------------------------------------- */

/* Builds without libsoxr have nothing to test. */
static struct audio_resampler *resampler_or_skip(void)
{
    struct audio_resampler *resampler = NULL;
    stk_status status = audio_resampler_new(&resampler, &err);
    if (status == STK_UNSUPPORTED) {
        assert_non_null(strstr(err.remedy, "libsoxr"));
        skip();
    }
    assert_int_equal(status, STK_OK);
    return resampler;
}

static void lengths_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    assert_int_equal(audio_resampled(44100, 44100, 16000), 16000);
    assert_int_equal(audio_resampled(1, 2, 1), 1);
    assert_int_equal(audio_resampled(1, 3, 1), 0);
    assert_int_equal(audio_resampled(0, 8000, 16000), 0);
    assert_int_equal(audio_resampled(7, 8000, 8000), 7);
    assert_int_equal(audio_resampled(INT64_MAX / 2, 1, 1000000), INT64_MAX);
}

static void rates_far_apart_are_refused(void **state)
{
    (void)state;
    assert_int_equal(audio_rates_check(44100, 16000, &err), STK_OK);
    assert_int_equal(audio_rates_check(192000, 1000, &err), STK_OK);
    assert_int_equal(audio_rates_check(1, 16000, &err), STK_LIMIT);
    assert_int_equal(audio_rates_check(1000000, 1000, &err), STK_LIMIT);
}

static void a_tone_stays_that_tone(void **state)
{
    static const struct {
        double from, to;
    } cases[] = {{44100, 16000}, {16000, 44100}, {8000, 16000}, {48000, 16000}, {22050, 16001}};
    struct audio_resampler *resampler = resampler_or_skip();
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double from = cases[c].from, to = cases[c].to;
        int64_t frames = (int64_t)from, made = audio_resampled(frames, from, to);
        float *in = malloc(2 * (size_t)frames * sizeof(float));
        float *out = malloc(2 * (size_t)made * sizeof(float));
        for (int64_t i = 0; i < frames; i++) {
            in[i] = (float)(0.5 * sin(2 * M_PI * 1000 * (double)i / from));
            in[frames + i] = (float)(0.5 * cos(2 * M_PI * 300 * (double)i / from));
        }
        struct audio_resample_job job = {.from = from,
                                         .to = to,
                                         .channels = 2,
                                         .in = in,
                                         .in_frames = frames,
                                         .out = out,
                                         .out_frames = made};
        for (int twice = 0; twice < 2; twice++) {
            assert_int_equal(audio_resample(resampler, &job, &err), STK_OK);
            for (int64_t i = 600; i < made - 600; i++) { /* its ends are not whole tones */
                double a = 0.5 * sin(2 * M_PI * 1000 * (double)i / to);
                double b = 0.5 * cos(2 * M_PI * 300 * (double)i / to);
                assert_true(fabs(out[i] - a) < 1e-4 && fabs(out[made + i] - b) < 1e-4);
            }
        }
        free(in);
        free(out);
    }
    audio_resampler_free(resampler);
}

static void a_part_is_that_of_the_whole(void **state)
{
    static const double rates[][2] = {
        {44100, 16000}, {16000, 44100}, {8000, 16000}, {11025, 16001}};
    struct audio_resampler *resampler = resampler_or_skip();
    (void)state;
    for (size_t c = 0; c < sizeof rates / sizeof rates[0]; c++) {
        double from = rates[c][0], to = rates[c][1];
        int64_t frames = (int64_t)(3 * from) + 17, made = audio_resampled(frames, from, to);
        float *in = malloc((size_t)frames * sizeof(float));
        float *whole = malloc((size_t)made * sizeof(float));
        float *part = malloc((size_t)made * sizeof(float));
        for (int64_t i = 0; i < frames; i++)
            in[i] = (float)(2 * random_unit(3, (uint64_t)i) - 1);
        struct audio_resample_job job = {.from = from, .to = to, .channels = 1};
        job.in = in, job.in_frames = frames, job.out = whole, job.out_frames = made;
        assert_int_equal(audio_resample(resampler, &job, &err), STK_OK);
        const int64_t firsts[] = {0, 1, made / 3, made / 2 + 1, made - 1000};
        for (size_t k = 0; k < sizeof firsts / sizeof firsts[0]; k++) {
            struct audio_part span;
            audio_part_find(frames, from, to, firsts[k], 1000, &span);
            assert_true(span.in_first >= 0 && span.in_first + span.in_count <= frames);
            assert_true(span.skip >= 0 && span.skip + 1000 <= span.out_count);
            job.in = in + span.in_first, job.in_frames = span.in_count;
            job.out = part, job.out_frames = span.out_count;
            assert_int_equal(audio_resample(resampler, &job, &err), STK_OK);
            for (int64_t i = 0; i < 1000; i++)
                assert_true(fabsf(part[span.skip + i] - whole[firsts[k] + i]) < 1e-5f);
        }
        free(in);
        free(whole);
        free(part);
    }
    audio_resampler_free(resampler);
}

/* --- steps ------------------------------------------------------------------------------------ */

struct made {
    struct chain chain;
    struct scratch scratch;
    struct stk_flow out;
};

static stk_status make(struct made *made, const char *text, uint64_t key, const struct stk_flow *in)
{
    _Alignas(16) uint8_t params[TRANSFORM_PARAMS] = {0};
    *made = (struct made){.out = *in};
    stk_status status = chain_parse(&made->chain, text, NULL, &err);
    if (status)
        return status;
    const struct chain_step *step = &made->chain.steps[0];
    if (step->ops->draw)
        step->ops->draw(step->args, key, in, params);
    status = step->ops->shape(step->args, params, &made->out, &err);
    if (status)
        return status;
    made->out.tensor.data = scratch_take(&made->scratch, stk_tensor_size(&made->out.tensor));
    if (!made->out.tensor.data)
        return STK_MEMORY;
    return step->ops->run(step->args, params, in, &made->out, &made->scratch, &err);
}

static void made_free(struct made *made)
{
    chain_reset(&made->chain);
    scratch_free(&made->scratch);
}

static void gain_is_in_decibels(void **state)
{
    float x[4] = {0.5f, -0.25f, 0, NAN};
    struct stk_flow in = sound(x, 2, 2, 8000);
    struct made made;
    (void)state;
    assert_int_equal(make(&made, "Gain(20)", 1, &in), STK_OK);
    const float *data = made.out.tensor.data;
    assert_true(fabsf(data[0] - 5) < 1e-5f && fabsf(data[1] + 2.5f) < 1e-5f && data[2] == 0);
    assert_true(isnan(data[3]));
    made_free(&made);
    assert_int_equal(make(&made, "Gain(20, clip=True)", 1, &in), STK_OK);
    data = made.out.tensor.data;
    assert_true(data[0] == 1 && data[1] == -1 && data[2] == 0 && isnan(data[3]));
    made_free(&made);
    assert_int_equal(make(&made, "Gain((3, -3))", 1, &in), STK_USAGE);
    made_free(&made);
}

static void a_random_gain_is_uniform_between_its_ends(void **state)
{
    float x[1] = {1};
    struct stk_flow in = sound(x, 1, 1, 8000);
    double least = 100, most = -100, sum = 0;
    (void)state;
    for (uint64_t key = 0; key < 1000; key++) {
        struct made made;
        assert_int_equal(make(&made, "Gain((-6, 6))", key, &in), STK_OK);
        double db = 20 * log10(*(const float *)made.out.tensor.data);
        least = fmin(least, db), most = fmax(most, db), sum += db;
        made_free(&made);
    }
    assert_true(least >= -6 && least < -5.9 && most <= 6 && most > 5.9);
    assert_true(fabs(sum / 1000) < 0.5);
}

static void resample_takes_the_rate_of_the_recording_or_the_one_said(void **state)
{
    float x[2 * 800];
    struct stk_flow in = sound(x, 2, 800, 8000);
    struct made made;
    (void)state;
    audio_resampler_free(resampler_or_skip());
    for (int i = 0; i < 800; i++)
        x[i] = x[800 + i] = (float)sin(i * 0.1);
    assert_int_equal(make(&made, "Resample(16000)", 1, &in), STK_OK);
    assert_int_equal(made.out.tensor.shape[1], 1600);
    assert_true(made.out.rate == 16000);
    const float *data = made.out.tensor.data;
    for (int i = 400; i < 1200; i++)
        assert_true(fabs(data[i] - sin(i * 0.05)) < 1e-3 && data[i] == data[1600 + i]);
    made_free(&made);
    assert_int_equal(make(&made, "Resample(16000, orig_rate=16000)", 1, &in), STK_OK);
    assert_memory_equal(made.out.tensor.data, x, sizeof x);
    made_free(&made);
    in.rate = 0;
    assert_int_equal(make(&made, "Resample(16000)", 1, &in), STK_USAGE);
    assert_non_null(strstr(err.remedy, "orig_rate"));
    made_free(&made);
}

/* How many rows and columns hold nothing but `value`. */
static void count_masked(const float *data, int bands, int time, float value, int *rows,
                         int *columns)
{
    *rows = *columns = 0;
    for (int b = 0; b < bands; b++) {
        int all = 1;
        for (int t = 0; t < time; t++)
            all &= data[b * time + t] == value;
        *rows += all;
    }
    for (int t = 0; t < time; t++) {
        int all = 1;
        for (int b = 0; b < bands; b++)
            all &= data[b * time + t] == value;
        *columns += all;
    }
}

static void masks_are_whole_bands_of_every_channel(void **state)
{
    static float x[2 * 20 * 50];
    int seen_rows[6] = {0}, seen_columns[8] = {0};
    (void)state;
    for (int i = 0; i < 2 * 20 * 50; i++)
        x[i] = 1 + (float)i;
    struct stk_flow in = sound(x, 2, 0, 8000);
    in.tensor.rank = 3;
    in.tensor.shape[1] = 20, in.tensor.shape[2] = 50;
    for (uint64_t key = 0; key < 300; key++) {
        struct made made;
        int rows, columns, rows_two, columns_two;
        assert_int_equal(make(&made, "SpecAugment(1, 5, 1, 7)", key, &in), STK_OK);
        const float *data = made.out.tensor.data;
        count_masked(data, 20, 50, 0, &rows, &columns);
        count_masked(data + 1000, 20, 50, 0, &rows_two, &columns_two);
        assert_true(rows <= 5 && columns <= 7 && rows == rows_two && columns == columns_two);
        int changed = 0;
        for (int i = 0; i < 1000; i++)
            changed += data[i] != x[i];
        assert_int_equal(changed, rows * 50 + columns * (20 - rows));
        seen_rows[rows]++, seen_columns[columns]++;
        made_free(&made);
    }
    for (int i = 0; i < 6; i++)
        assert_true(seen_rows[i] > 20); /* uniform: about 50 */
    for (int i = 0; i < 8; i++)
        assert_true(seen_columns[i] > 15);
}

static void masks_keep_out_of_padding_and_may_hold_the_mean(void **state)
{
    static float x[20 * 50];
    double sum = 0;
    (void)state;
    for (int i = 0; i < 1000; i++)
        sum += x[i] = 1 + (float)i;
    struct stk_flow in = sound(x, 1, 0, 8000);
    in.tensor.rank = 3;
    in.tensor.shape[1] = 20, in.tensor.shape[2] = 50;
    in.real = 10;
    for (uint64_t key = 0; key < 100; key++) {
        struct made made;
        assert_int_equal(make(&made, "SpecAugment(0, 0, 2, 40, fill='mean')", key, &in), STK_OK);
        const float *data = made.out.tensor.data;
        for (int i = 0; i < 1000; i++)
            assert_true(data[i] == x[i] || (i % 50 < 10 && fabs(data[i] - sum / 1000) < 1e-3));
        made_free(&made);
        assert_int_equal(make(&made, "SpecAugment(p=0)", key, &in), STK_OK);
        assert_memory_equal(made.out.tensor.data, x, sizeof x);
        made_free(&made);
    }
    struct made made;
    struct stk_flow wave = sound(x, 1, 1000, 8000);
    assert_int_equal(make(&made, "SpecAugment", 1, &wave), STK_USAGE);
    assert_non_null(strstr(err.remedy, "LogMel"));
    made_free(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_recording_is_taken_when_nothing_is_said),
        cmocka_unit_test(a_longer_recording_is_cut_where_crop_says),
        cmocka_unit_test(a_shorter_recording_is_padded_or_refused),
        cmocka_unit_test(seconds_are_counted_at_the_rate_that_comes_out),
        cmocka_unit_test(arguments_that_contradict_are_refused),
        cmocka_unit_test(the_shape_is_known_before_a_sample_is),
        cmocka_unit_test(lengths_are_rounded_to_the_nearest),
        cmocka_unit_test(rates_far_apart_are_refused),
        cmocka_unit_test(a_tone_stays_that_tone),
        cmocka_unit_test(a_part_is_that_of_the_whole),
        cmocka_unit_test(gain_is_in_decibels),
        cmocka_unit_test(a_random_gain_is_uniform_between_its_ends),
        cmocka_unit_test(resample_takes_the_rate_of_the_recording_or_the_one_said),
        cmocka_unit_test(masks_are_whole_bands_of_every_channel),
        cmocka_unit_test(masks_keep_out_of_padding_and_may_hold_the_mean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
