/* test_log_mel.c -- the Fourier transform, mel bands and LogMel, each against its definition
 * written out in doubles. */
#include "base/testing.h"

#include <complex.h>
#include <math.h>

#include "base/random.h"
#include "transform/chain.h"
#include "transform/lane_fft.h"
#include "transform/mel_filters.h"

extern const struct transform_ops log_mel_transform;

static double uniform(uint64_t i)
{
    return 2 * random_unit(7, i) - 1;
}

/* --- the transform ---------------------------------------------------------------------------- */

static struct lane_cell *cells_new(uint32_t count)
{
    return aligned_alloc(64, (size_t)count * sizeof(struct lane_cell));
}

static void fill_cells(struct lane_cell *cells, uint32_t size)
{
    for (uint32_t k = 0; k < size; k++)
        for (int lane = 0; lane < LANES; lane++) {
            cells[k].re[lane] = (float)uniform(k * 16 + (uint64_t)lane);
            cells[k].im[lane] = (float)uniform(k * 16 + 8 + (uint64_t)lane);
        }
}

static void check_lane(const struct lane_cell *in, const struct lane_cell *out, uint32_t size,
                       int lane)
{
    for (uint32_t j = 0; j < size; j++) {
        double complex sum = 0;
        for (uint32_t k = 0; k < size; k++)
            sum += ((double)in[k].re[lane] + I * (double)in[k].im[lane]) *
                   cexp(-2 * M_PI * I * (double)((uint64_t)j * k % size) / size);
        double error = hypot(out[j].re[lane] - creal(sum), out[j].im[lane] - cimag(sum));
        assert_true(error < 2e-6 * (1 + sqrt((double)size) * 4));
    }
}

static void every_size_is_transformed_as_the_definition_says(void **state)
{
    static const uint32_t sizes[] = {1,   2,   3,   4,   5,   6,   7,   8,  9,  10,
                                     11,  12,  13,  15,  16,  20,  21,  25, 30, 49,
                                     100, 121, 127, 200, 240, 256, 257, 360};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint32_t size = sizes[s];
        float *memory = malloc(lane_fft_floats(size) * sizeof(float));
        struct lane_cell *in = cells_new(size), *data = cells_new(size), *work = cells_new(size);
        struct lane_fft fft;
        lane_fft_init(&fft, size, LANE_PLAIN, memory);
        fill_cells(in, size);
        memcpy(data, in, size * sizeof *in);
        const struct lane_cell *out = lane_fft_run(&fft, data, work);
        check_lane(in, out, size, 0);
        check_lane(in, out, size, 5);
        free(memory);
        free(in);
        free(data);
        free(work);
    }
}

static void wide_vectors_give_the_same_bits(void **state)
{
    static const uint32_t sizes[] = {8, 200, 243, 250, 343, 1024};
    (void)state;
    if (lane_width() != LANE_WIDE)
        skip();
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint32_t size = sizes[s];
        float *memory = malloc(lane_fft_floats(size) * sizeof(float));
        struct lane_cell *a = cells_new(size), *b = cells_new(size), *work = cells_new(size);
        struct lane_fft fft;
        fill_cells(a, size);
        memcpy(b, a, size * sizeof *a);
        lane_fft_init(&fft, size, LANE_PLAIN, memory);
        struct lane_cell *kept = cells_new(size);
        memcpy(kept, lane_fft_run(&fft, a, work), size * sizeof *a);
        lane_fft_init(&fft, size, LANE_WIDE, memory);
        assert_memory_equal(kept, lane_fft_run(&fft, b, work), size * sizeof *a);
        free(kept);
        free(memory);
        free(a);
        free(b);
        free(work);
    }
}

/* --- mel bands -------------------------------------------------------------------------------- */

static double mel_to_hz(double mel, int htk)
{
    if (htk)
        return 700 * (pow(10, mel / 2595) - 1);
    return mel < 15 ? mel * 200 / 3 : 1000 * pow(6.4, (mel - 15) / 27);
}

