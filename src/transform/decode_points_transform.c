/* DecodePoints: its arguments and what comes out; pipeline/points_run.c does it. */
#include "base/fail.h"
#include "transform/decode_transform.h"

#define OF(member) offsetof(struct decode_points_args, member)

static const struct transform_arg arguments[] = {
    {.name = "columns",
     .type = ARG_INT,
     .offset = OF(columns),
     .preset = "None",
     .least = 1,
     .most = 512},
    {.name = "count",
     .type = ARG_INT,
     .offset = OF(count),
     .preset = "None",
     .least = 1,
     .most = 4294967295.0},
    {.name = "sample",
     .type = ARG_CHOICE,
     .offset = OF(sample),
     .preset = "random",
     .choices = POINTS_SAMPLE_CHOICES},
    {.name = "pad", .type = ARG_BOOL, .offset = OF(pad), .preset = "True"},
    {.name = "nan",
     .type = ARG_CHOICE,
     .offset = OF(nan),
     .preset = "keep",
     .choices = POINTS_NAN_CHOICES},
    {.name = NULL},
};

static stk_status decode_points_shape(const void *from, const void *params, struct stk_flow *flow,
                                      struct stk_error *err)
{
    const struct decode_points_args *args = from;
    struct stk_tensor *tensor = &flow->tensor;
    (void)params;
    if (args->columns && tensor->shape[1] >= 0 && tensor->shape[1] < args->columns) {
        fail(err, STK_SHAPE, "the points have %lld columns, %lld are wanted",
             (long long)tensor->shape[1], (long long)args->columns);
        fail_remedy(err, "ask for fewer columns in DecodePoints");
        return STK_SHAPE;
    }
    if (args->columns)
        tensor->shape[1] = args->columns;
    if (args->nan == POINTS_NAN_DROP)
        tensor->shape[0] = -1;
    if (args->count)
        tensor->shape[0] = args->count;
    flow->real = args->count && args->pad ? args->count : -1;
    return STK_OK;
}

static void decode_points_draw(const void *args, uint64_t key, const struct stk_flow *in,
                               void *params)
{
    (void)args;
    (void)in;
    ((struct decode_points_params *)params)->key = key;
}

const struct transform_ops decode_points_transform = {
    .name = "DecodePoints",
    .help = "How many points and columns of a cloud are decoded.",
    .media = STK_MEDIA_BIT(STK_MEDIA_POINTS),
    .stage = TRANSFORM_DECODE,
    .args = arguments,
    .size = sizeof(struct decode_points_args),
    .shape = decode_points_shape,
    .draw = decode_points_draw,
};
