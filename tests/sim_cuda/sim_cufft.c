/* sim_cufft.c -- a simulated cuFFT: what src/transform/cufft_api.h names, by the definition of the
 * Fourier transform, in the stream's thread. Numbers of plans are not given out twice. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "sim_cuda.h"
#include "transform/cufft_api.h"

#define X(name, arguments) SIM_API int name arguments;
CUFFT_API_LIST(X)
#undef X

#define PLANS 4096

static struct fft_plan {
    int length, count; /* 0: none */
    struct gpu_stream *stream;
    const float *from;
    float *to;
} plans[PLANS];
static _Atomic int plan_count;

int cufftCreate(int *plan)
{
    *plan = atomic_fetch_add(&plan_count, 1);
    return *plan < PLANS ? CUFFT_SUCCESS : CUFFT_ALLOC_FAILED;
}

int cufftMakePlanMany(int plan, int rank, int *lengths, int *in_embed, int in_stride,
                      int in_distance, int *out_embed, int out_stride, int out_distance, int type,
                      int count, size_t *work)
{
    if (rank != 1 || in_embed || out_embed || in_stride != 1 || out_stride != 1 ||
        in_distance != lengths[0] || out_distance != lengths[0] / 2 + 1 ||
        type != CUFFT_REAL_TO_COMPLEX || count < 1)
        return CUFFT_INVALID_VALUE;
    plans[plan] = (struct fft_plan){.length = lengths[0], .count = count};
    *work = 0;
    return CUFFT_SUCCESS;
}

int cufftSetStream(int plan, struct gpu_stream *stream)
{
    plans[plan].stream = stream;
    return CUFFT_SUCCESS;
}

int cufftDestroy(int plan)
{
    plans[plan] = (struct fft_plan){0};
    return CUFFT_SUCCESS;
}

static void transform(const float *from, float *to, int length)
{
    for (int k = 0; k <= length / 2; k++) {
        double real = 0, imaginary = 0, c = 1, s = 0; /* c + i s: the k-th root, i times */
        double turn_c = cos(2 * M_PI * k / length), turn_s = -sin(2 * M_PI * k / length);
        for (int i = 0; i < length; i++) {
            real += from[i] * c;
            imaginary += from[i] * s;
            double turned = c * turn_c - s * turn_s;
            s = c * turn_s + s * turn_c;
            c = turned;
        }
        to[2 * k] = (float)real;
        to[2 * k + 1] = (float)imaginary;
    }
}

static void plan_run(void *data)
{
    const struct fft_plan *plan = data;
    for (int64_t i = 0; i < plan->count; i++)
        transform(plan->from + i * plan->length, plan->to + i * (plan->length / 2 + 1) * 2,
                  plan->length);
}

int cufftExecR2C(int plan, gpu_address from, gpu_address to)
{
    struct fft_plan *run = plans[plan].length ? malloc(sizeof *run) : NULL;
    if (!run)
        return CUFFT_INVALID_PLAN;
    *run = plans[plan];
    run->from = (const float *)from;
    run->to = (float *)to;
    return sim_cuda_call_in_stream(run->stream, plan_run, run); /* takes it */
}
