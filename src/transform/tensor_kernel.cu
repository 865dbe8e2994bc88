/* The kernels of tensors: cast, normalise by channel, turn of axes.
 *
 * tensor_split and tensor_join move 2 to 4 channels of elements that are not changed: a thread
 * reads as many rows of them as make 16 bytes of each plane, and writes one store a plane; or the
 * other way round. For float16 with 3 channels it is 3 loads and 3 stores of 16 bytes and some 50
 * instructions for 48 bytes in and 48 out: the memory bounds it. The _cast kernels and tensor_line
 * do 4 elements a channel, through floats, at some 15 instructions an element: so does it them.
 * tensor_any does the rest, an element a thread. */
#include "transform/kernel_dtype.h"
#include "transform/kernel_words.h"
#include "transform/tensor_kernel.h"

/* --- words ----------------------------------------------------------------------------------- */

/* Element `index` of `size` (1, 2 or 4) bytes. */
DEVICE uint32_t word_element(const uint32_t *words, int size, int index)
{
    uint32_t bits = words[index * size / 4] >> (8 * (index * size % 4));
    return size == 1 ? bits & 0xff : size == 2 ? bits & 0xffff : bits;
}

/* The word was 0 there. */
DEVICE void word_place(uint32_t *words, int size, int index, uint32_t bits)
{
    words[index * size / 4] |= bits << (8 * (index * size % 4));
}

/* --- small elements, as floats ---------------------------------------------------------------- */

DEVICE int small_size(uint32_t dtype)
{
    return dtype == KERNEL_F32 ? 4 : dtype <= KERNEL_I8 ? 1 : 2;
}

DEVICE float small_value(uint32_t dtype, uint32_t bits)
{
    switch (dtype) {
    case KERNEL_F16:
        return half_value((uint16_t)bits);
    case KERNEL_F32:
        return bits_float(bits);
    case KERNEL_BF16:
        return bfloat_value((uint16_t)bits);
    case KERNEL_I8:
        return (float)(int8_t)bits;
    case KERNEL_I16:
        return (float)(int16_t)bits;
    default: /* bool, uint8, uint16 */
        return (float)bits;
    }
}

/* To float16, bfloat16 or float32. */
DEVICE uint32_t small_bits(uint32_t dtype, float value)
{
    return dtype == KERNEL_F16    ? half_bits(value)
           : dtype == KERNEL_BF16 ? bfloat_bits(value)
                                  : float_bits(value);
}

DEVICE uint32_t small_cast(const struct tensor_job *job, uint32_t bits, float multiply, float add)
{
    float value = small_value(job->from_dtype, bits);
    return small_bits(job->to_dtype, job->affine ? value * multiply + add : value);
}

/* Of 4 elements at `from`. */
DEVICE void four_load(uint64_t from, int size, int groups, uint32_t *bits)
{
    uint32_t words[16];
    if (size == 4)
        words_load(from, words, 4 * groups);
    else if (size == 2)
        words_load(from, words, 2 * groups);
    else
        words_load(from, words, groups);
    for (int k = 0; k < 4 * groups; k++)
        bits[k] = size == 4   ? word_element(words, 4, k)
                  : size == 2 ? word_element(words, 2, k)
                              : word_element(words, 1, k);
}

/* To elements of 2 or 4 bytes. */
DEVICE void four_store(uint64_t to, int size, int groups, const uint32_t *bits)
{
    if (size == 4) {
        words_store(to, bits, 4 * groups);
        return;
    }
    uint32_t words[8];
    for (int k = 0; k < 2 * groups; k++)
        words[k] = bits[2 * k] | bits[2 * k + 1] << 16;
    words_store(to, words, 2 * groups);
}

/* Which of the channels. Without a division where there is one. */
DEVICE uint32_t channel_of(const struct tensor_job *job, uint32_t element)
{
    if (job->channels == 1)
        return 0;
    uint32_t run = (uint32_t)job->channel_run;
    return (run == 1 ? element : element / run) % job->channels;
}

/* Where tensor GRID_Y begins. */
DEVICE uint64_t tensor_from(const struct tensor_job *job, int size)
{
    return job->from + GRID_Y * job->rows * job->columns * (uint32_t)size;
}

