#include "pack/rows_pack.h"

#include <string.h>

/* Vectors of 16 bytes: what every x86_64 and aarch64 has, whatever the compiler is told. */
typedef float f32x4 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));

#define TILE                                                                                       \
    16 /* columns: as many streams as are read at once, and a whole line of f32 written            \
        */
#define EXPONENT32 UINT32_C(0x7F800000) /* all ones: NaN or Inf */
#define EXPONENT64 UINT64_C(0x7FF0000000000000)

static inline f32x4 load_f32x4(const void *column, uint32_t row)
{
    f32x4 value;
    memcpy(&value, (const char *)column + row * sizeof(float), sizeof(value));
    return value;
}

/* Four columns of four rows. */
static inline void pack_4x4(float *to, uint32_t stride, const void *const *columns, uint32_t row)
{
    f32x4 a = load_f32x4(columns[0], row);
    f32x4 b = load_f32x4(columns[1], row);
    f32x4 c = load_f32x4(columns[2], row);
    f32x4 d = load_f32x4(columns[3], row);
    f32x4 ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    f32x4 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    f32x4 cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    f32x4 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    f32x4 rows[4] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                     __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                     __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                     __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};

    for (uint32_t i = 0; i < 4; i++)
        memcpy(to + (uint64_t)i * stride, &rows[i], sizeof(rows[i]));
}

static inline void pack_one(char *to, const void *column, uint32_t row, size_t size)
{
    memcpy(to, (const char *)column + row * size, size);
}

/* Columns [first, first + TILE) or what is left of them. */
static void pack_tile_f32(float *to, const void *const *columns, uint32_t first, uint32_t count,
                          uint32_t rows)
{
    uint32_t end = count - first < TILE ? count : first + TILE;
    uint32_t fours = first + (end - first) / 4 * 4;

    for (uint32_t i = 0; i + 4 <= rows; i += 4) {
        float *row = to + (uint64_t)i * count;
        for (uint32_t c = first; c < fours; c += 4)
            pack_4x4(row + c, count, columns + c, i);
        for (uint32_t c = fours; c < end; c++)
            for (uint32_t k = 0; k < 4; k++)
                pack_one((char *)(row + (uint64_t)k * count + c), columns[c], i + k, sizeof(*to));
    }
    for (uint32_t i = rows / 4 * 4; i < rows; i++)
        for (uint32_t c = first; c < end; c++)
            pack_one((char *)(to + (uint64_t)i * count + c), columns[c], i, sizeof(*to));
}

static void pack_tile_f64(double *to, const void *const *columns, uint32_t first, uint32_t count,
                          uint32_t rows)
{
    uint32_t end = count - first < TILE ? count : first + TILE;

    for (uint32_t i = 0; i < rows; i++)
        for (uint32_t c = first; c < end; c++)
            pack_one((char *)(to + (uint64_t)i * count + c), columns[c], i, sizeof(*to));
}

void rows_pack(void *to, const void *const *columns, uint32_t count, uint32_t rows,
               enum stk_dtype dtype)
{
    for (uint32_t first = 0; first < count; first += TILE) {
        if (dtype == STK_F32)
            pack_tile_f32(to, columns, first, count, rows);
        else
            pack_tile_f64(to, columns, first, count, rows);
    }
}

/* Four vectors at a time keep the comparisons of one from waiting for those of another. */
static int finite_f32(const char *values, uint32_t n)
{
    u32x4 found = {0}, part[4];
    uint32_t i = 0;

    for (; i + 16 <= n; i += 16) {
        memcpy(part, values + i * sizeof(float), sizeof(part));
        for (uint32_t k = 0; k < 4; k++)
            found |= (u32x4)((part[k] & EXPONENT32) == EXPONENT32);
    }
    uint32_t any = found[0] | found[1] | found[2] | found[3];
    for (; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, values + i * sizeof(float), sizeof(bits));
        any |= (bits & EXPONENT32) == EXPONENT32;
    }
    return !any;
}

/* Adding 1 at the exponent's lowest bit carries into the sign's place only out of all ones: SSE2
 * cannot compare 64 bits. */
static int finite_f64(const char *values, uint32_t n)
{
    const uint64_t one = UINT64_C(1) << 52;
    u64x2 found = {0}, part[4];
    uint32_t i = 0;

    for (; i + 8 <= n; i += 8) {
        memcpy(part, values + i * sizeof(double), sizeof(part));
        for (uint32_t k = 0; k < 4; k++)
            found |= (part[k] & EXPONENT64) + one;
    }
    uint64_t any = (found[0] | found[1]) >> 63;
    for (; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, values + i * sizeof(double), sizeof(bits));
        any |= (bits & EXPONENT64) == EXPONENT64;
    }
    return !any;
}

int rows_all_finite(const void *values, uint32_t n, enum stk_dtype dtype)
{
    return dtype == STK_F32 ? finite_f32(values, n) : finite_f64(values, n);
}
