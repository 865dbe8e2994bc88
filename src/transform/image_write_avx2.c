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

AVX2 static void wide_packed(const struct image_writer *writer, const uint8_t *from, int64_t count,
                             int32_t channels, float *to)
{
    float multiply[PERIOD], add[PERIOD];
    for (int32_t i = 0; i < PERIOD; i++) {
        multiply[i] = writer->plain ? 1.0f : writer->multiply[i % channels];
        add[i] = writer->plain ? 0.0f : writer->add[i % channels];
    }
    __m256 m[3], a[3];
    for (int i = 0; i < 3; i++) {
        m[i] = _mm256_loadu_ps(multiply + LANES * i);
        a[i] = _mm256_loadu_ps(add + LANES * i);
    }
    int64_t at = 0;
    for (; at + PERIOD <= count; at += PERIOD)
        for (int i = 0; i < 3; i++)
            _mm256_storeu_ps(
                to + at + LANES * i,
                values_of(_mm_loadl_epi64((const __m128i *)(from + at + LANES * i)), m[i], a[i]));
    image_write_plain.packed(writer, from + at, count - at, channels, to + at);
}

/* 48 bytes of 16 pixels -> 16 bytes of each channel. */
AVX2_INLINE void planes_of(const uint8_t *from, __m128i out[3])
{
    static const int8_t order[3][3][16] = {
        {{0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13}},
        {{1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14}},
        {{2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1},
         {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15}}};
    __m128i part[3];
    for (int i = 0; i < 3; i++)
        part[i] = _mm_loadu_si128((const __m128i *)(from + 16 * i));
    for (int c = 0; c < 3; c++) {
        __m128i all = _mm_setzero_si128();
        for (int i = 0; i < 3; i++)
            all = _mm_or_si128(
                all, _mm_shuffle_epi8(part[i], _mm_loadu_si128((const __m128i *)order[c][i])));
        out[c] = all;
    }
}

AVX2 static void wide_planar(const struct image_writer *writer, const uint8_t *from, int32_t width,
                             int32_t channels, float *to, int64_t plane)
{
    if (channels != 3) {
        image_write_plain.planar(writer, from, width, channels, to, plane);
        return;
    }
    __m256 multiply[3], add[3];
    for (int c = 0; c < 3; c++) {
        multiply[c] = _mm256_set1_ps(writer->plain ? 1.0f : writer->multiply[c]);
        add[c] = _mm256_set1_ps(writer->plain ? 0.0f : writer->add[c]);
    }
    int32_t x = 0;
    for (; x + 16 <= width; x += 16) {
        __m128i planes[3];
        planes_of(from + x * 3, planes);
        for (int c = 0; c < 3; c++) {
            float *place = to + c * plane + x;
            _mm256_storeu_ps(place, values_of(planes[c], multiply[c], add[c]));
            _mm256_storeu_ps(place + LANES,
                             values_of(_mm_srli_si128(planes[c], LANES), multiply[c], add[c]));
        }
    }
    image_write_plain.planar(writer, from + x * 3, width - x, 3, to + x, plane);
}

AVX2 static void wide_split(const uint8_t *from, int32_t width, int32_t channels, uint8_t *to,
                            int64_t plane)
{
    int32_t x = 0;
    for (; channels == 3 && x + 16 <= width; x += 16) {
        __m128i planes[3];
        planes_of(from + x * 3, planes);
        for (int c = 0; c < 3; c++)
            _mm_storeu_si128((__m128i *)(to + c * plane + x), planes[c]);
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
