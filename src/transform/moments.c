#include "transform/moments.h"

#include <assert.h>
#include <string.h>

/* Value i of a block goes to lane i % 8: sums that do not wait for each other, and the same order
 * of additions whatever the width of the machine's vectors. */
#define LANES 8

typedef double pair __attribute__((vector_size(16)));

#if defined(__SSE2__)

#include <emmintrin.h>

static inline pair pair_widen(const float *from)
{
    __m128i both = _mm_loadl_epi64((const __m128i *)from);
    return (pair)_mm_cvtps_pd(_mm_castsi128_ps(both));
}

static inline pair pair_min(pair a, pair b)
{
    return (pair)_mm_min_pd((__m128d)a, (__m128d)b);
}

static inline pair pair_max(pair a, pair b)
{
    return (pair)_mm_max_pd((__m128d)a, (__m128d)b);
}

#else

static inline pair pair_widen(const float *from)
{
    float both[2];

    memcpy(both, from, sizeof(both));
    return (pair){both[0], both[1]};
}

static inline pair pair_min(pair a, pair b)
{
    return (pair){a[0] < b[0] ? a[0] : b[0], a[1] < b[1] ? a[1] : b[1]};
}

static inline pair pair_max(pair a, pair b)
{
    return (pair){a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1]};
}

#endif

#define INLINE static inline __attribute__((always_inline))

INLINE double load_one(const void *values, enum stk_dtype dtype, size_t i)
{
    float small;
    double one;

    if (dtype == STK_F64) {
        memcpy(&one, (const double *)values + i, sizeof(one));
        return one;
    }
    memcpy(&small, (const float *)values + i, sizeof(small));
    return small;
}

/* --- passes over whole rounds of lanes ------------------------------------------------------- */

/* What passes find: a sum, then a sum of distances from a mean and one of their squares, a lane. */
struct lanes {
    double sum[LANES], min, max;
    double first[LANES], second[LANES];
};

/* n is a multiple of LANES. Products stand in statements of their own, so that no compiler fuses
 * them with a sum and all machines round alike. */
struct passes {
    void (*first)(const void *values, size_t n, struct lanes *out);
    void (*second)(const void *values, size_t n, double mean, struct lanes *out);
};

INLINE pair load_pair(const void *values, enum stk_dtype dtype, size_t i)
{
    pair both;

    if (dtype == STK_F32)
        return pair_widen((const float *)values + i);
    memcpy(&both, (const double *)values + i, sizeof(both));
    return both;
}

INLINE void first_pass(const void *values, enum stk_dtype dtype, size_t n, struct lanes *out)
{
    pair sum0 = {0, 0}, sum1 = sum0, sum2 = sum0, sum3 = sum0, x;
    pair low0 = {out->min, out->min}, low1 = low0, high0 = low0, high1 = low0;

#define STEP(k, half)                                                                              \
    x = load_pair(values, dtype, i + 2 * (k));                                                     \
    sum##k += x;                                                                                   \
    low##half = pair_min(x, low##half);                                                            \
    high##half = pair_max(x, high##half)
    for (size_t i = 0; i < n; i += LANES) {
        STEP(0, 0);
        STEP(1, 1);
        STEP(2, 0);
        STEP(3, 1);
    }
#undef STEP
    const pair sums[] = {sum0, sum1, sum2, sum3};
    memcpy(out->sum, sums, sizeof(sums));
    low0 = pair_min(low0, low1);
    high0 = pair_max(high0, high1);
    out->min = low0[0] < low0[1] ? low0[0] : low0[1];
    out->max = high0[0] > high0[1] ? high0[0] : high0[1];
}

INLINE void second_pass(const void *values, enum stk_dtype dtype, size_t n, double mean,
                        struct lanes *out)
{
    pair first0 = {0, 0}, first1 = first0, first2 = first0, first3 = first0;
    pair second0 = first0, second1 = first0, second2 = first0, second3 = first0;
    pair from, square, center = {mean, mean};

#define STEP(k)                                                                                    \
    from = load_pair(values, dtype, i + 2 * (k)) - center;                                         \
    square = from * from;                                                                          \
    first##k += from;                                                                              \
    second##k += square
    for (size_t i = 0; i < n; i += LANES) {
        STEP(0);
        STEP(1);
        STEP(2);
        STEP(3);
    }
#undef STEP
    const pair firsts[] = {first0, first1, first2, first3};
    const pair seconds[] = {second0, second1, second2, second3};
    memcpy(out->first, firsts, sizeof(firsts));
    memcpy(out->second, seconds, sizeof(seconds));
}

