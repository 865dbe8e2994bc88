#include "pack/element_table.h"

#include <string.h>

/* mantissa >> shift, rounded to nearest, ties to even. */
static uint32_t shift_round(uint32_t mantissa, uint32_t shift)
{
    uint32_t kept = mantissa >> shift;
    uint32_t rest = mantissa & ((1u << shift) - 1);
    uint32_t half = 1u << (shift - 1);

    return kept + (rest > half || (rest == half && (kept & 1)));
}

uint16_t element_half(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    uint32_t sign = bits >> 16 & 0x8000;
    int32_t exponent = (int32_t)(bits >> 23 & 0xFF) - 127 + 15;
    uint32_t mantissa = bits & 0x7FFFFF;

    if (exponent == 255 - 127 + 15) /* infinite, or not a number */
        return (uint16_t)(sign | 0x7C00 | (mantissa ? 0x200 : 0));
    if (exponent < -10)
        return (uint16_t)sign;
    if (exponent <= 0) /* subnormal; a carry makes it the smallest normal one, as it should */
        return (uint16_t)(sign | shift_round(mantissa | 0x800000, (uint32_t)(14 - exponent)));
    if (exponent >= 31)
        return (uint16_t)(sign | 0x7C00);
    /* a carry out of the mantissa goes into the exponent, up to infinity */
    return (uint16_t)(sign | shift_round((uint32_t)exponent << 23 | mantissa, 13));
}

uint16_t element_bfloat(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    if ((bits & 0x7FFFFFFF) > 0x7F800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)shift_round(bits, 16);
}

/* v in [-LIMIT, LIMIT] -> [0, 2 * LIMIT] -> [0, 2^bits - 1]; signed types are moved down by half.
 */
static uint64_t scale_integer(int32_t v, uint32_t bits, int is_signed)
{
    uint64_t top = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
    __extension__ typedef unsigned __int128 wide;
    uint64_t scaled = (uint64_t)((wide)(uint32_t)(v + ELEMENT_LIMIT) * top / (2 * ELEMENT_LIMIT));

    return is_signed ? scaled - (top / 2 + 1) : scaled;
}

static void put_element(uint8_t *to, enum stk_dtype dtype, int32_t v)
{
    double real = (double)v / ELEMENT_ONE;
    float single = (float)real;
    uint16_t half = dtype == STK_F16 ? element_half(single) : element_bfloat(single);
    size_t size = stk_dtype_size(dtype);
    int is_signed = dtype == STK_I8 || dtype == STK_I16 || dtype == STK_I32 || dtype == STK_I64;
    uint64_t integer = scale_integer(v, (uint32_t)(8 * (size > 8 ? 8 : size)), is_signed);

    memset(to, 0, size); /* the imaginary part */
    if (dtype == STK_BOOL)
        to[0] = v > 0;
    else if (dtype == STK_F16 || dtype == STK_BF16)
        memcpy(to, &half, sizeof(half));
    else if (dtype == STK_F32 || dtype == STK_C64)
        memcpy(to, &single, sizeof(single));
    else if (dtype == STK_F64 || dtype == STK_C128)
        memcpy(to, &real, sizeof(real));
    else
        for (size_t i = 0; i < size; i++) /* little-endian, as both machines are */
            to[i] = (uint8_t)(integer >> (8 * i));
}

void element_table_fill(void *table, enum stk_dtype dtype)
{
    uint8_t *to = table;

    for (int32_t v = -ELEMENT_LIMIT; v <= ELEMENT_LIMIT; v++, to += stk_dtype_size(dtype))
        put_element(to, dtype, v);
}

/* One loop a size, so that each is a plain load and store. */
#define MAP(type)                                                                                  \
    for (uint32_t i = 0; i < count; i++)                                                           \
    ((type *)to)[i] = ((const type *)table)[values[i] + ELEMENT_LIMIT]

struct pair {
    uint64_t lo, hi;
};

void element_table_map(const void *table, enum stk_dtype dtype, const int16_t *values, void *to,
                       uint32_t count)
{
    switch (stk_dtype_size(dtype)) {
    case 1:
        MAP(uint8_t);
        break;
    case 2:
        MAP(uint16_t);
        break;
    case 4:
        MAP(uint32_t);
        break;
    case 8:
        MAP(uint64_t);
        break;
    default:
        MAP(struct pair);
        break;
    }
}
