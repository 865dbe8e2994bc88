/* ColorJitter and Grayscale: the device twin of color_ops.c, to the bit. Contrast wants the mean of
 * the image as it is by then: color_sums makes the steps before it and adds up the greys,
 * color_means adds the sums, and color_jitter makes all steps in one pass. A thread takes 4 pixels
 * at a time: of 3 channels they are 3 words. */
#include "transform/color_kernel.h"

#define GROUP 4

struct pixel_group {
    uint8_t at[GROUP][4];
};

/* --- groups ----------------------------------------------------------------------------------- */

/* `channels` is a constant where it is called, so that all is known to the compiler and stays in
 * registers. count: pixels of the group that are there. */
DEVICE void load_group(struct pixel_group *group, uint64_t from, uint32_t channels, uint32_t words,
                       uint32_t count)
{
    const uint8_t *bytes = (const uint8_t *)device_memory(from);
    uint32_t loaded[4] = {0};
    if (words) {
        const uint32_t *whole = (const uint32_t *)device_memory(from);
        for (uint32_t w = 0; w < channels; w++)
            loaded[w] = whole[w];
    } else {
        for (uint32_t b = 0; b < GROUP * channels; b++)
            if (b < count * channels)
                loaded[b / 4] |= (uint32_t)bytes[b] << b % 4 * 8;
    }
    for (uint32_t p = 0; p < GROUP; p++)
        for (uint32_t c = 0; c < channels; c++) {
            uint32_t b = p * channels + c;
            group->at[p][c] = (uint8_t)(loaded[b / 4] >> b % 4 * 8);
        }
}

DEVICE void store_group(const struct pixel_group *group, uint64_t to, uint32_t channels,
                        uint32_t words, uint32_t count)
{
    uint8_t *bytes = (uint8_t *)device_memory(to);
    uint32_t *whole = (uint32_t *)device_memory(to);
    uint32_t stored[4] = {0};
    for (uint32_t p = 0; p < GROUP; p++)
        for (uint32_t c = 0; c < channels; c++) {
            uint32_t b = p * channels + c;
            stored[b / 4] |= (uint32_t)group->at[p][c] << b % 4 * 8;
        }
    for (uint32_t w = 0; w < channels && words; w++)
        whole[w] = stored[w];
    for (uint32_t b = 0; b < GROUP * channels && !words; b++)
        if (b < count * channels)
            bytes[b] = (uint8_t)(stored[b / 4] >> b % 4 * 8);
}

/* --- colours ---------------------------------------------------------------------------------- */

DEVICE uint8_t clipped(float value)
{
    return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)value;
}

DEVICE uint8_t blended(uint8_t value, float other, float factor)
{
    return clipped(other + product(factor, (float)value - other));
}

DEVICE uint32_t grey_of(const uint8_t *pixel, uint32_t channels)
{
    if (channels < 3)
        return pixel[0];
    return (pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u) >> 16;
}

DEVICE void saturate(uint8_t *pixel, float factor)
{
    float grey = (float)grey_of(pixel, 3);
    for (int c = 0; c < 3; c++)
        pixel[c] = blended(pixel[c], grey, factor);
}

/* As turn_hue of color_ops.c, without its table. */
DEVICE void turn_hue(uint8_t *pixel, float turn)
{
    float r = pixel[0], g = pixel[1], b = pixel[2];
    float most = r > g ? r : g, least = r > g ? g : r;
    most = most > b ? most : b;
    least = least > b ? b : least;
    float range = most - least;
    if (range == 0)
        return;
    float hue = most == r ? (g - b) / range : most == g ? 2 + (b - r) / range : 4 + (r - g) / range;
    hue += product(turn, 6);
    hue -= product(6, floorf(hue / 6));
    int sector = (int)hue % 6;
    float part = hue - floorf(hue);
    float up = least + product(range, part), down = most - product(range, part);
    float red = sector == 0 || sector == 5 ? most : sector == 1 ? down : sector == 4 ? up : least;
    float green = sector == 1 || sector == 2 ? most : sector == 0 ? up : sector == 3 ? down : least;
    float blue = sector == 3 || sector == 4 ? most : sector == 2 ? up : sector == 5 ? down : least;
    pixel[0] = (uint8_t)(red + 0.5f);
    pixel[1] = (uint8_t)(green + 0.5f);
    pixel[2] = (uint8_t)(blue + 0.5f);
}

/* --- steps ------------------------------------------------------------------------------------ */

DEVICE int changes(const struct color_params *params, uint32_t step)
{
    return params->factors[step] != (step == JITTER_HUE ? 0.0f : 1.0f);
}

DEVICE void apply_step(struct pixel_group *group, uint32_t channels, uint32_t step, float factor,
                       float mean)
{
    uint32_t colors = channels >= 3 ? 3 : 1;
    float other = step == JITTER_CONTRAST ? mean : 0;
    for (uint32_t p = 0; p < GROUP; p++) {
        if (step <= JITTER_CONTRAST) {
            for (uint32_t c = 0; c < colors; c++)
                group->at[p][c] = blended(group->at[p][c], other, factor);
        } else if (colors == 3 && step == JITTER_SATURATION) {
            saturate(group->at[p], factor);
        } else if (colors == 3) {
            turn_hue(group->at[p], factor);
        }
    }
}