/* The passes of one dtype, as functions. */
#define PASSES(name, dtype, attribute, first_body, second_body)                                    \
    attribute static void name##_first(const void *values, size_t n, struct lanes *out)            \
    {                                                                                              \
        first_body(values, dtype, n, out);                                                         \
    }                                                                                              \
    attribute static void name##_second(const void *values, size_t n, double mean,                 \
                                        struct lanes *out)                                         \
    {                                                                                              \
        second_body(values, dtype, n, mean, out);                                                  \
    }

PASSES(f32, STK_F32, , first_pass, second_pass)
PASSES(f64, STK_F64, , first_pass, second_pass)
static const struct passes narrow[] = {{f32_first, f32_second}, {f64_first, f64_second}};

#if defined(__x86_64__)

#include <immintrin.h>

#define WIDE __attribute__((target("avx2")))
#define WIDE_INLINE WIDE INLINE

WIDE_INLINE __m256d load_four(const void *values, enum stk_dtype dtype, size_t i)
{
    return dtype == STK_F32 ? _mm256_cvtps_pd(_mm_loadu_ps((const float *)values + i))
                            : _mm256_loadu_pd((const double *)values + i);
}

WIDE_INLINE void wide_first_pass(const void *values, enum stk_dtype dtype, size_t n,
                                 struct lanes *out)
{
    __m256d sum0 = _mm256_setzero_pd(), sum1 = sum0;
    __m256d low0 = _mm256_set1_pd(out->min), low1 = low0, high0 = low0, high1 = low0;
    double low[4], high[4];

    for (size_t i = 0; i < n; i += LANES) {
        __m256d x = load_four(values, dtype, i), y = load_four(values, dtype, i + 4);
        sum0 = _mm256_add_pd(sum0, x);
        sum1 = _mm256_add_pd(sum1, y);
        low0 = _mm256_min_pd(x, low0);
        low1 = _mm256_min_pd(y, low1);
        high0 = _mm256_max_pd(x, high0);
        high1 = _mm256_max_pd(y, high1);
    }
    _mm256_storeu_pd(out->sum, sum0);
    _mm256_storeu_pd(out->sum + 4, sum1);
    _mm256_storeu_pd(low, _mm256_min_pd(low0, low1));
    _mm256_storeu_pd(high, _mm256_max_pd(high0, high1));
    out->max = out->min;
    for (int i = 0; i < 4; i++) {
        out->min = low[i] < out->min ? low[i] : out->min;
        out->max = high[i] > out->max ? high[i] : out->max;
    }
}

WIDE_INLINE void wide_second_pass(const void *values, enum stk_dtype dtype, size_t n, double mean,
                                  struct lanes *out)
{
    __m256d first0 = _mm256_setzero_pd(), first1 = first0, second0 = first0, second1 = first0;
    __m256d center = _mm256_set1_pd(mean);

    for (size_t i = 0; i < n; i += LANES) {
        __m256d x = _mm256_sub_pd(load_four(values, dtype, i), center);
        __m256d y = _mm256_sub_pd(load_four(values, dtype, i + 4), center);
        first0 = _mm256_add_pd(first0, x);
        first1 = _mm256_add_pd(first1, y);
        __m256d x_square = _mm256_mul_pd(x, x), y_square = _mm256_mul_pd(y, y);
        second0 = _mm256_add_pd(second0, x_square);
        second1 = _mm256_add_pd(second1, y_square);
    }
    _mm256_storeu_pd(out->first, first0);
    _mm256_storeu_pd(out->first + 4, first1);
    _mm256_storeu_pd(out->second, second0);
    _mm256_storeu_pd(out->second + 4, second1);
}

PASSES(wide_f32, STK_F32, WIDE, wide_first_pass, wide_second_pass)
PASSES(wide_f64, STK_F64, WIDE, wide_first_pass, wide_second_pass)
static const struct passes wide[] = {{wide_f32_first, wide_f32_second},
                                     {wide_f64_first, wide_f64_second}};

static const struct passes *passes_of(enum stk_dtype dtype)
{
    return (__builtin_cpu_supports("avx2") ? wide : narrow) + (dtype == STK_F64);
}

#else

static const struct passes *passes_of(enum stk_dtype dtype)
{
    return narrow + (dtype == STK_F64);
}

#endif

/* --- blocks ---------------------------------------------------------------------------------- */

static double lanes_sum(const double lane[LANES])
{
    double even = (lane[0] + lane[2]) + (lane[4] + lane[6]);
    double odd = (lane[1] + lane[3]) + (lane[5] + lane[7]);

    return even + odd;
}

