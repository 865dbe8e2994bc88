#include "base/transpose.h"

#include <byteswap.h>
#include <string.h>

#define TILE                                                                                       \
    32 /* 32 * 32 elements of 16 bytes, read and written: both tiles stay in a 32 KiB cache */

/* One plane: to[i * to_stride + j] = from[j * from_stride + i] for i < rows, j < columns; strides
 * are in elements. */
struct plane {
    uint64_t rows, columns, to_stride, from_stride;
};

struct element16 {
    uint64_t half[2];
};

#define TRANSPOSE_PLANE(name, type)                                                                \
    static void name(void *to, const void *from, const struct plane *plane)                        \
    {                                                                                              \
        for (uint64_t i0 = 0; i0 < plane->rows; i0 += TILE) {                                      \
            uint64_t i1 = plane->rows - i0 < TILE ? plane->rows : i0 + TILE;                       \
            for (uint64_t j0 = 0; j0 < plane->columns; j0 += TILE) {                               \
                uint64_t j1 = plane->columns - j0 < TILE ? plane->columns : j0 + TILE;             \
                for (uint64_t i = i0; i < i1; i++) {                                               \
                    for (uint64_t j = j0; j < j1; j++)                                             \
                        memcpy((char *)to + (i * plane->to_stride + j) * sizeof(type),             \
                               (const char *)from + (j * plane->from_stride + i) * sizeof(type),   \
                               sizeof(type));                                                      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

TRANSPOSE_PLANE(transpose_plane1, uint8_t)
TRANSPOSE_PLANE(transpose_plane2, uint16_t)
TRANSPOSE_PLANE(transpose_plane4, uint32_t)
TRANSPOSE_PLANE(transpose_plane8, uint64_t)
TRANSPOSE_PLANE(transpose_plane16, struct element16)

static void transpose_plane(void *to, const void *from, const struct plane *plane, size_t size)
{
    switch (size) {
    case 1:
        transpose_plane1(to, from, plane);
        break;
    case 2:
        transpose_plane2(to, from, plane);
        break;
    case 4:
        transpose_plane4(to, from, plane);
        break;
    case 8:
        transpose_plane8(to, from, plane);
        break;
    default:
        transpose_plane16(to, from, plane);
    }
}

/* Dimensions of size 1 do not change the order of bytes. Returns how many are left. */
static int32_t drop_ones(const struct stk_tensor *shape, uint64_t dims[STK_MAX_RANK])
{
    int32_t rank = 0;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->shape[i] != 1)
            dims[rank++] = (uint64_t)shape->shape[i];
    }
    return rank;
}

/* The first dimension is dense in `from` and the last in `to`: they make planes, one for every
 * place of the dimensions between, which are counted up like the wheels of an odometer. */
void transpose_fortran(void *to, const void *from, const struct stk_tensor *shape)
{
    uint64_t dims[STK_MAX_RANK], place[STK_MAX_RANK] = {0};
    uint64_t to_stride[STK_MAX_RANK], from_stride[STK_MAX_RANK];
    uint64_t total = stk_tensor_size(shape);
    size_t size = stk_dtype_size(shape->dtype);
    int32_t rank = drop_ones(shape, dims);
    if (total == 0 || total == UINT64_MAX)
        return;
    if (rank < 2) {
        memcpy(to, from, total);
        return;
    }
    from_stride[0] = to_stride[rank - 1] = 1;
    for (int32_t i = 1; i < rank; i++) {
        from_stride[i] = from_stride[i - 1] * dims[i - 1];
        to_stride[rank - 1 - i] = to_stride[rank - i] * dims[rank - i];
    }
    struct plane plane = {dims[0], dims[rank - 1], to_stride[0], from_stride[rank - 1]};
    for (int32_t wheel = 0; wheel < rank - 1;) {
        uint64_t to_at = 0, from_at = 0;
        for (int32_t i = 1; i < rank - 1; i++) {
            to_at += place[i] * to_stride[i];
            from_at += place[i] * from_stride[i];
        }
        transpose_plane((char *)to + to_at * size, (const char *)from + from_at * size, &plane,
                        size);
        for (wheel = 1; wheel < rank - 1 && ++place[wheel] == dims[wheel]; wheel++)
            place[wheel] = 0;
    }
}

#define SWAP_ALL(name, type, swap)                                                                 \
    static void name(char *data, uint64_t count)                                                   \
    {                                                                                              \
        for (uint64_t i = 0; i < count; i++) {                                                     \
            type word;                                                                             \
            memcpy(&word, data + i * sizeof word, sizeof word);                                    \
            word = swap(word);                                                                     \
            memcpy(data + i * sizeof word, &word, sizeof word);                                    \
        }                                                                                          \
    }

SWAP_ALL(swap_all2, uint16_t, bswap_16)
SWAP_ALL(swap_all4, uint32_t, bswap_32)
SWAP_ALL(swap_all8, uint64_t, bswap_64)

void transpose_swap(void *data, uint64_t count, enum stk_dtype dtype)
{
    size_t size = stk_dtype_size(dtype);
    if (dtype == STK_C64 || dtype == STK_C128) {
        size /= 2;
        count *= 2;
    }
    if (size == 2)
        swap_all2(data, count);
    else if (size == 4)
        swap_all4(data, count);
    else if (size == 8)
        swap_all8(data, count);
}
