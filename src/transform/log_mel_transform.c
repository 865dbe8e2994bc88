/* LogMel: librosa's power_to_db(feature.melspectrogram(...)), eight frames at a time. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "transform/lane_fft.h"
#include "transform/log_mel.h"
#include "transform/log_mel_device.h"
#include "transform/mel_filters.h"
#include "transform/transform.h"

struct log_mel_args {
    int64_t n_fft, hop_length, win_length, n_mels;
    double fmin, fmax, power;
    int center, pad_mode, htk, norm;
    double ref, amin, top_db, rate;
    struct log_mel_tables *tables; /* made by check */
};

/* What does not depend on the recording; and the filters of the first rate that was seen, which is
 * that of all recordings in most sets. A sample of another rate makes its own. */
struct log_mel_tables {
    struct log_mel_frame frame;
    _Atomic(struct mel_filters *) filters; /* set once, by compare and exchange */
    struct log_mel_devices devices;
};

#define ARG(member) offsetof(struct log_mel_args, member)
static const struct transform_arg log_mel_args[] = {
    {"n_fft", ARG_INT, ARG(n_fft), "2048", 2, 65536, NULL, 0, 0},
    {"hop_length", ARG_INT, ARG(hop_length), "512", 1, 1e9, NULL, 0, 0},
    {"win_length", ARG_INT, ARG(win_length), "None", 1, 65536, NULL, 0, 0},
    {"n_mels", ARG_INT, ARG(n_mels), "128", 1, 4096, NULL, 0, 0},
    {"fmin", ARG_FLOAT, ARG(fmin), "0", 0, 1e6, NULL, 0, 0},
    {"fmax", ARG_FLOAT, ARG(fmax), "None", 1, 1e6, NULL, 0, 0},
    {"power", ARG_FLOAT, ARG(power), "2", 0.1, 8, NULL, 0, 0},
    {"center", ARG_BOOL, ARG(center), "True", 0, 0, NULL, 0, 0},
    {"pad_mode", ARG_CHOICE, ARG(pad_mode), "constant", 0, 0, "constant|reflect|edge", 0, 0},
    {"htk", ARG_BOOL, ARG(htk), "False", 0, 0, NULL, 0, 0},
    {"norm", ARG_CHOICE, ARG(norm), "slaney", 0, 0, "slaney|none", 0, 0},
    {"ref", ARG_FLOAT, ARG(ref), "1", 1e-30, 1e30, NULL, 0, 0},
    {"amin", ARG_FLOAT, ARG(amin), "1e-10", 1e-30, 1e30, NULL, 0, 0},
    {"top_db", ARG_FLOAT, ARG(top_db), "80", 0, 1e6, NULL, 0, 0}, /* 0: all are kept */
    {"rate", ARG_FLOAT, ARG(rate), "None", 1, 1e6, NULL, 0, 0},
    {0}};

/* --- tables ----------------------------------------------------------------------------------- */

static void log_mel_release(void *arguments)
{
    struct log_mel_args *args = arguments;
    if (!args->tables)
        return;
    log_mel_devices_reset(&args->tables->devices);
    memory_free(atomic_load(&args->tables->filters));
    memory_free(args->tables);
    args->tables = NULL;
}

static stk_status log_mel_check(void *arguments, struct stk_error *err)
{
    struct log_mel_args *args = arguments;
    if (args->win_length > args->n_fft)
        return fail(err, STK_USAGE, "win_length is %lld, more than n_fft, %lld",
                    (long long)args->win_length, (long long)args->n_fft);
    if (args->fmax && args->fmax <= args->fmin)
        return fail(err, STK_USAGE, "fmax is %g, not above fmin, %g", args->fmax, args->fmin);
    uint32_t n_fft = (uint32_t)args->n_fft;
    uint64_t head = (sizeof(struct log_mel_tables) + 63) / 64 * 64;
    uint64_t size = head + log_mel_frame_floats(n_fft) * sizeof(float);
    args->tables = memory_alloc(size);
    if (!args->tables)
        return fail_memory(err, size);
    int64_t window = args->win_length ? args->win_length : args->n_fft;
    log_mel_frame_init(&args->tables->frame, n_fft, (uint32_t)window, lane_width(),
                       (float *)((char *)args->tables + head));
    atomic_init(&args->tables->filters, NULL);
    log_mel_devices_init(&args->tables->devices);
    return STK_OK;
}

static struct mel_spec spec_of(const struct log_mel_args *args, double rate)
{
    return (struct mel_spec){.rate = rate,
                             .fmin = args->fmin,
                             .fmax = args->fmax,
                             .n_fft = (uint32_t)args->n_fft,
                             .n_mels = (uint32_t)args->n_mels,
                             .htk = args->htk,
                             .norm = (enum mel_norm)args->norm};
}

