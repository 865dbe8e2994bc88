#include "transform/log_mel.h"

#include <math.h>
#include <string.h>

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#else
#define WIDE
#endif
#define INLINE static inline __attribute__((always_inline))

typedef int32_t lane_bits __attribute__((vector_size(4 * LANES)));

/* --- tables ----------------------------------------------------------------------------------- */

uint64_t log_mel_frame_floats(uint32_t n_fft)
{
    return lane_fft_floats(n_fft) + 2 * (uint64_t)n_fft + 16;
}

void log_mel_frame_init(struct log_mel_frame *frame, uint32_t n_fft, uint32_t win_length,
                        enum lane_width width, float *memory)
{
    uint32_t half = n_fft % 2 ? n_fft : n_fft / 2, before = (n_fft - win_length) / 2;
    float *window = memory, *roots = memory + n_fft;
    *frame = (struct log_mel_frame){.n_fft = n_fft, .half = half, .window = window, .roots = roots};
    memset(window, 0, n_fft * sizeof(float));
    for (uint32_t i = 0; i < win_length; i++)
        window[before + i] = (float)(0.5 - 0.5 * cos(2 * M_PI * i / win_length));
    for (uint32_t k = 0; half < n_fft && k <= half; k++) {
        roots[2 * k] = (float)cos(2 * M_PI * k / n_fft);
        roots[2 * k + 1] = (float)-sin(2 * M_PI * k / n_fft);
    }
    lane_fft_init(&frame->fft, half, width, roots + n_fft + 8);
}

uint64_t log_mel_work_bytes(const struct log_mel_frame *frame)
{
    return 2 * (uint64_t)frame->half * sizeof(struct lane_cell) +
           ((uint64_t)frame->n_fft / 2 + 1) * sizeof(lanes);
}

/* --- eight columns ---------------------------------------------------------------------------- */

/* Even and odd samples of a frame become the real and imaginary parts of its lane. */
INLINE void load_frames(const struct log_mel_frame *frame, const float *in, int64_t hop,
                        struct lane_cell *cells)
{
    int even = frame->half < frame->n_fft;
    float *to = (float *)cells;
    for (int lane = 0; lane < LANES; lane++) {
        const float *from = in + lane * hop, *window = frame->window;
        float *at = to + lane;
        for (uint32_t k = 0; k < frame->half; k++, at += 2 * LANES) {
            at[0] = even ? from[2 * k] * window[2 * k] : from[k] * window[k];
            at[LANES] = even ? from[2 * k + 1] * window[2 * k + 1] : 0;
        }
    }
}

/* |X|^2 of the bins 0 to n_fft / 2. */
INLINE void power_even(const struct log_mel_frame *frame, const struct lane_cell *cells,
                       lanes *power)
{
    uint32_t half = frame->half;
    for (uint32_t k = 0; k <= half; k++) {
        const struct lane_cell *a = &cells[k == half ? 0 : k], *b = &cells[k ? half - k : 0];
        float c = frame->roots[2 * k], s = frame->roots[2 * k + 1];
        lanes even_re = a->re + b->re, even_im = a->im - b->im;
        lanes odd_re = a->im + b->im, odd_im = b->re - a->re;
        lanes re = even_re + odd_re * c - odd_im * s, im = even_im + odd_re * s + odd_im * c;
        power[k] = (re * re + im * im) * 0.25f;
    }
}

INLINE void power_odd(const struct log_mel_frame *frame, const struct lane_cell *cells,
                      lanes *power)
{
    for (uint32_t k = 0; k <= frame->n_fft / 2; k++)
        power[k] = cells[k].re * cells[k].re + cells[k].im * cells[k].im;
}

static void raise_power(lanes *power, uint32_t bins, float exponent)
{
    float *at = (float *)power;
    for (uint32_t i = 0; i < bins * LANES; i++)
        at[i] = exponent == 1 ? sqrtf(at[i]) : powf(at[i], exponent / 2);
}

/* 10 log10(max(x, amin)): the exponent, and of the mantissa m, in [sqrt(1/2), sqrt(2)), the series
 * of atanh((m - 1) / (m + 1)), whose next term is below 1e-9. */
INLINE void decibels(lanes *x, float amin, float offset)
{
    const float scale = 4.342944819032518f, octave = 3.010299956639812f; /* 10 / ln 10, 10 lg 2 */
    lanes least = (lanes){0} + amin;
    lane_bits low = *x < least, odd = *x != *x;
    lane_bits bits = ((lane_bits)least & low) | ((lane_bits)*x & ~low);
    lane_bits exponent = (bits - 0x3f3504f3) >> 23;
    lanes mantissa = (lanes)(bits - (exponent << 23));
    lanes s = (mantissa - 1) / (mantissa + 1), t = s * s;
    lanes series = 2 + t * (0.6666666667f + t * (0.4f + t * (0.2857142857f + t * 0.2222222222f)));
    lanes value = __builtin_convertvector(exponent, lanes) * octave + s * series * scale + offset;
    *x = (lanes)(((lane_bits)value & ~odd) | ((lane_bits)*x & odd)); /* not a number stays so */
}

INLINE void put_bands(const struct mel_filters *filters, const struct log_mel_job *job,
                      const lanes *power, int64_t column)
{
    const float *weights = filters->weights;
    int64_t left = job->columns - column;
    size_t bytes = (size_t)(left < LANES ? left : LANES) * sizeof(float);
    for (uint32_t band = 0; band < filters->spec.n_mels; band++) {
        const lanes *from = power + filters->first[band];
        uint32_t count = filters->count[band];
        lanes sum = {0};
        for (uint32_t i = 0; i < count; i++)
            sum += from[i] * weights[i];
        weights += count;
        decibels(&sum, job->amin, job->offset);
        memcpy(job->out + band * job->columns + column, &sum, bytes);
    }
}

INLINE void columns_all(const struct log_mel_frame *frame, const struct mel_filters *filters,
                        const struct log_mel_job *job)
{
    struct lane_cell *cells = job->work, *spare = cells + frame->half;
    lanes *power = (lanes *)(spare + frame->half);
    for (int64_t column = 0; column < job->columns; column += LANES) {
        load_frames(frame, job->in + column * job->hop, job->hop, cells);
        const struct lane_cell *result = lane_fft_run(&frame->fft, cells, spare);
        if (frame->half < frame->n_fft)
            power_even(frame, result, power);
        else
            power_odd(frame, result, power);
        if (job->power != 2)
            raise_power(power, frame->n_fft / 2 + 1, job->power);
        put_bands(filters, job, power, column);
    }
}

static void columns_plain(const struct log_mel_frame *frame, const struct mel_filters *filters,
                          const struct log_mel_job *job)
{
    columns_all(frame, filters, job);
}

WIDE static void columns_wide(const struct log_mel_frame *frame, const struct mel_filters *filters,
                              const struct log_mel_job *job)
{
    columns_all(frame, filters, job);
}

void log_mel_columns(const struct log_mel_frame *frame, const struct mel_filters *filters,
                     const struct log_mel_job *job)
{
    if (frame->fft.width == LANE_WIDE)
        columns_wide(frame, filters, job);
    else
        columns_plain(frame, filters, job);
}