/* A block's values, and how they are read. */
struct block {
    const void *values;
    enum stk_dtype dtype;
    size_t n, whole; /* whole: in rounds of lanes; the rest is added one by one */
    const struct passes *passes;
};

/* The sum; out->min and max. With a NaN among the values only the sum is right: NaN. */
static double block_sum(const struct block *block, struct lanes *out)
{
    out->min = out->max = load_one(block->values, block->dtype, 0);
    memset(out->sum, 0, sizeof(out->sum));
    if (block->whole)
        block->passes->first(block->values, block->whole, out);
    double sum = lanes_sum(out->sum);
    for (size_t i = block->whole; i < block->n; i++) {
        double one = load_one(block->values, block->dtype, i);
        sum += one;
        out->min = one < out->min ? one : out->min;
        out->max = one > out->max ? one : out->max;
    }
    return sum;
}

/* The sum of the squares of distances from a mean; *first: that of the distances. */
static double block_squares(const struct block *block, double mean, double *first,
                            struct lanes *lanes)
{
    block->passes->second(block->values, block->whole, mean, lanes);
    double second = lanes_sum(lanes->second);
    *first = lanes_sum(lanes->first);
    for (size_t i = block->whole; i < block->n; i++) {
        double distance = load_one(block->values, block->dtype, i) - mean;
        double square = distance * distance;
        *first += distance;
        second += square;
    }
    return second;
}

/* mean + rest += shift. What the sum rounds away is found by taking it apart again (Knuth's
 * TwoSum): at a mean of 1e9 it is what a variance of 1 hangs on when blocks are joined. */
static void move_mean(struct moments *moments, double shift)
{
    double add = shift + moments->rest, mean = moments->mean;
    double sum = mean + add;
    double added = sum - mean;

    moments->rest = (mean - (sum - added)) + (add - added);
    moments->mean = sum;
}

/* Returns 0 when there is a NaN (or Inf of both signs): nothing was added. */
static int add_block(struct moments *moments, const void *values, enum stk_dtype dtype, size_t n)
{
    struct block block = {values, dtype, n, n / LANES * LANES, passes_of(dtype)};
    struct moments seen = {.count = n};
    struct lanes lanes;
    double sum = block_sum(&block, &lanes);

    if (sum != sum)
        return 0;
    seen.min = lanes.min + 0.0; /* -0 becomes 0: which of the two is smaller hangs on the order */
    seen.max = lanes.max + 0.0;
    seen.mean = seen.min;
    if (lanes.min < lanes.max) {
        double mean = sum / (double)n, first;
        double second = block_squares(&block, mean, &first, &lanes);
        /* What rounding took from the mean comes back from the distances, which should sum to 0. */
        double shift = first / (double)n;
        double lost = shift * first;
        seen.mean = mean;
        move_mean(&seen, shift);
        seen.m2 = second - lost;
        if (seen.m2 < 0)
            seen.m2 = 0;
    }
    moments_merge(moments, &seen);
    return 1;
}

/* A block with NaN in it: what is left without them is added. */
static void add_observed(struct moments *moments, const void *values, enum stk_dtype dtype,
                         size_t n)
{
    double observed[MOMENTS_BLOCK];
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        observed[count] = load_one(values, dtype, i);
        count += observed[count] == observed[count];
    }
    if (count == 0 || add_block(moments, observed, STK_F64, count))
        return;
    /* Inf of both signs: there is no mean, and the caller is to see it. */
    struct moments nowhere = {.count = count, .min = observed[0], .max = observed[0]};
    for (size_t i = 0; i < count; i++)
        nowhere.mean += observed[i];
    moments_merge(moments, &nowhere);
}

void moments_add(struct moments *moments, const void *values, enum stk_dtype dtype, size_t n)
{
    assert(n <= MOMENTS_BLOCK && (dtype == STK_F32 || dtype == STK_F64));
    if (n == 0)
        return;
    if (!add_block(moments, values, dtype, n))
        add_observed(moments, values, dtype, n);
}

void moments_merge(struct moments *into, const struct moments *from)
{
    if (from->count == 0)
        return;
    if (into->count == 0) {
        *into = *from;
        return;
    }
    double a = (double)into->count, b = (double)from->count;
    double share = b / (a + b);
    double apart = (from->mean - into->mean) + (from->rest - into->rest);
    double shift = apart * share;
    double between = shift * apart;
    between *= a;
    move_mean(into, shift);
    into->m2 += from->m2;
    into->m2 += between;
    into->min = from->min < into->min ? from->min : into->min;
    into->max = from->max > into->max ? from->max : into->max;
    into->count += from->count;
}
