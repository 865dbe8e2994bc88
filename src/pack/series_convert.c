#include "pack/series_convert.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define CHUNK 256u /* elements that are float64 at a time: they stay in the first cache */
#define LANES 4u   /* of a vector; compilers cut it to what the machine has */

/* Vectors are spelled out: at -O2 GCC makes none of the plain loops, which halves the speed. */
typedef double wide __attribute__((vector_size(LANES * 8)));
typedef int64_t wide_bits __attribute__((vector_size(LANES * 8)));
typedef float narrow __attribute__((vector_size(LANES * 4)));
typedef uint32_t narrow_bits __attribute__((vector_size(LANES * 4)));
typedef int32_t narrow_mask __attribute__((vector_size(LANES * 4)));

/* --- tables ---------------------------------------------------------------------------------- */

/* Multiplying by it is twice as fast as dividing, and as good to the last bit of a float64. Below
 * 2^-1022 there is none; such a column is as good as constant. */
static double inverse_of(double scale)
{
    return fabs(scale) < DBL_MIN ? 1 : 1 / scale;
}

stk_status series_convert_init(struct series_convert *convert, uint32_t columns,
                               const struct scaler *scaler, const double *fill,
                               struct stk_error *err)
{
    uint32_t rows = columns < CHUNK ? LANES * (CHUNK / columns + 1) : 1;
    uint32_t length = rows * columns;

    convert->columns = columns;
    convert->length = length;
    if (scaler) { /* loops go on to a multiple of LANES */
        convert->center = memory_zero(length + LANES, sizeof(double));
        convert->inverse = memory_zero(length + LANES, sizeof(double));
    }
    if (fill)
        convert->fill = memory_zero(length + LANES, sizeof(double));
    if ((scaler && (!convert->center || !convert->inverse)) || (fill && !convert->fill))
        return fail_memory(err, 3 * length * sizeof(double));
    for (uint32_t i = 0; i < length; i++) {
        if (scaler) {
            convert->center[i] = scaler->columns[i % columns].center;
            convert->inverse[i] = inverse_of(scaler->columns[i % columns].scale);
        }
        if (fill)
            convert->fill[i] = fill[i % columns];
    }
    return STK_OK;
}

void series_convert_reset(struct series_convert *convert)
{
    memory_free(convert->center);
    memory_free(convert->inverse);
    memory_free(convert->fill);
    convert->center = convert->inverse = convert->fill = NULL;
}

/* --- steps over a chunk: the length is rounded up to LANES, chunks have the room ----------------
 */

static void load_f32(const float *in, uint32_t n, double *out)
{
    for (uint32_t i = 0; i < n; i += LANES) {
        narrow raw;
        memcpy(&raw, in + i, sizeof(raw));
        wide value = __builtin_convertvector(raw, wide);
        memcpy(out + i, &value, sizeof(value));
    }
}

static void fill_missing(double *values, uint32_t n, const double *fill)
{
    for (uint32_t i = 0; i < n; i += LANES) {
        wide_bits value, other;
        wide number;
        memcpy(&value, values + i, sizeof(value));
        memcpy(&number, values + i, sizeof(number));
        memcpy(&other, fill + i, sizeof(other));
        wide_bits seen = number == number; /* all ones but for NaN */
        value = (value & seen) | (other & ~seen);
        memcpy(values + i, &value, sizeof(value));
    }
}

static void scale_values(double *values, uint32_t n, const double *center, const double *inverse)
{
    for (uint32_t i = 0; i < n; i += LANES) {
        wide value, from, by;
        memcpy(&value, values + i, sizeof(value));
        memcpy(&from, center + i, sizeof(from));
        memcpy(&by, inverse + i, sizeof(by));
        value = (value - from) * by;
        memcpy(values + i, &value, sizeof(value));
    }
}

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static void store_f32(const double *values, uint32_t n, float *out)
{
    for (uint32_t i = 0; i < n; i += LANES) {
        wide value;
        memcpy(&value, values + i, sizeof(value));
        narrow rounded = __builtin_convertvector(value, narrow);
        memcpy(out + i, &rounded, sizeof(rounded));
    }
}

/* float32 rounded to odd: when the value is not exact, the one of its two neighbours whose last bit
 * is 1. Rounding that to a type with at least two bits less gives what rounding once would have. */
static inline void load_odd(const double *values, narrow_bits *out)
{
    wide value, back, outside;

    memcpy(&value, values, sizeof(value));
    narrow near = __builtin_convertvector(value, narrow);
    back = __builtin_convertvector(near, wide);
    outside = (back - value) * value; /* above 0: the rounding went away from 0 */
    narrow_mask is_outside = __builtin_convertvector(outside > 0, narrow_mask);
    narrow_mask inexact = __builtin_convertvector(back != value, narrow_mask);
    memcpy(out, &near, sizeof(near));
    *out = (*out + (narrow_bits)is_outside) | ((narrow_bits)inexact & 1);
}

static void store_16(narrow_bits bits, uint16_t *out)
{
    for (uint32_t k = 0; k < LANES; k++)
        out[k] = (uint16_t)bits[k];
}

static void store_bf16(const double *values, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += LANES) {
        narrow_bits bits;
        load_odd(values + i, &bits);
        store_16((bits + 0x7fff + (bits >> 16 & 1)) >> 16, out + i);
    }
}

