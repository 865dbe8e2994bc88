/* image_passes_wide.h -- the passes in vectors of 256 bits: the body of image_passes_avx2.c and
 * image_passes_vnni.c, which say first what a processor can do:
 *   WIDE, WIDE_INLINE                for whom a function is compiled
 *   WIDE_ADD_PRODUCTS(sums, a, b)    sums of 32 bits, and of 16 bits of a times those of b two each
 * Owns: nothing.   Threads: any.   Errors: none.
 *
 * Profile of Resize((224, 224)) of 500 x 375 JPEGs on an EPYC of 2022: across takes 10 % of the
 * time with AVX2, 8.4 % with VNNI (a product and its addition are one), down 2.8 and 2.4 %; the
 * rest is libjpeg-turbo's. What bounds across is the number of instructions: rows that lie in the
 * first cache are no faster. Vectors of 512 bits (four rows in one) are a tenth slower there, and
 * storing two pixels at once gains nothing. */
#ifndef TRANSFORM_IMAGE_PASSES_WIDE_H
#define TRANSFORM_IMAGE_PASSES_WIDE_H

#include <immintrin.h>
#include <string.h>

#include "transform/image_passes.h"

#define BLOCK 32 /* bytes of a vector */

/* Of four pixels, the first two or last two: each channel's two levels side by side, in 16 bits. */
struct pair_order {
    __m256i first, last;
};

/* Of levels times the high and low halves of weights. */
struct sums {
    __m256i high, low;
};

/* Sums of high and low halves of weights -> levels, in 32 bits. */
WIDE_INLINE __m256i sums_join(__m256i high, __m256i low)
{
    __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high, COEFFICIENT_SPLIT), low);
    return _mm256_srai_epi32(sum, COEFFICIENT_BITS);
}

WIDE_INLINE __m256i pair_high(const struct weight_pair *pair)
{
    int32_t both;
    memcpy(&both, pair->high, sizeof both);
    return _mm256_set1_epi32(both);
}

WIDE_INLINE __m256i pair_low(const struct weight_pair *pair)
{
    int32_t both;
    memcpy(&both, pair->low, sizeof both);
    return _mm256_set1_epi32(both);
}

/* 16 bytes of two rows. */
WIDE_INLINE __m256i rows_load(const uint8_t *a, const uint8_t *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)a)),
                                   _mm_loadu_si128((const __m128i *)b), 1);
}

WIDE_INLINE struct pair_order pair_order_of(int32_t channels)
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

WIDE_INLINE void sums_add(struct sums *sums, __m256i levels, __m256i high, __m256i low)
{
    sums->high = WIDE_ADD_PRODUCTS(sums->high, levels, high);
    sums->low = WIDE_ADD_PRODUCTS(sums->low, levels, low);
}

/* One output pixel of four rows, a stride apart: bytes a c a c | b d b d, four each. A vector holds
 * two rows, so that weights serve all four. */
