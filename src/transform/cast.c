#include "transform/cast.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

#define BLOCK 512 /* elements that are in between: doubles in the first cache */

int cast_is_float(enum stk_dtype dtype)
{
    return dtype == STK_F16 || dtype == STK_BF16 || dtype == STK_F32 || dtype == STK_F64;
}

int cast_is_complex(enum stk_dtype dtype)
{
    return dtype == STK_C64 || dtype == STK_C128;
}

/* Bits of a value without its sign. */
static int value_bits(enum stk_dtype dtype)
{
    int is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;
    return dtype == STK_BOOL ? 1 : (int)stk_dtype_size(dtype) * 8 - is_signed;
}

static double largest(enum stk_dtype dtype)
{
    return ldexp(1, value_bits(dtype)) - 1;
}

/* --- in ----------------------------------------------------------------------------------------
 */

#define EACH(type, expression)                                                                     \
    for (uint64_t i = 0; i < count; i++) {                                                         \
        const type value = ((const type *)from)[i];                                                \
        to[i] = expression;                                                                        \
    }                                                                                              \
    break;

static void load_doubles(enum stk_dtype dtype, const void *from, uint64_t count, double *to)
{
    switch (dtype) {
    case STK_BOOL:
    case STK_U8:
        EACH(uint8_t, value)
    case STK_I8:
        EACH(int8_t, value)
    case STK_U16:
        EACH(uint16_t, value)
    case STK_I16:
        EACH(int16_t, value)
    case STK_U32:
        EACH(uint32_t, value)
    case STK_I32:
        EACH(int32_t, value)
    case STK_U64:
        EACH(uint64_t, (double)value)
    case STK_I64:
        EACH(int64_t, (double)value)
    case STK_F16:
        EACH(uint16_t, (double)half_to_float(value))
    case STK_BF16:
        EACH(uint16_t, (double)bfloat_to_float(value))
    case STK_F32:
        EACH(float, (double)value)
    default:
        EACH(double, value)
    }
}

static void load_wholes(enum stk_dtype dtype, const void *from, uint64_t count, int64_t *to)
{
    switch (dtype) {
    case STK_BOOL:
    case STK_U8:
        EACH(uint8_t, value)
    case STK_I8:
        EACH(int8_t, value)
    case STK_U16:
        EACH(uint16_t, value)
    case STK_I16:
        EACH(int16_t, value)
    case STK_U32:
        EACH(uint32_t, value)
    case STK_I32:
        EACH(int32_t, value)
    case STK_U64:
        EACH(uint64_t, value > INT64_MAX ? INT64_MAX : (int64_t)value)
    default:
        EACH(int64_t, value)
    }
}
#undef EACH

/* --- out ---------------------------------------------------------------------------------------
 */

#define EACH(type, expression)                                                                     \
    for (uint64_t i = 0; i < count; i++)                                                           \
        ((type *)to)[i] = (type)(expression);                                                      \
    break;
/* from[i] is whole or not a number. The ends as doubles: 2^63 is not an int64, so >= saturates. */
#define SATURATED(least, most)                                                                     \
    (from[i] >= (double)(most)    ? (most)                                                         \
     : from[i] <= (double)(least) ? (least)                                                        \
     : from[i] == from[i]         ? from[i]                                                        \
                                  : 0)

static void store_doubles(enum stk_dtype dtype, const double *from, uint64_t count, void *to)
{
    switch (dtype) {
    case STK_BOOL:
        EACH(uint8_t, from[i] != 0)
    case STK_U8:
        EACH(uint8_t, SATURATED(0, UINT8_MAX))
    case STK_I8:
        EACH(int8_t, SATURATED(INT8_MIN, INT8_MAX))
    case STK_U16:
        EACH(uint16_t, SATURATED(0, UINT16_MAX))
    case STK_I16:
        EACH(int16_t, SATURATED(INT16_MIN, INT16_MAX))
    case STK_U32:
        EACH(uint32_t, SATURATED(0, UINT32_MAX))
    case STK_I32:
        EACH(int32_t, SATURATED(INT32_MIN, INT32_MAX))
    case STK_U64:
        for (uint64_t i = 0; i < count; i++)
            ((uint64_t *)to)[i] = from[i] >= 0x1p64 ? UINT64_MAX
                                  : from[i] > 0     ? (uint64_t)from[i]
                                                    : 0;
        break;
    case STK_I64:
        for (uint64_t i = 0; i < count; i++)
            ((int64_t *)to)[i] = from[i] >= 0x1p63    ? INT64_MAX
                                 : from[i] <= -0x1p63 ? INT64_MIN
                                 : from[i] == from[i] ? (int64_t)from[i]
                                                      : 0;
        break;
    case STK_F16:
        EACH(uint16_t, half_of_float((float)from[i]))
    case STK_BF16:
        EACH(uint16_t, bfloat_of_float((float)from[i]))
    case STK_F32:
        EACH(float, from[i])
    default:
        EACH(double, from[i])
    }
}
#undef SATURATED
#define SATURATED(least, most) (from[i] > (most) ? (most) : from[i] < (least) ? (least) : from[i])

