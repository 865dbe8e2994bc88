#include "transform/device_testing.h"

#include <math.h>

#include "base/half.h"
#include "base/scratch.h"
#include "transform/cast.h"
#include "transform/format_transform.h"
#include "transform/tensor_device.h"

#define SAMPLES 3
#define STEPS 4

struct step {
    const struct transform_ops *ops;
    union {
        struct normalize_args normalize;
        struct cast_args cast;
        struct layout_args layout;
    } args;
    struct stk_flow in; /* of one sample */
};

/* One batch through both twins. */
struct trial {
    struct dice dice;
    struct stk_flow flow; /* in front of the next step */
    struct step steps[STEPS];
    int count;
    uint8_t *from, *expected, *made; /* of all samples */
};

/* --- trials ------------------------------------------------------------------------------------
 */

static uint64_t flow_size(const struct stk_flow *flow)
{
    return stk_tensor_size(&flow->tensor);
}

static double value_at(enum stk_dtype dtype, const void *data, uint64_t i)
{
    double value;
    cast_elements((const uint8_t *)data + i * stk_dtype_size(dtype), dtype, &value, STK_F64,
                  CAST_VALUES, 1);
    return value;
}

/* Values that every type makes something of: now small, now beyond the small types. */
static void values_fill(struct trial *trial)
{
    enum stk_dtype dtype = trial->flow.tensor.dtype;
    uint64_t count = SAMPLES * flow_size(&trial->flow) / stk_dtype_size(dtype);
    double reach = dice_below(&trial->dice, 2) ? 2 : 300;
    for (uint64_t i = 0; i < count; i++) {
        double value = (random_unit(trial->dice.key, 1000 + i) - 0.3) * reach;
        cast_elements(&value, STK_F64, trial->from + i * stk_dtype_size(dtype), dtype, CAST_VALUES,
                      1);
    }
}

static void flow_begin(struct trial *trial)
{
    struct dice *dice = &trial->dice;
    struct stk_flow *flow = &trial->flow;
    static const enum stk_media media[] = {STK_MEDIA_IMAGE, STK_MEDIA_VIDEO, STK_MEDIA_TENSOR,
                                           STK_MEDIA_POINTS};
    int even = dice_below(dice, 3);
    int64_t channels = dice_within(dice, 1, 5);
    flow->media = media[dice_below(dice, 4)];
    flow->channels_first = dice_below(dice, 2);
    flow->tensor.dtype = (enum stk_dtype)dice_below(dice, STK_C64);
    flow->tensor.rank = flow->media == STK_MEDIA_IMAGE   ? dice_within(dice, 3, 4)
                        : flow->media == STK_MEDIA_VIDEO ? dice_within(dice, 4, 5)
                                                         : dice_within(dice, 1, 4);
    for (int32_t axis = 0; axis < flow->tensor.rank; axis++)
        flow->tensor.shape[axis] = even ? 4 * dice_within(dice, 1, 2) : dice_within(dice, 1, 7);
    int32_t pixels = flow->media == STK_MEDIA_VIDEO ? 4 : 3;
    if (flow->media == STK_MEDIA_IMAGE || flow->media == STK_MEDIA_VIDEO)
        flow->tensor
            .shape[flow->channels_first ? flow->tensor.rank - pixels : flow->tensor.rank - 1] =
            channels;
    trial->from = calloc(SAMPLES, flow_size(flow) + 1);
    values_fill(trial);
}

static void step_draw(struct trial *trial, struct step *step)
{
    struct dice *dice = &trial->dice;
    const struct stk_flow *flow = &trial->flow;
    int32_t axes = flow->media == STK_MEDIA_VIDEO ? 4 : 3;
    switch (dice_below(dice, 3)) {
    case 0:
        step->ops = &cast_transform;
        step->args.cast = (struct cast_args){dice_below(dice, STK_C64), dice_below(dice, 2)};
        break;
    case 1:
        step->ops = &normalize_transform;
        step->args.normalize.mean.count = step->args.normalize.std.count = 1;
        if (flow->media == STK_MEDIA_IMAGE || flow->media == STK_MEDIA_VIDEO) {
            int32_t axis = flow->channels_first ? flow->tensor.rank - axes : flow->tensor.rank - 1;
            step->args.normalize.mean.count = step->args.normalize.std.count =
                (uint32_t)flow->tensor.shape[axis];
        }
        for (uint32_t c = 0; c < step->args.normalize.mean.count; c++) {
            step->args.normalize.mean.values[c] = 0.25 + 0.125 * c;
            step->args.normalize.std.values[c] = 0.5 + 0.25 * c;
        }
        break;
    default:
        step->ops = &layout_transform;
        step->args.layout.order = flow->media == STK_MEDIA_VIDEO ? LAYOUT_CTHW + dice_below(dice, 2)
                                                                 : LAYOUT_CHW + dice_below(dice, 2);
    }
}