WIDE_INLINE __m256i across_pixel(const uint8_t *from, int64_t stride,
                                 const struct weight_pair *pair, int32_t pairs, int32_t channels,
                                 struct pair_order order)
{
    struct sums ab = {_mm256_setzero_si256(), _mm256_set1_epi32(COEFFICIENT_HALF)}, cd = ab;
#pragma GCC unroll 2
    for (int32_t k = 0; k < pairs; k += 2, from += 4 * channels) {
        __m256i levels_ab = rows_load(from, from + stride);
        __m256i levels_cd = rows_load(from + 2 * stride, from + 3 * stride);
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
    return _mm256_packus_epi16(words, words);
}

/* pairs and channels are known where this is inlined, but for wide windows. */
WIDE_INLINE void across_four(const uint8_t *from, int64_t from_stride, uint8_t *to,
                             int64_t to_stride, const struct coefficients *table, int32_t pairs,
                             int32_t channels)
{
    struct pair_order order = pair_order_of(channels);
    const struct weight_pair *pair = table->pairs;
    const int32_t *first = table->from, *stop = first + table->count;
    for (; first < stop; first++, pair += pairs, to += channels) {
        __m256i bytes = across_pixel(from + (int64_t)*first * channels, from_stride, pair, pairs,
                                     channels, order);
        __m128i ac = _mm256_castsi256_si128(bytes), bd = _mm256_extracti128_si256(bytes, 1);
        /* Of three channels the fourth byte is overwritten by the next pixel. */
        _mm_storeu_si32(to, ac);
        _mm_storeu_si32(to + to_stride, bd);
        _mm_storeu_si32(to + 2 * to_stride, _mm_srli_si128(ac, 4));
        _mm_storeu_si32(to + 3 * to_stride, _mm_srli_si128(bd, 4));
    }
}

#define WIDE_ACROSS(name, pairs, channels)                                                         \
    WIDE static void name(const uint8_t *from, int64_t from_stride, uint8_t *to,                   \
                          int64_t to_stride, const struct coefficients *table)                     \
    {                                                                                              \
        across_four(from, from_stride, to, to_stride, table, pairs, channels);                     \
    }
WIDE_ACROSS(across_rgb_1, 1, 3)
WIDE_ACROSS(across_rgb_2, 2, 3)
WIDE_ACROSS(across_rgb_3, 3, 3)
WIDE_ACROSS(across_rgb_any, table->taps / 2, 3)
WIDE_ACROSS(across_rgba_any, table->taps / 2, 4)

/* Four pixels of four rows of one channel: as if they were four channels. */
WIDE_INLINE __m128i gray_load(const uint8_t *from, int64_t stride)
{
    int32_t rows[4];
    memcpy(rows, from, 4);
    memcpy(rows + 1, from + stride, 4);
    memcpy(rows + 2, from + 2 * stride, 4);
    memcpy(rows + 3, from + 3 * stride, 4);
    return _mm_setr_epi32(rows[0], rows[1], rows[2], rows[3]);
}

/* A vector holds the first two of four weights and the last two: their sums are added at the end.
 */
WIDE static void across_gray(const uint8_t *from, int64_t from_stride, uint8_t *to,
                             int64_t to_stride, const struct coefficients *table)
{
    __m256i order = _mm256_setr_epi8(0, -1, 1, -1, 4, -1, 5, -1, 8, -1, 9, -1, 12, -1, 13, -1, 2,
                                     -1, 3, -1, 6, -1, 7, -1, 10, -1, 11, -1, 14, -1, 15, -1);
    int32_t pairs = table->taps / 2;
    for (int32_t i = 0; i < table->count; i++) {
        const uint8_t *pixel = from + table->from[i];
        const struct weight_pair *pair = table->pairs + (int64_t)i * pairs;
        __m256i high = _mm256_setzero_si256(), low = high;
        for (int32_t k = 0; k < pairs; k += 2, pixel += 4) {
            static const struct weight_pair none;
            const struct weight_pair *last = k + 1 < pairs ? pair + k + 1 : &none;
            __m256i levels = _mm256_shuffle_epi8(
                _mm256_broadcastsi128_si256(gray_load(pixel, from_stride)), order);
            __m256i highs = _mm256_blend_epi32(pair_high(pair + k), pair_high(last), 0xf0);
            __m256i lows = _mm256_blend_epi32(pair_low(pair + k), pair_low(last), 0xf0);
            high = WIDE_ADD_PRODUCTS(high, levels, highs);
            low = WIDE_ADD_PRODUCTS(low, levels, lows);
        }
        __m256i both = _mm256_add_epi32(_mm256_slli_epi32(high, COEFFICIENT_SPLIT), low);
        __m128i sum =
            _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
        sum =
            _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(COEFFICIENT_HALF)), COEFFICIENT_BITS);
        sum = _mm_packs_epi32(sum, sum);
        sum = _mm_packus_epi16(sum, sum);
        to[i] = (uint8_t)_mm_extract_epi8(sum, 0);
        to[i + to_stride] = (uint8_t)_mm_extract_epi8(sum, 1);
        to[i + 2 * to_stride] = (uint8_t)_mm_extract_epi8(sum, 2);
        to[i + 3 * to_stride] = (uint8_t)_mm_extract_epi8(sum, 3);
    }
}