/* In the drawn order, all or up to contrast. */
DEVICE void apply_steps(struct pixel_group *group, uint32_t channels,
                        const struct color_params *params, int to_contrast, float mean)
{
    for (uint32_t i = 0; i < JITTER_COUNT; i++) {
        uint32_t step = params->order[i];
        if (to_contrast && step == JITTER_CONTRAST)
            return;
        if (changes(params, step))
            apply_step(group, channels, step, params->factors[step], mean);
    }
}

DEVICE const struct color_params *params_of(const struct color_job *job, uint64_t image)
{
    uint64_t sample = image / job->frames;
    return (const struct color_params *)device_memory(job->params + sample * job->params_stride);
}

DEVICE uint32_t group_count(const struct color_job *job, uint64_t first)
{
    return job->pixels - first < GROUP ? (uint32_t)(job->pixels - first) : GROUP;
}

/* --- the mean --------------------------------------------------------------------------------- */

DEVICE uint64_t sum_lane(const struct color_job *job, uint64_t image, uint64_t lane,
                         uint32_t channels)
{
    const struct color_params params = *params_of(job, image);
    uint64_t sum = 0, from = job->from + image * job->pixels * channels;
    if (!changes(&params, JITTER_CONTRAST)) /* then nobody asks */
        return 0;
    for (uint64_t at = lane * GROUP; at < job->pixels; at += COLOR_LANES * GROUP) {
        struct pixel_group group;
        uint32_t count = group_count(job, at);
        load_group(&group, from + at * channels, channels, job->words, count);
        apply_steps(&group, channels, &params, 1, 0);
        for (uint32_t p = 0; p < GROUP; p++)
            sum += p < count ? grey_of(group.at[p], channels) : 0;
    }
    return sum;
}

KERNEL(color_sums)(struct color_job job)
{
    uint64_t *sums = (uint64_t *)device_memory(job.sums);
    if (GRID_X >= COLOR_LANES)
        return;
    for (uint64_t image = GRID_Y; image < job.images; image += job.rows) {
        uint64_t sum;
        switch (job.channels) {
        case 1:
            sum = sum_lane(&job, image, GRID_X, 1);
            break;
        case 2:
            sum = sum_lane(&job, image, GRID_X, 2);
            break;
        case 3:
            sum = sum_lane(&job, image, GRID_X, 3);
            break;
        default:
            sum = sum_lane(&job, image, GRID_X, 4);
        }
        sums[image * COLOR_LANES + GRID_X] = sum;
    }
}

KERNEL(color_means)(struct color_job job)
{
    const uint64_t *sums = (const uint64_t *)device_memory(job.sums);
    float *means = (float *)device_memory(job.means);
    for (uint64_t image = GRID_X; image < job.images; image += GRID_WIDTH) {
        uint64_t sum = 0;
        for (uint32_t lane = 0; lane < COLOR_LANES; lane++)
            sum += sums[image * COLOR_LANES + lane];
        means[image] = (float)(int)((double)sum / (double)job.pixels + 0.5);
    }
}

/* --- all steps -------------------------------------------------------------------------------- */

DEVICE void jitter_group(const struct color_job *job, uint64_t image, uint32_t channels)
{
    const struct color_params params = *params_of(job, image);
    uint64_t start = image * job->pixels * channels;
    float mean = job->means ? ((const float *)device_memory(job->means))[image] : 0;
    for (uint64_t at = GRID_X * GROUP; at < job->pixels; at += GRID_WIDTH * GROUP) {
        struct pixel_group group;
        uint32_t count = group_count(job, at);
        uint64_t place = start + at * channels;
        load_group(&group, job->from + place, channels, job->words, count);
        apply_steps(&group, channels, &params, 0, mean);
        store_group(&group, job->to + place, channels, job->words, count);
    }
}

KERNEL(color_jitter)(struct color_job job)
{
    for (uint64_t image = GRID_Y; image < job.images; image += job.rows)
        switch (job.channels) {
        case 1:
            jitter_group(&job, image, 1);
            break;
        case 2:
            jitter_group(&job, image, 2);
            break;
        case 3:
            jitter_group(&job, image, 3);
            break;
        default:
            jitter_group(&job, image, 4);
        }
}

/* --- Grayscale -------------------------------------------------------------------------------- */

DEVICE void grey_group(const struct color_job *job, uint64_t first, uint32_t channels)
{
    struct pixel_group group;
    uint32_t count = group_count(job, first);
    load_group(&group, job->from + first * channels, channels, job->words, count);
    for (uint32_t p = 0; p < GROUP; p++) {
        uint8_t grey = (uint8_t)grey_of(group.at[p], channels);
        group.at[p][0] = group.at[p][1] = group.at[p][2] = grey;
    }
    if (job->greys == 1)
        store_group(&group, job->to + first, 1, job->words, count);
    else
        store_group(&group, job->to + first * 3, 3, job->words, count);
}

/* The whole batch as one image. */
KERNEL(color_grey)(struct color_job job)
{
    for (uint64_t at = GRID_X * GROUP; at < job.pixels; at += GRID_WIDTH * GROUP)
        switch (job.channels) {
        case 1:
            grey_group(&job, at, 1);
            break;
        case 2:
            grey_group(&job, at, 2);
            break;
        case 3:
            grey_group(&job, at, 3);
            break;
        default:
            grey_group(&job, at, 4);
        }
}
