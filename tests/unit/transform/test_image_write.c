#include "base/testing.h"

#include <math.h>

#include "base/half.h"
#include "base/random.h"
#include "transform/image_write.h"

#define WIDTH_MOST 70

static const float multiply[4] = {0.0171247f, -0.25f, 1e-3f, 200.0f};
static const float add[4] = {-2.1179f, 3.5f, 1e-6f, -4000.25f};

struct shape {
    int32_t width, height, channels;
    int first;
};

static void row_fill(uint8_t *row, int64_t count, uint64_t key)
{
    for (int64_t i = 0; i < count; i++)
        row[i] = (uint8_t)random_below(key, (uint64_t)i, 256);
}

static double value_at(enum stk_dtype dtype, const void *data, int64_t at)
{
    switch (dtype) {
    case STK_U8:
        return ((const uint8_t *)data)[at];
    case STK_I8:
        return ((const int8_t *)data)[at];
    case STK_U16:
        return ((const uint16_t *)data)[at];
    case STK_I16:
        return ((const int16_t *)data)[at];
    case STK_I32:
        return ((const int32_t *)data)[at];
    case STK_I64:
        return (double)((const int64_t *)data)[at];
    case STK_F16:
        return half_to_float(((const uint16_t *)data)[at]);
    case STK_BF16:
        return bfloat_to_float(((const uint16_t *)data)[at]);
    case STK_F32:
        return ((const float *)data)[at];
    default:
        return ((const double *)data)[at];
    }
}

/* How far a value may be from the true one: half of its last place, or one rounding of float32. */
static double slack_of(enum stk_dtype dtype, double value)
{
    double size = fabs(value) + 5000e-7;
    return dtype == STK_F16    ? size / 1024 + 1e-3
           : dtype == STK_BF16 ? size / 128
                               : size * 1e-6 + 1e-3;
}

static double truth(enum stk_dtype dtype, double value)
{
    static const double least[STK_DTYPE_COUNT] = {
        [STK_I8] = -128, [STK_I16] = -32768, [STK_I32] = -2147483648.0, [STK_I64] = -9e18};
    static const double most[STK_DTYPE_COUNT] = {
        [STK_U8] = 255,    [STK_I8] = 127,           [STK_U16] = 65535,
        [STK_I16] = 32767, [STK_I32] = 2147483647.0, [STK_I64] = 9e18};
    if (most[dtype] == 0)
        return value;
    return fmin(most[dtype], fmax(least[dtype], rint(value)));
}

static void written(enum stk_dtype dtype, struct shape shape, int plain)
{
    struct image_writer writer;
    int64_t row = (int64_t)shape.width * shape.channels, count = row * shape.height;
    uint8_t *from = malloc((size_t)row);
    void *to = malloc((size_t)count * stk_dtype_size(dtype)); /* nothing beyond it */
    float *line = malloc((size_t)row * sizeof *line);
    image_writer_init(&writer, dtype, shape.width, shape.height, shape.channels, shape.first);
    if (!plain) {
        writer.plain = 0;
        memcpy(writer.multiply, multiply, sizeof multiply);
        memcpy(writer.add, add, sizeof add);
    }
    for (int32_t y = 0; y < shape.height; y++) {
        uint8_t *place = (uint8_t *)to + y * writer.row * (int64_t)stk_dtype_size(dtype);
        row_fill(from, row, (uint64_t)y);
        image_write_row(image_write_best(), &writer, from, shape.width, shape.channels, line,
                        place);
    }
    for (int64_t i = 0; i < count; i++) {
        int32_t c = (int32_t)(shape.first ? i / (shape.width * shape.height) : i % shape.channels);
        int64_t dot = shape.first ? i % (shape.width * shape.height) : i / shape.channels;
        uint64_t place = (uint64_t)(dot % shape.width * shape.channels + c);
        double level = (double)random_below((uint64_t)(dot / shape.width), place, 256);
        double wanted = plain ? level : level * (double)writer.multiply[c] + (double)writer.add[c];
        wanted = truth(dtype, wanted);
        double found = value_at(dtype, to, i);
        assert_true(plain && dtype != STK_BF16 && dtype != STK_I8
                        ? found == wanted
                        : fabs(found - wanted) <= slack_of(dtype, wanted) + 1e-6);
    }
    free(from);
    free(to);
    free(line);
}

