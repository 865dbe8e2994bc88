/* Rotate, Scale, Jitter and Drop: clouds (N, columns) of float32 with x, y, z in front. Rows from
 * `real` on are padding and stay as they are. NaN stays NaN. */
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/random.h"
#include "transform/gaussian.h"
#include "transform/transform.h"

#define POINTS_BIT STK_MEDIA_BIT(STK_MEDIA_POINTS)
#define DEGREE 0.017453292519943295 /* in radians */

/* ---- what they share ----------------------------------------------------------------------- */

static stk_status points_shape(const void *args, const void *params, struct stk_flow *flow,
                               struct stk_error *err)
{
    const struct stk_tensor *tensor = &flow->tensor;
    (void)args;
    (void)params;
    if (tensor->dtype == STK_F32 && tensor->rank == 2 &&
        (tensor->shape[1] < 0 || tensor->shape[1] >= 3))
        return STK_OK;
    fail(err, STK_SHAPE, "points are float32 rows of x, y, z and more, but these are %s",
         tensor->dtype != STK_F32 ? stk_dtype_name(tensor->dtype)
         : tensor->rank != 2      ? "no rows"
                                  : "fewer than three columns");
    fail_remedy(err, "write transforms of points before Cast, and decode three columns at least");
    return STK_SHAPE;
}

static uint64_t real_points(const struct stk_flow *flow)
{
    int64_t count = flow->tensor.shape[0];
    return (uint64_t)(flow->real >= 0 && flow->real < count ? flow->real : count);
}

/* The result begins as a copy, where it does not lie in the same place. */
static float *points_begin(const struct stk_flow *in, struct stk_flow *out)
{
    uint64_t size = stk_tensor_size(&in->tensor);
    if (out->tensor.data != in->tensor.data && size)
        memcpy(out->tensor.data, in->tensor.data, size);
    return out->tensor.data;
}

/* One number d means -d to d. */
static double drawn_between(const struct transform_list *range, uint64_t key, uint64_t counter)
{
    double low = range->values[0], high = range->values[range->count - 1];
    if (range->count == 1)
        low = -high;
    return low + (high - low) * random_unit(key, counter);
}

static stk_status check_range(const struct transform_list *range, const char *name,
                              struct stk_error *err)
{
    if (range->count == 2 && range->values[0] > range->values[1]) {
        fail(err, STK_USAGE, "%s goes from %g down to %g", name, range->values[0],
             range->values[1]);
        fail_remedy(err, "write the smaller one first");
        return STK_USAGE;
    }
    return STK_OK;
}

/* ---- Rotate -------------------------------------------------------------------------------- */

struct rotate_args {
    struct transform_list degrees;
    int axis; /* 0: z, 1: x, 2: y */
};
struct rotate_params {
    float cosine, sine;
};

static const struct transform_arg rotate_arguments[] = {
    {.name = "degrees",
     .type = ARG_FLOATS,
     .offset = offsetof(struct rotate_args, degrees),
     .preset = "(-180, 180)",
     .least = -36000,
     .most = 36000,
     .least_count = 1,
     .most_count = 2},
    {.name = "axis",
     .type = ARG_CHOICE,
     .offset = offsetof(struct rotate_args, axis),
     .preset = "z",
     .choices = "z|x|y"},
    {.name = NULL},
};

static stk_status rotate_check(void *args, struct stk_error *err)
{
    return check_range(&((struct rotate_args *)args)->degrees, "degrees", err);
}

static void rotate_draw(const void *from, uint64_t key, const struct stk_flow *in, void *to)
{
    const struct rotate_args *args = from;
    double angle = drawn_between(&args->degrees, key, 0) * DEGREE;
    (void)in;
    *(struct rotate_params *)to = (struct rotate_params){(float)cos(angle), (float)sin(angle)};
}

/* About z by the angle a, seen from above against the clock: x' = x cos a - y sin a,
 * y' = x sin a + y cos a; about x the same of y and z, about y of z and x. */