static double hz_to_mel(double hz, int htk)
{
    if (htk)
        return 2595 * log10(1 + hz / 700);
    return hz < 1000 ? hz * 3 / 200 : 15 + 27 * log(hz / 1000) / log(6.4);
}

/* The weight of a bin in a band, from the triangle's three corners. */
static double weight_of(const struct mel_spec *spec, uint32_t band, uint32_t bin)
{
    double low = hz_to_mel(spec->fmin, spec->htk), corners[3];
    double high = hz_to_mel(spec->fmax ? spec->fmax : spec->rate / 2, spec->htk);
    for (int i = 0; i < 3; i++)
        corners[i] =
            mel_to_hz(low + (high - low) * (band + (uint32_t)i) / (spec->n_mels + 1), spec->htk);
    double hz = bin * spec->rate / spec->n_fft;
    double up = (hz - corners[0]) / (corners[1] - corners[0]);
    double down = (corners[2] - hz) / (corners[2] - corners[1]);
    double weight = fmax(0, fmin(up, down));
    return spec->norm == MEL_SLANEY ? weight * 2 / (corners[2] - corners[0]) : weight;
}

static void bands_are_triangles_on_the_mel_scale(void **state)
{
    static const struct mel_spec specs[] = {
        {.rate = 16000, .n_fft = 400, .n_mels = 80},
        {.rate = 22050, .n_fft = 2048, .n_mels = 128, .fmin = 30, .fmax = 8000},
        {.rate = 16000, .n_fft = 512, .n_mels = 40, .htk = 1, .norm = MEL_PLAIN},
        {.rate = 44100, .n_fft = 401, .n_mels = 3},
        {.rate = 8000, .n_fft = 16, .n_mels = 200}};
    (void)state;
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        const struct mel_spec *spec = &specs[s];
        struct mel_filters filters;
        void *memory = malloc(mel_filters_bytes(spec->n_fft, spec->n_mels));
        mel_filters_init(&filters, spec, memory);
        const float *weights = filters.weights;
        for (uint32_t band = 0; band < spec->n_mels; band++) {
            for (uint32_t bin = 0; bin <= spec->n_fft / 2; bin++) {
                uint32_t place = bin - filters.first[band];
                double got = place < filters.count[band] ? weights[place] : 0;
                assert_true(fabs(got - weight_of(spec, band, bin)) < 1e-6);
            }
            weights += filters.count[band];
        }
        free(memory);
    }
}

/* --- LogMel ----------------------------------------------------------------------------------- */

struct made {
    struct chain chain;
    struct scratch scratch;
    struct stk_flow out;
};

static stk_status make(struct made *made, const char *text, const struct stk_flow *in,
                       struct stk_error *err)
{
    static const uint8_t params[TRANSFORM_PARAMS];
    *made = (struct made){.out = *in};
    stk_status status = chain_parse(&made->chain, text, NULL, err);
    if (status)
        return status;
    const struct chain_step *step = &made->chain.steps[0];
    status = step->ops->shape(step->args, params, &made->out, err);
    if (status)
        return status;
    made->out.tensor.data = scratch_take(&made->scratch, stk_tensor_size(&made->out.tensor));
    if (!made->out.tensor.data)
        return STK_MEMORY;
    return step->ops->run(step->args, params, in, &made->out, &made->scratch, err);
}

static void made_free(struct made *made)
{
    chain_reset(&made->chain);
    scratch_free(&made->scratch);
}

static struct stk_flow sound(float *data, int64_t channels, int64_t frames, double rate)
{
    return (struct stk_flow){
        .media = STK_MEDIA_AUDIO,
        .tensor = {.data = data, .dtype = STK_F32, .rank = 2, .shape = {channels, frames}},
        .rate = rate,
        .real = -1};
}