DEVICE uint64_t tensor_to(const struct tensor_job *job, int size)
{
    return job->to + GRID_Y * job->rows * job->columns * (uint32_t)size;
}

/* Not turned; a multiple of 4 elements. */
KERNEL(tensor_line)(struct tensor_job job)
{
    uint64_t first = GRID_X * 4;
    if (first >= job.rows * job.columns)
        return;
    int from_size = small_size(job.from_dtype), to_size = small_size(job.to_dtype);
    uint32_t bits[4];
    four_load(tensor_from(&job, from_size) + first * (uint32_t)from_size, from_size, 1, bits);
    int one = job.channels == 1 || job.channel_run % 4 == 0;
    uint32_t c = job.affine ? channel_of(&job, (uint32_t)first) : 0;
    for (uint32_t k = 0; k < 4; k++) {
        if (k && job.affine && !one)
            c = channel_of(&job, (uint32_t)first + k);
        bits[k] = small_cast(&job, bits[k], (float)job.multiply[c], (float)job.add[c]);
    }
    four_store(tensor_to(&job, to_size) + first * (uint32_t)to_size, to_size, 1, bits);
}

/* --- channels last to channels first ---------------------------------------------------------- */

/* rows of `channels` elements of `size` bytes: 16 bytes of each plane. */
DEVICE void split(const struct tensor_job *job, int size, int channels)
{
    int count = 16 / size;
    uint64_t first = GRID_X * (uint32_t)count;
    if (first >= job->rows)
        return;
    uint32_t words[16];
    words_load(tensor_from(job, size) + first * (uint32_t)(channels * size), words, 4 * channels);
    uint64_t to = tensor_to(job, size) + first * (uint32_t)size;
    for (int c = 0; c < channels; c++) {
        uint32_t plane[4] = {0, 0, 0, 0};
        for (int k = 0; k < count; k++)
            word_place(plane, size, k, word_element(words, size, k * channels + c));
        words_store(to + (uint32_t)c * job->rows * (uint32_t)size, plane, 4);
    }
}

DEVICE void split_size(const struct tensor_job *job, int size)
{
    switch (job->columns) {
    case 2:
        split(job, size, 2);
        break;
    case 3:
        split(job, size, 3);
        break;
    default:
        split(job, size, 4);
    }
}

KERNEL(tensor_split_1)(struct tensor_job job)
{
    split_size(&job, 1);
}

KERNEL(tensor_split_2)(struct tensor_job job)
{
    split_size(&job, 2);
}

KERNEL(tensor_split_4)(struct tensor_job job)
{
    split_size(&job, 4);
}

/* The same with a cast, 4 rows; channels are the columns. */
DEVICE void split_cast(const struct tensor_job *job, int channels)
{
    uint64_t first = GRID_X * 4;
    if (first >= job->rows)
        return;
    int from_size = small_size(job->from_dtype), to_size = small_size(job->to_dtype);
    uint32_t bits[16], plane[4];
    four_load(tensor_from(job, from_size) + first * (uint32_t)(channels * from_size), from_size,
              channels, bits);
    uint64_t to = tensor_to(job, to_size) + first * (uint32_t)to_size;
    for (int c = 0; c < channels; c++) {
        float multiply = (float)job->multiply[job->channels == 1 ? 0 : c];
        float add = (float)job->add[job->channels == 1 ? 0 : c];
        for (int k = 0; k < 4; k++)
            plane[k] = small_cast(job, bits[k * channels + c], multiply, add);
        four_store(to + (uint32_t)c * job->rows * (uint32_t)to_size, to_size, 1, plane);
    }
}

KERNEL(tensor_split_cast)(struct tensor_job job)
{
    switch (job.columns) {
    case 2:
        split_cast(&job, 2);
        break;
    case 3:
        split_cast(&job, 3);
        break;
    default:
        split_cast(&job, 4);
    }
}

/* --- channels first to channels last ---------------------------------------------------------- */

