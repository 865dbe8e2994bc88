#include "transform/image_passes.h"

static inline uint8_t level_of(int32_t sum)
{
    sum >>= COEFFICIENT_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static inline __attribute__((always_inline)) void across_row(const uint8_t *from, uint8_t *to,
                                                             const struct coefficients *table,
                                                             int32_t channels, int32_t width)
{
    int32_t taps = table->taps < width ? table->taps : width;
    for (int32_t i = 0; i < table->count; i++, to += channels) {
        const uint8_t *pixel = from + (int64_t)table->from[i] * channels;
        const int32_t *weight = table->weights + (int64_t)i * table->taps;
        int32_t sum[4] = {COEFFICIENT_HALF, COEFFICIENT_HALF, COEFFICIENT_HALF, COEFFICIENT_HALF};
        for (int32_t k = 0; k < taps; k++, pixel += channels)
            for (int32_t c = 0; c < channels; c++)
                sum[c] += pixel[c] * weight[k];
        for (int32_t c = 0; c < channels; c++)
            to[c] = level_of(sum[c]);
    }
}

static void plain_across(const struct pass_rows *rows, const struct coefficients *table)
{
    for (int32_t y = 0; y < rows->count; y++) {
        const uint8_t *from = rows->from + y * rows->from_stride;
        uint8_t *to = rows->to + y * rows->to_stride;
        switch (rows->channels) { /* a number that is known makes the inner loops straight */
        case 1:
            across_row(from, to, table, 1, rows->width);
            break;
        case 3:
            across_row(from, to, table, 3, rows->width);
            break;
        default:
            across_row(from, to, table, rows->channels, rows->width);
        }
    }
}

#define STRIP 64 /* bytes of a row at a time: their sums stay in registers or the first cache */

/* len is known where this is inlined, but for the last strip: the compiler makes vectors of it. */
static inline __attribute__((always_inline)) void down_strip(const uint8_t *from, int64_t stride,
                                                             const int32_t *weight, int32_t taps,
                                                             int32_t len, uint8_t *to)
{
    int32_t sums[STRIP];
    for (int32_t i = 0; i < len; i++)
        sums[i] = COEFFICIENT_HALF;
    for (int32_t k = 0; k < taps; k++, from += stride)
        for (int32_t i = 0; i < len; i++)
            sums[i] += from[i] * weight[k];
    for (int32_t i = 0; i < len; i++)
        to[i] = level_of(sums[i]);
}

static void plain_down(const uint8_t *from, int64_t stride, int32_t height,
                       const struct coefficients *table, int32_t out, int64_t bytes, uint8_t *to)
{
    int32_t taps = table->taps < height ? table->taps : height;
    const int32_t *weight = table->weights + (int64_t)out * table->taps;
    int64_t at = 0;
    from += table->from[out] * stride;
    for (; at + STRIP <= bytes; at += STRIP)
        down_strip(from + at, stride, weight, taps, STRIP, to + at);
    down_strip(from + at, stride, weight, taps, (int32_t)(bytes - at), to + at);
}

const struct image_passes image_passes_plain = {plain_across, plain_down};

const struct image_passes *image_passes_best(void)
{
    const struct image_passes *best = image_passes_vnni();
    if (!best)
        best = image_passes_avx2();
    return best ? best : &image_passes_plain;
}