/* A struct and its tables in one block. */
static struct mel_filters *make_filters(const struct mel_spec *spec, void *block)
{
    struct mel_filters *filters = block;
    if (filters)
        mel_filters_init(filters, spec, filters + 1);
    return filters;
}

/* Those that are kept when they are of this rate; else made in scratch memory. NULL: no memory. */
static const struct mel_filters *find_filters(const struct log_mel_args *args, double rate,
                                              struct scratch *scratch)
{
    struct log_mel_tables *tables = args->tables;
    struct mel_spec spec = spec_of(args, rate);
    uint64_t size = sizeof(struct mel_filters) + mel_filters_bytes(spec.n_fft, spec.n_mels);
    struct mel_filters *kept = atomic_load(&tables->filters);
    if (!kept) {
        struct mel_filters *made = make_filters(&spec, memory_alloc(size));
        if (!made)
            return NULL;
        if (atomic_compare_exchange_strong(&tables->filters, &kept, made))
            return made;
        memory_free(made); /* another thread was first: kept is its own */
    }
    return kept->spec.rate == rate ? kept : make_filters(&spec, scratch_take(scratch, size));
}

/* --- shape ------------------------------------------------------------------------------------ */

static int64_t column_count(const struct log_mel_args *args, int64_t frames)
{
    int64_t padded = frames + (args->center ? args->n_fft / 2 * 2 : 0);
    return padded < args->n_fft ? 0 : 1 + (padded - args->n_fft) / args->hop_length;
}

static stk_status check_rate(const struct log_mel_args *args, double rate, int needed,
                             struct stk_error *err)
{
    if (args->rate && rate && args->rate != rate) {
        (void)fail(err, STK_SHAPE,
                   "LogMel(rate=%.15g) is given a recording of %.15g frames a second", args->rate,
                   rate);
        fail_remedy(err, "put Resample(%.15g) in front of it", args->rate);
        return STK_SHAPE;
    }
    rate = rate ? rate : args->rate;
    if (!rate && needed) {
        (void)fail(err, STK_USAGE, "LogMel does not know the rate of these values");
        fail_remedy(err, "say LogMel(rate=16000)");
        return STK_USAGE;
    }
    if (rate && !args->fmax && args->fmin >= rate / 2)
        return fail(err, STK_USAGE, "fmin is %g, not below half the rate, %g", args->fmin,
                    rate / 2);
    return STK_OK;
}

static stk_status log_mel_shape(const void *arguments, const void *params, struct stk_flow *flow,
                                struct stk_error *err)
{
    const struct log_mel_args *args = arguments;
    struct stk_tensor *tensor = &flow->tensor;
    if (tensor->dtype != STK_F32 || tensor->rank != 2)
        return fail(err, STK_USAGE, "LogMel takes float32 (channels, frames)");
    stk_status status = check_rate(args, flow->rate, params != NULL, err);
    if (status)
        return status;
    int64_t frames = tensor->shape[1];
    int64_t columns = frames < 0 ? -1 : column_count(args, frames);
    int64_t least = args->pad_mode == MEL_PAD_REFLECT && args->center ? args->n_fft / 2 + 1 : 1;
    if (frames >= 0 && (!columns || frames < least)) {
        (void)fail(err, STK_SHAPE, "a recording of %lld frames is too short for LogMel(n_fft=%lld)",
                   (long long)frames, (long long)args->n_fft);
        fail_remedy(err, "DecodeAudio(seconds=...) pads it; or take a smaller n_fft");
        return STK_SHAPE;
    }
    if (flow->real >= 0) {
        int64_t real = column_count(args, flow->real);
        flow->real = real < columns ? real : columns;
    }
    tensor->rank = 3;
    tensor->shape[1] = args->n_mels;
    tensor->shape[2] = columns;
    return STK_OK;
}

/* --- run -------------------------------------------------------------------------------------- */

/* One channel with n_fft / 2 frames on both sides; room frames in all, zeros where nothing is. */
static void pad_channel(const struct log_mel_args *args, const float *in, int64_t frames, float *to,
                        int64_t room)
{
    int64_t side = args->center ? args->n_fft / 2 : 0;
    memcpy(to + side, in, (size_t)frames * sizeof(float));
    memset(to + side + frames, 0, (size_t)(room - side - frames) * sizeof(float));
    for (int64_t i = 1; i <= side; i++) {
        float before = 0, behind = 0;
        if (args->pad_mode == MEL_PAD_REFLECT) {
            before = in[i];
            behind = in[frames - 1 - i];
        } else if (args->pad_mode == MEL_PAD_EDGE) {
            before = in[0];
            behind = in[frames - 1];
        }
        to[side - i] = before;
        to[side + frames - 1 + i] = behind;
    }
}

