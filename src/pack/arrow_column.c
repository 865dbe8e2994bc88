#include "pack/arrow_column.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/fail.h"
#include "base/half.h"

/* Arrow recommends aligned buffers and does not demand them. */
#define ANY __attribute__((aligned(1), may_alias))
typedef int8_t any_i8 ANY;
typedef uint8_t any_u8 ANY;
typedef int16_t any_i16 ANY;
typedef uint16_t any_u16 ANY;
typedef int32_t any_i32 ANY;
typedef uint32_t any_u32 ANY;
typedef int64_t any_i64 ANY;
typedef uint64_t any_u64 ANY;
typedef float any_f32 ANY;
typedef double any_f64 ANY;
__extension__ typedef __int128 wide;

#define EXACT (INT64_C(1) << 53) /* integers up to here are exact in float64 */

/* 16 bytes an element is the widest there is: nothing below overflows when scaled by it. */
#define MAX_ELEMENTS (INT64_MAX / 16 - 2)

/* A text of up to 12 bytes lies in its view; a longer one in a buffer. */
#define VIEW_INLINE 12
struct view {
    int32_t len;
    char prefix[4];
    int32_t buffer, offset;
};

/* --- bitmaps --------------------------------------------------------------------------------- */

static inline int bit_at(const uint8_t *bits, uint64_t i)
{
    return bits[i / 8] >> (i % 8) & 1;
}

static int bits_all(const uint8_t *bits, uint64_t first, uint64_t n)
{
    uint64_t i = first, end = first + n;

    for (; i < end && i % 8; i++)
        if (!bit_at(bits, i))
            return 0;
    for (; i + 64 <= end; i += 64)
        if (*(const any_u64 *)(bits + i / 8) != UINT64_MAX)
            return 0;
    for (; i < end; i++)
        if (!bit_at(bits, i))
            return 0;
    return 1;
}

/* --- arrays ---------------------------------------------------------------------------------- */

static stk_status check_array(const struct ArrowArray *array, struct stk_error *err)
{
    if (!array || !array->release)
        return fail(err, STK_CORRUPT, "the Arrow array has been released");
    if (array->length < 0 || array->offset < 0 || array->length > MAX_ELEMENTS ||
        array->offset > MAX_ELEMENTS - array->length)
        return fail(err, STK_CORRUPT, "the Arrow array has length %" PRId64 " and offset %" PRId64,
                    array->length, array->offset);
    if (array->null_count < -1 || array->null_count > array->length)
        return fail(err, STK_CORRUPT,
                    "the Arrow array of %" PRId64 " rows counts %" PRId64 " nulls", array->length,
                    array->null_count);
    if (array->n_buffers < 0 || (array->n_buffers > 0 && !array->buffers))
        return fail(err, STK_CORRUPT, "the Arrow array counts buffers that it does not have");
    if (array->n_children < 0 || (array->n_children > 0 && !array->children))
        return fail(err, STK_CORRUPT, "the Arrow array counts children that it does not have");
    return STK_OK;
}

/* The bitmap of a checked array, NULL when it says that nothing is missing. */
static stk_status find_validity(const struct ArrowArray *array, const uint8_t **out,
                                struct stk_error *err)
{
    *out = NULL;
    if (array->null_count == 0)
        return STK_OK;
    *out = array->buffers[0];
    if (!*out && array->null_count > 0)
        return fail(err, STK_CORRUPT,
                    "the Arrow array counts %" PRId64 " nulls and has no bitmap of them",
                    array->null_count);
    return STK_OK;
}

static stk_status check_buffers(const struct ArrowArray *array, int64_t wanted,
                                struct stk_error *err)
{
    if (array->n_buffers == wanted)
        return STK_OK;
    return fail(err, STK_CORRUPT, "the Arrow array has %" PRId64 " buffers, and its type %" PRId64,
                array->n_buffers, wanted);
}

stk_status arrow_batch_check(const struct ArrowArray *batch, int64_t children,
                             struct stk_error *err)
{
    const uint8_t *validity;
    stk_status status = check_array(batch, err);