static void every_type_is_written_in_every_layout(void **state)
{
    static const enum stk_dtype dtypes[] = {STK_U8,  STK_I8,  STK_U16,  STK_I16, STK_I32,
                                            STK_I64, STK_F16, STK_BF16, STK_F32, STK_F64};
    static const int32_t widths[] = {1, 7, 16, 33, WIDTH_MOST};
    (void)state;
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            for (int32_t channels = 1; channels <= 4; channels++)
                for (int way = 0; way < 4; way++)
                    written(dtypes[d], (struct shape){widths[w], 3, channels, way & 1}, way >> 1);
}

static void vectors_give_the_bits_of_plain_c(void **state)
{
    const struct image_write_loops *best = image_write_best(), *plain = &image_write_plain;
    (void)state;
    for (int32_t width = 1; width <= WIDTH_MOST; width++)
        for (int32_t channels = 1; channels <= 4; channels++) {
            int64_t count = (int64_t)width * channels;
            uint8_t *row = malloc((size_t)count), *one = malloc((size_t)count),
                    *other = malloc((size_t)count);
            float *a = malloc((size_t)count * sizeof *a), *b = malloc((size_t)count * sizeof *b);
            struct image_writer writer = {.dtype = STK_F32};
            memcpy(writer.multiply, multiply, sizeof multiply);
            memcpy(writer.add, add, sizeof add);
            row_fill(row, count, (uint64_t)count);
            plain->packed(&writer, row, count, channels, a);
            best->packed(&writer, row, count, channels, b);
            assert_memory_equal(a, b, (size_t)count * sizeof *a);
            plain->planar(&writer, row, width, channels, a, width);
            best->planar(&writer, row, width, channels, b, width);
            assert_memory_equal(a, b, (size_t)count * sizeof *a);
            plain->split(row, width, channels, one, width);
            best->split(row, width, channels, other, width);
            assert_memory_equal(one, other, (size_t)count);
            free(row);
            free(one);
            free(other);
            free(a);
            free(b);
        }
}

/* Every half, the places between two of them where rounding turns, and what is around them. */
static void narrow_floats_are_rounded_alike(void **state)
{
    enum { STEP = 32 };
    const struct image_write_loops *best = image_write_best(), *plain = &image_write_plain;
    (void)state;
    for (uint32_t top = 0; top < 0x7f80; top += 4)
        for (int sign = 0; sign < 2; sign++) {
            float from[STEP];
            uint16_t a[STEP], b[STEP];
            for (uint32_t i = 0; i < STEP; i++) {
                static const uint32_t low[8] = {0,      1,      0xfff,  0x1000,
                                                0x1001, 0x7fff, 0x8000, 0x8001};
                from[i] = float_of_bits((uint32_t)sign << 31 | (top + i / 8) << 16 | low[i % 8] |
                                        (uint32_t)random_below(top, i, 8) << 13);
                if ((top + i / 8) >= 0x7f80)
                    from[i] = INFINITY;
            }
            plain->half(from, STEP, a);
            best->half(from, STEP, b);
            assert_memory_equal(a, b, sizeof a);
            plain->bfloat(from, STEP, a);
            best->bfloat(from, STEP, b);
            assert_memory_equal(a, b, sizeof a);
        }
}

static void a_writer_of_bytes_in_order_is_a_copy(void **state)
{
    struct image_writer writer;
    (void)state;
    image_writer_init(&writer, STK_U8, 10, 10, 3, 0);
    assert_true(image_write_is_copy(&writer, 3));
    image_writer_init(&writer, STK_U8, 10, 10, 3, 1);
    assert_false(image_write_is_copy(&writer, 3));
    image_writer_init(&writer, STK_U8, 10, 10, 1, 1); /* one plane is in order either way */
    assert_true(image_write_is_copy(&writer, 1));
    writer.plain = 0;
    assert_false(image_write_is_copy(&writer, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_is_written_in_every_layout),
        cmocka_unit_test(vectors_give_the_bits_of_plain_c),
        cmocka_unit_test(narrow_floats_are_rounded_alike),
        cmocka_unit_test(a_writer_of_bytes_in_order_is_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
