/* twin_testing.h -- a transform's two twins against each other: run on the CPU, a sample at a time,
 * and run_device on a device, the batch at once.
 * Owns: nothing.   Threads: one.   Errors: a failed assertion, after a line that says which trial.
 * Not here: any test. */
#ifndef TESTS_TRANSFORM_TWIN_TESTING_H
#define TESTS_TRANSFORM_TWIN_TESTING_H

#include "transform/device_testing.h"

#include <math.h>

#include "base/half.h"
#include "transform/chain.h"

enum { TWIN_GUARD = 64, TWIN_BEFORE = 80 /* bytes in front of a sample's params */ };

struct twin {
    const char *chain; /* one step */
    struct stk_flow in;
    uint32_t count;
    uint64_t key;
    uint64_t shift;   /* the device's input and output begin so many bytes behind a whole word */
    float offset;     /* float32: added to the input */
    double tolerance; /* of floats beyond 1: times their size */
};

/* What a trial is made of while it runs. */
struct twin_run {
    const struct twin *twin;
    struct chain chain;
    const struct chain_step *step;
    struct stk_flow out;
    uint64_t in_size, out_size; /* of one sample */
    uint32_t stride;
    uint8_t *params, *from, *want, *got;
};

TESTING double twin_value(enum stk_dtype dtype, const void *data, uint64_t i)
{
    switch (dtype) {
    case STK_U8:
        return ((const uint8_t *)data)[i];
    case STK_F16:
        return half_to_float(((const uint16_t *)data)[i]);
    case STK_BF16:
        return bfloat_to_float(((const uint16_t *)data)[i]);
    case STK_F64:
        return ((const double *)data)[i];
    default:
        return ((const float *)data)[i];
    }
}

/* Bytes take all values; floats lie in [-1, 1). */
TESTING void twin_fill(enum stk_dtype dtype, void *data, uint64_t count, uint64_t key)
{
    for (uint64_t i = 0; i < count; i++) {
        double value = 2 * random_unit(key, i) - 1;
        if (dtype == STK_U8)
            ((uint8_t *)data)[i] = (uint8_t)random_at(key, i);
        else if (dtype == STK_F16)
            ((uint16_t *)data)[i] = half_of_float((float)value);
        else if (dtype == STK_BF16)
            ((uint16_t *)data)[i] = bfloat_of_float((float)value);
        else if (dtype == STK_F64)
            ((double *)data)[i] = value;
        else
            ((float *)data)[i] = (float)value;
    }
}

TESTING void twin_good(const struct twin *twin, stk_status status, const struct stk_error *err)
{
    if (status)
        print_error("%s: %s\n", twin->chain, err->what);
    assert_int_equal(status, STK_OK);
}

TESTING uint64_t twin_elements(const struct stk_tensor *tensor)
{
    return stk_tensor_size(tensor) / stk_dtype_size(tensor->dtype);
}

TESTING void twin_begin(struct twin_run *run, const struct twin *twin)
{
    struct stk_error err = {0};
    *run = (struct twin_run){.twin = twin, .out = twin->in};
    twin_good(twin, chain_parse(&run->chain, twin->chain, NULL, &err), &err);
    run->step = &run->chain.steps[0];
    run->stride = TWIN_BEFORE + TRANSFORM_PARAMS;
    run->params = calloc(twin->count, run->stride);
    for (uint32_t i = 0; i < twin->count && run->step->ops->draw; i++)
        run->step->ops->draw(run->step->args, random_key(twin->key, i), &twin->in,
                             run->params + i * run->stride + TWIN_BEFORE);
    twin_good(twin,
              run->step->ops->shape(run->step->args, run->params + TWIN_BEFORE, &run->out, &err),
              &err);
    run->in_size = stk_tensor_size(&twin->in.tensor);
    run->out_size = stk_tensor_size(&run->out.tensor);
    run->from = malloc(run->in_size * twin->count);
    run->want = malloc(run->out_size * twin->count);
    run->got = malloc(twin->shift + run->out_size * twin->count + TWIN_GUARD);
    twin_fill(twin->in.tensor.dtype, run->from, twin_elements(&twin->in.tensor) * twin->count,
              random_key(twin->key, 1000));
    for (uint64_t i = 0; twin->offset != 0 && i < run->in_size / sizeof(float) * twin->count; i++)
        ((float *)(void *)run->from)[i] += twin->offset;
}

TESTING void twin_end(struct twin_run *run)
{
    free(run->params);
    free(run->from);
    free(run->want);
    free(run->got);
    chain_reset(&run->chain);
}