WIDE static void wide_across(const struct pass_rows *rows, const struct coefficients *table)
{
    if (rows->channels == 2 || rows->count < 4 || table->taps > rows->width) {
        image_passes_plain.across(rows, table);
        return;
    }
    int32_t pairs = table->taps / 2;
    void (*four)(const uint8_t *, int64_t, uint8_t *, int64_t, const struct coefficients *) =
        rows->channels == 1   ? across_gray
        : rows->channels == 4 ? across_rgba_any
        : pairs == 1          ? across_rgb_1
        : pairs == 2          ? across_rgb_2
        : pairs == 3          ? across_rgb_3
                              : across_rgb_any;
    for (int32_t y = 0; y < rows->count; y += 4) {
        if (y > rows->count - 4) /* the last four: some of them once more */
            y = rows->count - 4;
        four(rows->from + y * rows->from_stride, rows->from_stride, rows->to + y * rows->to_stride,
             rows->to_stride, table);
    }
}

/* 32 bytes of the sum of rows, by pairs of rows: their bytes lie side by side then, in 16 bits. All
 * four sums are named, because an array of them would be kept in memory. */
WIDE_INLINE void down_block(const uint8_t *from, int64_t stride, const struct weight_pair *pair,
                            int32_t pairs, uint8_t *to)
{
    __m256i zero = _mm256_setzero_si256();
    struct sums a = {zero, _mm256_set1_epi32(COEFFICIENT_HALF)}, b = a, c = a, d = a;
    for (int32_t k = 0; k < pairs; k++, from += 2 * stride) {
        __m256i high = pair_high(pair + k), low = pair_low(pair + k);
        __m256i one = _mm256_loadu_si256((const __m256i *)from);
        __m256i other = _mm256_loadu_si256((const __m256i *)(from + stride));
        __m256i first = _mm256_unpacklo_epi8(one, other), last = _mm256_unpackhi_epi8(one, other);
        sums_add(&a, _mm256_unpacklo_epi8(first, zero), high, low);
        sums_add(&b, _mm256_unpackhi_epi8(first, zero), high, low);
        sums_add(&c, _mm256_unpacklo_epi8(last, zero), high, low);
        sums_add(&d, _mm256_unpackhi_epi8(last, zero), high, low);
    }
    __m256i first = _mm256_packs_epi32(sums_join(a.high, a.low), sums_join(b.high, b.low));
    __m256i last = _mm256_packs_epi32(sums_join(c.high, c.low), sums_join(d.high, d.low));
    _mm256_storeu_si256((__m256i *)to, _mm256_packus_epi16(first, last));
}

WIDE_INLINE void down_row(const uint8_t *from, int64_t stride, const struct weight_pair *pair,
                          int32_t pairs, int64_t bytes, uint8_t *to)
{
    int64_t at = 0;
    for (; at + BLOCK <= bytes; at += BLOCK)
        down_block(from + at, stride, pair, pairs, to + at);
    if (at < bytes) /* the last block lies over the one before: nothing beyond the row is touched */
        down_block(from + bytes - BLOCK, stride, pair, pairs, to + bytes - BLOCK);
}

WIDE static void wide_down(const uint8_t *from, int64_t stride, int32_t height,
                           const struct coefficients *table, int32_t out, int64_t bytes,
                           uint8_t *to)
{
    if (bytes < BLOCK || table->taps > height) {
        image_passes_plain.down(from, stride, height, table, out, bytes, to);
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

#endif