static float decibel_offset(const struct log_mel_args *args)
{
    return (float)(-10 * log10(args->ref > args->amin ? args->ref : args->amin));
}

/* No value is more than top_db below the largest of all. */
static void clip_low(float *data, int64_t count, float top_db)
{
    float most = -INFINITY;
    for (int64_t i = 0; i < count; i++)
        most = data[i] > most ? data[i] : most;
    float least = most - top_db;
    for (int64_t i = 0; i < count; i++)
        data[i] = data[i] < least ? least : data[i];
}

static stk_status log_mel_run(const void *arguments, const void *params, const struct stk_flow *in,
                              struct stk_flow *out, struct scratch *scratch, struct stk_error *err)
{
    const struct log_mel_args *args = arguments;
    const struct log_mel_frame *frame = &args->tables->frame;
    int64_t channels = in->tensor.shape[0], frames = in->tensor.shape[1];
    int64_t columns = out->tensor.shape[2];
    (void)params;
    /* Columns are made eight at a time: the last of them may lie behind the end. */
    int64_t room = (columns + LANES) * args->hop_length + args->n_fft;
    room = room > frames + args->n_fft ? room : frames + args->n_fft;
    float *padded = scratch_take(scratch, (uint64_t)room * sizeof(float));
    void *work = scratch_take(scratch, log_mel_work_bytes(frame));
    const struct mel_filters *filters =
        find_filters(args, in->rate ? in->rate : args->rate, scratch);
    if (!padded || !work || !filters)
        return fail_memory(err, (uint64_t)room * sizeof(float));
    struct log_mel_job job = {.in = padded,
                              .hop = args->hop_length,
                              .columns = columns,
                              .power = (float)args->power,
                              .amin = (float)args->amin,
                              .offset = decibel_offset(args),
                              .work = work};
    for (int64_t c = 0; c < channels; c++) {
        pad_channel(args, (const float *)in->tensor.data + c * frames, frames, padded, room);
        job.out = (float *)out->tensor.data + c * args->n_mels * columns;
        log_mel_columns(frame, filters, &job);
    }
    if (args->top_db)
        clip_low(out->tensor.data, channels * args->n_mels * columns, (float)args->top_db);
    return STK_OK;
}

/* --- on the device ---------------------------------------------------------------------------- */

static struct log_mel_setting setting_of(const struct log_mel_args *args, const struct stk_flow *in)
{
    return (struct log_mel_setting){.spec = spec_of(args, in->rate ? in->rate : args->rate),
                                    .window = args->tables->frame.window,
                                    .hop = args->hop_length,
                                    .side = args->center ? (uint32_t)args->n_fft / 2 : 0,
                                    .pad = (enum mel_pad)args->pad_mode,
                                    .power = (float)args->power,
                                    .amin = (float)args->amin,
                                    .offset = decibel_offset(args),
                                    .top_db = (float)args->top_db};
}

static stk_status log_mel_run_device(const struct transform_device_step *step,
                                     struct stk_error *err)
{
    const struct log_mel_args *args = step->args;
    struct log_mel_setting setting = setting_of(args, step->in);
    return log_mel_device_run(&args->tables->devices, &setting, step, err);
}

/* Filters hang on the rate, which must be known before the first sample is. */
static int log_mel_refuses(const void *arguments, const struct stk_flow *in)
{
    const struct log_mel_args *args = arguments;
    struct stk_flow out = *in;
    if (!in->rate && !args->rate)
        return 1;
    return log_mel_shape(args, NULL, &out, NULL) || log_mel_device_refuses(&out);
}

static uint64_t log_mel_scratch(const void *arguments, const struct stk_flow *in, uint32_t count)
{
    struct log_mel_setting setting = setting_of(arguments, in);
    struct stk_flow out = *in;
    if (log_mel_shape(arguments, NULL, &out, NULL))
        return 0;
    return log_mel_device_scratch(&setting, &out, count);
}

const struct transform_ops log_mel_transform = {
    .name = "LogMel",
    .help = "Turns a recording into its mel spectrogram in decibels, float32 (channels, n_mels, "
            "time), as librosa does.",
    .media = STK_MEDIA_BIT(STK_MEDIA_AUDIO),
    .stage = TRANSFORM_TENSOR,
    .args = log_mel_args,
    .size = sizeof(struct log_mel_args),
    .check = log_mel_check,
    .shape = log_mel_shape,
    .run = log_mel_run,
    .run_device = log_mel_run_device,
    .device_refuses = log_mel_refuses,
    .device_scratch = log_mel_scratch,
    .release = log_mel_release,
};