/* Pixels of a video go frame by frame, as in a pipeline. */
TESTING void twin_cpu(struct twin_run *run)
{
    struct stk_flow in = run->twin->in, out = run->out;
    struct stk_error err = {0};
    uint64_t frames = 1;
    while (run->step->ops->stage == TRANSFORM_PIXELS && in.tensor.rank > 3) {
        frames *= (uint64_t)in.tensor.shape[0];
        in.tensor.rank = out.tensor.rank = in.tensor.rank - 1;
        memmove(in.tensor.shape, in.tensor.shape + 1, sizeof(int64_t) * (size_t)in.tensor.rank);
        memmove(out.tensor.shape, out.tensor.shape + 1, sizeof(int64_t) * (size_t)out.tensor.rank);
    }
    struct scratch scratch = {0};
    for (uint64_t i = 0; i < run->twin->count * frames; i++) {
        in.tensor.data = run->from + i * (run->in_size / frames);
        out.tensor.data = run->want + i * (run->out_size / frames);
        twin_good(run->twin,
                  run->step->ops->run(run->step->args,
                                      run->params + i / frames * run->stride + TWIN_BEFORE, &in,
                                      &out, &scratch, &err),
                  &err);
        scratch_reset(&scratch);
    }
    scratch_free(&scratch);
}

TESTING void twin_device(struct twin_run *run, struct device *device)
{
    const struct twin *twin = run->twin;
    const struct transform_ops *ops = run->step->ops;
    struct stk_error err = {0};
    uint64_t size = twin->shift + run->out_size * twin->count + TWIN_GUARD;
    uint64_t scratch =
        ops->device_scratch ? ops->device_scratch(run->step->args, &twin->in, twin->count) : 0;
    gpu_address from, to, own = 0;
    assert_false(ops->device_refuses && ops->device_refuses(run->step->args, &twin->in));
    memset(run->got, 0xa5, size);
    assert_int_equal(gpu_alloc(device->gpu, twin->shift + run->in_size * twin->count, &from, NULL),
                     STK_OK);
    assert_int_equal(gpu_copy_in(device->gpu, from + twin->shift, run->from,
                                 run->in_size * twin->count, device->stream, NULL),
                     STK_OK);
    to = device_put(device, run->got, size);
    gpu_address params = device_put(device, run->params, (uint64_t)run->stride * twin->count);
    if (scratch)
        assert_int_equal(gpu_alloc(device->gpu, scratch, &own, NULL), STK_OK);
    struct transform_device_step step = {.args = run->step->args,
                                         .in = &twin->in,
                                         .out = &run->out,
                                         .gpu = device->gpu,
                                         .stream = device->stream};
    twin_good(twin, ops->run_device(&step, &err), &err); /* none: loads what it needs */
    step.count = twin->count;
    step.from = from + twin->shift;
    step.to = to + twin->shift;
    step.params = params + TWIN_BEFORE;
    step.params_stride = run->stride;
    step.scratch = own;
    twin_good(twin, ops->run_device(&step, &err), &err);
    device_get(device, run->got, to, size);
    gpu_free(device->gpu, from);
    gpu_free(device->gpu, to);
    gpu_free(device->gpu, params);
    gpu_free(device->gpu, own);
}

TESTING void twin_compare(const struct twin_run *run)
{
    const struct twin *twin = run->twin;
    enum stk_dtype dtype = run->out.tensor.dtype;
    uint64_t count = twin_elements(&run->out.tensor) * twin->count, wrong = 0;
    uint8_t *got = run->got + twin->shift, *guard = got + run->out_size * twin->count;
    uint8_t *aligned = malloc(run->out_size * twin->count);
    memcpy(aligned, got, run->out_size * twin->count);
    for (uint64_t i = 0; i < count; i++) {
        double a = twin_value(dtype, run->want, i), b = twin_value(dtype, aligned, i);
        double scale = dtype == STK_U8 || fabs(a) < 1 ? 1 : fabs(a);
        if (fabs(a - b) <= twin->tolerance * scale || (a != a && b != b))
            continue;
        if (!wrong++)
            print_error("%s, key %llu: element %llu of %llu is %g, not %g\n", twin->chain,
                        (unsigned long long)twin->key, (unsigned long long)i,
                        (unsigned long long)count, b, a);
    }
    free(aligned);
    assert_int_equal(wrong, 0);
    for (uint64_t i = 0; i < twin->shift; i++)
        assert_int_equal(run->got[i], 0xa5);
    for (uint64_t i = 0; i < TWIN_GUARD; i++)
        assert_int_equal(guard[i], 0xa5);
}

TESTING void twin_check(struct device *device, const struct twin *twin)
{
    struct twin_run run;
    twin_begin(&run, twin);
    twin_cpu(&run);
    twin_device(&run, device);
    twin_compare(&run);
    twin_end(&run);
}

/* (height, width, channels) of bytes. */
TESTING struct stk_flow twin_image(int64_t height, int64_t width, int64_t channels)
{
    return (struct stk_flow){
        .media = STK_MEDIA_IMAGE,
        .tensor = {.dtype = STK_U8, .rank = 3, .shape = {height, width, channels}},
        .real = -1};
}

TESTING struct stk_flow twin_video(int64_t frames, int64_t height, int64_t width, int64_t channels)
{
    return (struct stk_flow){
        .media = STK_MEDIA_VIDEO,
        .tensor = {.dtype = STK_U8, .rank = 4, .shape = {frames, height, width, channels}},
        .real = -1};
}

#endif
