#include "transform/image_passes.h"

#include <string.h>

#define HALF (1 << (COEFFICIENT_BITS - 1))

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
        int32_t sum[4] = {HALF, HALF, HALF, HALF};
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

#define STRIP 256 /* bytes of a row whose sums stay in the first cache */

static void plain_down(const uint8_t *from, int64_t stride, int32_t height,
                       const struct coefficients *table, int32_t out, int64_t bytes, uint8_t *to)
{
    int32_t taps = table->taps < height ? table->taps : height;
    const int32_t *weight = table->weights + (int64_t)out * table->taps;
    from += table->from[out] * stride;
    for (int64_t at = 0; at < bytes; at += STRIP) {
        int32_t sums[STRIP];
        int64_t len = bytes - at < STRIP ? bytes - at : STRIP;
        for (int64_t i = 0; i < len; i++)
            sums[i] = HALF;
        for (int32_t k = 0; k < taps; k++) {
            const uint8_t *row = from + k * stride + at;
            int32_t one = weight[k];
            if (!one)
                continue;
            for (int64_t i = 0; i < len; i++)
                sums[i] += row[i] * one;
        }
        for (int64_t i = 0; i < len; i++)
            to[at + i] = level_of(sums[i]);
    }
}

const struct image_passes image_passes_plain = {plain_across, plain_down};

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))

/* Sums of high and low halves of weights -> levels, in 32 bits. */
AVX2_INLINE __m256i sums_join(__m256i high, __m256i low)
{
    __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, COEFFICIENT_SPLIT), low);
    return _mm256_srai_epi32(sum, COEFFICIENT_BITS);
}

AVX2_INLINE __m256i pair_high(const struct weight_pair *pair)
{
    int32_t both;
    memcpy(&both, pair->high, sizeof both);
    return _mm256_set1_epi32(both);
}

AVX2_INLINE __m256i pair_low(const struct weight_pair *pair)
{
    int32_t both;
    memcpy(&both, pair->low, sizeof both);
    return _mm256_set1_epi32(both);
}

/* 16 bytes of two rows. */
AVX2_INLINE __m256i rows_load(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)),
                                   _mm_loadu_si128((const __m128i *)b), 1);
}

/* Of four pixels, the first two or last two: each channel's two levels side by side, in 16 bits. */
struct pair_order {
    __m256i first, last;
};

AVX2_INLINE struct pair_order pair_order_of(int32_t channels)
{
    if (channels == 3) {
        return (struct pair_order){
            _mm256_broadcastsi128_si256(
                _mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1)),
            _mm256_broadcastsi128_si256(
                _mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1))};
    }
    return (struct pair_order){_mm256_broadcastsi128_si256(_mm_setr_epi8(
                                   0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1)),
                               _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                   8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1))};
}

struct sums {
    __m256i high, low;
};

AVX2_INLINE void sums_add(struct sums *sums, __m256i levels, __m256i high, __m256i low)
{
    sums->high = _mm256_add_epi32(sums->high, _mm256_madd_epi16(levels, high));
    sums->low = _mm256_add_epi32(sums->low, _mm256_madd_epi16(levels, low));
}

/* One output pixel of four rows. A vector holds two rows, so weights serve all four. pairs: of
 * weights, when not 0 known to the compiler. */
AVX2_INLINE void across_pixel(const uint8_t *const from[4], uint8_t *const to[4],
                              const struct weight_pair *pair, int32_t pairs, int32_t channels,
                              struct pair_order order)
{
    struct sums ab = {_mm256_setzero_si256(), _mm256_set1_epi32(HALF)}, cd = ab;
    for (int32_t k = 0; k < pairs; k += 2) {
        int64_t at = (int64_t)k * 2 * channels;
        __m256i levels_ab = rows_load(from[0] + at, from[1] + at);
        __m256i levels_cd = rows_load(from[2] + at, from[3] + at);
        __m256i high = pair_high(pair + k), low = pair_low(pair + k);
        sums_add(&ab, _mm256_shuffle_epi8(levels_ab, order.first), high, low);
        sums_add(&cd, _mm256_shuffle_epi8(levels_cd, order.first), high, low);
        if (k + 1 == pairs)
            break;
        high = pair_high(pair + k + 1), low = pair_low(pair + k + 1);
        sums_add(&ab, _mm256_shuffle_epi8(levels_ab, order.last), high, low);
        sums_add(&cd, _mm256_shuffle_epi8(levels_cd, order.last), high, low);
    }
    __m256i words = _mm256_packs_epi32(sums_join(ab.high, ab.low), sums_join(cd.high, cd.low));
    __m256i bytes = _mm256_packus_epi16(words, words); /* a c a c | b d b d */
    __m128i ac = _mm256_castsi256_si128(bytes), bd = _mm256_extracti128_si256(bytes, 1);
    int32_t pixels[4] = {_mm_cvtsi128_si32(ac), _mm_cvtsi128_si32(bd), _mm_extract_epi32(ac, 1),
                         _mm_extract_epi32(bd, 1)};
    for (int r = 0; r < 4; r++)
        memcpy(to[r], &pixels[r], 4); /* of three channels the fourth byte is overwritten next */
}

