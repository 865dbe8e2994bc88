#include "transform/window_scale.h"

#include <string.h>

#include "base/fail.h"
#include "base/half.h"
#include "base/memory.h"

#define LANES 8          /* float32 in a vector */
#define WIDEST 16        /* in the widest one */
#define LINE 64          /* bytes */
#define STREAM_LEAST 256 /* values: fewer are worth no detour */
#define PERIOD_LEAST 64  /* so that short rows do not turn the outer loop all the time */
#define PERIOD_MOST                                                                                \
    1024 /* tables stay in the first cache; longer rows end in a few single values */

/* --- plain C ---------------------------------------------------------------------------------- */

static inline float scaled(const struct window_scale *scale, uint64_t k, float x)
{
    float near = x - scale->high[k];
    near = near - scale->low[k];
    return near * scale->inverse[k];
}

/* One value of each type at `at`, whose column's number in the tables is k. */
static inline void one_f32(const struct window_scale *scale, const uint8_t *from, uint8_t *to,
                           uint64_t at, uint64_t k)
{
    float x;
    memcpy(&x, from + at * 4, 4);
    x = scaled(scale, k, x);
    memcpy(to + at * 4, &x, 4);
}

static inline void one_f16(const struct window_scale *scale, const uint8_t *from, uint8_t *to,
                           uint64_t at, uint64_t k)
{
    uint16_t x;
    memcpy(&x, from + at * 2, 2);
    x = half_of_float(scaled(scale, k, half_to_float(x)));
    memcpy(to + at * 2, &x, 2);
}

static inline void one_bf16(const struct window_scale *scale, const uint8_t *from, uint8_t *to,
                            uint64_t at, uint64_t k)
{
    uint16_t x;
    memcpy(&x, from + at * 2, 2);
    x = bfloat_of_float(scaled(scale, k, bfloat_to_float(x)));
    memcpy(to + at * 2, &x, 2);
}

static inline void one_f64(const struct window_scale *scale, const uint8_t *from, uint8_t *to,
                           uint64_t at, uint64_t k)
{
    double x;
    memcpy(&x, from + at * 8, 8);
    x = (x - scale->center[k]) * scale->factor[k];
    memcpy(to + at * 8, &x, 8);
}

#define PLAIN(name)                                                                                \
    static void plain_##name(const struct window_scale *scale, const void *from, uint64_t n,       \
                             void *to)                                                             \
    {                                                                                              \
        for (uint64_t at = 0; at < n;) {                                                           \
            uint64_t len = n - at < scale->period ? n - at : scale->period;                        \
            for (uint64_t k = 0; k < len; k++)                                                     \
                one_##name(scale, from, to, at + k, k);                                            \
            at += len;                                                                             \
        }                                                                                          \
    }
PLAIN(f32)
PLAIN(f16)
PLAIN(bf16)
PLAIN(f64)

/* --- vectors ---------------------------------------------------------------------------------- */

static uint64_t least_multiple(uint32_t count, uint32_t lanes)
{
    uint64_t multiple = count;
    while (multiple % lanes)
        multiple += count;
    return multiple;
}

typedef void scale_function(const struct window_scale *scale, const void *from, uint64_t n,
                            void *to);
typedef void past_function(const struct window_scale *scale, const void *from, uint64_t n, void *to,
                           const void *next);

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#define WIDE __attribute__((target("avx2,f16c")))

static inline WIDE __m256 scaled_vector(const struct window_scale *scale, uint64_t k, __m256 x)
{
    x = _mm256_sub_ps(x, _mm256_loadu_ps(scale->high + k));
    x = _mm256_sub_ps(x, _mm256_loadu_ps(scale->low + k));
    return _mm256_mul_ps(x, _mm256_loadu_ps(scale->inverse + k));
}

static inline WIDE void vector_f32(const struct window_scale *scale, const uint8_t *from,
                                   uint8_t *to, uint64_t at, uint64_t k)
{
    __m256 x = _mm256_loadu_ps((const float *)(const void *)(from + at * 4));
    _mm256_storeu_ps((float *)(void *)(to + at * 4), scaled_vector(scale, k, x));
}

static inline WIDE void vector_f16(const struct window_scale *scale, const uint8_t *from,
                                   uint8_t *to, uint64_t at, uint64_t k)
{
    __m256 x = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(from + at * 2)));
    __m128i y = _mm256_cvtps_ph(scaled_vector(scale, k, x), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128((__m128i *)(void *)(to + at * 2), y);
}

static inline WIDE void vector_bf16(const struct window_scale *scale, const uint8_t *from,
                                    uint8_t *to, uint64_t at, uint64_t k)
{
    __m128i raw = _mm_loadu_si128((const __m128i *)(const void *)(from + at * 2));
    __m256 x = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(raw), 16));
    x = scaled_vector(scale, k, x);
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i near = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i high = _mm256_srli_epi32(_mm256_blendv_epi8(near, quiet, nan), 16);
    __m256i packed = _mm256_packus_epi32(high, high);
    packed = _mm256_permute4x64_epi64(packed, 0x08); /* the low half of each lane */
    _mm_storeu_si128((__m128i *)(void *)(to + at * 2), _mm256_castsi256_si128(packed));
}

