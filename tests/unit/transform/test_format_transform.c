#include "base/testing.h"

#include <math.h>

#include "base/half.h"
#include "base/random.h"
#include "transform/cast.h"
#include "transform/chain.h"
#include "transform/format_transform.h"

struct trial {
    struct chain chain;
    struct stk_flow in, out;
    struct stk_error err;
    void *result;
};

static stk_status trial_run(struct trial *trial, const char *text, struct stk_flow in)
{
    struct scratch scratch = {0};
    *trial = (struct trial){.in = in, .out = in};
    stk_status status = chain_parse(&trial->chain, text, NULL, &trial->err);
    const struct chain_step *step = &trial->chain.steps[0];
    if (!status)
        status = step->ops->shape(step->args, NULL, &trial->out, &trial->err);
    if (!status && in.tensor.data) {
        trial->result = malloc(stk_tensor_size(&trial->out.tensor) + 1);
        trial->out.tensor.data = trial->result;
        status = step->ops->run(step->args, NULL, &trial->in, &trial->out, &scratch, &trial->err);
    }
    scratch_free(&scratch);
    return status;
}

static void trial_end(struct trial *trial)
{
    chain_reset(&trial->chain);
    free(trial->result);
}

static struct stk_flow flow_of(enum stk_media media, enum stk_dtype dtype, void *data, int32_t rank,
                               const int64_t *shape)
{
    struct stk_flow flow = {
        .media = media, .tensor = {.data = data, .dtype = dtype, .rank = rank}, .real = -1};
    memcpy(flow.tensor.shape, shape, (size_t)rank * sizeof *shape);
    return flow;
}

static void assert_refused(const char *text, struct stk_flow flow, const char *words)
{
    struct trial trial;
    flow.tensor.data = NULL;
    assert_int_equal(trial_run(&trial, text, flow), STK_USAGE);
    if (!strstr(trial.err.what, words))
        print_error("%s: %s\n", text, trial.err.what);
    assert_non_null(strstr(trial.err.what, words));
    trial_end(&trial);
}

/* --- Normalize
 * ------------------------------------------------------------------------------------ */

static const double mean[3] = {0.485, 0.456, 0.406}, deviation[3] = {0.229, 0.224, 0.225};

static void levels_become_zero_to_one_before_they_are_normalised(void **state)
{
    uint8_t levels[256 * 3];
    struct trial trial;
    (void)state;
    for (int i = 0; i < 256 * 3; i++)
        levels[i] = (uint8_t)(i / 3);
    struct stk_flow in = flow_of(STK_MEDIA_IMAGE, STK_U8, levels, 3, (int64_t[]){16, 16, 3});
    assert_int_equal(trial_run(&trial, "Normalize(imagenet)", in), STK_OK);
    assert_int_equal(trial.out.tensor.dtype, STK_F32);
    const float *found = trial.result;
    for (int i = 0; i < 256 * 3; i++)
        assert_true(fabs(found[i] - (levels[i] / 255.0 - mean[i % 3]) / deviation[i % 3]) < 1e-6);
    trial_end(&trial);
}

