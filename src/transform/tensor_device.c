#include "transform/tensor_device.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "stoker/media.h"
#include "transform/cast.h"
#include "transform/format_transform.h"
#include "transform/kernel_dtype.h"

#define THREADS 256
#define MOST_ROWS 65535     /* of a grid */
#define MOST_BLOCKS 1048576 /* of tensor_any, whose threads go on to the next element */

static_assert((int)KERNEL_BOOL == (int)STK_BOOL && (int)KERNEL_U8 == (int)STK_U8 &&
                  (int)KERNEL_I8 == (int)STK_I8 && (int)KERNEL_U16 == (int)STK_U16 &&
                  (int)KERNEL_I16 == (int)STK_I16 && (int)KERNEL_U32 == (int)STK_U32 &&
                  (int)KERNEL_I32 == (int)STK_I32 && (int)KERNEL_U64 == (int)STK_U64 &&
                  (int)KERNEL_I64 == (int)STK_I64 && (int)KERNEL_F16 == (int)STK_F16 &&
                  (int)KERNEL_BF16 == (int)STK_BF16 && (int)KERNEL_F32 == (int)STK_F32 &&
                  (int)KERNEL_F64 == (int)STK_F64,
              "the kernels' dtypes are those of stoker/tensor.h");

static_assert(TENSOR_CHANNELS >= TRANSFORM_LIST_MAX, "there is room for every list of numbers");

/* --- jobs --------------------------------------------------------------------------------------
 */

static uint64_t elements(const struct stk_tensor *tensor)
{
    return stk_tensor_size(tensor) / stk_dtype_size(tensor->dtype);
}

void tensor_job_begin(struct tensor_job *job, const struct stk_flow *in)
{
    *job = (struct tensor_job){.count = 1,
                               .rows = 1,
                               .columns = elements(&in->tensor),
                               .from_dtype = in->tensor.dtype,
                               .to_dtype = in->tensor.dtype,
                               .channels = 1,
                               .channel_run = 1,
                               .multiply = {1}};
}

void tensor_job_place(struct tensor_job *job, uint64_t from, uint64_t to, uint32_t samples)
{
    job->from = from;
    job->to = to;
    job->count *= samples;
}

/* Values were rounded on their way to what they are: what comes behind must see them so. A byte in
 * a float is exact. */
static int is_rounded(const struct tensor_job *job)
{
    enum stk_dtype from = (enum stk_dtype)job->from_dtype, to = (enum stk_dtype)job->to_dtype;
    int exact = !job->affine && stk_dtype_size(from) == 1;
    if (from == to && !job->affine)
        return 0;
    if (!cast_is_float(to))
        return 1;
    uint32_t fits = cast_is_float(from) ? 4 : 2; /* bytes that a float32 holds without a loss */
    return !exact && to != STK_F64 && (to != STK_F32 || stk_dtype_size(from) > fits);
}

static int value_bits(enum stk_dtype dtype)
{
    int is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;
    return dtype == STK_BOOL ? 1 : (int)stk_dtype_size(dtype) * 8 - is_signed;
}

/* Behind what is there already: value * multiply + add. */
static void affine_add(struct tensor_job *job, const double *multiply, const double *add,
                       uint32_t count, uint64_t run)
{
    if (count > 1 && job->channels == 1) {
        for (uint32_t c = 1; c < count; c++) {
            job->multiply[c] = job->multiply[0];
            job->add[c] = job->add[0];
        }
        job->channels = count;
        job->channel_run = run;
    }
    for (uint32_t c = 0; c < job->channels; c++) {
        uint32_t own = count == 1 ? 0 : c;
        job->multiply[c] *= multiply[own];
        job->add[c] = job->add[c] * multiply[own] + add[own];
    }
    job->affine = 1;
}

