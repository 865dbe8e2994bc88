#include "codec/points_codec.h"

#include <assert.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/half.h"
#include "base/npy_header.h"
#include "codec/lzf.h"
#include "codec/points_text.h"

#define BLOCK 256 /* rows that are taken column by column while they are in the first cache */

/* ---- layouts ------------------------------------------------------------------------------- */

stk_status points_layout_add(struct points_layout *layout, const char *name, size_t name_len,
                             const struct points_column *column, struct stk_error *err)
{
    if (layout->columns == POINTS_COLUMNS)
        return fail(err, STK_LIMIT, "a point has more than %d values", POINTS_COLUMNS);
    layout->column[layout->columns++] = *column;
    if (name_len == 1 && *name >= 'x' && *name <= 'z' && !layout->named[*name - 'x'])
        layout->named[*name - 'x'] = layout->columns;
    return STK_OK;
}

void points_layout_order(struct points_layout *layout)
{
    struct points_column front[3];
    uint32_t count = 0, to = layout->columns;
    for (uint32_t i = 0; i < 3; i++)
        if (layout->named[i])
            front[count++] = layout->column[layout->named[i] - 1];
    for (uint32_t i = layout->columns; i-- > 0;) /* the others move to the back, in order */
        if (i + 1 != layout->named[0] && i + 1 != layout->named[1] && i + 1 != layout->named[2])
            layout->column[--to] = layout->column[i];
    memcpy(layout->column, front, count * sizeof *front);
}

stk_status points_layout_fits(const struct points_layout *layout, uint64_t record, uint64_t total,
                              struct stk_error *err)
{
    uint64_t wanted;
    if (checked_mul(layout->count, record, &wanted) && checked_inside(layout->data, wanted, total))
        return STK_OK;
    stk_status status = fail(
        err, STK_CORRUPT, "the %s header says %llu points of %llu bytes, but %llu bytes are there",
        layout->format, (unsigned long long)layout->count, (unsigned long long)record,
        (unsigned long long)(total - layout->data));
    fail_at(err, NULL, total);
    return status;
}

/* Nothing in the bytes says what they are: 4 float32 a point, and no guessing. */
static stk_status bin_layout(struct points_layout *layout, const struct stk_bytes *bytes,
                             struct stk_error *err)
{
    if (bytes->len == 0)
        return fail(err, STK_TRUNCATED, "there are no bytes");
    if (bytes->len % 16) {
        stk_status status =
            fail(err, STK_CORRUPT,
                 "%zu bytes are no whole number of points of 16 bytes (float32 x, y, z, intensity)",
                 bytes->len);
        if (bytes->len % 20 == 0)
            fail_remedy(err, "points of 5 columns, as nuScenes writes them? Save them as .npy of "
                             "shape (N, 5)");
        else
            fail_remedy(err, "fetch the file again, or save other columns as .npy of shape (N, k)");
        return status;
    }
    layout->format = "bin";
    layout->count = bytes->len / 16;
    layout->columns = 4;
    layout->swap = !POINTS_LITTLE;
    for (uint32_t i = 0; i < 4; i++)
        layout->column[i] = (struct points_column){4 * i, 16, POINTS_F32};
    return STK_OK;
}

static int npy_type(enum stk_dtype dtype, enum points_type *out)
{
    static const struct {
        enum stk_dtype dtype;
        enum points_type type;
    } types[] = {{STK_F32, POINTS_F32}, {STK_F64, POINTS_F64}, {STK_F16, POINTS_F16},
                 {STK_I8, POINTS_I8},   {STK_U8, POINTS_U8},   {STK_I16, POINTS_I16},
                 {STK_U16, POINTS_U16}, {STK_I32, POINTS_I32}, {STK_U32, POINTS_U32},
                 {STK_I64, POINTS_I64}, {STK_U64, POINTS_U64}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].dtype == dtype) {
            *out = types[i].type;
            return 1;
        }
    }
    return 0;
}

static stk_status npy_layout(struct points_layout *layout, const struct stk_bytes *bytes,
                             struct stk_error *err)
{
    struct npy_header header;
    enum points_type type;
    stk_status status = npy_header_parse(&header, bytes, bytes->len, err);
    if (status)
        return status;
    if (header.shape.rank != 2 || header.shape.shape[1] < 1) {
        fail(err, STK_SHAPE, "points are an array of shape (N, columns), this has %d axes",
             (int)header.shape.rank);
        fail_remedy(err, "save it with shape (N, columns)");
        return STK_SHAPE;
    }
    if (!npy_type(header.shape.dtype, &type))
        return fail(err, STK_UNSUPPORTED, "points of %s", stk_dtype_name(header.shape.dtype));
    if (header.shape.shape[1] > POINTS_COLUMNS)
        return fail(err, STK_LIMIT, "a point has more than %d values", POINTS_COLUMNS);
    uint64_t size = stk_dtype_size(header.shape.dtype);
    layout->format = "npy";
    layout->swap = header.byteswap;
    layout->data = header.length;
    layout->count = (uint64_t)header.shape.shape[0];
    layout->columns = (uint32_t)header.shape.shape[1];
    for (uint32_t i = 0; i < layout->columns; i++)
        layout->column[i] =
            header.fortran
                ? (struct points_column){i * layout->count * size, (uint32_t)size, type}
                : (struct points_column){i * size, (uint32_t)(layout->columns * size), type};
    return STK_OK;
}