static stk_status rotate_run(const void *from, const void *drawn, const struct stk_flow *in,
                             struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct rotate_args *args = from;
    const struct rotate_params *params = drawn;
    uint64_t columns = (uint64_t)in->tensor.shape[1], count = real_points(in);
    int a = args->axis, b = (args->axis + 1) % 3; /* z: 0, 1; x: 1, 2; y: 2, 0 */
    float *row = points_begin(in, out), cosine = params->cosine, sine = params->sine;
    (void)scratch;
    (void)err;
    for (uint64_t i = 0; i < count; i++, row += columns) {
        float first = row[a], second = row[b];
        row[a] = first * cosine - second * sine;
        row[b] = first * sine + second * cosine;
    }
    return STK_OK;
}

const struct transform_ops points_rotate_transform = {
    .name = "Rotate",
    .help = "Turns a cloud about an axis by a random angle in degrees.",
    .media = POINTS_BIT,
    .stage = TRANSFORM_TENSOR,
    .args = rotate_arguments,
    .size = sizeof(struct rotate_args),
    .check = rotate_check,
    .shape = points_shape,
    .draw = rotate_draw,
    .run = rotate_run,
    .in_place = 1,
};

/* ---- Scale --------------------------------------------------------------------------------- */

struct scale_args {
    struct transform_list range;
};
struct scale_params {
    float factor;
};

static const struct transform_arg scale_arguments[] = {
    {.name = "range",
     .type = ARG_FLOATS,
     .offset = offsetof(struct scale_args, range),
     .preset = "(0.95, 1.05)",
     .least = 1e-6,
     .most = 1e6,
     .least_count = 2,
     .most_count = 2},
    {.name = NULL},
};

static stk_status scale_check(void *args, struct stk_error *err)
{
    return check_range(&((struct scale_args *)args)->range, "range", err);
}

static void scale_draw(const void *from, uint64_t key, const struct stk_flow *in, void *to)
{
    const struct scale_args *args = from;
    (void)in;
    ((struct scale_params *)to)->factor = (float)drawn_between(&args->range, key, 0);
}

static stk_status scale_run(const void *args, const void *drawn, const struct stk_flow *in,
                            struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    uint64_t columns = (uint64_t)in->tensor.shape[1], count = real_points(in);
    float *row = points_begin(in, out), factor = ((const struct scale_params *)drawn)->factor;
    (void)args;
    (void)scratch;
    (void)err;
    for (uint64_t i = 0; i < count; i++, row += columns) {
        row[0] *= factor;
        row[1] *= factor;
        row[2] *= factor;
    }
    return STK_OK;
}

const struct transform_ops points_scale_transform = {
    .name = "Scale",
    .help = "Multiplies x, y and z by one random factor.",
    .media = POINTS_BIT,
    .stage = TRANSFORM_TENSOR,
    .args = scale_arguments,
    .size = sizeof(struct scale_args),
    .check = scale_check,
    .shape = points_shape,
    .draw = scale_draw,
    .run = scale_run,
    .in_place = 1,
};

/* ---- Jitter -------------------------------------------------------------------------------- */

struct jitter_args {
    double sigma, clip;
};
struct key_params {
    uint64_t key;
};

static const struct transform_arg jitter_arguments[] = {
    {.name = "sigma",
     .type = ARG_FLOAT,
     .offset = offsetof(struct jitter_args, sigma),
     .preset = "0.01",
     .least = 0,
     .most = 1e6},
    {.name = "clip",
     .type = ARG_FLOAT,
     .offset = offsetof(struct jitter_args, clip),
     .preset = "0.05",
     .least = 0,
     .most = 1e6},
    {.name = NULL},
};

static void key_draw(const void *args, uint64_t key, const struct stk_flow *in, void *to)
{
    (void)args;
    (void)in;
    ((struct key_params *)to)->key = key;
}

#define JITTER_ROWS 64