/* Decibels of one band of one column, by the definition; pad: what lies outside is 0. */
static double by_definition(const float *x, int64_t frames, const struct mel_spec *spec,
                            int64_t hop, int64_t column, uint32_t band)
{
    int64_t n = spec->n_fft, begin = column * hop - n / 2;
    double sum = 0;
    for (uint32_t bin = 0; bin <= n / 2; bin++) {
        double weight = weight_of(spec, band, bin);
        double complex value = 0;
        for (int64_t i = 0; weight > 0 && i < n; i++)
            if (begin + i >= 0 && begin + i < frames)
                value += x[begin + i] * (0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)n)) *
                         cexp(-2 * M_PI * I * (double)(i * bin % n) / (double)n);
        sum += weight * (creal(value) * creal(value) + cimag(value) * cimag(value));
    }
    return 10 * log10(fmax(sum, 1e-10));
}

static void a_spectrogram_is_what_the_definition_says(void **state)
{
    static const struct {
        const char *text;
        struct mel_spec spec;
    } cases[] = {
        {"LogMel(400, 160, n_mels=20, top_db=0)", {.rate = 16000, .n_fft = 400, .n_mels = 20}},
        {"LogMel(256, 160, n_mels=20, top_db=0)", {.rate = 16000, .n_fft = 256, .n_mels = 20}},
        {"LogMel(255, 160, n_mels=10, top_db=0)", {.rate = 16000, .n_fft = 255, .n_mels = 10}}};
    float x[2][3000];
    struct stk_error err;
    (void)state;
    for (int i = 0; i < 3000; i++) {
        x[0][i] = (float)(0.5 * sin(i * 0.2) + 0.01 * uniform((uint64_t)i));
        x[1][i] = i < 1500 ? 0 : (float)(0.1 * uniform((uint64_t)i));
    }
    struct stk_flow in = sound(x[0], 2, 3000, 16000);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct made made;
        assert_int_equal(make(&made, cases[c].text, &in, &err), STK_OK);
        int64_t bands = cases[c].spec.n_mels, columns = made.out.tensor.shape[2];
        assert_int_equal(columns, 1 + 3000 / 160);
        const float *data = made.out.tensor.data;
        for (int64_t i = 0; i < 2 * bands * columns; i += 7) {
            int64_t channel = i / (bands * columns), band = i / columns % bands,
                    column = i % columns;
            double right =
                by_definition(x[channel], 3000, &cases[c].spec, 160, column, (uint32_t)band);
            assert_true(fabs(data[i] - right) < 1e-3 * fmax(1, fabs(right)));
        }
        made_free(&made);
    }
}

static void silence_is_the_least_value_and_top_db_lifts_it(void **state)
{
    float x[4000] = {0};
    struct stk_error err;
    struct made made;
    (void)state;
    struct stk_flow in = sound(x, 1, 4000, 8000);
    assert_int_equal(make(&made, "LogMel(256, 128, top_db=0)", &in, &err), STK_OK);
    const float *data = made.out.tensor.data;
    for (int64_t i = 0; i < 128 * 32; i++)
        assert_true(fabsf(data[i] + 100) < 1e-4f);
    made_free(&made);
    for (int i = 0; i < 1000; i++)
        x[i] = (float)sin(i);
    assert_int_equal(make(&made, "LogMel(256, 128, top_db=30)", &in, &err), STK_OK);
    data = made.out.tensor.data;
    float most = -1000, least = 1000;
    for (int64_t i = 0; i < 128 * 32; i++) {
        most = fmaxf(most, data[i]);
        least = fminf(least, data[i]);
    }
    assert_true(fabsf(most - least - 30) < 1e-4f);
    made_free(&made);
}

static void another_rate_than_the_first_gets_filters_of_its_own(void **state)
{
    float x[2000];
    struct stk_error err;
    struct made fresh, used;
    static const uint8_t params[TRANSFORM_PARAMS];
    (void)state;
    for (int i = 0; i < 2000; i++)
        x[i] = (float)uniform((uint64_t)i);
    struct stk_flow slow = sound(x, 1, 2000, 8000), fast = sound(x, 1, 2000, 44100);
    assert_int_equal(make(&fresh, "LogMel(256, 128, n_mels=16)", &fast, &err), STK_OK);
    assert_int_equal(make(&used, "LogMel(256, 128, n_mels=16)", &slow, &err), STK_OK);
    const struct chain_step *step = &used.chain.steps[0];
    assert_int_equal(step->ops->run(step->args, params, &fast, &used.out, &used.scratch, &err),
                     STK_OK);
    assert_memory_equal(used.out.tensor.data, fresh.out.tensor.data,
                        stk_tensor_size(&fresh.out.tensor));
    made_free(&fresh);
    made_free(&used);
}