static void store_wholes(enum stk_dtype dtype, const int64_t *from, uint64_t count, void *to)
{
    switch (dtype) {
    case STK_BOOL:
        EACH(uint8_t, from[i] != 0)
    case STK_U8:
        EACH(uint8_t, SATURATED(0, UINT8_MAX))
    case STK_I8:
        EACH(int8_t, SATURATED(INT8_MIN, INT8_MAX))
    case STK_U16:
        EACH(uint16_t, SATURATED(0, UINT16_MAX))
    case STK_I16:
        EACH(int16_t, SATURATED(INT16_MIN, INT16_MAX))
    case STK_U32:
        EACH(uint32_t, SATURATED(0, (int64_t)UINT32_MAX))
    case STK_I32:
        EACH(int32_t, SATURATED(INT32_MIN, INT32_MAX))
    case STK_U64:
        EACH(uint64_t, from[i] < 0 ? 0 : from[i])
    default:
        EACH(int64_t, from[i])
    }
}
#undef SATURATED
#undef EACH

/* --- between -----------------------------------------------------------------------------------
 */

static void wholes_shift(int64_t *values, uint64_t count, int left)
{
    for (uint64_t i = 0; i < count; i++)
        values[i] = left >= 0 ? (int64_t)((uint64_t)values[i] << left) : values[i] >> -left;
}

/* A float on its way to a whole number. Each whole number gets the same share of 0-1: 1 itself
 * would be one too many, so the range ends a little before it. */
static void doubles_whole(double *values, uint64_t count, enum stk_dtype to, enum cast_scale scale)
{
    double share = largest(to) + 1.0 - 1e-3;
    for (uint64_t i = 0; i < count; i++)
        values[i] = scale == CAST_RANGE ? trunc(values[i] * share) : rint(values[i]);
}

static void cast_block(const void *from, enum stk_dtype from_dtype, void *to,
                       enum stk_dtype to_dtype, enum cast_scale scale, uint64_t count)
{
    int to_float = cast_is_float(to_dtype), from_float = cast_is_float(from_dtype);
    if (!from_float && !to_float) {
        int64_t values[BLOCK];
        load_wholes(from_dtype, from, count, values);
        if (scale == CAST_RANGE)
            wholes_shift(values, count, value_bits(to_dtype) - value_bits(from_dtype));
        store_wholes(to_dtype, values, count, to);
        return;
    }
    double values[BLOCK];
    load_doubles(from_dtype, from, count, values);
    if (!to_float)
        doubles_whole(values, count, to_dtype, scale);
    else if (!from_float && scale == CAST_RANGE)
        for (uint64_t i = 0; i < count; i++)
            values[i] /= largest(from_dtype);
    store_doubles(to_dtype, values, count, to);
}

void cast_elements(const void *from, enum stk_dtype from_dtype, void *to, enum stk_dtype to_dtype,
                   enum cast_scale scale, uint64_t count)
{
    uint64_t from_size = stk_dtype_size(from_dtype), to_size = stk_dtype_size(to_dtype);
    if (from_dtype == to_dtype) {
        memcpy(to, from, count * to_size);
        return;
    }
    for (uint64_t at = 0; at < count; at += BLOCK) {
        uint64_t len = count - at < BLOCK ? count - at : BLOCK;
        cast_block((const uint8_t *)from + at * from_size, from_dtype, (uint8_t *)to + at * to_size,
                   to_dtype, scale, len);
    }
}