    if (!status)
        status = check_buffers(batch, 1, err);
    if (!status)
        status = find_validity(batch, &validity, err);
    if (status)
        return status;
    if (batch->n_children != children)
        return fail(err, STK_CORRUPT,
                    "a record batch has %" PRId64 " columns, and its schema %" PRId64,
                    batch->n_children, children);
    if (batch->dictionary)
        return fail(err, STK_CORRUPT, "a record batch has a dictionary");
    if (validity && !bits_all(validity, (uint64_t)batch->offset, (uint64_t)batch->length))
        return fail(err, STK_CORRUPT, "a record batch has rows that are null as a whole");
    return STK_OK;
}

/* --- strings --------------------------------------------------------------------------------- */

#define CHECK_OFFSETS(type)                                                                        \
    do {                                                                                           \
        const type *offsets = (const type *)strings->items + strings->first;                       \
        int bad = offsets[0] < 0;                                                                  \
        for (uint64_t i = 0; i < strings->count; i++)                                              \
            bad |= offsets[i + 1] < offsets[i];                                                    \
        is_good = !bad;                                                                            \
        total = (int64_t)offsets[strings->count];                                                  \
    } while (0)

/* Rising from 0 or more, all of them lie before the last one: the end of the bytes. */
static stk_status check_offsets(const struct arrow_strings *strings, struct stk_error *err)
{
    int is_good;
    int64_t total;

    if (strings->kind == ARROW_TEXT)
        CHECK_OFFSETS(any_i32);
    else
        CHECK_OFFSETS(any_i64);
    if (!is_good)
        return fail(err, STK_CORRUPT, "offsets of strings are negative or do not rise");
    if (total > 0 && !strings->bytes)
        return fail(err, STK_CORRUPT, "the strings have no bytes");
    return STK_OK;
}

static void view_at(const struct arrow_strings *strings, uint64_t i, struct view *out)
{
    memcpy(out, (const char *)strings->items + (strings->first + i) * sizeof(*out), sizeof(*out));
}

static int string_has(const struct arrow_strings *strings, uint64_t i)
{
    return !strings->validity || bit_at(strings->validity, strings->first + i);
}

static int view_fits(const struct view *view, const struct ArrowArray *array, int64_t buffers)
{
    if (view->len < 0)
        return 0;
    if (view->len <= VIEW_INLINE)
        return 1;
    if (view->buffer < 0 || view->buffer >= buffers || view->offset < 0)
        return 0;
    const any_i64 *sizes = array->buffers[array->n_buffers - 1];
    const char *bytes = array->buffers[2 + view->buffer];
    int64_t size = sizes[view->buffer];
    if (!bytes || size < view->len || view->offset > size - view->len)
        return 0;
    return !memcmp(bytes + view->offset, view->prefix, sizeof(view->prefix));
}

/* Views: validity, views, any number of buffers, and the sizes of those. */
static stk_status check_views(const struct arrow_strings *strings, const struct ArrowArray *array,
                              struct stk_error *err)
{
    int64_t buffers = array->n_buffers - 3;
    struct view view;

    if (buffers > 0 && !array->buffers[array->n_buffers - 1])
        return fail(err, STK_CORRUPT, "the buffers of a string_view have no sizes");
    for (uint64_t i = 0; i < strings->count; i++) {
        view_at(strings, i, &view);
        if (string_has(strings, i) && !view_fits(&view, array, buffers))
            return fail(err, STK_CORRUPT, "a string_view points outside of its buffers");
    }
    return STK_OK;
}

/* `first` is an element of the buffers, with the array's own offset in it. */
static stk_status init_strings(struct arrow_strings *strings, const struct ArrowArray *array,
                               enum arrow_kind kind, struct stk_error *err)
{
    stk_status status = STK_OK;

