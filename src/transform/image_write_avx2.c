#include "transform/image_write.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))
#define AVX2_INLINE static inline __attribute__((target("avx2"), always_inline))
#define LANES 8
#define PERIOD 24 /* a whole number of vectors, and of pixels of 1, 2, 3 or 4 channels */

AVX2_INLINE __m256 values_of(__m128i levels, __m256 multiply, __m256 add)
{
    __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(levels));
    return _mm256_add_ps(_mm256_mul_ps(value, multiply), add);
}

AVX2_INLINE void eight_store(float *to, const uint8_t *from, __m256 multiply, __m256 add)
{
    _mm256_storeu_ps(to, values_of(_mm_loadl_epi64((const __m128i *)from), multiply, add));
}

AVX2 static void wide_packed(const struct image_writer *writer, const uint8_t *from, int64_t count,
                             int32_t channels, float *to)
{
    float multiply[PERIOD], add[PERIOD];
    for (int32_t i = 0; i < PERIOD; i++) {
        multiply[i] = writer->plain ? 1.0f : writer->multiply[i % channels];
        add[i] = writer->plain ? 0.0f : writer->add[i % channels];
    }
    __m256 m0 = _mm256_loadu_ps(multiply), a0 = _mm256_loadu_ps(add);
    __m256 m1 = _mm256_loadu_ps(multiply + LANES), a1 = _mm256_loadu_ps(add + LANES);
    __m256 m2 = _mm256_loadu_ps(multiply + 2 * LANES), a2 = _mm256_loadu_ps(add + 2 * LANES);
    int64_t at = 0;
    for (; at + PERIOD <= count; at += PERIOD) {
        eight_store(to + at, from + at, m0, a0);
        eight_store(to + at + LANES, from + at + LANES, m1, a1);
        eight_store(to + at + 2 * LANES, from + at + 2 * LANES, m2, a2);
    }
    image_write_plain.packed(writer, from + at, count - at, channels, to + at);
}

struct planes {
    __m128i red, green, blue;
};

/* Bytes of three vectors into one: where a place of an order is -1, another of them has it. */
AVX2_INLINE __m128i bytes_join(__m128i a, __m128i b, __m128i c, __m128i from_a, __m128i from_b,
                               __m128i from_c)
{
    return _mm_or_si128(_mm_or_si128(_mm_shuffle_epi8(a, from_a), _mm_shuffle_epi8(b, from_b)),
                        _mm_shuffle_epi8(c, from_c));
}

/* 48 bytes of 16 pixels -> 16 bytes of each channel. */
AVX2_INLINE struct planes planes_of(const uint8_t *from)
{
    __m128i a = _mm_loadu_si128((const __m128i *)from);
    __m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
    __m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
    return (struct planes){
        bytes_join(a, b, c,
                   _mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                   _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1),
                   _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13)),
        bytes_join(a, b, c,
                   _mm_setr_epi8(1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                   _mm_setr_epi8(-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1),
                   _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14)),
        bytes_join(a, b, c,
                   _mm_setr_epi8(2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
                   _mm_setr_epi8(-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1),
                   _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15))};
}

/* 16 values of a channel. */
AVX2_INLINE void plane_store(float *to, __m128i levels, __m256 multiply, __m256 add)
{
    _mm256_storeu_ps(to, values_of(levels, multiply, add));
    _mm256_storeu_ps(to + LANES, values_of(_mm_srli_si128(levels, LANES), multiply, add));
}

AVX2_INLINE __m256 factor_of(const struct image_writer *writer, int channel)
{
    return _mm256_set1_ps(writer->plain ? 1.0f : writer->multiply[channel]);
}

AVX2_INLINE __m256 term_of(const struct image_writer *writer, int channel)
{
    return _mm256_set1_ps(writer->plain ? 0.0f : writer->add[channel]);
}

