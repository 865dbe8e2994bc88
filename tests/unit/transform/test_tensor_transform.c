/* test_tensor_transform.c -- TemporalCrop and Noise. */
#include <math.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/random.h"
#include "base/testing.h"
#include "transform/chain.h"
#include "transform/gaussian.h"

struct work {
    struct chain chain;
    struct stk_flow in, out;
    _Alignas(16) uint8_t params[TRANSFORM_PARAMS];
    struct stk_error err;
};

static void work_new(struct work *work, const char *text, struct stk_tensor tensor)
{
    *work = (struct work){0};
    stk_status status = chain_parse(&work->chain, text, NULL, &work->err);
    if (status)
        fprintf(stderr, "%s\n", work->err.what);
    assert_int_equal(status, STK_OK);
    work->in = (struct stk_flow){.media = STK_MEDIA_TENSOR, .tensor = tensor, .real = -1};
    work->in.tensor.data = calloc(1, stk_tensor_size(&tensor) + 1);
    for (uint64_t i = 0; i < stk_tensor_size(&tensor); i++)
        ((uint8_t *)work->in.tensor.data)[i] = (uint8_t)random_at(8, i);
}

static stk_status work_run(struct work *work, uint64_t key)
{
    const struct chain_step *step = &work->chain.steps[0];
    struct scratch scratch = {0};
    free(work->out.tensor.data);
    work->out = work->in;
    work->out.tensor.data = NULL;
    memset(work->params, 0, sizeof work->params);
    step->ops->draw(step->args, key, &work->in, work->params);
    stk_status status = step->ops->shape(step->args, work->params, &work->out, &work->err);
    if (status)
        return status;
    work->out.tensor.data = malloc(stk_tensor_size(&work->out.tensor) + 1);
    status = step->ops->run(step->args, work->params, &work->in, &work->out, &scratch, &work->err);
    scratch_free(&scratch);
    return status;
}

static void work_free(struct work *work)
{
    chain_reset(&work->chain);
    free(work->in.tensor.data);
    free(work->out.tensor.data);
}

static struct stk_tensor tensor_of(enum stk_dtype dtype, int rank, const int64_t *shape)
{
    struct stk_tensor tensor = {.dtype = dtype, .rank = rank};
    memcpy(tensor.shape, shape, (size_t)rank * sizeof *shape);
    return tensor;
}
#define TENSOR(dtype, ...)                                                                         \
    tensor_of(dtype, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),                    \
              (int64_t[]){__VA_ARGS__})