    strings->kind = kind;
    if (kind != ARROW_TEXT_VIEW)
        status = check_buffers(array, 3, err);
    else if (array->n_buffers < 3)
        status = check_buffers(array, 3, err);
    if (!status)
        status = find_validity(array, &strings->validity, err);
    if (status || !strings->count)
        return status;
    strings->items = array->buffers[1];
    strings->bytes = array->buffers[2];
    strings->buffers = (const void *const *)array->buffers + 2;
    if (!strings->items)
        return fail(err, STK_CORRUPT, "the strings have no offsets or views");
    return kind == ARROW_TEXT_VIEW ? check_views(strings, array, err) : check_offsets(strings, err);
}

int arrow_strings_at(const struct arrow_strings *strings, uint64_t i, struct arrow_text *out)
{
    if (!string_has(strings, i))
        return 0;
    if (strings->kind == ARROW_TEXT) {
        const any_i32 *offsets = (const any_i32 *)strings->items + strings->first + i;
        *out = (struct arrow_text){strings->bytes, (size_t)(offsets[1] - offsets[0])};
        out->data = out->len ? out->data + offsets[0] : "";
        return 1;
    }
    if (strings->kind == ARROW_LARGE_TEXT) {
        const any_i64 *offsets = (const any_i64 *)strings->items + strings->first + i;
        *out = (struct arrow_text){strings->bytes, (size_t)(offsets[1] - offsets[0])};
        out->data = out->len ? out->data + offsets[0] : "";
        return 1;
    }
    struct view view;
    view_at(strings, i, &view);
    out->len = (size_t)view.len;
    if (view.len <= VIEW_INLINE)
        out->data = (const char *)strings->items + (strings->first + i) * sizeof(view) +
                    offsetof(struct view, prefix);
    else
        out->data = (const char *)strings->buffers[view.buffer] + view.offset;
    return 1;
}

/* --- columns --------------------------------------------------------------------------------- */

static inline int64_t integer_at(const void *values, enum arrow_kind kind, uint64_t i)
{
    switch (kind) {
    case ARROW_I8:
        return ((const any_i8 *)values)[i];
    case ARROW_U8:
        return ((const any_u8 *)values)[i];
    case ARROW_I16:
        return ((const any_i16 *)values)[i];
    case ARROW_U16:
        return ((const any_u16 *)values)[i];
    case ARROW_I32:
    case ARROW_DATE32:
        return ((const any_i32 *)values)[i];
    case ARROW_U32:
        return ((const any_u32 *)values)[i];
    default: /* 64 bits */
        return ((const any_i64 *)values)[i];
    }
}

/* Every index of a value that is there points into the dictionary. */
static stk_status check_indices(const struct arrow_column *column, struct stk_error *err)
{
    for (uint64_t row = 0; row < column->rows; row++) {
        uint64_t index = arrow_column_index(column, row); /* a negative one is a large one */
        if (index >= column->strings.count && arrow_column_has(column, row))
            return fail(err, STK_CORRUPT,
                        "an index of a dictionary of %" PRIu64 " values is %" PRId64,
                        column->strings.count, (int64_t)index);
    }
    return STK_OK;
}

static stk_status init_dictionary(struct arrow_column *column, const struct ArrowArray *array,
                                  struct stk_error *err)
{
    const struct ArrowArray *dictionary = array->dictionary;

    if (!dictionary)
        return fail(err, STK_CORRUPT, "the Arrow array lacks its dictionary");
    stk_status status = check_array(dictionary, err);
    if (status)
        return status;
    if (dictionary->dictionary)
        return fail(err, STK_CORRUPT, "a dictionary has a dictionary of its own");
    column->strings.first = (uint64_t)dictionary->offset;
    column->strings.count = (uint64_t)dictionary->length;
    status = init_strings(&column->strings, dictionary, column->type->kind, err);
    return status ? status : check_indices(column, err);
}

static stk_status init_values(struct arrow_column *column, const struct ArrowArray *array,
                              struct stk_error *err)
{
    stk_status status = check_buffers(array, 2, err);