AVX2 static void wide_planar(const struct image_writer *writer, const uint8_t *from, int32_t width,
                             int32_t channels, float *to, int64_t plane)
{
    if (channels != 3) {
        image_write_plain.planar(writer, from, width, channels, to, plane);
        return;
    }
    __m256 red = factor_of(writer, 0), green = factor_of(writer, 1), blue = factor_of(writer, 2);
    __m256 red_term = term_of(writer, 0), green_term = term_of(writer, 1);
    __m256 blue_term = term_of(writer, 2);
    int32_t x = 0;
    for (; x + 16 <= width; x += 16) {
        struct planes planes = planes_of(from + x * 3);
        plane_store(to + x, planes.red, red, red_term);
        plane_store(to + plane + x, planes.green, green, green_term);
        plane_store(to + 2 * plane + x, planes.blue, blue, blue_term);
    }
    image_write_plain.planar(writer, from + x * 3, width - x, 3, to + x, plane);
}

AVX2 static void wide_split(const uint8_t *from, int32_t width, int32_t channels, uint8_t *to,
                            int64_t plane)
{
    int32_t x = 0;
    for (; channels == 3 && x + 16 <= width; x += 16) {
        struct planes planes = planes_of(from + x * 3);
        _mm_storeu_si128((__m128i *)(to + x), planes.red);
        _mm_storeu_si128((__m128i *)(to + plane + x), planes.green);
        _mm_storeu_si128((__m128i *)(to + 2 * plane + x), planes.blue);
    }
    image_write_plain.split(from + x * channels, width - x, channels, to + x, plane);
}

/* As half_of_float, without its case for not-a-number, which pixels never are. Not by the
 * processor's own conversion: to ask whether it has one costs more than it saves. */
AVX2_INLINE __m256i half_bits(const float *from)
{
    __m256i bits = _mm256_loadu_si256((const __m256i *)from);
    __m256i rest = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    __m256i sign = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(0x8000));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(rest, 13), _mm256_set1_epi32(1));
    __m256i moved = _mm256_add_epi32(rest, _mm256_set1_epi32(0xfff - (112 << 23)));
    __m256i normal = _mm256_srli_epi32(_mm256_add_epi32(moved, odd), 13);
    __m256 sum = _mm256_add_ps(_mm256_castsi256_ps(rest), _mm256_set1_ps(0.5f));
    __m256i tiny = _mm256_sub_epi32(_mm256_castps_si256(sum), _mm256_set1_epi32(0x3f000000));
    __m256i is_tiny = _mm256_cmpgt_epi32(_mm256_set1_epi32(0x38800000), rest);
    __m256i is_huge = _mm256_cmpgt_epi32(rest, _mm256_set1_epi32(0x477fefff));
    __m256i half = _mm256_blendv_epi8(normal, tiny, is_tiny);
    half = _mm256_blendv_epi8(half, _mm256_set1_epi32(0x7c00), is_huge);
    return _mm256_or_si256(half, sign);
}

AVX2_INLINE void words_store(uint16_t *to, __m256i first, __m256i second)
{
    __m256i both = _mm256_packus_epi32(first, second);
    _mm256_storeu_si256((__m256i *)to, _mm256_permute4x64_epi64(both, 0xd8));
}

AVX2 static void wide_half(const float *from, int64_t count, uint16_t *to)
{
    int64_t at = 0;
    for (; at + 2 * LANES <= count; at += 2 * LANES)
        words_store(to + at, half_bits(from + at), half_bits(from + at + LANES));
    image_write_plain.half(from + at, count - at, to + at);
}

/* Here too: only rounding is left to do. */
AVX2_INLINE __m256i bfloat_bits(const float *from)
{
    __m256i bits = _mm256_loadu_si256((const __m256i *)from);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    return _mm256_srli_epi32(bits, 16);
}

AVX2 static void wide_bfloat(const float *from, int64_t count, uint16_t *to)
{
    int64_t at = 0;
    for (; at + 2 * LANES <= count; at += 2 * LANES)
        words_store(to + at, bfloat_bits(from + at), bfloat_bits(from + at + LANES));
    image_write_plain.bfloat(from + at, count - at, to + at);
}

static const struct image_write_loops loops_wide = {wide_packed, wide_planar, wide_split, wide_half,
                                                    wide_bfloat};

const struct image_write_loops *image_write_best(void)
{
    return __builtin_cpu_supports("avx2") ? &loops_wide : &image_write_plain;
}

#else

const struct image_write_loops *image_write_best(void)
{
    return &image_write_plain;
}

#endif
