/* Gain, Noise and SpecAugment: the device twins of audio_transform.c, tensor_transform.c and
 * spec_augment_transform.c. */
#include "transform/signal_kernel.h"

#include "transform/kernel_dtype.h"
#include "transform/kernel_random.h"

DEVICE const void *params_of(const struct signal_job *job, uint64_t sample)
{
    return device_memory(job->params + sample * job->params_stride);
}

KERNEL(signal_gain)(struct signal_job job)
{
    for (uint64_t sample = GRID_Y; sample < job.samples; sample += job.rows) {
        float factor = ((const struct gain_params *)params_of(&job, sample))->factor;
        const float *from = (const float *)device_memory(job.from) + sample * job.elements;
        float *to = (float *)device_memory(job.to) + sample * job.elements;
        for (uint64_t i = GRID_X; i < job.elements; i += GRID_WIDTH) {
            float value = from[i] * factor;
            if (job.clip) { /* not a number stays so */
                value = value < -1 ? -1 : value;
                value = value > 1 ? 1 : value;
            }
            to[i] = value;
        }
    }
}

/* --- Noise ------------------------------------------------------------------------------------ */

/* Numbers 2 i and 2 i + 1 of gaussian.h's stream. */
DEVICE void gaussian_pair(uint64_t key, uint64_t i, float pair[2])
{
    uint64_t bits = kernel_random_at(key, i);
    float u = (float)(int32_t)(bits >> 33) * (1 / 2147483648.0f) + 1 / 4294967296.0f;
    float radius = sqrtf(-2 * logf(u));
    float angle = (float)(int32_t)(uint32_t)bits * (3.14159265f / 2147483648.0f);
    pair[0] = radius * cosf(angle);
    pair[1] = radius * sinf(angle);
}

DEVICE void add_noise(const struct signal_job *job, uint64_t i, float noise)
{
    const uint16_t *halves = (const uint16_t *)device_memory(job->from);
    uint16_t *to = (uint16_t *)device_memory(job->to);
    if (job->dtype == KERNEL_F16)
        to[i] = half_bits(half_value(halves[i]) + noise);
    else if (job->dtype == KERNEL_BF16)
        to[i] = bfloat_bits(bfloat_value(halves[i]) + noise);
    else
        ((float *)device_memory(job->to))[i] = ((const float *)device_memory(job->from))[i] + noise;
}

KERNEL(signal_noise)(struct signal_job job)
{
    for (uint64_t sample = GRID_Y; sample < job.samples; sample += job.rows) {
        const struct noise_params params = *(const struct noise_params *)params_of(&job, sample);
        uint64_t start = sample * job.elements;
        for (uint64_t i = GRID_X * 2; i < job.elements; i += GRID_WIDTH * 2) {
            float pair[2] = {0, 0};
            if (params.applied)
                gaussian_pair(params.key, i / 2, pair);
            add_noise(&job, start + i, pair[0] * job.sigma);
            if (i + 1 < job.elements)
                add_noise(&job, start + i + 1, pair[1] * job.sigma);
        }
    }
}

/* --- SpecAugment ------------------------------------------------------------------------------ */

KERNEL(signal_sums)(struct signal_job job)
{
    double *sums = (double *)device_memory(job.sums);
    for (uint64_t sample = GRID_Y; sample < job.samples && GRID_X < SIGNAL_LANES;
         sample += job.rows) {
        const float *from = (const float *)device_memory(job.from) + sample * job.elements;
        double sum = 0;
        for (uint64_t i = GRID_X; i < job.elements; i += SIGNAL_LANES)
            sum += from[i];
        sums[sample * SIGNAL_LANES + GRID_X] = sum;
    }
}

KERNEL(signal_means)(struct signal_job job)
{
    const double *sums = (const double *)device_memory(job.sums);
    for (uint64_t sample = GRID_X; sample < job.samples; sample += GRID_WIDTH) {
        double sum = 0;
        for (uint32_t lane = 0; lane < SIGNAL_LANES; lane++)
            sum += sums[sample * SIGNAL_LANES + lane];
        ((float *)device_memory(job.means))[sample] = (float)(sum / (double)job.elements);
    }
}

DEVICE int is_masked(const struct spec_params *params, int64_t band, int64_t time)
{
    int masked = 0;
    for (int i = 0; i < SPEC_MASKS; i++) {
        int64_t up = band - params->freq[i].first, along = time - params->time[i].first;
        masked |= up >= 0 && up < params->freq[i].count;
        masked |= along >= 0 && along < params->time[i].count;
    }
    return masked;
}

KERNEL(signal_mask)(struct signal_job job)
{
    for (uint64_t sample = GRID_Y; sample < job.samples; sample += job.rows) {
        const struct spec_params *params = (const struct spec_params *)params_of(&job, sample);
        const float *from = (const float *)device_memory(job.from) + sample * job.elements;
        float *to = (float *)device_memory(job.to) + sample * job.elements;
        float fill = job.mean ? ((const float *)device_memory(job.means))[sample] : 0;
        for (uint64_t i = GRID_X; i < job.elements; i += GRID_WIDTH) {
            int64_t band = (int64_t)(i / job.time % job.bands), time = (int64_t)(i % job.time);
            to[i] = is_masked(params, band, time) ? fill : from[i];
        }
    }
}