/* Steps that can follow each other. */
static void trial_begin(struct trial *trial)
{
    flow_begin(trial);
    int wanted = dice_within(&trial->dice, 1, STEPS);
    for (int throws = 0; throws < 100 && trial->count < wanted; throws++) {
        struct step *step = &trial->steps[trial->count];
        struct stk_flow next = trial->flow;
        memset(step, 0, sizeof *step);
        step_draw(trial, step);
        if (step->ops == &layout_transform && next.media != STK_MEDIA_IMAGE &&
            next.media != STK_MEDIA_VIDEO)
            continue;
        if (step->ops->shape(&step->args, NULL, &next, NULL))
            continue;
        step->in = trial->flow;
        trial->flow = next;
        trial->count++;
    }
    assert_true(trial->count > 0);
    trial->expected = calloc(SAMPLES, flow_size(&trial->flow) + 1);
    trial->made = calloc(SAMPLES, flow_size(&trial->flow) + 1);
}

static void trial_end(struct trial *trial)
{
    free(trial->from);
    free(trial->expected);
    free(trial->made);
}

/* --- both twins --------------------------------------------------------------------------------
 */

static const struct stk_flow *flow_behind(const struct trial *trial, int step)
{
    return step + 1 < trial->count ? &trial->steps[step + 1].in : &trial->flow;
}

static void twin_cpu(struct trial *trial)
{
    for (int i = 0; i < SAMPLES; i++) {
        struct stk_flow in = trial->steps[0].in;
        uint8_t *data = malloc(flow_size(&in) + 1);
        memcpy(data, trial->from + (uint64_t)i * flow_size(&in), flow_size(&in));
        for (int s = 0; s < trial->count; s++) {
            struct stk_flow out = *flow_behind(trial, s);
            in.tensor.data = data;
            out.tensor.data = malloc(flow_size(&out) + 1);
            assert_int_equal(
                trial->steps[s].ops->run(&trial->steps[s].args, NULL, &in, &out, NULL, NULL),
                STK_OK);
            free(data);
            data = out.tensor.data;
            in = out;
        }
        memcpy(trial->expected + (uint64_t)i * flow_size(&trial->flow), data,
               flow_size(&trial->flow));
        free(data);
    }
}

/* Runs the job; what it made takes the place of *data. */
static void job_run(struct device *device, struct tensor_job *job, gpu_address *data, uint64_t size)
{
    gpu_address to;
    assert_int_equal(gpu_alloc(device->gpu, device_size(SAMPLES * size), &to, NULL), STK_OK);
    tensor_job_place(job, *data, to, SAMPLES);
    assert_int_equal(tensor_device_run(device->gpu, job, device->stream, NULL), STK_OK);
    assert_int_equal(gpu_stream_sync(device->gpu, device->stream, NULL), STK_OK);
    gpu_free(device->gpu, *data);
    *data = to;
}

/* As many steps in one pass as the job takes. Returns the number of passes. */
static int twin_device(struct trial *trial, struct device *device)
{
    struct tensor_job job;
    int passes = 1;
    gpu_address data = device_put(device, trial->from, SAMPLES * flow_size(&trial->steps[0].in));
    tensor_job_begin(&job, &trial->steps[0].in);
    for (int s = 0; s < trial->count; s++) {
        struct step *step = &trial->steps[s];
        if (tensor_job_fold(&job, step->ops, &step->args, &step->in))
            continue;
        job_run(device, &job, &data, flow_size(&step->in));
        tensor_job_begin(&job, &step->in);
        assert_true(tensor_job_fold(&job, step->ops, &step->args, &step->in));
        passes++;
    }
    assert_int_equal(job.to_dtype, trial->flow.tensor.dtype);
    job_run(device, &job, &data, flow_size(&trial->flow));
    device_get(device, trial->made, data, SAMPLES * flow_size(&trial->flow));
    gpu_free(device->gpu, data);
    return passes;
}