    if (!status)
        status = find_validity(array, &column->validity, err);
    if (status)
        return status;
    column->values = array->buffers[1];
    if (!column->values && column->rows)
        return fail(err, STK_CORRUPT, "the Arrow array has no values");
    return column->type->is_dictionary ? init_dictionary(column, array, err) : STK_OK;
}

stk_status arrow_column_init(struct arrow_column *column, const struct arrow_type *type,
                             const struct ArrowArray *batch, int64_t child, struct stk_error *err)
{
    const struct ArrowArray *array = batch->children[child];
    stk_status status = check_array(array, err);

    if (status)
        return status;
    if (array->length - batch->length < batch->offset) /* both are small enough to subtract */
        return fail(err, STK_CORRUPT,
                    "the Arrow array has %" PRId64 " rows, and its batch %" PRId64, array->length,
                    batch->offset + batch->length);
    if (array->n_children || (array->dictionary && !type->is_dictionary))
        return fail(err, STK_CORRUPT, "the Arrow array is not of the type of its schema, %s",
                    type->words);
    memset(column, 0, sizeof(*column));
    column->type = type;
    column->rows = (uint64_t)batch->length;
    column->first = (uint64_t)(array->offset + batch->offset);
    if (!arrow_type_is_text(type) || type->is_dictionary)
        return init_values(column, array, err);
    column->strings.first = column->first;
    column->strings.count = column->rows;
    status = init_strings(&column->strings, array, type->kind, err);
    column->validity = column->strings.validity;
    return status;
}

int arrow_column_has(const struct arrow_column *column, uint64_t row)
{
    return !column->validity || bit_at(column->validity, column->first + row);
}

int64_t arrow_column_integer(const struct arrow_column *column, uint64_t row)
{
    return integer_at(column->values, column->type->kind, column->first + row);
}

uint64_t arrow_column_index(const struct arrow_column *column, uint64_t row)
{
    return (uint64_t)integer_at(column->values, column->type->index, column->first + row);
}

int arrow_column_text(const struct arrow_column *column, uint64_t row, struct arrow_text *out)
{
    if (!column->type->is_dictionary)
        return arrow_strings_at(&column->strings, row, out);
    return arrow_column_has(column, row) &&
           arrow_strings_at(&column->strings, arrow_column_index(column, row), out);
}

/* --- numbers --------------------------------------------------------------------------------- */

#define CONVERT(source, target)                                                                    \
    for (uint32_t i = 0; i < n; i++)                                                               \
        ((target *)to)[i] = (target)((const source *)values)[i + at];                              \
    break

static void convert_f32(const void *values, enum arrow_kind kind, uint64_t at, uint32_t n,
                        float *restrict to)
{
    switch (kind) {
    case ARROW_BOOL:
        for (uint32_t i = 0; i < n; i++)
            to[i] = (float)bit_at(values, at + i);
        break;
    case ARROW_I8:
        CONVERT(any_i8, float);
    case ARROW_U8:
        CONVERT(any_u8, float);
    case ARROW_I16:
        CONVERT(any_i16, float);
    case ARROW_U16:
        CONVERT(any_u16, float);
    case ARROW_F16:
        for (uint32_t i = 0; i < n; i++)
            to[i] = half_to_float(((const any_u16 *)values)[at + i]);
        break;
    default: /* F32 */
        memcpy(to, (const any_f32 *)values + at, n * sizeof(*to));
    }
}

static void convert_f64(const void *values, enum arrow_kind kind, uint64_t at, uint32_t n,
                        double *restrict to)
{
    switch (kind) {
    case ARROW_BOOL:
        for (uint32_t i = 0; i < n; i++)
            to[i] = (double)bit_at(values, at + i);
        break;
    case ARROW_F16:
        for (uint32_t i = 0; i < n; i++)
            to[i] = (double)half_to_float(((const any_u16 *)values)[at + i]);
        break;
    case ARROW_F32:
        CONVERT(any_f32, double);
    case ARROW_F64:
        CONVERT(any_f64, double);
    case ARROW_U64:
        CONVERT(any_u64, double);
    case ARROW_I64:
        CONVERT(any_i64, double);
    case ARROW_I32:
        CONVERT(any_i32, double);
    case ARROW_U32:
        CONVERT(any_u32, double);
    default:
        for (uint32_t i = 0; i < n; i++)
            to[i] = (double)integer_at(values, kind, at + i);
    }
}