/* Point i takes numbers 3 i, 3 i + 1 and 3 i + 2 of the stream (gaussian.h). */
static stk_status jitter_run(const void *from, const void *drawn, const struct stk_flow *in,
                             struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct jitter_args *args = from;
    uint64_t key = ((const struct key_params *)drawn)->key;
    uint64_t columns = (uint64_t)in->tensor.shape[1], count = real_points(in);
    float *row = points_begin(in, out), sigma = (float)args->sigma, clip = (float)args->clip;
    float noise[3 * JITTER_ROWS];
    (void)scratch;
    (void)err;
    for (uint64_t i = 0; i < count; i++, row += columns) {
        uint64_t at = i % JITTER_ROWS;
        if (at == 0)
            gaussian_fill(key, 3 * i, 3 * (count - i < JITTER_ROWS ? count - i : JITTER_ROWS),
                          noise);
        for (int k = 0; k < 3; k++) {
            float move = noise[3 * at + (uint64_t)k] * sigma;
            move = move < -clip ? -clip : move > clip ? clip : move;
            row[k] += move;
        }
    }
    return STK_OK;
}

const struct transform_ops points_jitter_transform = {
    .name = "Jitter",
    .help = "Moves every point by normal noise, at most by clip along each axis.",
    .media = POINTS_BIT,
    .stage = TRANSFORM_TENSOR,
    .args = jitter_arguments,
    .size = sizeof(struct jitter_args),
    .shape = points_shape,
    .draw = key_draw,
    .run = jitter_run,
    .in_place = 1,
};

/* ---- Drop ---------------------------------------------------------------------------------- */

struct drop_args {
    double p;
    int replace;
};
struct drop_params {
    uint64_t key;
    int64_t kept, first; /* how many stay; the first of them */
};

static const struct transform_arg drop_arguments[] = {
    {.name = "p",
     .type = ARG_FLOAT,
     .offset = offsetof(struct drop_args, p),
     .preset = "0.1",
     .least = 0,
     .most = 1},
    {.name = "replace",
     .type = ARG_BOOL,
     .offset = offsetof(struct drop_args, replace),
     .preset = "True"},
    {.name = NULL},
};

static inline int is_dropped(const struct drop_args *args, uint64_t key, uint64_t i)
{
    return random_unit(key, i) < args->p;
}

/* Of a cloud whose points would all go, the first stays: nothing could take their place. */
static void drop_draw(const void *from, uint64_t key, const struct stk_flow *in, void *to)
{
    const struct drop_args *args = from;
    uint64_t count = real_points(in), kept = 0, first = count;
    for (uint64_t i = 0; i < count; i++) {
        if (is_dropped(args, key, i))
            continue;
        first = kept ? first : i;
        kept++;
    }
    if (!kept && count) {
        kept = 1;
        first = 0;
    }
    *(struct drop_params *)to = (struct drop_params){key, (int64_t)kept, (int64_t)first};
}

static stk_status drop_shape(const void *from, const void *drawn, struct stk_flow *flow,
                             struct stk_error *err)
{
    const struct drop_args *args = from;
    const struct drop_params *params = drawn;
    stk_status status = points_shape(from, drawn, flow, err);
    if (status || args->replace)
        return status;
    flow->tensor.shape[0] = params ? params->kept : -1;
    flow->real = -1; /* padding goes too */
    return STK_OK;
}

static stk_status drop_run(const void *from, const void *drawn, const struct stk_flow *in,
                           struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct drop_args *args = from;
    const struct drop_params *params = drawn;
    uint64_t columns = (uint64_t)in->tensor.shape[1], count = real_points(in), kept = 0;
    const float *rows = in->tensor.data, *first = rows + (uint64_t)params->first * columns;
    float *to = args->replace ? points_begin(in, out) : out->tensor.data;
    (void)scratch;
    (void)err;
    for (uint64_t i = 0; i < count; i++) {
        int dropped = is_dropped(args, params->key, i) && i != (uint64_t)params->first;
        if (args->replace && dropped)
            memcpy(to + i * columns, first, columns * sizeof *to);
        else if (!args->replace && !dropped)
            memmove(to + kept++ * columns, rows + i * columns, columns * sizeof *to);
    }
    return STK_OK;
}

const struct transform_ops points_drop_transform = {
    .name = "Drop",
    .help = "Drops each point with probability p; replace: a copy of the first one that stays "
            "takes its place.",
    .media = POINTS_BIT,
    .stage = TRANSFORM_TENSOR,
    .args = drop_arguments,
    .size = sizeof(struct drop_args),
    .shape = drop_shape,
    .draw = drop_draw,
    .run = drop_run,
    .in_place = 1,
};
