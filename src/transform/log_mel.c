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

#define PICK __builtin_shufflevector
#define PAIR_LOW(a, b) PICK(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define PAIR_HIGH(a, b) PICK(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define FOUR_LOW(a, b) PICK(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define FOUR_HIGH(a, b) PICK(a, b, 2, 3, 10, 11, 6, 7, 14, 15)
#define HALF_LOW(a, b) PICK(a, b, 0, 1, 2, 3, 8, 9, 10, 11)
#define HALF_HIGH(a, b) PICK(a, b, 4, 5, 6, 7, 12, 13, 14, 15)

/* Rows a to h become columns: by pairs, by fours, by halves. Written out, so that they stay in
 * registers. */
#define TRANSPOSE(to, a, b, c, d, e, f, g, h)                                                      \
    do {                                                                                           \
        lanes p0 = PAIR_LOW(a, b), p1 = PAIR_HIGH(a, b), p2 = PAIR_LOW(c, d),                      \
              p3 = PAIR_HIGH(c, d);                                                                \
        lanes p4 = PAIR_LOW(e, f), p5 = PAIR_HIGH(e, f), p6 = PAIR_LOW(g, h),                      \
              p7 = PAIR_HIGH(g, h);                                                                \
        lanes q0 = FOUR_LOW(p0, p2), q1 = FOUR_HIGH(p0, p2), q2 = FOUR_LOW(p1, p3);                \
        lanes q3 = FOUR_HIGH(p1, p3), q4 = FOUR_LOW(p4, p6), q5 = FOUR_HIGH(p4, p6);               \
        lanes q6 = FOUR_LOW(p5, p7), q7 = FOUR_HIGH(p5, p7);                                       \
        (to)[0] = HALF_LOW(q0, q4), (to)[1] = HALF_LOW(q1, q5);                                    \
        (to)[2] = HALF_LOW(q2, q6), (to)[3] = HALF_LOW(q3, q7);                                    \
        (to)[4] = HALF_HIGH(q0, q4), (to)[5] = HALF_HIGH(q1, q5);                                  \
        (to)[6] = HALF_HIGH(q2, q6), (to)[7] = HALF_HIGH(q3, q7);                                  \
    } while (0)

/* As lanes, at any address. */
typedef float loose_lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));

/* Even and odd samples of a frame become the real and imaginary parts of its lane: sample i of all
 * lanes is the i-th vector of the cells. */
INLINE void load_even(const struct log_mel_frame *frame, const float *in, int64_t hop, lanes *to)
{
#define ROW(lane) (*(const loose_lanes *)(in + (lane)*hop + i) * window)
    uint32_t i = 0;
    for (; i + LANES <= frame->n_fft; i += LANES) {
        lanes window = *(const loose_lanes *)(frame->window + i);
        TRANSPOSE(to + i, ROW(0), ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6), ROW(7));
    }
#undef ROW
    for (; i < frame->n_fft; i++)
        for (int lane = 0; lane < LANES; lane++)
            to[i][lane] = in[lane * hop + i] * frame->window[i];
}

INLINE void load_odd(const struct log_mel_frame *frame, const float *in, int64_t hop,
                     struct lane_cell *cells)
{
    for (uint32_t i = 0; i < frame->n_fft; i++) {
        for (int lane = 0; lane < LANES; lane++)
            cells[i].re[lane] = in[lane * hop + i] * frame->window[i];
        cells[i].im = (lanes){0};
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
        const float *in = job->in + column * job->hop;
        int even = frame->half < frame->n_fft;
        if (even)
            load_even(frame, in, job->hop, (lanes *)cells);
        else
            load_odd(frame, in, job->hop, cells);
        const struct lane_cell *result = lane_fft_run(&frame->fft, cells, spare);
        if (even)
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