/* A division by a power of ten rounds once, where both are exact; that is what a cast does. */
static void convert_decimal(const struct arrow_column *column, uint64_t at, uint32_t n, double *to)
{
    const struct arrow_type *type = column->type;
    double power = 1;
    wide value;

    for (int i = type->places < 0 ? -type->places : type->places; i > 0; i--)
        power *= 10;
    for (uint32_t i = 0; i < n; i++) {
        if (type->bits == 128)
            memcpy(&value, (const char *)column->values + (at + i) * sizeof(value), sizeof(value));
        else
            value = integer_at(column->values, type->bits == 32 ? ARROW_I32 : ARROW_I64, at + i);
        to[i] = type->places < 0 ? (double)value * power : (double)value / power;
    }
}

static uint32_t find_inexact(const struct arrow_column *column, uint64_t first, uint32_t n)
{
    const any_u64 *values = (const any_u64 *)column->values + column->first + first;
    int is_signed = column->type->kind == ARROW_I64;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t moved = is_signed ? values[i] + EXACT : values[i];
        if (moved > (is_signed ? 2 * (uint64_t)EXACT : (uint64_t)EXACT) &&
            arrow_column_has(column, first + i))
            return i;
    }
    return n;
}

static void clear_missing(const struct arrow_column *column, const struct arrow_numbers *numbers)
{
    for (uint32_t i = 0; i < numbers->n; i++) {
        if (arrow_column_has(column, numbers->first + i))
            continue;
        if (numbers->dtype == STK_F32)
            ((float *)numbers->scratch)[i] = NAN;
        else
            ((double *)numbers->scratch)[i] = (double)NAN;
    }
}

void arrow_column_numbers(const struct arrow_column *column, struct arrow_numbers *numbers)
{
    enum arrow_kind kind = column->type->kind;
    uint64_t at = column->first + numbers->first;
    uint32_t n = numbers->n;
    int is_whole = !column->validity || bits_all(column->validity, at, n);
    int is_f32 = numbers->dtype == STK_F32;

    numbers->values = numbers->scratch;
    numbers->inexact = n;
    numbers->is_finite = is_whole && kind < ARROW_F16;
    if (kind == ARROW_I64 || kind == ARROW_U64)
        numbers->inexact = find_inexact(column, numbers->first, n);
    if (is_whole && kind == (is_f32 ? ARROW_F32 : ARROW_F64)) {
        numbers->values = (const char *)column->values + at * stk_dtype_size(numbers->dtype);
        return;
    }
    if (is_f32)
        convert_f32(column->values, kind, at, n, numbers->scratch);
    else if (kind == ARROW_DECIMAL)
        convert_decimal(column, at, n, numbers->scratch);
    else
        convert_f64(column->values, kind, at, n, numbers->scratch);
    if (!is_whole)
        clear_missing(column, numbers);
}

uint32_t arrow_column_times(const struct arrow_column *column, uint64_t first, uint32_t n,
                            int64_t *out)
{
    enum arrow_kind kind = column->type->kind;
    uint64_t at = column->first + first;

    if (kind < ARROW_I64 || kind == ARROW_DATE32)
        for (uint32_t i = 0; i < n; i++)
            out[i] = integer_at(column->values, kind, at + i);
    else if (n)
        memcpy(out, (const char *)column->values + at * sizeof(*out), n * sizeof(*out));
    if (kind == ARROW_U64)
        for (uint32_t i = 0; i < n; i++)
            if (out[i] < 0)
                return i;
    if (!column->validity || bits_all(column->validity, at, n))
        return n;
    for (uint32_t i = 0; i < n; i++)
        if (!bit_at(column->validity, at + i))
            return i;
    return n;
}