DEVICE void join(const struct tensor_job *job, int size, int channels)
{
    int count = 16 / size;
    uint64_t first = GRID_X * (uint32_t)count;
    if (first >= job->columns)
        return;
    uint32_t planes[16], words[16];
    uint64_t from = tensor_from(job, size) + first * (uint32_t)size;
    for (int c = 0; c < channels; c++)
        words_load(from + (uint32_t)c * job->columns * (uint32_t)size, planes + 4 * c, 4);
    for (int i = 0; i < 4 * channels; i++)
        words[i] = 0;
    for (int c = 0; c < channels; c++)
        for (int k = 0; k < count; k++)
            word_place(words, size, k * channels + c, word_element(planes + 4 * c, size, k));
    words_store(tensor_to(job, size) + first * (uint32_t)(channels * size), words, 4 * channels);
}

DEVICE void join_size(const struct tensor_job *job, int size)
{
    switch (job->rows) {
    case 2:
        join(job, size, 2);
        break;
    case 3:
        join(job, size, 3);
        break;
    default:
        join(job, size, 4);
    }
}

KERNEL(tensor_join_1)(struct tensor_job job)
{
    join_size(&job, 1);
}

KERNEL(tensor_join_2)(struct tensor_job job)
{
    join_size(&job, 2);
}

KERNEL(tensor_join_4)(struct tensor_job job)
{
    join_size(&job, 4);
}

/* The same with a cast, 4 columns; channels are the rows. */
DEVICE void join_cast(const struct tensor_job *job, int channels)
{
    uint64_t first = GRID_X * 4;
    if (first >= job->columns)
        return;
    int from_size = small_size(job->from_dtype), to_size = small_size(job->to_dtype);
    uint32_t bits[16], plane[4];
    uint64_t from = tensor_from(job, from_size) + first * (uint32_t)from_size;
    for (int c = 0; c < channels; c++) {
        float multiply = (float)job->multiply[job->channels == 1 ? 0 : c];
        float add = (float)job->add[job->channels == 1 ? 0 : c];
        four_load(from + (uint32_t)c * job->columns * (uint32_t)from_size, from_size, 1, plane);
        for (int k = 0; k < 4; k++)
            bits[k * channels + c] = small_cast(job, plane[k], multiply, add);
    }
    four_store(tensor_to(job, to_size) + first * (uint32_t)(channels * to_size), to_size, channels,
               bits);
}

KERNEL(tensor_join_cast)(struct tensor_job job)
{
    switch (job.rows) {
    case 2:
        join_cast(&job, 2);
        break;
    case 3:
        join_cast(&job, 3);
        break;
    default:
        join_cast(&job, 4);
    }
}

/* --- everything: an element a thread. See cast.c ---------------------------------------------- */

union double_word {
    double value;
    uint64_t bits;
};

DEVICE int is_float(uint32_t dtype)
{
    return dtype >= KERNEL_F16;
}

DEVICE int any_size(uint32_t dtype)
{
    switch (dtype) {
    case KERNEL_U32:
    case KERNEL_I32:
        return 4;
    case KERNEL_U64:
    case KERNEL_I64:
    case KERNEL_F64:
        return 8;
    default:
        return small_size(dtype);
    }
}

/* Bits of a whole number without its sign. */
DEVICE int value_bits(uint32_t dtype)
{
    int with_sign =
        dtype == KERNEL_I8 || dtype == KERNEL_I16 || dtype == KERNEL_I32 || dtype == KERNEL_I64;
    return dtype == KERNEL_BOOL ? 1 : 8 * any_size(dtype) - with_sign;
}

DEVICE uint64_t raw_load(uint64_t from, int size, uint64_t at)
{
    const void *data = device_memory(from);
    return size == 1   ? ((const uint8_t *)data)[at]
           : size == 2 ? ((const uint16_t *)data)[at]
           : size == 4 ? ((const uint32_t *)data)[at]
                       : ((const uint64_t *)data)[at];
}

DEVICE void raw_store(uint64_t to, int size, uint64_t at, uint64_t bits)
{
    void *data = device_memory(to);
    if (size == 1)
        ((uint8_t *)data)[at] = (uint8_t)bits;
    else if (size == 2)
        ((uint16_t *)data)[at] = (uint16_t)bits;
    else if (size == 4)
        ((uint32_t *)data)[at] = (uint32_t)bits;
    else
        ((uint64_t *)data)[at] = bits;
}

#define LARGEST_WHOLE 0x7fffffffffffffffull