static inline WIDE void vector_f64(const struct window_scale *scale, const uint8_t *from,
                                   uint8_t *to, uint64_t at, uint64_t k)
{
    for (int half = 0; half < LANES; half += 4) {
        __m256d x = _mm256_loadu_pd((const double *)(const void *)(from + (at + half) * 8));
        x = _mm256_sub_pd(x, _mm256_loadu_pd(scale->center + k + half));
        x = _mm256_mul_pd(x, _mm256_loadu_pd(scale->factor + k + half));
        _mm256_storeu_pd((double *)(void *)(to + (at + half) * 8), x);
    }
}

#define VECTORS(name, vector, one)                                                                 \
    static WIDE void wide_##name(const struct window_scale *scale, const void *from, uint64_t n,   \
                                 void *to)                                                         \
    {                                                                                              \
        for (uint64_t at = 0; at < n;) {                                                           \
            uint64_t len = n - at < scale->period ? n - at : scale->period, k = 0;                 \
            for (; k + LANES <= len; k += LANES)                                                   \
                vector(scale, from, to, at + k, k);                                                \
            for (; k < len; k++)                                                                   \
                one(scale, from, to, at + k, k);                                                   \
            at += len;                                                                             \
        }                                                                                          \
    }
VECTORS(f32, vector_f32, one_f32)
VECTORS(f16, vector_f16, one_f16)
VECTORS(bf16, vector_bf16, one_bf16)
VECTORS(f64, vector_f64, one_f64)

static WIDE void wide_f32_past(const struct window_scale *scale, const void *from, uint64_t n,
                               void *to, const void *next)
{
    const float *in = from, *soon = next;
    float *out = to;
    for (uint64_t at = 0; at < n;) {
        uint64_t len = n - at < scale->period ? n - at : scale->period, k = 0;
        for (; k + LANES <= len; k += LANES) {
            _mm_prefetch((const char *)(soon + at + k), _MM_HINT_T0);
            _mm256_stream_ps(out + at + k, scaled_vector(scale, k, _mm256_loadu_ps(in + at + k)));
        }
        for (; k < len; k++)
            one_f32(scale, from, to, at + k, k);
        at += len;
    }
}

/* Vectors of 16, for processors that run them at full speed (those with VBMI). When a period is 1
 * to 8 vectors, the tables stay in registers: half of the loads are for them. */
#define WIDER __attribute__((target("avx512f")))

#define TABLE(i)                                                                                   \
    __m512 high_##i = _mm512_loadu_ps(scale->high + WIDEST * i);                                   \
    __m512 low_##i = _mm512_loadu_ps(scale->low + WIDEST * i);                                     \
    __m512 inverse_##i = _mm512_loadu_ps(scale->inverse + WIDEST * i);