static int fold_cast(struct tensor_job *job, const struct cast_args *args)
{
    enum stk_dtype now = (enum stk_dtype)job->to_dtype, to = (enum stk_dtype)args->dtype;
    if (now == to)
        return 1;
    /* Whole numbers that went by way of floats: the kernel would take the short way. */
    int detour = !cast_is_float((enum stk_dtype)job->from_dtype) && cast_is_float(now);
    if (is_rounded(job) || (detour && !cast_is_float(to)))
        return 0;
    if (args->scale && !cast_is_float(now) && !cast_is_float(to))
        job->shift = value_bits(to) - value_bits(now);
    if (args->scale && !cast_is_float(now) && cast_is_float(to)) {
        double multiply = 1 / (ldexp(1, value_bits(now)) - 1), add = 0;
        affine_add(job, &multiply, &add, 1, 1);
    }
    if (args->scale && cast_is_float(now) && !cast_is_float(to))
        job->cut = 1;
    job->to_dtype = to;
    return 1;
}

/* Where Normalize finds the channels: see format_transform.c. */
static int32_t channel_axis(const struct stk_flow *flow)
{
    int32_t rank = flow->tensor.rank;
    switch (flow->media) {
    case STK_MEDIA_IMAGE:
        return flow->channels_first ? rank - 3 : rank - 1;
    case STK_MEDIA_VIDEO:
        return flow->channels_first ? rank - 4 : rank - 1;
    case STK_MEDIA_POINTS:
        return rank - 1;
    default:
        return 0;
    }
}

/* Elements of one channel in a row, in the order in which the job reads. */
static uint64_t channel_run(const struct tensor_job *job, const struct stk_flow *in)
{
    uint64_t run = 1;
    if (job->turned) /* an image or a video: it is stored the other way round */
        return in->channels_first ? 1 : job->columns;
    for (int32_t axis = channel_axis(in) + 1; axis < in->tensor.rank; axis++)
        run *= (uint64_t)in->tensor.shape[axis];
    return run;
}

static int fold_normalize(struct tensor_job *job, const struct normalize_args *args,
                          const struct stk_flow *in)
{
    double multiply[TENSOR_CHANNELS], add[TENSOR_CHANNELS];
    int byte = job->to_dtype == STK_U8;
    if (is_rounded(job))
        return 0;
    for (uint32_t c = 0; c < args->mean.count; c++) {
        multiply[c] = 1 / (byte ? 255 * args->std.values[c] : args->std.values[c]);
        add[c] = -args->mean.values[c] / args->std.values[c];
    }
    affine_add(job, multiply, add, args->mean.count, channel_run(job, in));
    if (byte)
        job->to_dtype = STK_F32;
    return 1;
}

static void fold_layout(struct tensor_job *job, const struct layout_args *args,
                        const struct stk_flow *in)
{
    int first = args->order == LAYOUT_CHW || args->order == LAYOUT_CTHW;
    int32_t axes = in->media == STK_MEDIA_VIDEO ? 4 : 3, front = in->tensor.rank - axes;
    if (first == in->channels_first)
        return;
    if (job->turned) { /* and back */
        job->turned = 0;
        return;
    }
    uint64_t channels = (uint64_t)in->tensor.shape[in->channels_first ? front : front + axes - 1];
    uint64_t clips = 1, others = 1;
    for (int32_t axis = 0; axis < front; axis++)
        clips *= (uint64_t)in->tensor.shape[axis];
    for (int32_t axis = 0; axis < axes - 1; axis++)
        others *= (uint64_t)in->tensor.shape[front + axis + in->channels_first];
    job->count = clips;
    job->rows = in->channels_first ? channels : others;
    job->columns = in->channels_first ? others : channels;
    job->turned = 1;
}

int tensor_job_fold(struct tensor_job *job, const struct transform_ops *ops, const void *args,
                    const struct stk_flow *in)
{
    if (ops == &cast_transform)
        return fold_cast(job, args);
    if (ops == &normalize_transform)
        return fold_normalize(job, args, in);
    assert(ops == &layout_transform);
    fold_layout(job, args, in);
    return 1;
}

/* --- which kernel ------------------------------------------------------------------------------
 */

/* A kernel and how many of its threads a tensor takes; NULL: tensor_any. */
struct choice {
    const char *name;
    uint64_t threads;
};

/* The kernels that go through floats. */
static int is_small(const struct tensor_job *job)
{
    enum stk_dtype from = (enum stk_dtype)job->from_dtype, to = (enum stk_dtype)job->to_dtype;
    int takes = stk_dtype_size(from) <= 2 || from == STK_F32;
    return takes && (to == STK_F16 || to == STK_BF16 || to == STK_F32);
}

