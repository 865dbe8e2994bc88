/* half.h -- float16 and bfloat16 to float32 and back, one value at a time.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: vectors (who needs them has them). */
#ifndef BASE_HALF_H
#define BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest >= 0x7c00) /* infinity; or not a number, made a quiet one */
        return float_of_bits(sign | 0x7f800000 | (rest & 0x3ff) << 13 |
                             (uint32_t)(rest > 0x7c00) << 22);
    if (rest >= 0x400)
        return float_of_bits(sign | ((rest << 13) + (112u << 23)));
    return float_of_bits(sign | bits_of_float((float)rest * 0x1p-24f)); /* subnormal: exact */
}

/* To nearest, ties to even. */
static inline uint16_t half_of_float(float value)
{
    uint32_t bits = bits_of_float(value), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    if (rest > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (rest >= 0x38800000) { /* 2^-14: a normal half */
        rest -= 112u << 23;
        return (uint16_t)(sign | (rest + 0xfff + (rest >> 13 & 1)) >> 13);
    }
    /* The sum with 0.5 is rounded where a half's last place is. */
    return (uint16_t)(sign | (bits_of_float(float_of_bits(rest) + 0.5f) - 0x3f000000));
}

static inline float bfloat_to_float(uint16_t value)
{
    return float_of_bits((uint32_t)value << 16);
}

/* To nearest, ties to even. */
static inline uint16_t bfloat_of_float(float value)
{
    uint32_t bits = bits_of_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
