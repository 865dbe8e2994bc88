/* LogMel: the device twin of log_mel.c around a Fourier transform. mel_frames cuts, pads and
 * windows; mel_bands takes the power of the spectrum, gathers it into bands and takes the
 * logarithm. mel_most, mel_least and mel_clip cut off what is top_db below a sample's largest
 * value. */
#include "transform/log_mel_kernel.h"

/* Value `at` of a signal that is padded on both sides. */
DEVICE float padded_value(const struct mel_job *job, const float *signal, int64_t at)
{
    int64_t last = job->length - 1;
    if (at >= 0 && at <= last)
        return signal[at];
    if (job->pad == MEL_PAD_REFLECT)
        return signal[at < 0 ? -at : 2 * last - at];
    return job->pad == MEL_PAD_EDGE ? signal[at < 0 ? 0 : last] : 0;
}

/* A row of the grid is a column of the spectrogram. */
KERNEL(mel_frames)(struct mel_job job)
{
    uint64_t column = job.first + GRID_Y;
    const float *signal =
        (const float *)device_memory(job.in) + column / job.columns * (uint64_t)job.length;
    const float *window = (const float *)device_memory(job.window);
    float *to = (float *)device_memory(job.frames) + (uint64_t)GRID_Y * job.n_fft;
    int64_t start = (int64_t)(column % job.columns * job.hop) - (int64_t)job.side;
    for (uint64_t i = GRID_X; i < job.n_fft; i += GRID_WIDTH)
        to[i] = padded_value(&job, signal, start + (int64_t)i) * window[i];
}

DEVICE float bin_power(const float *bin, float power)
{
    float squared = bin[0] * bin[0] + bin[1] * bin[1];
    return power == 2 ? squared : power == 1 ? sqrtf(squared) : powf(squared, power / 2);
}

KERNEL(mel_bands)(struct mel_job job)
{
    uint64_t column = job.first + GRID_Y;
    const float *bins =
        (const float *)device_memory(job.spectrum) + (uint64_t)GRID_Y * job.bins * 2;
    const float *weights = (const float *)device_memory(job.weights);
    float *to = (float *)device_memory(job.out) + column / job.columns * job.n_mels * job.columns +
                column % job.columns;
    for (uint64_t b = GRID_X; b < job.n_mels; b += GRID_WIDTH) {
        const struct mel_band band = ((const struct mel_band *)device_memory(job.bands))[b];
        float sum = 0;
        for (uint32_t i = 0; i < band.count; i++)
            sum += bin_power(bins + 2 * (band.first + i), job.power) * weights[band.weights + i];
        sum = sum < job.amin ? job.amin : sum; /* not a number stays so */
        to[b * job.columns] = 10 * log10f(sum) + job.offset;
    }
}

/* --- top_db ----------------------------------------------------------------------------------- */

KERNEL(mel_most)(struct mel_job job)
{
    float *most = (float *)device_memory(job.most);
    for (uint64_t sample = GRID_Y; sample < job.samples && GRID_X < MEL_LANES; sample += job.rows) {
        const float *from = (const float *)device_memory(job.out) + sample * job.item;
        float own = -3.4e38f;
        for (uint64_t i = GRID_X; i < job.item; i += MEL_LANES)
            own = from[i] > own ? from[i] : own;
        most[sample * MEL_LANES + GRID_X] = own;
    }
}

KERNEL(mel_least)(struct mel_job job)
{
    const float *most = (const float *)device_memory(job.most);
    float *least = (float *)device_memory(job.least);
    for (uint64_t sample = GRID_X; sample < job.samples; sample += GRID_WIDTH) {
        float own = -3.4e38f;
        for (uint32_t lane = 0; lane < MEL_LANES; lane++) {
            float other = most[sample * MEL_LANES + lane];
            own = other > own ? other : own;
        }
        least[sample] = own - job.top_db;
    }
}

KERNEL(mel_clip)(struct mel_job job)
{
    for (uint64_t sample = GRID_Y; sample < job.samples; sample += job.rows) {
        float *values = (float *)device_memory(job.out) + sample * job.item;
        float least = ((const float *)device_memory(job.least))[sample];
        for (uint64_t i = GRID_X; i < job.item; i += GRID_WIDTH)
            if (values[i] < least)
                values[i] = least;
    }
}