static int is_unchanged(const struct tensor_job *job)
{
    return job->from_dtype == job->to_dtype && !job->affine;
}

/* channels x others, whose channels lie `run` elements apart. */
static struct choice choose_turn(const struct tensor_job *job, int splits)
{
    static const char *const moves[2][5] = {
        {NULL, "tensor_join_1", "tensor_join_2", NULL, "tensor_join_4"},
        {NULL, "tensor_split_1", "tensor_split_2", NULL, "tensor_split_4"}};
    uint64_t channels = splits ? job->columns : job->rows, run = splits ? 1 : job->columns;
    uint64_t others = splits ? job->rows : job->columns;
    uint32_t size = (uint32_t)stk_dtype_size((enum stk_dtype)job->from_dtype);
    struct choice none = {NULL, 0};
    if (channels < 2 || channels > 4)
        return none;
    if (is_unchanged(job)) {
        if (size > 4 || others % (16 / size))
            return none;
        return (struct choice){moves[splits][size], others / (16 / size)};
    }
    int by_channel = job->channels == channels && job->channel_run == run;
    if (!is_small(job) || others % 4 || (job->affine && job->channels > 1 && !by_channel))
        return none;
    return (struct choice){splits ? "tensor_split_cast" : "tensor_join_cast", others / 4};
}

static struct choice choose(const struct tensor_job *job)
{
    uint64_t size = job->rows * job->columns;
    struct choice choice = {NULL, 0};
    if (job->from % 16 || job->to % 16 || size > UINT32_MAX)
        return choice;
    if (!job->turned && is_small(job) && size % 4 == 0)
        return (struct choice){"tensor_line", size / 4};
    if (!job->turned)
        return choice;
    choice = choose_turn(job, 1);
    return choice.name ? choice : choose_turn(job, 0);
}

static stk_status run_chosen(struct gpu *gpu, const struct tensor_job *job, struct choice choice,
                             struct gpu_stream *stream, struct stk_error *err)
{
    uint64_t size = job->rows * job->columns;
    struct gpu_kernel *kernel;
    stk_status status = gpu_kernel(gpu, "tensor_kernel", choice.name, &kernel, err);
    for (uint64_t at = 0; at < job->count && !status; at += MOST_ROWS) {
        uint64_t count = job->count - at < MOST_ROWS ? job->count - at : MOST_ROWS;
        struct gpu_grid grid = {(uint32_t)((choice.threads + THREADS - 1) / THREADS),
                                (uint32_t)count, THREADS};
        struct tensor_job part = *job;
        part.from += at * size * stk_dtype_size((enum stk_dtype)job->from_dtype);
        part.to += at * size * stk_dtype_size((enum stk_dtype)job->to_dtype);
        part.count = count;
        status = gpu_launch(gpu, kernel, &grid, &part, sizeof part, stream, err);
    }
    return status;
}

stk_status tensor_device_run(struct gpu *gpu, const struct tensor_job *asked,
                             struct gpu_stream *stream, struct stk_error *err)
{
    struct tensor_job job = *asked;
    uint64_t all = job.count * job.rows * job.columns;
    if (!all)
        return STK_OK;
    if (job.rows == 1 || job.columns == 1)
        job.turned = 0;
    if (!job.turned && is_unchanged(&job))
        return gpu_copy_within(gpu, job.to, job.from,
                               all * stk_dtype_size((enum stk_dtype)job.to_dtype), stream, err);
    struct choice choice = choose(&job);
    if (choice.name)
        return run_chosen(gpu, &job, choice, stream, err);
    uint64_t blocks = (all + THREADS - 1) / THREADS;
    struct gpu_grid grid = {(uint32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS), 1, THREADS};
    struct gpu_kernel *kernel;
    stk_status status = gpu_kernel(gpu, "tensor_kernel", "tensor_any", &kernel, err);
    if (!status)
        status = gpu_launch(gpu, kernel, &grid, &job, sizeof job, stream, err);
    return status;
}