/* uint64 that is larger than an int64 becomes the largest. */
DEVICE int64_t whole_value(uint32_t dtype, uint64_t bits)
{
    switch (dtype) {
    case KERNEL_I8:
        return (int8_t)bits;
    case KERNEL_I16:
        return (int16_t)bits;
    case KERNEL_I32:
        return (int32_t)bits;
    case KERNEL_U64:
        return (int64_t)(bits > LARGEST_WHOLE ? LARGEST_WHOLE : bits);
    default:
        return (int64_t)bits;
    }
}

DEVICE double real_value(uint32_t dtype, uint64_t bits)
{
    union double_word both;
    switch (dtype) {
    case KERNEL_U64:
        return (double)bits;
    case KERNEL_F64:
        both.bits = bits;
        return both.value;
    case KERNEL_F16:
    case KERNEL_BF16:
    case KERNEL_F32:
        return small_value(dtype, (uint32_t)bits);
    default:
        return (double)whole_value(dtype, bits);
    }
}

/* The element's bits, saturated. */
DEVICE uint64_t whole_bits(uint32_t dtype, int64_t value)
{
    int bits = value_bits(dtype), unsign = dtype < KERNEL_I8 || dtype == KERNEL_U16 ||
                                           dtype == KERNEL_U32 || dtype == KERNEL_U64;
    int64_t most = bits >= 63 ? (int64_t)LARGEST_WHOLE : ((int64_t)1 << bits) - 1;
    int64_t least = unsign ? 0 : -most - 1;
    if (dtype == KERNEL_BOOL)
        return value != 0;
    return (uint64_t)(value > most ? most : value < least ? least : value);
}

/* A float on its way to a whole number. Cut: each gets the same share of 0-1. */
DEVICE uint64_t real_to_whole(const struct tensor_job *job, double value)
{
    uint32_t dtype = job->to_dtype;
    int bits = value_bits(dtype);
    double end = bits == 64 ? 18446744073709551616.0 : (double)((uint64_t)1 << bits);
    value = job->cut ? trunc(value * (end - 1e-3)) : rint(value);
    if (dtype == KERNEL_BOOL)
        return value != 0;
    if (dtype == KERNEL_U64)
        return value >= end ? ~(uint64_t)0 : value > 0 ? (uint64_t)value : 0;
    if (value >= end)
        return whole_bits(dtype, (int64_t)LARGEST_WHOLE);
    if (value < -end)
        return whole_bits(dtype, -(int64_t)LARGEST_WHOLE - 1);
    return value == value ? whole_bits(dtype, (int64_t)value) : 0;
}

DEVICE uint64_t any_cast(const struct tensor_job *job, uint64_t bits, uint32_t c)
{
    if (!is_float(job->from_dtype) && !is_float(job->to_dtype)) {
        int64_t value = whole_value(job->from_dtype, bits);
        value = job->shift >= 0 ? (int64_t)((uint64_t)value << job->shift) : value >> -job->shift;
        return whole_bits(job->to_dtype, value);
    }
    double value = real_value(job->from_dtype, bits);
    if (job->affine)
        value = value * job->multiply[c] + job->add[c];
    if (!is_float(job->to_dtype))
        return real_to_whole(job, value);
    if (job->to_dtype != KERNEL_F64)
        return small_bits(job->to_dtype, (float)value);
    union double_word both;
    both.value = value;
    return both.bits;
}

KERNEL(tensor_any)(struct tensor_job job)
{
    uint64_t size = job.rows * job.columns, all = job.count * size;
    int from_size = any_size(job.from_dtype), to_size = any_size(job.to_dtype);
    int same = job.from_dtype == job.to_dtype && !job.affine;
    for (uint64_t i = GRID_X; i < all; i += GRID_WIDTH) {
        uint64_t tensor = i / size, inside = i - tensor * size, at = inside;
        if (job.turned) {
            uint64_t column = inside / job.rows;
            at = (inside - column * job.rows) * job.columns + column;
        }
        uint64_t bits = raw_load(job.from, from_size, tensor * size + at);
        uint32_t c = job.affine ? (uint32_t)(at / job.channel_run % job.channels) : 0;
        raw_store(job.to, to_size, i, same ? bits : any_cast(&job, bits, c));
    }
}