#define VECTOR(i)                                                                                  \
    x = _mm512_loadu_ps(in + WIDEST * i);                                                          \
    x = _mm512_mul_ps(_mm512_sub_ps(_mm512_sub_ps(x, high_##i), low_##i), inverse_##i);
#define STORED(i) VECTOR(i) _mm512_storeu_ps(out + WIDEST * i, x);
#define STREAMED(i)                                                                                \
    _mm_prefetch((const char *)(soon + WIDEST * i), _MM_HINT_T0);                                  \
    VECTOR(i) _mm512_stream_ps(out + WIDEST * i, x);
#define EACH_1(M) M(0)
#define EACH_2(M) EACH_1(M) M(1)
#define EACH_3(M) EACH_2(M) M(2)
#define EACH_4(M) EACH_3(M) M(3)
#define EACH_5(M) EACH_4(M) M(4)
#define EACH_6(M) EACH_5(M) M(5)
#define EACH_7(M) EACH_6(M) M(6)
#define EACH_8(M) EACH_7(M) M(7)

/* STEP: for each vector; MORE: what moves on with `in` and `out`. */
#define TURNS(v, STEP, MORE)                                                                       \
    const float *in = from;                                                                        \
    float *out = to;                                                                               \
    __m512 x;                                                                                      \
    EACH_##v(TABLE) for (; n >= (v)*WIDEST; n -= (v)*WIDEST)                                       \
    {                                                                                              \
        EACH_##v(STEP) in += (v)*WIDEST;                                                           \
        out += (v)*WIDEST;                                                                         \
        MORE;                                                                                      \
    }                                                                                              \
    for (uint64_t k = 0; k < n; k++) /* the tables begin anew with each turn */                    \
        one_f32(scale, (const uint8_t *)in, (uint8_t *)out, k, k);

#define BOTH(v)                                                                                    \
    static WIDER void wider_##v(const struct window_scale *scale, const void *from, uint64_t n,    \
                                void *to)                                                          \
    {                                                                                              \
        TURNS(v, STORED, (void)0)                                                                  \
    }                                                                                              \
    static WIDER void wider_past_##v(const struct window_scale *scale, const void *from,           \
                                     uint64_t n, void *to, const void *next)                       \
    {                                                                                              \
        const float *soon = next;                                                                  \
        TURNS(v, STREAMED, soon += (v)*WIDEST)                                                     \
    }
BOTH(1)
BOTH(2)
BOTH(3)
BOTH(4)
BOTH(5)
BOTH(6)
BOTH(7)
BOTH(8)

/* Where the tables of a row fill few vectors. */
static void use_registers(struct window_scale *scale, uint32_t count)
{
    static scale_function *const wider[] = {wider_1, wider_2, wider_3, wider_4,
                                            wider_5, wider_6, wider_7, wider_8};
    static past_function *const past[] = {wider_past_1, wider_past_2, wider_past_3, wider_past_4,
                                          wider_past_5, wider_past_6, wider_past_7, wider_past_8};
    uint64_t turn = least_multiple(count, WIDEST) / WIDEST;
    if (turn > sizeof wider / sizeof wider[0] || !__builtin_cpu_supports("avx512vbmi"))
        return;
    scale->run = wider[turn - 1];
    scale->past = past[turn - 1];
}

void window_scale_fence(void)
{
    _mm_sfence();
}

static int has_wide(void)
{
    unsigned a, b, c = 0, d;
    int half = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    return half && __builtin_cpu_supports("avx2"); /* the latter asks the system too */
}

#else /* other processors: the compiler's own vectors of the plain loops */

#define wide_f32 plain_f32
#define wide_f32_past NULL
#define wide_f16 plain_f16
#define wide_bf16 plain_bf16
#define wide_f64 plain_f64

static int has_wide(void)
{
    return 0;
}

static void use_registers(struct window_scale *scale, uint32_t count)
{
    (void)scale;
    (void)count;
}

void window_scale_fence(void)
{
}

#endif

/* --- making ----------------------------------------------------------------------------------- */

static scale_function *fastest(scale_function *wide, scale_function *plain)
{
    return has_wide() ? wide : plain;
}

static void choose_functions(struct window_scale *scale, enum stk_dtype dtype, uint32_t count)
{
    switch (dtype) {
    case STK_F16:
        scale->plain = plain_f16;
        scale->run = fastest(wide_f16, plain_f16);
        break;
    case STK_BF16:
        scale->plain = plain_bf16;
        scale->run = fastest(wide_bf16, plain_bf16);
        break;
    case STK_F64:
        scale->plain = plain_f64;
        scale->run = fastest(wide_f64, plain_f64);
        break;
    default:
        scale->plain = plain_f32;
        scale->run = fastest(wide_f32, plain_f32);
        scale->past = has_wide() ? wide_f32_past : NULL;
        use_registers(scale, count);
    }
}

/* Whole vectors, and many of them; a long row is a period of its own. */
static uint64_t period_of(uint32_t count)
{
    uint64_t period = least_multiple(count, WIDEST);
    if (period > PERIOD_MOST)
        return count;
    return (PERIOD_LEAST + period - 1) / period * period;
}

static void tables_fill(struct window_scale *scale, const struct scaler *scaler,
                        const uint32_t *columns, uint32_t count)
{
    for (uint64_t k = 0; k < scale->period; k++) {
        const struct scaler_column *column = &scaler->columns[columns[k % count]];
        if (scale->center) {
            scale->center[k] = column->center;
            scale->factor[k] = 1 / column->scale;
            continue;
        }
        scale->high[k] = (float)column->center;
        scale->low[k] = (float)(column->center - (double)scale->high[k]);
        scale->inverse[k] = (float)(1 / column->scale);
    }
}

stk_status window_scale_init(struct window_scale *scale, const struct scaler *scaler,
                             const uint32_t *columns, uint32_t count, enum stk_dtype dtype,
                             struct stk_error *err)
{
    *scale = (struct window_scale){.period = period_of(count)};
    choose_functions(scale, dtype, count);
    if (dtype == STK_F64) {
        scale->center = memory_zero(scale->period, sizeof *scale->center);
        scale->factor = memory_zero(scale->period, sizeof *scale->factor);
    } else {
        scale->high = memory_zero(scale->period, sizeof *scale->high);
        scale->low = memory_zero(scale->period, sizeof *scale->low);
        scale->inverse = memory_zero(scale->period, sizeof *scale->inverse);
    }
    int made = dtype == STK_F64 ? scale->center && scale->factor
                                : scale->high && scale->low && scale->inverse;
    if (!made) {
        window_scale_reset(scale);
        return fail_memory(err, scale->period * sizeof *scale->high);
    }
    tables_fill(scale, scaler, columns, count);
    return STK_OK;
}

void window_scale_stream(const struct window_scale *scale, const void *from, uint64_t n, void *to,
                         const void *next)
{
    if (scale->past && n >= STREAM_LEAST && from != to && ((uintptr_t)to & (LINE - 1)) == 0)
        scale->past(scale, from, n, to, next ? next : from);
    else
        scale->run(scale, from, n, to);
}

void window_scale_reset(struct window_scale *scale)
{
    memory_free(scale->high);
    memory_free(scale->low);
    memory_free(scale->inverse);
    memory_free(scale->center);
    memory_free(scale->factor);
    *scale = (struct window_scale){0};
}