static void assert_same(const struct trial *trial)
{
    enum stk_dtype dtype = trial->flow.tensor.dtype;
    uint64_t count = SAMPLES * flow_size(&trial->flow) / stk_dtype_size(dtype);
    for (uint64_t i = 0; i < count; i++) {
        double a = value_at(dtype, trial->expected, i), b = value_at(dtype, trial->made, i);
        double fraction = dtype == STK_BF16 ? 0x1p-7 : 1e-3;
        double allowed =
            cast_is_float(dtype) ? fraction * fmax(1, fabs(a)) : fmax(1, 1e-6 * fabs(a));
        int same = (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= allowed;
        if (!same) {
            print_error("key %llu, element %llu: %.9g, not %.9g:",
                        (unsigned long long)trial->dice.key, (unsigned long long)i, b, a);
            for (int s = 0; s < trial->count; s++)
                print_error(" %s(%s)", stk_dtype_name(trial->steps[s].in.tensor.dtype),
                            trial->steps[s].ops->name);
            print_error(" %s\n", stk_dtype_name(dtype));
        }
        assert_true(same);
    }
}

static void chains_of_formats_are_the_cpu_twins(void **state)
{
    struct device *device = device_or_skip(state);
    for (int i = 0; i < 600; i++) {
        struct trial trial = {.dice = {.key = (uint64_t)i + 1}};
        trial_begin(&trial);
        twin_cpu(&trial);
        (void)twin_device(&trial, device);
        assert_same(&trial);
        trial_end(&trial);
    }
}

/* --- fast ways ---------------------------------------------------------------------------------
 */

/* A batch of (T, H, W, C) or (C, T, H, W) whose layout changes, and whose dtype may. */
static void layout_case(struct device *device, enum stk_dtype from, enum stk_dtype to,
                        int64_t channels, int first, int64_t width)
{
    struct trial trial = {.dice = {.key = (uint64_t)(channels * 8 + first)}, .count = 1};
    struct stk_flow flow = {.media = STK_MEDIA_VIDEO,
                            .channels_first = first,
                            .tensor = {.dtype = from, .rank = 4, .shape = {2, 6, width, channels}}};
    if (first)
        memcpy(flow.tensor.shape, (int64_t[]){channels, 2, 6, width}, 4 * sizeof(int64_t));
    trial.flow = flow;
    trial.from = calloc(SAMPLES, flow_size(&flow) + 1);
    values_fill(&trial);
    if (from != to) {
        trial.steps[0] = (struct step){.ops = &cast_transform, .args.cast = {(int)to, 0}};
        trial.steps[0].in = flow;
        trial.flow.tensor.dtype = to;
        trial.count++;
    }
    struct step *turn = &trial.steps[trial.count - 1];
    *turn =
        (struct step){.ops = &layout_transform, .args.layout = {first ? LAYOUT_THWC : LAYOUT_CTHW}};
    turn->in = trial.flow;
    assert_int_equal(layout_transform.shape(&turn->args, NULL, &trial.flow, NULL), STK_OK);
    trial.expected = calloc(SAMPLES, flow_size(&trial.flow) + 1);
    trial.made = calloc(SAMPLES, flow_size(&trial.flow) + 1);
    twin_cpu(&trial);
    assert_int_equal(twin_device(&trial, device), 1);
    assert_same(&trial);
    trial_end(&trial);
}

static void every_layout_of_few_channels_is_the_cpu_twins(void **state)
{
    static const enum stk_dtype dtypes[] = {STK_U8, STK_F16, STK_F32, STK_F64};
    struct device *device = device_or_skip(state);
    for (uint64_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++)
        for (int64_t channels = 1; channels <= 5; channels++)
            for (int first = 0; first < 2; first++)
                for (int64_t width = 6; width <= 8; width++) {
                    layout_case(device, dtypes[d], dtypes[d], channels, first, width);
                    layout_case(device, dtypes[d], STK_F32, channels, first, width);
                    layout_case(device, dtypes[d], STK_F16, channels, first, width);
                    layout_case(device, dtypes[d], STK_BF16, channels, first, width);
                }
}

static void values_that_do_not_fit_saturate_as_on_the_cpu(void **state)
{
    struct device *device = device_or_skip(state);
    const double values[] = {0,       -0.5,   0.5,          1.5,          2.5,       -1,
                             127.5,   128,    255,          255.5,        256,       -129,
                             65536,   -40000, 2147483647.5, 4294967296.0, -3e9,      9.3e18,
                             -9.3e18, 2e19,   NAN,          INFINITY,     -INFINITY, 1e-8};
    uint64_t count = sizeof values / sizeof values[0];
    for (int from = STK_BOOL; from < STK_C64; from++)
        for (int to = STK_BOOL; to < STK_C64; to++) {
            uint8_t in[32 * 8], expected[32 * 8] = {0}, made[32 * 8] = {0};
            struct stk_flow flow = {.tensor = {.dtype = (enum stk_dtype)from, .rank = 1}};
            struct cast_args args = {to, 0};
            struct tensor_job job;
            flow.tensor.shape[0] = (int64_t)count;
            cast_elements(values, STK_F64, in, (enum stk_dtype)from, CAST_VALUES, count);
            cast_elements(in, (enum stk_dtype)from, expected, (enum stk_dtype)to, CAST_VALUES,
                          count);
            tensor_job_begin(&job, &flow);
            assert_true(tensor_job_fold(&job, &cast_transform, &args, &flow));
            gpu_address data = device_put(device, in, sizeof in),
                        out = device_put(device, made, sizeof made);
            tensor_job_place(&job, data, out, 1);
            assert_int_equal(tensor_device_run(device->gpu, &job, device->stream, NULL), STK_OK);
            device_get(device, made, out, sizeof made);
            for (uint64_t i = 0; i < count; i++) {
                double a = value_at((enum stk_dtype)to, expected, i);
                double b = value_at((enum stk_dtype)to, made, i);
                if (!(a == b || (isnan(a) && isnan(b))))
                    print_error("%s -> %s of %g: %g, not %g\n",
                                stk_dtype_name((enum stk_dtype)from),
                                stk_dtype_name((enum stk_dtype)to), values[i], b, a);
                assert_true(a == b || (isnan(a) && isnan(b)));
            }
            gpu_free(device->gpu, data);
            gpu_free(device->gpu, out);
        }
}

static void what_was_rounded_is_not_folded(void **state)
{
    struct stk_flow flow = {.tensor = {.dtype = STK_F32, .rank = 1, .shape = {16}}};
    struct cast_args whole = {STK_I32, 0}, back = {STK_F32, 0}, half = {STK_F16, 0};
    struct tensor_job job;
    (void)state;
    tensor_job_begin(&job, &flow);
    assert_true(tensor_job_fold(&job, &cast_transform, &whole, &flow));
    assert_false(tensor_job_fold(&job, &cast_transform, &back, &flow));
    assert_int_equal(job.to_dtype, STK_I32);
    tensor_job_begin(&job, &flow);
    assert_true(tensor_job_fold(&job, &cast_transform, &half, &flow));
    assert_false(tensor_job_fold(&job, &cast_transform, &back, &flow));
    flow.tensor.dtype = STK_U8;
    tensor_job_begin(&job, &flow);
    assert_true(tensor_job_fold(&job, &cast_transform, &half, &flow));
    assert_true(tensor_job_fold(&job, &cast_transform, &back, &flow));
}

/* A grid has 65,535 rows at most. */
static void batches_may_be_larger_than_a_grid(void **state)
{
    enum { MANY = 66000 };
    struct device *device = device_or_skip(state);
    struct stk_flow flow = {.tensor = {.dtype = STK_U8, .rank = 1, .shape = {4}}};
    struct cast_args args = {STK_F32, 0};
    struct tensor_job job;
    uint8_t *from = calloc(MANY, 4);
    float *made = calloc(MANY, 4 * sizeof *made);
    for (uint64_t i = 0; i < MANY * 4; i++)
        from[i] = (uint8_t)random_below(7, i, 256);
    tensor_job_begin(&job, &flow);
    assert_true(tensor_job_fold(&job, &cast_transform, &args, &flow));
    tensor_job_place(&job, device_put(device, from, MANY * 4),
                     device_put(device, made, MANY * 4 * sizeof *made), MANY);
    assert_int_equal(tensor_device_run(device->gpu, &job, device->stream, NULL), STK_OK);
    device_get(device, made, job.to, MANY * 4 * sizeof *made);
    for (uint64_t i = 0; i < MANY * 4; i++)
        assert_true(made[i] == from[i]);
    gpu_free(device->gpu, job.from);
    gpu_free(device->gpu, job.to);
    free(from);
    free(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_of_formats_are_the_cpu_twins),
        cmocka_unit_test(every_layout_of_few_channels_is_the_cpu_twins),
        cmocka_unit_test(values_that_do_not_fit_saturate_as_on_the_cpu),
        cmocka_unit_test(what_was_rounded_is_not_folded),
        cmocka_unit_test(batches_may_be_larger_than_a_grid),
    };
    return cmocka_run_group_tests(tests, device_setup, device_teardown);
}
