#include "transform/image_write.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

void image_writer_init(struct image_writer *writer, enum stk_dtype dtype, int32_t width,
                       int32_t height, int32_t channels, int channels_first)
{
    *writer = (struct image_writer){
        .dtype = dtype,
        .plain = 1,
        .multiply = {1, 1, 1, 1},
        .pixel = channels_first ? 1 : channels,
        .row = channels_first ? width : (int64_t)width * channels,
        .channel = channels_first ? (int64_t)width * height : 1,
    };
}

static inline float multiply_of(const struct image_writer *writer, int32_t channel)
{
    return writer->plain ? 1.0f : writer->multiply[channel];
}

static inline float add_of(const struct image_writer *writer, int32_t channel)
{
    return writer->plain ? 0.0f : writer->add[channel];
}

/* Two statements: no compiler may join them into one operation that rounds once. */
static inline float value_of(uint8_t level, float multiply, float add)
{
    float product = (float)level * multiply;
    return product + add;
}

/* --- plain C -------------------------------------------------------------------------------- */

static void plain_packed(const struct image_writer *writer, const uint8_t *from, int64_t count,
                         int32_t channels, float *to)
{
    for (int64_t i = 0; i < count; i += channels)
        for (int32_t c = 0; c < channels; c++)
            to[i + c] = value_of(from[i + c], multiply_of(writer, c), add_of(writer, c));
}

static void plain_planar(const struct image_writer *writer, const uint8_t *from, int32_t width,
                         int32_t channels, float *to, int64_t plane)
{
    for (int32_t c = 0; c < channels; c++) {
        float multiply = multiply_of(writer, c), add = add_of(writer, c);
        for (int32_t x = 0; x < width; x++)
            to[c * plane + x] = value_of(from[x * channels + c], multiply, add);
    }
}

static void plain_split(const uint8_t *from, int32_t width, int32_t channels, uint8_t *to,
                        int64_t plane)
{
    for (int32_t c = 0; c < channels; c++)
        for (int32_t x = 0; x < width; x++)
            to[c * plane + x] = from[x * channels + c];
}

static void plain_half(const float *from, int64_t count, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = half_of_float(from[i]);
}

static void plain_bfloat(const float *from, int64_t count, uint16_t *to)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = bfloat_of_float(from[i]);
}

const struct image_write_loops image_write_plain = {plain_packed, plain_planar, plain_split,
                                                    plain_half, plain_bfloat};

/* --- rows ----------------------------------------------------------------------------------- */

int image_write_is_copy(const struct image_writer *writer, int32_t channels)
{
    return writer->dtype == STK_U8 && writer->plain && writer->pixel == channels &&
           (writer->channel == 1 || channels == 1);
}

static int is_packed(const struct image_writer *writer, int32_t channels)
{
    return writer->pixel == channels && (writer->channel == 1 || channels == 1);
}

/* The nearest whole number, a tie to the even one, within the type. */
#define PUT_WHOLE(type, least, most)                                                               \
    do {                                                                                           \
        double whole = rint((double)value);                                                        \
        ((type *)to)[at] = whole <= (double)(least)  ? (type)(least)                               \
                           : whole >= (double)(most) ? (type)(most)                                \
                                                     : (type)whole;                                \
    } while (0)

static void put_value(enum stk_dtype dtype, float value, void *to, int64_t at)
{
    switch (dtype) {
    case STK_BOOL:
        ((uint8_t *)to)[at] = value != 0;
        break;
    case STK_U8:
        PUT_WHOLE(uint8_t, 0, UINT8_MAX);
        break;
    case STK_I8:
        PUT_WHOLE(int8_t, INT8_MIN, INT8_MAX);
        break;
    case STK_U16:
        PUT_WHOLE(uint16_t, 0, UINT16_MAX);
        break;
    case STK_I16:
        PUT_WHOLE(int16_t, INT16_MIN, INT16_MAX);
        break;
    case STK_U32:
        PUT_WHOLE(uint32_t, 0, UINT32_MAX);
        break;
    case STK_I32:
        PUT_WHOLE(int32_t, INT32_MIN, INT32_MAX);
        break;
    case STK_U64:
        PUT_WHOLE(uint64_t, 0, UINT64_MAX);
        break;
    case STK_I64:
        PUT_WHOLE(int64_t, INT64_MIN, INT64_MAX);
        break;
    case STK_F16:
        ((uint16_t *)to)[at] = half_of_float(value);
        break;
    case STK_BF16:
        ((uint16_t *)to)[at] = bfloat_of_float(value);
        break;
    case STK_F64:
        ((double *)to)[at] = value;
        break;
    default:
        ((float *)to)[at] = value;
    }
}

/* Any type and any strides. */
static void write_slowly(const struct image_writer *writer, const uint8_t *row, int32_t width,
                         int32_t channels, void *to)
{
    for (int32_t c = 0; c < channels; c++) {
        float multiply = multiply_of(writer, c), add = add_of(writer, c);
        for (int32_t x = 0; x < width; x++)
            put_value(writer->dtype, value_of(row[x * channels + c], multiply, add), to,
                      x * writer->pixel + c * writer->channel);
    }
}

/* By way of a line of floats: it stays in the first cache. */
static void write_narrow(const struct image_write_loops *loops, const struct image_writer *writer,
                         const uint8_t *row, int32_t width, int32_t channels, float *line,
                         uint16_t *to)
{
    void (*narrow)(const float *, int64_t, uint16_t *) =
        writer->dtype == STK_F16 ? loops->half : loops->bfloat;
    if (is_packed(writer, channels)) {
        loops->packed(writer, row, (int64_t)width * channels, channels, line);
        narrow(line, (int64_t)width * channels, to);
        return;
    }
    loops->planar(writer, row, width, channels, line, width);
    for (int32_t c = 0; c < channels; c++)
        narrow(line + (int64_t)c * width, width, to + c * writer->channel);
}

void image_write_row(const struct image_write_loops *loops, const struct image_writer *writer,
                     const uint8_t *row, int32_t width, int32_t channels, float *line, void *to)
{
    int packed = is_packed(writer, channels), known = packed || writer->pixel == 1;
    enum stk_dtype dtype = writer->dtype;
    if (dtype == STK_U8 && writer->plain && packed)
        memcpy(to, row, (size_t)width * (size_t)channels);
    else if (dtype == STK_U8 && writer->plain && known)
        loops->split(row, width, channels, to, writer->channel);
    else if (dtype == STK_F32 && packed)
        loops->packed(writer, row, (int64_t)width * channels, channels, to);
    else if (dtype == STK_F32 && known)
        loops->planar(writer, row, width, channels, to, writer->channel);
    else if ((dtype == STK_F16 || dtype == STK_BF16) && known)
        write_narrow(loops, writer, row, width, channels, line, to);
    else
        write_slowly(writer, row, width, channels, to);
}