AVX2_INLINE void across_four(const uint8_t *const from[4], uint8_t *const to[4],
                             const struct coefficients *table, int32_t pairs, int32_t channels)
{
    struct pair_order order = pair_order_of(channels);
    for (int32_t i = 0; i < table->count; i++) {
        int64_t at = (int64_t)table->from[i] * channels, put = (int64_t)i * channels;
        const uint8_t *const pixel[4] = {from[0] + at, from[1] + at, from[2] + at, from[3] + at};
        uint8_t *const place[4] = {to[0] + put, to[1] + put, to[2] + put, to[3] + put};
        across_pixel(pixel, place, table->pairs + (int64_t)i * pairs, pairs, channels, order);
    }
}

#define ACROSS(name, pairs, channels)                                                              \
    AVX2 static void name(const uint8_t *const from[4], uint8_t *const to[4],                      \
                          const struct coefficients *table)                                        \
    {                                                                                              \
        across_four(from, to, table, pairs, channels);                                             \
    }
ACROSS(across_rgb_1, 1, 3)
ACROSS(across_rgb_2, 2, 3)
ACROSS(across_rgb_3, 3, 3)
ACROSS(across_rgb_any, table->taps / 2, 3)
ACROSS(across_four_any, table->taps / 2, 4)

AVX2 static void wide_across(const struct pass_rows *rows, const struct coefficients *table)
{
    if (rows->channels < 3 || table->taps > rows->width) {
        plain_across(rows, table);
        return;
    }
    int32_t pairs = table->taps / 2;
    for (int32_t y = 0; y < rows->count; y += 4) {
        const uint8_t *from[4];
        uint8_t *to[4];
        for (int32_t r = 0; r < 4; r++) { /* past the end: the last one again */
            int32_t row = y + r < rows->count ? y + r : rows->count - 1;
            from[r] = rows->from + row * rows->from_stride;
            to[r] = rows->to + row * rows->to_stride;
        }
        if (rows->channels == 4)
            across_four_any(from, to, table);
        else if (pairs == 1)
            across_rgb_1(from, to, table);
        else if (pairs == 2)
            across_rgb_2(from, to, table);
        else if (pairs == 3)
            across_rgb_3(from, to, table);
        else
            across_rgb_any(from, to, table);
    }
}

#define BLOCK 32 /* bytes of a vector */

/* Two rows' bytes, side by side: in four vectors of 16 bits each. */
AVX2_INLINE void pairs_of_rows(__m256i a, __m256i b, __m256i out[4])
{
    __m256i zero = _mm256_setzero_si256();
    __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    out[0] = _mm256_unpacklo_epi8(low, zero);
    out[1] = _mm256_unpackhi_epi8(low, zero);
    out[2] = _mm256_unpacklo_epi8(high, zero);
    out[3] = _mm256_unpackhi_epi8(high, zero);
}

AVX2_INLINE void down_block(const uint8_t *from, int64_t stride, const struct weight_pair *pair,
                            int32_t pairs, uint8_t *to)
{
    struct sums sums[4];
    for (int i = 0; i < 4; i++)
        sums[i] = (struct sums){_mm256_setzero_si256(), _mm256_set1_epi32(HALF)};
    for (int32_t k = 0; k < pairs; k++, from += 2 * stride) {
        __m256i both[4], high = pair_high(pair + k), low = pair_low(pair + k);
        pairs_of_rows(_mm256_loadu_si256((const __m256i *)from),
                      _mm256_loadu_si256((const __m256i *)(from + stride)), both);
        for (int i = 0; i < 4; i++)
            sums_add(&sums[i], both[i], high, low);
    }
    __m256i low = _mm256_packs_epi32(sums_join(sums[0].high, sums[0].low),
                                     sums_join(sums[1].high, sums[1].low));
    __m256i high = _mm256_packs_epi32(sums_join(sums[2].high, sums[2].low),
                                      sums_join(sums[3].high, sums[3].low));
    _mm256_storeu_si256((__m256i *)to, _mm256_packus_epi16(low, high));
}

AVX2_INLINE void down_row(const uint8_t *from, int64_t stride, const struct weight_pair *pair,
                          int32_t pairs, int64_t bytes, uint8_t *to)
{
    int64_t at = 0;
    for (; at + BLOCK <= bytes; at += BLOCK)
        down_block(from + at, stride, pair, pairs, to + at);
    if (at < bytes) /* the last block lies over the one before: nothing beyond the row is touched */
        down_block(from + bytes - BLOCK, stride, pair, pairs, to + bytes - BLOCK);
}

AVX2 static void wide_down(const uint8_t *from, int64_t stride, int32_t height,
                           const struct coefficients *table, int32_t out, int64_t bytes,
                           uint8_t *to)
{
    if (bytes < BLOCK || table->taps > height) {
        plain_down(from, stride, height, table, out, bytes, to);
        return;
    }
    int32_t pairs = table->taps / 2;
    const struct weight_pair *pair = table->pairs + (int64_t)out * pairs;
    from += table->from[out] * stride;
    if (pairs == 1)
        down_row(from, stride, pair, 1, bytes, to);
    else if (pairs == 2)
        down_row(from, stride, pair, 2, bytes, to);
    else
        down_row(from, stride, pair, pairs, bytes, to);
}

static const struct image_passes passes_wide = {wide_across, wide_down};

const struct image_passes *image_passes_best(void)
{
    return __builtin_cpu_supports("avx2") ? &passes_wide : &image_passes_plain;
}

#else

const struct image_passes *image_passes_best(void)
{
    return &image_passes_plain;
}

#endif