static stk_status layout_parse(struct points_layout *layout, const struct stk_bytes *bytes,
                               struct stk_error *err)
{
    stk_status status;
    memset(layout, 0, offsetof(struct points_layout, column));
    memset(layout->named, 0, sizeof layout->named);
    if (bytes->len >= 6 && !memcmp(bytes->data, "\x93NUMPY", 6))
        status = npy_layout(layout, bytes, err);
    else if (pcd_sniff(bytes))
        status = pcd_layout(layout, bytes, err);
    else if (ply_sniff(bytes))
        status = ply_layout(layout, bytes, err);
    else
        status = bin_layout(layout, bytes, err);
    if (!status && layout->count > POINTS_COUNT_CAP)
        status = fail(err, STK_LIMIT, "%llu points, %llu are the most",
                      (unsigned long long)layout->count, (unsigned long long)POINTS_COUNT_CAP);
    return status;
}

/* A point a line: so the lines are counted, at the speed of a search for their ends. */
static stk_status check_lines(const struct points_layout *layout, const struct stk_bytes *bytes,
                              struct stk_error *err)
{
    uint64_t wanted = layout->skip + layout->count;
    uint64_t found = text_lines(bytes, layout->data, layout->exact ? UINT64_MAX : wanted);
    if (found < wanted || (layout->exact && found > wanted))
        return fail(err, STK_CORRUPT, "the %s header says %llu points, %llu lines are there",
                    layout->format, (unsigned long long)layout->count,
                    (unsigned long long)(found > layout->skip ? found - layout->skip : 0));
    /* A number and what parts it from the next take two bytes; the last one may take one. */
    if (layout->count * layout->words > (bytes->len - layout->data + 1) / 2)
        return fail(err, STK_CORRUPT,
                    "the %s header says %llu points of %u numbers, "
                    "but %llu bytes are there",
                    layout->format, (unsigned long long)layout->count, layout->words,
                    (unsigned long long)(bytes->len - layout->data));
    return STK_OK;
}

stk_status points_probe(const struct stk_bytes *bytes, struct points_header *header,
                        struct stk_error *err)
{
    struct points_layout layout;
    *header = (struct points_header){0};
    stk_status status = layout_parse(&layout, bytes, err);
    if (!status && layout.coding == POINTS_TEXT)
        status = check_lines(&layout, bytes, err);
    if (!status)
        *header =
            (struct points_header){layout.format, (int64_t)layout.count, (int32_t)layout.columns};
    return status;
}

/* ---- binary columns ------------------------------------------------------------------------ */

/* `count` values of one column into every pitch-th float of `to`. */
struct column_work {
    const uint8_t *from;
    uint64_t stride;
    int swap;
    const uint32_t *rows; /* NULL: from row `first` on */
    uint64_t first, count, pitch;
    float *to;
};

static inline uint8_t swap8(uint8_t x)
{
    return x;
}

#define COLUMN(name, raw, swapped, converted)                                                      \
    static void column_##name(const struct column_work *work)                                      \
    {                                                                                              \
        for (uint64_t i = 0; i < work->count; i++) {                                               \
            uint64_t row = work->rows ? work->rows[i] : work->first + i;                           \
            raw x;                                                                                 \
            memcpy(&x, work->from + row * work->stride, sizeof x);                                 \
            if (work->swap)                                                                        \
                x = swapped(x);                                                                    \
            work->to[i * work->pitch] = converted(x);                                              \
        }                                                                                          \
    }

static inline float double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return (float)value;
}

#define SIGNED8(x) (float)(int8_t)(x)
#define SIGNED16(x) (float)(int16_t)(x)
#define SIGNED32(x) (float)(int32_t)(x)
#define SIGNED64(x) (float)(int64_t)(x)
COLUMN(f32, uint32_t, __builtin_bswap32, float_of_bits)
COLUMN(f64, uint64_t, __builtin_bswap64, double_of)
COLUMN(f16, uint16_t, __builtin_bswap16, half_to_float)
COLUMN(i8, uint8_t, swap8, SIGNED8)
COLUMN(u8, uint8_t, swap8, (float))
COLUMN(i16, uint16_t, __builtin_bswap16, SIGNED16)
COLUMN(u16, uint16_t, __builtin_bswap16, (float))
COLUMN(i32, uint32_t, __builtin_bswap32, SIGNED32)
COLUMN(u32, uint32_t, __builtin_bswap32, (float))
COLUMN(i64, uint64_t, __builtin_bswap64, SIGNED64)
COLUMN(u64, uint64_t, __builtin_bswap64, (float))