/* The start that makes the result a cut along the axis; -1: none does. */
static int64_t found_start(const struct work *work, int axis)
{
    const struct stk_tensor *in = &work->in.tensor, *out = &work->out.tensor;
    int64_t outer = 1, inner = (int64_t)stk_dtype_size(in->dtype);
    for (int i = 0; i < in->rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : in->shape[i];
    for (int64_t start = 0; start + out->shape[axis] <= in->shape[axis]; start++) {
        int same = 1;
        for (int64_t o = 0; o < outer && same; o++)
            for (int64_t t = 0; t < out->shape[axis] && same; t++)
                same = !memcmp((char *)out->data + (o * out->shape[axis] + t) * inner,
                               (char *)in->data + (o * in->shape[axis] + start + t) * inner,
                               (size_t)inner);
        if (same)
            return start;
    }
    return -1;
}

static void a_crop_cuts_the_axis_that_is_named(void **state)
{
    (void)state;
    struct work work;
    static const char *const texts[] = {"TemporalCrop(3, start=start)",
                                        "TemporalCrop(3, axis=1, start='start')",
                                        "TemporalCrop(3, axis=-1, start=start)"};
    for (int axis = 0; axis < 3; axis++) {
        work_new(&work, texts[axis], TENSOR(STK_I16, 5, 6, 7));
        assert_int_equal(work_run(&work, 1), STK_OK);
        assert_int_equal(work.out.tensor.shape[axis], 3);
        assert_int_equal(found_start(&work, axis), 0);
        work_free(&work);
    }
    work_new(&work, "TemporalCrop(3, start=center)", TENSOR(STK_F64, 10, 2));
    assert_int_equal(work_run(&work, 1), STK_OK);
    assert_int_equal(found_start(&work, 0), 3);
    work_free(&work);
}

static void random_starts_are_all_taken(void **state)
{
    (void)state;
    struct work work;
    int seen[5] = {0};
    work_new(&work, "TemporalCrop(6)", TENSOR(STK_F32, 10, 4));
    for (uint64_t key = 0; key < 200; key++) {
        assert_int_equal(work_run(&work, key), STK_OK);
        int64_t start = found_start(&work, 0);
        assert_in_range(start, 0, 4);
        seen[start]++;
    }
    for (int i = 0; i < 5; i++)
        assert_in_range(seen[i], 20, 65);
    work_free(&work);
}

static void a_video_is_cut_in_time_whatever_its_layout(void **state)
{
    (void)state;
    static const struct {
        int64_t shape[5];
        int rank, channels_first, axis;
    } cases[] = {{{8, 2, 3, 3}, 4, 0, 0},
                 {{3, 8, 2, 3}, 4, 1, 1},
                 {{2, 8, 2, 3, 3}, 5, 0, 1},
                 {{2, 3, 8, 2, 3}, 5, 1, 2}};
    for (int i = 0; i < 4; i++) {
        struct work work;
        work_new(&work, "TemporalCrop(5)", tensor_of(STK_U8, cases[i].rank, cases[i].shape));
        work.in.media = STK_MEDIA_VIDEO;
        work.in.channels_first = cases[i].channels_first;
        assert_int_equal(work_run(&work, 2), STK_OK);
        assert_int_equal(work.out.tensor.shape[cases[i].axis], 5);
        assert_true(found_start(&work, cases[i].axis) >= 0);
        work_free(&work);
    }
}

static void real_frames_of_a_recording_are_cut_with_it(void **state)
{
    (void)state;
    struct work work;
    work_new(&work, "TemporalCrop(5, start=center)", TENSOR(STK_F32, 2, 11));
    work.in.media = STK_MEDIA_AUDIO;
    work.in.real = 6;
    assert_int_equal(work_run(&work, 2), STK_OK);
    assert_int_equal(work.out.tensor.shape[1], 5);
    assert_int_equal(work.out.real, 3);
    assert_int_equal(found_start(&work, 1), 3);
    work_free(&work);
}

static void too_short_and_no_such_axis_are_refused(void **state)
{
    (void)state;
    struct work work;
    work_new(&work, "TemporalCrop(12)", TENSOR(STK_F32, 11, 2));
    assert_int_equal(work_run(&work, 0), STK_SHAPE);
    assert_non_null(strstr(work.err.what, "12 frames, but axis 0 has 11"));
    work_free(&work);
    work_new(&work, "TemporalCrop(1, axis=2)", TENSOR(STK_F32, 11, 2));
    assert_int_equal(work_run(&work, 0), STK_SHAPE);
    work.in.tensor.shape[0] = -1; /* while a chain is compiled */
    work_free(&work);
    struct chain chain;
    assert_int_equal(chain_parse(&chain, "TemporalCrop", NULL, NULL), STK_USAGE);
    assert_int_equal(chain_parse(&chain, "TemporalCrop(0)", NULL, NULL), STK_USAGE);
}

/* ---- Noise --------------------------------------------------------------------------------- */

static void noise_is_the_stream_of_its_key(void **state)
{
    (void)state;
    enum { COUNT = 3 * 700 };
    struct work work;
    float noise[COUNT];
    work_new(&work, "Noise(0.25)", TENSOR(STK_F32, 3, 700));
    for (int i = 0; i < COUNT; i++)
        ((float *)work.in.tensor.data)[i] = (float)i;
    assert_int_equal(work_run(&work, 6), STK_OK);
    gaussian_fill(random_key(6, 1), 0, COUNT, noise);
    for (int i = 0; i < COUNT; i++)
        assert_true(((float *)work.out.tensor.data)[i] == (float)i + noise[i] * 0.25f);
    work_free(&work);
}

static void halves_are_rounded_to_nearest(void **state)
{
    (void)state;
    float noise[500];
    gaussian_fill(random_key(6, 1), 0, 500, noise);
    for (int kind = 0; kind < 2; kind++) {
        struct work work;
        work_new(&work, "Noise(2)", TENSOR(kind ? STK_BF16 : STK_F16, 500));
        uint16_t *in = work.in.tensor.data;
        for (int i = 0; i < 500; i++)
            in[i] = kind ? bfloat_of_float((float)i / 8) : half_of_float((float)i / 8);
        assert_int_equal(work_run(&work, 6), STK_OK);
        const uint16_t *out = work.out.tensor.data;
        for (int i = 0; i < 500; i++) {
            double before = (double)(kind ? bfloat_to_float(in[i]) : half_to_float(in[i]));
            double after = (double)(kind ? bfloat_to_float(out[i]) : half_to_float(out[i]));
            double exact = before + 2 * (double)noise[i];
            assert_true(fabs(after - exact) <= fabs(exact) * (kind ? 0x1p-8 : 0x1p-11) + 1e-4);
        }
        work_free(&work);
    }
}

static void noise_is_added_as_often_as_asked(void **state)
{
    (void)state;
    struct work work;
    int noisy = 0;
    work_new(&work, "Noise(p=0.25)", TENSOR(STK_F32, 8));
    memset(work.in.tensor.data, 0, 32);
    for (uint64_t key = 0; key < 1000; key++) {
        assert_int_equal(work_run(&work, key), STK_OK);
        noisy += memcmp(work.in.tensor.data, work.out.tensor.data, 32) != 0;
    }
    assert_in_range(noisy, 190, 310);
    work_free(&work);
}

static void padding_stays_zero(void **state)
{
    (void)state;
    struct work work;
    work_new(&work, "Noise", TENSOR(STK_F32, 6, 4));
    memset(work.in.tensor.data, 0, 6 * 4 * 4);
    work.in.media = STK_MEDIA_POINTS;
    work.in.real = 2;
    assert_int_equal(work_run(&work, 1), STK_OK);
    for (int i = 0; i < 24; i++)
        assert_int_equal(((float *)work.out.tensor.data)[i] != 0, i < 8);
    work.in.media = STK_MEDIA_AUDIO;
    assert_int_equal(work_run(&work, 1), STK_OK);
    for (int i = 0; i < 24; i++)
        assert_int_equal(((float *)work.out.tensor.data)[i] != 0, i % 4 < 2);
    work_free(&work);
}

static void integers_are_refused_with_a_remedy(void **state)
{
    (void)state;
    struct work work;
    work_new(&work, "Noise", TENSOR(STK_U8, 4));
    assert_int_equal(work_run(&work, 1), STK_SHAPE);
    assert_non_null(strstr(work.err.what, "uint8"));
    assert_non_null(strstr(work.err.remedy, "Cast(float32)"));
    work_free(&work);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crop_cuts_the_axis_that_is_named),
        cmocka_unit_test(random_starts_are_all_taken),
        cmocka_unit_test(a_video_is_cut_in_time_whatever_its_layout),
        cmocka_unit_test(real_frames_of_a_recording_are_cut_with_it),
        cmocka_unit_test(too_short_and_no_such_axis_are_refused),
        cmocka_unit_test(noise_is_the_stream_of_its_key),
        cmocka_unit_test(halves_are_rounded_to_nearest),
        cmocka_unit_test(noise_is_added_as_often_as_asked),
        cmocka_unit_test(padding_stays_zero),
        cmocka_unit_test(integers_are_refused_with_a_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
