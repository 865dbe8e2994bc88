/* checked.h -- sums and products of numbers from outside.
 * Owns: nothing.   Threads: any.   Errors: 0 when it does not fit (then *out is untouched).
 * Not here: parsing (parse.h). */
#ifndef BASE_CHECKED_H
#define BASE_CHECKED_H

#include <stdint.h>

static inline int checked_add(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return 0;
    *out = sum;
    return 1;
}

static inline int checked_mul(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return 0;
    *out = product;
    return 1;
}

/* offset + length <= size, without overflow. */
static inline int checked_inside(uint64_t offset, uint64_t length, uint64_t size)
{
    return offset <= size && length <= size - offset;
}

#endif