static void store_f16(const double *values, uint32_t n, uint16_t *out)
{
    for (uint32_t i = 0; i < n; i += LANES) {
        narrow_bits bits, small_bits;
        narrow small;
        load_odd(values + i, &bits);
        narrow_bits sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
        /* From 2^-14 on: other bias of the exponent, 13 bits less, to the nearest even. */
        narrow_bits normal = (size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13;
        /* Below: 0.5 has an ulp of 2^-24, which is that of the small halves; the sum rounds. */
        memcpy(&small, &size, sizeof(small));
        small += 0.5f;
        memcpy(&small_bits, &small, sizeof(small));
        small_bits -= 0x3f000000; /* the bits of 0.5 */
        narrow_bits is_small = (narrow_bits)(size < 0x38800000);
        narrow_bits is_large = (narrow_bits)(size >= 0x47800000);
        narrow_bits half =
            (small_bits & is_small) | (normal & ~is_small & ~is_large) | (is_large & 0x7c00);
        store_16(sign | half, out + i);
    }
}

/* --- what did not fit ------------------------------------------------------------------------ */

/* Not 0 when one of them has an exponent of all ones. */
static int has_wild_f32(const float *values, uint32_t n)
{
    narrow_bits any = {0};
    uint32_t i = 0, sum = 0;

    for (; i + LANES <= n; i += LANES) {
        narrow_bits bits;
        memcpy(&bits, values + i, sizeof(bits));
        any |= (bits & 0x7fffffff) + 0x00800000;
    }
    for (; i < n; i++)
        sum |= (float_bits(values[i]) & 0x7fffffff) + 0x00800000;
    for (uint32_t k = 0; k < LANES; k++)
        sum |= any[k];
    return sum >> 31;
}

static int has_wild_16(const uint16_t *values, uint32_t n, uint16_t exponent)
{
    uint32_t any = 0;

    for (uint32_t i = 0; i < n; i++)
        any |= (values[i] & exponent) == exponent;
    return (int)any;
}

static int is_wild(const void *out, enum stk_dtype dtype, uint32_t at)
{
    if (dtype == STK_F32)
        return has_wild_f32((const float *)out + at, 1);
    return has_wild_16((const uint16_t *)out + at, 1, dtype == STK_F16 ? 0x7c00 : 0x7f80);
}

/* Returns n, or the first that is not finite. */
static uint32_t chunk_check(const void *out, enum stk_dtype dtype, uint32_t n)
{
    int wild = dtype == STK_F32   ? has_wild_f32(out, n)
               : dtype == STK_F16 ? has_wild_16(out, n, 0x7c00)
                                  : has_wild_16(out, n, 0x7f80);

    for (uint32_t i = 0; wild && i < n; i++)
        if (is_wild(out, dtype, i))
            return i;
    return n;
}

/* --- all of it ------------------------------------------------------------------------------- */

struct chunk {
    double values[CHUNK];
    union {
        float f32[CHUNK];
        uint16_t b16[CHUNK];
    } in, out;
};

static void chunk_load(struct chunk *chunk, enum stk_dtype from, const void *in, uint32_t n)
{
    if (from == STK_F64) {
        memcpy(chunk->values, in, n * sizeof(double));
    } else if (n % LANES == 0) {
        load_f32(in, n, chunk->values);
    } else {
        memcpy(chunk->in.f32, in, n * sizeof(float));
        load_f32(chunk->in.f32, n, chunk->values);
    }
}

static void chunk_store(struct chunk *chunk, enum stk_dtype to, void *out, uint32_t n)
{
    void *place = n % LANES == 0 ? out : &chunk->out;

    if (to == STK_F32)
        store_f32(chunk->values, n, place);
    else if (to == STK_F16)
        store_f16(chunk->values, n, place);
    else
        store_bf16(chunk->values, n, place);
    if (place != out)
        memcpy(out, place, n * stk_dtype_size(to));
}

uint64_t series_convert_run(const struct series_convert *convert, uint64_t first, uint64_t n,
                            const void *in, void *out, double *value)
{
    size_t in_size = stk_dtype_size(convert->from), out_size = stk_dtype_size(convert->to);
    uint32_t at = (uint32_t)(first % convert->length);
    struct chunk chunk = {.values = {0}};

    for (uint64_t done = 0; done < n;) {
        uint32_t part = convert->length - at < CHUNK ? convert->length - at : CHUNK;
        part = n - done < part ? (uint32_t)(n - done) : part;
        void *to = (uint8_t *)out + done * out_size;
        chunk_load(&chunk, convert->from, (const uint8_t *)in + done * in_size, part);
        if (convert->fill)
            fill_missing(chunk.values, part, convert->fill + at);
        if (convert->center)
            scale_values(chunk.values, part, convert->center + at, convert->inverse + at);
        chunk_store(&chunk, convert->to, to, part);
        uint32_t good = chunk_check(to, convert->to, part);
        if (good < part) {
            *value = chunk.values[good];
            return done + good;
        }
        done += part;
        at = at + part == convert->length ? 0 : at + part;
    }
    return n;
}

static float half_back(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, size = half & 0x7fff;
    float value = size >= 0x7c00   ? bits_float(0x7f800000 | (size & 0x3ff) << 13)
                  : size >= 0x0400 ? bits_float((size << 13) + 0x38000000)
                                   : (float)size * 0x1p-24f;

    return bits_float(float_bits(value) | sign);
}

void series_convert_back(const void *in, enum stk_dtype dtype, uint64_t n, float *out)
{
    const uint16_t *from = in;

    if (dtype == STK_F32) {
        memcpy(out, in, n * sizeof(*out));
        return;
    }
    assert(dtype == STK_F16 || dtype == STK_BF16);
    for (uint64_t i = 0; i < n; i++)
        out[i] = dtype == STK_F16 ? half_back(from[i]) : bits_float((uint32_t)from[i] << 16);
}