static void channels_are_found_wherever_they_are(void **state)
{
    static const struct {
        enum stk_media media;
        int first;
        int32_t rank, axis;
        int64_t shape[5];
    } cases[] = {
        {STK_MEDIA_IMAGE, 0, 3, 2, {4, 5, 3}},       {STK_MEDIA_IMAGE, 1, 3, 0, {3, 4, 5}},
        {STK_MEDIA_VIDEO, 0, 4, 3, {2, 4, 5, 3}},    {STK_MEDIA_VIDEO, 1, 4, 0, {3, 2, 4, 5}},
        {STK_MEDIA_VIDEO, 1, 5, 1, {2, 3, 2, 4, 5}}, {STK_MEDIA_TENSOR, 0, 2, 0, {3, 7}},
        {STK_MEDIA_AUDIO, 0, 2, 0, {3, 50}},         {STK_MEDIA_POINTS, 0, 2, 1, {20, 3}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        float values[400];
        struct trial trial;
        struct stk_flow in =
            flow_of(cases[k].media, STK_F32, values, cases[k].rank, cases[k].shape);
        in.channels_first = cases[k].first;
        int64_t count = (int64_t)(stk_tensor_size(&in.tensor) / sizeof *values), inner = 1;
        for (int64_t i = 0; i < count; i++)
            values[i] = (float)random_unit(k, (uint64_t)i);
        for (int32_t axis = cases[k].axis + 1; axis < cases[k].rank; axis++)
            inner *= cases[k].shape[axis];
        assert_int_equal(trial_run(&trial, "Normalize((1, 2, 4), (0.5, 2, 8))", in), STK_OK);
        for (int64_t i = 0; i < count; i++) {
            static const double means[3] = {1, 2, 4}, stds[3] = {0.5, 2, 8};
            int64_t c = i / inner % 3;
            double wanted = (values[i] - means[c]) / stds[c];
            assert_true(fabs(((float *)trial.result)[i] - wanted) < 1e-6);
        }
        trial_end(&trial);
    }
}

static void floats_keep_their_type(void **state)
{
    uint16_t halves[2] = {half_of_float(1.5f), half_of_float(-2)};
    uint16_t shorts[2] = {bfloat_of_float(1.5f), bfloat_of_float(-2)};
    double doubles[2] = {1.5, 1e-9};
    struct trial trial;
    int64_t shape[1] = {2};
    (void)state;
    struct stk_flow in = flow_of(STK_MEDIA_TENSOR, STK_F16, halves, 1, shape);
    assert_int_equal(trial_run(&trial, "Normalize(0.5, 0.25)", in), STK_OK);
    assert_int_equal(trial.out.tensor.dtype, STK_F16);
    assert_true(half_to_float(((uint16_t *)trial.result)[1]) == -10);
    trial_end(&trial);
    in = flow_of(STK_MEDIA_TENSOR, STK_BF16, shorts, 1, shape);
    assert_int_equal(trial_run(&trial, "Normalize(0.5, 0.25)", in), STK_OK);
    assert_true(bfloat_to_float(((uint16_t *)trial.result)[0]) == 4);
    trial_end(&trial);
    in = flow_of(STK_MEDIA_TENSOR, STK_F64, doubles, 1, shape);
    assert_int_equal(trial_run(&trial, "Normalize(0.5, 0.25)", in), STK_OK);
    assert_true(((double *)trial.result)[1] == (1e-9 - 0.5) / 0.25);
    trial_end(&trial);
}

static void a_normalize_that_does_not_fit_is_refused(void **state)
{
    struct stk_flow image = flow_of(STK_MEDIA_IMAGE, STK_U8, NULL, 3, (int64_t[]){-1, -1, 1});
    struct stk_flow whole = flow_of(STK_MEDIA_TENSOR, STK_I16, NULL, 1, (int64_t[]){5});
    (void)state;
    assert_refused("Normalize(imagenet)", image, "3 numbers, but there are 1 channels");
    assert_refused("Normalize(places)", image, "no preset 'places'");
    assert_refused("Normalize", image, "needs mean and std");
    assert_refused("Normalize(0.5)", image, "needs mean and std");
    assert_refused("Normalize(0.5, 0)", image, "std");
    assert_refused("Normalize((1, 2), (1, 2, 3))", image, "2 numbers, and std 3");
    assert_refused("Normalize(0.5, 0.5, preset=imagenet)", image, "not both");
    assert_refused("Normalize(0.5, 0.5)", whole, "not int16");
}

static void a_preset_is_written_as_its_numbers(void **state)
{
    struct chain chain;
    char text[200];
    (void)state;
    assert_int_equal(chain_parse(&chain, "Normalize(imagenet)", NULL, NULL), STK_OK);
    chain_text(&chain, text, sizeof text);
    chain_reset(&chain);
    assert_non_null(strstr(text, "0.485, 0.456, 0.406"));
    assert_null(strstr(text, "imagenet"));
    assert_int_equal(chain_parse(&chain, text, NULL, NULL), STK_OK); /* and read again */
    chain_reset(&chain);
}

/* --- Cast
 * ------------------------------------------------------------------------------------------- */

#define CASE(from_name, from_type, to_name, to_type, scale, value, wanted)                         \
    do {                                                                                           \
        from_type one = (from_type)(value);                                                        \
        to_type made = 0;                                                                          \
        cast_elements(&one, STK_##from_name, &made, STK_##to_name, scale, 1);                      \
        assert_true(made == (to_type)(wanted));                                                    \
    } while (0)

static void values_that_do_not_fit_saturate(void **state)
{
    (void)state;
    CASE(F32, float, U8, uint8_t, CAST_VALUES, 300, 255);
    CASE(F32, float, U8, uint8_t, CAST_VALUES, -3, 0);
    CASE(F32, float, U8, uint8_t, CAST_VALUES, NAN, 0);
    CASE(F32, float, I16, int16_t, CAST_VALUES, -1e9f, INT16_MIN);
    CASE(F64, double, I64, int64_t, CAST_VALUES, 1e300, INT64_MAX);
    CASE(F64, double, I64, int64_t, CAST_VALUES, -1e300, INT64_MIN);
    CASE(F64, double, U64, uint64_t, CAST_VALUES, INFINITY, UINT64_MAX);
    CASE(F64, double, U32, uint32_t, CAST_VALUES, 4294967295.0, UINT32_MAX);
    CASE(I64, int64_t, I32, int32_t, CAST_VALUES, INT64_MIN, INT32_MIN);
    CASE(U64, uint64_t, I64, int64_t, CAST_VALUES, UINT64_MAX, INT64_MAX);
    CASE(I8, int8_t, U16, uint16_t, CAST_VALUES, -1, 0);
    CASE(I64, int64_t, I64, int64_t, CAST_VALUES, INT64_MAX, INT64_MAX);
    CASE(F32, float, BOOL, uint8_t, CAST_VALUES, 0.25f, 0); /* rounded first */
}

static void fractions_are_rounded_to_even(void **state)
{
    (void)state;
    CASE(F32, float, I32, int32_t, CAST_VALUES, 0.5f, 0);
    CASE(F32, float, I32, int32_t, CAST_VALUES, 1.5f, 2);
    CASE(F32, float, I32, int32_t, CAST_VALUES, 2.5f, 2);
    CASE(F32, float, I32, int32_t, CAST_VALUES, -2.5f, -2);
    CASE(F32, float, I32, int32_t, CAST_VALUES, -2.75f, -3);
}

/* As torchvision's ToDtype(scale=True). */
static void scaled_casts_map_whole_ranges(void **state)
{
    (void)state;
    CASE(U8, uint8_t, F32, float, CAST_RANGE, 51, 51 / 255.0);
    CASE(I16, int16_t, F64, double, CAST_RANGE, 32767, 1);
    CASE(F32, float, U8, uint8_t, CAST_RANGE, 1, 255);
    CASE(F32, float, U8, uint8_t, CAST_RANGE, 0.5f, 127); /* 0.5 * 255.999, cut */
    CASE(F32, float, U8, uint8_t, CAST_RANGE, 0.9999f, 255);
    CASE(U8, uint8_t, U16, uint16_t, CAST_RANGE, 255, 65280);
    CASE(U8, uint8_t, I16, int16_t, CAST_RANGE, 3, 384);
    CASE(U16, uint16_t, U8, uint8_t, CAST_RANGE, 0xabcd, 0xab);
    CASE(I32, int32_t, U8, uint8_t, CAST_RANGE, 1 << 23, 1);
    CASE(F32, float, F64, double, CAST_RANGE, 2.5f, 2.5);
}

static void every_pair_of_types_keeps_small_numbers(void **state)
{
    static const uint8_t numbers[600] = {0, 1, 2, 3, 100, 127};
    (void)state;
    for (int a = 0; a <= STK_F64; a++)
        for (int b = 0; b <= STK_F64; b++) {
            _Alignas(8) uint8_t from[600 * 8], to[600 * 8], back[600];
            if (a == STK_BOOL || b == STK_BOOL)
                continue;
            cast_elements(numbers, STK_U8, from, (enum stk_dtype)a, CAST_VALUES, 600);
            cast_elements(from, (enum stk_dtype)a, to, (enum stk_dtype)b, CAST_VALUES, 600);
            cast_elements(to, (enum stk_dtype)b, back, STK_U8, CAST_VALUES, 600);
            assert_memory_equal(numbers, back, 600);
        }
}

static void a_cast_says_what_it_makes_and_refuses_what_it_cannot(void **state)
{
    float values[3] = {0.25f, 1, 2};
    struct trial trial;
    struct stk_flow in = flow_of(STK_MEDIA_TENSOR, STK_F32, values, 1, (int64_t[]){3});
    struct stk_flow complex = flow_of(STK_MEDIA_TENSOR, STK_C64, NULL, 1, (int64_t[]){3});
    struct stk_flow bytes = flow_of(STK_MEDIA_TENSOR, STK_U8, NULL, 1, (int64_t[]){3});
    struct stk_flow wide = flow_of(STK_MEDIA_TENSOR, STK_U64, NULL, 1, (int64_t[]){3});
    (void)state;
    assert_int_equal(trial_run(&trial, "Cast('float16')", in), STK_OK);
    assert_int_equal(trial.out.tensor.dtype, STK_F16);
    assert_true(half_to_float(((uint16_t *)trial.result)[0]) == 0.25f);
    trial_end(&trial);
    assert_refused("Cast(int64, scale=True)", in, "cannot fill the range");
    assert_refused("Cast(uint64, scale=True)", bytes, "cannot fill the range");
    assert_refused("Cast(uint8, scale=True)", wide, "cannot fill the range");
    assert_refused("Cast(complex64)", in, "no complex");
    assert_refused("Cast(float32)", complex, "no complex");
    assert_refused("Cast(color)", in, "dtype");
}

/* --- Layout
 * ----------------------------------------------------------------------------------------- */

static void a_layout_moves_channels_and_back(void **state)
{
    uint16_t values[2 * 3 * 4 * 5 * 3];
    struct trial there, back;
    int64_t shape[5] = {2, 3, 4, 5, 3};
    (void)state;
    for (int i = 0; i < 360; i++)
        values[i] = (uint16_t)i;
    struct stk_flow in = flow_of(STK_MEDIA_VIDEO, STK_I16, values, 5, shape);
    assert_int_equal(trial_run(&there, "Layout(CTHW)", in), STK_OK);
    assert_true(there.out.channels_first);
    const int64_t wanted[5] = {2, 3, 3, 4, 5}; /* clips, C, T, H, W */
    assert_memory_equal(there.out.tensor.shape, wanted, sizeof wanted);
    const uint16_t *made = there.result;
    for (int clip = 0; clip < 2; clip++)
        for (int c = 0; c < 3; c++)
            for (int dot = 0; dot < 60; dot++)
                assert_int_equal(made[clip * 180 + c * 60 + dot], clip * 180 + dot * 3 + c);
    assert_int_equal(trial_run(&back, "Layout(THWC)", there.out), STK_OK);
    assert_memory_equal(back.out.tensor.shape, shape, sizeof shape);
    assert_memory_equal(back.result, values, sizeof values);
    trial_end(&back);
    trial_end(&there);
}

static void a_layout_that_is_there_already_is_a_copy(void **state)
{
    uint8_t values[24] = {1, 2, 3, 4, 5};
    struct trial trial;
    struct stk_flow in = flow_of(STK_MEDIA_IMAGE, STK_U8, values, 3, (int64_t[]){2, 4, 3});
    (void)state;
    assert_int_equal(trial_run(&trial, "Layout('HWC')", in), STK_OK);
    assert_memory_equal(trial.result, values, sizeof values);
    trial_end(&trial);
    assert_refused("Layout(CTHW)", in, "not for images");
    in = flow_of(STK_MEDIA_IMAGE, STK_U8, NULL, 3, (int64_t[]){-1, -1, 3});
    assert_int_equal(trial_run(&trial, "Layout(CHW)", in), STK_OK);
    assert_int_equal(trial.out.tensor.shape[0], 3);
    assert_int_equal(trial.out.tensor.shape[2], -1);
    trial_end(&trial);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_become_zero_to_one_before_they_are_normalised),
        cmocka_unit_test(channels_are_found_wherever_they_are),
        cmocka_unit_test(floats_keep_their_type),
        cmocka_unit_test(a_normalize_that_does_not_fit_is_refused),
        cmocka_unit_test(a_preset_is_written_as_its_numbers),
        cmocka_unit_test(values_that_do_not_fit_saturate),
        cmocka_unit_test(fractions_are_rounded_to_even),
        cmocka_unit_test(scaled_casts_map_whole_ranges),
        cmocka_unit_test(every_pair_of_types_keeps_small_numbers),
        cmocka_unit_test(a_cast_says_what_it_makes_and_refuses_what_it_cannot),
        cmocka_unit_test(a_layout_moves_channels_and_back),
        cmocka_unit_test(a_layout_that_is_there_already_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
