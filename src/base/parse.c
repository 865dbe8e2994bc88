#include "base/parse.h"

#include <string.h>

int parse_u64(const char *text, size_t len, uint64_t *out)
{
    uint64_t value = 0;
    if (!len)
        return 0;
    for (size_t i = 0; i < len; i++) {
        unsigned digit = (unsigned)text[i] - '0';
        if (digit > 9 || __builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return 0;
    }
    *out = value;
    return 1;
}

int parse_i64(const char *text, size_t len, int64_t *out)
{
    uint64_t value;
    int negative = len && text[0] == '-';
    size_t sign = len && (text[0] == '-' || text[0] == '+');
    if (!parse_u64(text + sign, len - sign, &value))
        return 0;
    if (value > (uint64_t)INT64_MAX + (uint64_t)negative)
        return 0;
    /* 0 - value in unsigned arithmetic: -2^63 has no positive twin. */
    *out = (int64_t)(negative ? 0 - value : value);
    return 1;
}

/* "", "B", "k", "kB", "ki", "kiB" ... in any case; 0 when it is none of them. */
static uint64_t size_unit(const char *text, size_t len)
{
    static const char prefixes[] = "kmgtpe";
    if (!len || (len == 1 && (text[0] | 32) == 'b'))
        return 1;
    const char *found = memchr(prefixes, text[0] | 32, sizeof prefixes - 1);
    if (!found)
        return 0;
    int binary = len > 1 && (text[1] | 32) == 'i';
    size_t used = 1 + (size_t)binary;
    int bytes = len > used && (text[used] | 32) == 'b';
    if (used + (size_t)bytes != len)
        return 0;
    uint64_t unit = 1, step = bytes && !binary ? 1000 : 1024;
    for (const char *at = prefixes; at <= found; at++)
        unit *= step;
    return unit;
}

static size_t digits_at(const char *text, size_t len)
{
    size_t count = 0;
    while (count < len && text[count] >= '0' && text[count] <= '9')
        count++;
    return count;
}

int parse_size(const char *text, size_t len, uint64_t *out)
{
    uint64_t whole, fraction = 0, scale = 1;
    size_t used = digits_at(text, len);
    if (!parse_u64(text, used, &whole))
        return 0;
    if (used < len && text[used] == '.') {
        size_t digits = digits_at(text + used + 1, len - used - 1);
        if (digits > 18 || !parse_u64(text + used + 1, digits, &fraction))
            return 0;
        for (size_t i = 0; i < digits; i++)
            scale *= 10;
        used += 1 + digits;
    }
    uint64_t unit = size_unit(text + used, len - used);
    if (!unit || (unit == 1 && fraction))
        return 0;
    unsigned __int128 value = (unsigned __int128)whole * unit;
    value += (unsigned __int128)fraction * unit / scale;
    if (value > UINT64_MAX)
        return 0;
    *out = (uint64_t)value;
    return 1;
}

/* Up to 19 digits and a power of ten in 80 bits: exact for what people write (0.485), and within
 * one unit of the last place for anything longer. */
int parse_double(const char *text, size_t len, double *out)
{
    size_t at = len && (text[0] == '-' || text[0] == '+'), seen = 0;
    uint64_t digits = 0;
    int64_t exponent = 0, written = 0;
    for (int point = 0; at < len; at++) {
        unsigned digit = (unsigned)text[at] - '0';
        if (text[at] == '.' && !point) {
            point = 1;
            continue;
        }
        if (digit > 9)
            break;
        seen++;
        if (digits < UINT64_MAX / 10 - 1)
            digits = digits * 10 + digit;
        else
            exponent++;
        exponent -= point;
    }
    if (!seen)
        return 0;
    if (at < len && (text[at] | 32) == 'e') {
        if (!parse_i64(text + at + 1, len - at - 1, &written) || written > 400 || written < -400)
            return 0;
        at = len;
    }
    long double value = (long double)digits;
    for (exponent += written; exponent > 0 && exponent < 800; exponent--)
        value *= 10;
    long double divisor = 1;
    for (; exponent < 0 && exponent > -800; exponent++)
        divisor *= 10;
    double result = (double)(value / divisor);
    if (at != len || !(result <= 1.7976931348623157e308))
        return 0;
    *out = text[0] == '-' ? -result : result;
    return 1;
}