static void what_cannot_be_is_refused_with_a_remedy(void **state)
{
    float x[100] = {0};
    struct stk_error err;
    struct made made;
    (void)state;
    static const struct {
        const char *text;
        int64_t frames;
        double rate;
        stk_status status;
        const char *words;
    } cases[] = {{"LogMel(400, win_length=401)", 100, 8000, STK_USAGE, "win_length"},
                 {"LogMel(fmin=100, fmax=50)", 100, 8000, STK_USAGE, "fmax"},
                 {"LogMel(fmin=4000)", 100, 8000, STK_USAGE, "half the rate"},
                 {"LogMel(400, center=False)", 100, 8000, STK_SHAPE, "too short"},
                 {"LogMel(400, pad_mode='reflect')", 100, 8000, STK_SHAPE, "too short"},
                 {"LogMel(16, 8)", 100, 0, STK_USAGE, "rate"},
                 {"LogMel(16, 8, rate=8000)", 100, 16000, STK_SHAPE, "16000"},
                 {"LogMel(70000)", 100, 8000, STK_USAGE, "n_fft"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stk_flow in = sound(x, 1, cases[i].frames, cases[i].rate);
        assert_int_equal(make(&made, cases[i].text, &in, &err), cases[i].status);
        assert_non_null(strstr(err.what, cases[i].words));
        made_free(&made);
    }
    struct stk_flow in = sound(x, 1, 0, 8000);
    assert_int_equal(make(&made, "LogMel(16, 8)", &in, &err), STK_SHAPE);
    made_free(&made);
}

static int count_calls(void *user, size_t size)
{
    (void)size;
    ++*(int *)user;
    return 0;
}

static void a_second_sample_allocates_nothing(void **state)
{
    float x[2000] = {0};
    struct stk_error err;
    struct made made;
    static const uint8_t params[TRANSFORM_PARAMS];
    struct stk_flow in = sound(x, 1, 2000, 8000);
    (void)state;
    int calls = 0;
    assert_int_equal(make(&made, "LogMel(256, 128)", &in, &err), STK_OK);
    const struct chain_step *step = &made.chain.steps[0];
    scratch_reset(&made.scratch);
    struct stk_flow out = made.out;
    memory_set_hook(count_calls, &calls);
    out.tensor.data = scratch_take(&made.scratch, stk_tensor_size(&out.tensor));
    stk_status status = step->ops->run(step->args, params, &in, &out, &made.scratch, &err);
    memory_set_hook(NULL, NULL);
    assert_int_equal(status, STK_OK);
    assert_int_equal(calls, 0);
    made_free(&made);
}

static int try_make(void *user)
{
    struct made made;
    int good = make(&made, "LogMel(64, 32, n_mels=4)", user, NULL) == STK_OK;
    made_free(&made);
    return good;
}

static void failing_memory_leaks_nothing(void **state)
{
    float x[200] = {0};
    struct stk_flow in = sound(x, 1, 200, 8000);
    (void)state;
    fail_each_allocation(try_make, &in);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_transformed_as_the_definition_says),
        cmocka_unit_test(wide_vectors_give_the_same_bits),
        cmocka_unit_test(bands_are_triangles_on_the_mel_scale),
        cmocka_unit_test(a_spectrogram_is_what_the_definition_says),
        cmocka_unit_test(silence_is_the_least_value_and_top_db_lifts_it),
        cmocka_unit_test(another_rate_than_the_first_gets_filters_of_its_own),
        cmocka_unit_test(what_cannot_be_is_refused_with_a_remedy),
        cmocka_unit_test(a_second_sample_allocates_nothing),
        cmocka_unit_test(failing_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