/* In the order of enum points_type. */
static void (*const column_reads[])(const struct column_work *) = {
    column_f32, column_f64, column_f16, column_i8,  column_u8, column_i16,
    column_u16, column_i32, column_u32, column_i64, column_u64};

/* The first `columns` lie in the file as they will lie in the result. */
static int is_straight(const struct points_layout *layout, uint32_t columns)
{
    for (uint32_t i = 0; i < columns; i++) {
        const struct points_column *column = &layout->column[i];
        if (column->type != POINTS_F32 || column->offset != layout->column[0].offset + 4 * i ||
            column->stride != layout->column[0].stride)
            return 0;
    }
    return !layout->swap;
}

static void read_straight(const struct points_layout *layout, const uint8_t *data,
                          const uint32_t *rows, uint64_t count, uint32_t columns, float *to)
{
    uint64_t stride = layout->column[0].stride, size = columns * sizeof *to;
    const uint8_t *from = data + layout->column[0].offset;
    if (!rows && stride == size && count) {
        memcpy(to, from, count * size);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        memcpy(to + i * columns, from + (rows ? rows[i] : i) * stride, size);
}

static void read_columns(const struct points_layout *layout, const uint8_t *data,
                         const uint32_t *rows, uint64_t count, uint32_t columns, float *to)
{
    for (uint64_t first = 0; first < count; first += BLOCK) {
        for (uint32_t i = 0; i < columns; i++) {
            const struct points_column *column = &layout->column[i];
            struct column_work work = {.from = data + column->offset,
                                       .stride = column->stride,
                                       .swap = layout->swap,
                                       .rows = rows ? rows + first : NULL,
                                       .first = first,
                                       .count = count - first < BLOCK ? count - first : BLOCK,
                                       .pitch = columns,
                                       .to = to + first * columns + i};
            column_reads[column->type](&work);
        }
    }
}

static stk_status unpack(const struct points_layout *layout, const struct stk_bytes *bytes,
                         const uint8_t **data, struct scratch *scratch, struct stk_error *err)
{
    uint8_t *room = scratch_take(scratch, layout->unpacked);
    if (!room)
        return fail_memory(err, layout->unpacked);
    *data = room;
    if (lzf_unpack(bytes->data + layout->data, layout->packed, room, layout->unpacked))
        return STK_OK;
    stk_status status = fail(err, STK_CORRUPT, "the packed points are no LZF of %llu bytes",
                             (unsigned long long)layout->unpacked);
    fail_at(err, NULL, layout->data);
    return status;
}

/* ---- reading ------------------------------------------------------------------------------- */

/* The last row is checked here: rows are ascending. */
static stk_status check_wanted(const struct points_layout *layout, const uint32_t *rows,
                               int64_t count, int32_t columns, struct stk_error *err)
{
    uint64_t reach = rows && count > 0 ? (uint64_t)rows[count - 1] + 1 : (uint64_t)count;
    if (count < 0 || columns < 1 || reach > layout->count || (uint32_t)columns > layout->columns)
        return fail(err, STK_SHAPE, "the cloud has %llu points of %u columns, more are wanted",
                    (unsigned long long)layout->count, layout->columns);
    for (int64_t i = 1; rows && i < count; i++)
        assert(rows[i - 1] < rows[i]);
    return STK_OK;
}

stk_status points_read(const struct stk_bytes *bytes, const struct points_header *header,
                       const uint32_t *rows, int64_t count, int32_t columns, float *to,
                       struct scratch *scratch, struct stk_error *err)
{
    struct points_layout layout;
    (void)header; /* the bytes say it again, and are what is trusted */
    stk_status status = layout_parse(&layout, bytes, err);
    if (!status)
        status = check_wanted(&layout, rows, count, columns, err);
    if (status || count == 0)
        return status;
    if (layout.coding == POINTS_TEXT)
        return text_read(bytes, &layout, rows, (uint64_t)count, (uint32_t)columns, to, scratch,
                         err);
    const uint8_t *data = bytes->data + layout.data;
    if (layout.coding == POINTS_PACKED)
        status = unpack(&layout, bytes, &data, scratch, err);
    if (status)
        return status;
    if (is_straight(&layout, (uint32_t)columns))
        read_straight(&layout, data, rows, (uint64_t)count, (uint32_t)columns, to);
    else
        read_columns(&layout, data, rows, (uint64_t)count, (uint32_t)columns, to);
    return STK_OK;
}
