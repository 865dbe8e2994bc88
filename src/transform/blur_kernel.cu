/* GaussianBlur: the device twin of blur_transform.c. blur_weights makes each sample's weights,
 * blur_down adds up rows, blur_across columns. What lies between the passes is rounded to 256ths:
 * half as many bytes as floats, and no pixel differs by more than one level. A thread makes four
 * values with the same weights, so that these are read once for all of them. */
#include "transform/blur_kernel.h"

#define GROUP 4

DEVICE void make_weights(float *weights, uint32_t count, double sigma)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        double x = ((double)i - (double)(count - 1) / 2) / sigma;
        weights[i] = (float)exp(-0.5 * x * x);
        sum += weights[i];
    }
    for (uint32_t i = 0; i < count; i++)
        weights[i] = (float)(weights[i] / sum);
}

DEVICE float *weights_of(const struct blur_job *job, uint64_t sample)
{
    return (float *)device_memory(job->weights) + sample * (job->across + job->down);
}

KERNEL(blur_weights)(struct blur_job job)
{
    for (uint64_t i = GRID_X; i < 2 * job.samples; i += GRID_WIDTH) {
        uint64_t sample = i / 2;
        float *weights = weights_of(&job, sample);
        const struct blur_params *params =
            (const struct blur_params *)device_memory(job.params + sample * job.params_stride);
        if (i % 2)
            make_weights(weights + job.across, job.down, params->sigma);
        else
            make_weights(weights, job.across, params->sigma);
    }
}

DEVICE uint32_t mirrored(int32_t at, uint32_t size)
{
    int32_t last = (int32_t)size - 1;
    return (uint32_t)(at < 0 ? -at : at > last ? 2 * last - at : at);
}

/* --- down ------------------------------------------------------------------------------------- */

/* Four bytes of a row from x on; those beyond its end are zeros. */
DEVICE uint32_t load_four(const uint8_t *row, uint32_t x, uint32_t stride, uint32_t words)
{
    uint32_t four = 0;
    if (words)
        return *(const uint32_t *)(row + x);
    for (uint32_t i = 0; i < GROUP; i++)
        if (x + i < stride)
            four |= (uint32_t)row[x + i] << 8 * i;
    return four;
}

DEVICE void down_group(const struct blur_job *job, uint64_t image, uint32_t y, uint32_t x)
{
    uint32_t stride = job->width * job->channels;
    uint64_t start = image * job->height * stride;
    const uint8_t *from = (const uint8_t *)device_memory(job->from + start);
    uint16_t *to = (uint16_t *)device_memory(job->between) + start + (uint64_t)y * stride + x;
    const float *weights = weights_of(job, image / job->frames) + job->across;
    float sums[GROUP] = {0};
    for (uint32_t k = 0; k < job->down; k++) {
        uint32_t row = mirrored((int32_t)(y + k) - (int32_t)(job->down / 2), job->height);
        uint32_t four = load_four(from + (uint64_t)row * stride, x, stride, job->words);
        float weight = weights[k];
        for (uint32_t i = 0; i < GROUP; i++)
            sums[i] += weight * (float)(four >> 8 * i & 255u);
    }
    for (uint32_t i = 0; i < GROUP; i++)
        if (x + i < stride)
            to[i] = (uint16_t)(sums[i] * 256 + 0.5f);
}

KERNEL(blur_down)(struct blur_job job)
{
    uint32_t groups = (job.width * job.channels + GROUP - 1) / GROUP, threads = groups * job.height;
    for (uint64_t image = GRID_Y; image < job.images; image += job.rows)
        for (uint64_t i = GRID_X; i < threads; i += GRID_WIDTH)
            down_group(&job, image, (uint32_t)i / groups, (uint32_t)i % groups * GROUP);
}

/* --- across ----------------------------------------------------------------------------------- */

/* The value at x of four rows. */
DEVICE void across_group(const struct blur_job *job, uint64_t image, uint32_t y, uint32_t x)
{
    uint32_t stride = job->width * job->channels, pixel = x / job->channels;
    uint32_t channel = x % job->channels, rows = job->height - y;
    uint64_t start = image * job->height * stride + (uint64_t)y * stride;
    const uint16_t *from = (const uint16_t *)device_memory(job->between) + start + channel;
    uint8_t *to = (uint8_t *)device_memory(job->to + start + x);
    const float *weights = weights_of(job, image / job->frames);
    float sums[GROUP] = {128, 128, 128, 128}; /* a half */
    for (uint32_t k = 0; k < job->across; k++) {
        uint32_t column = mirrored((int32_t)(pixel + k) - (int32_t)(job->across / 2), job->width);
        float weight = weights[k];
        for (uint32_t i = 0; i < GROUP; i++)
            if (i < rows)
                sums[i] += weight * (float)from[i * stride + column * job->channels];
    }
    for (uint32_t i = 0; i < GROUP; i++) {
        float value = sums[i] / 256;
        if (i < rows)
            to[i * stride] = (uint8_t)(value < 255 ? value : 255);
    }
}

KERNEL(blur_across)(struct blur_job job)
{
    uint32_t stride = job.width * job.channels,
             threads = stride * ((job.height + GROUP - 1) / GROUP);
    for (uint64_t image = GRID_Y; image < job.images; image += job.rows)
        for (uint64_t i = GRID_X; i < threads; i += GRID_WIDTH)
            across_group(&job, image, (uint32_t)i / stride * GROUP, (uint32_t)i % stride);
}
