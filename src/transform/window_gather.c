#include "transform/window_gather.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "transform/window_scale.h"

#define LONG_RUN 16           /* bytes: neighbouring columns from here on are copied as one piece */
#define BLOCK_BYTES (8 << 10) /* gathered, then scaled while it is still in the first cache */

/* Wanted columns that lie side by side. */
struct column_run {
    uint32_t from, to, bytes; /* offsets in a stored row and in a row of the result */
};

struct window_gather {
    uint64_t row_bytes, to_bytes; /* of a stored row, and of a row of the result */
    uint32_t *columns;            /* [count] */
    uint32_t count;
    enum stk_dtype dtype;
    uint32_t element; /* bytes */
    int whole;        /* all columns, in order */
    int scaled;
    struct column_run *runs;
    uint32_t run_count; /* 0: column by column */
    uint64_t block;     /* rows gathered before they are scaled */
    struct window_scale scale;
};

/* --- making ----------------------------------------------------------------------------------- */

static int is_whole(const struct window_gather_options *options)
{
    if (options->count != options->row_columns)
        return 0;
    for (uint32_t i = 0; i < options->count; i++)
        if (options->columns[i] != i)
            return 0;
    return 1;
}

/* Neighbours become runs; kept only when they are long enough to be worth a call each. */
static void find_runs(struct window_gather *gather)
{
    uint32_t size = gather->element, n = 0;
    for (uint32_t i = 0; i < gather->count; i++) {
        if (i > 0 && gather->columns[i] == gather->columns[i - 1] + 1)
            gather->runs[n - 1].bytes += size;
        else
            gather->runs[n++] = (struct column_run){
                .from = gather->columns[i] * size, .to = i * size, .bytes = size};
    }
    if (gather->to_bytes / n >= LONG_RUN)
        gather->run_count = n;
}

stk_status window_gather_new(struct window_gather **out,
                             const struct window_gather_options *options, struct stk_error *err)
{
    uint32_t count = options->count;
    *out = NULL;
    assert(count > 0 && options->row_columns > 0);
    struct window_gather *gather = memory_zero(1, sizeof *gather);
    if (!gather)
        return fail_memory(err, sizeof *gather);
    stk_status status = STK_OK;
    gather->dtype = options->dtype;
    gather->element = (uint32_t)stk_dtype_size(options->dtype);
    gather->row_bytes = (uint64_t)options->row_columns * gather->element;
    gather->to_bytes = (uint64_t)count * gather->element;
    gather->block = BLOCK_BYTES / gather->to_bytes + 1;
    gather->count = count;
    gather->whole = is_whole(options);
    gather->scaled = options->scaler != NULL;
    gather->columns = memory_zero(count, sizeof *gather->columns);
    gather->runs = memory_zero(count, sizeof *gather->runs);
    if (!gather->columns || !gather->runs) {
        status = fail_memory(err, count * sizeof *gather->runs);
        goto done;
    }
    memcpy(gather->columns, options->columns, count * sizeof *gather->columns);
    find_runs(gather);
    if (gather->scaled)
        status = window_scale_init(&gather->scale, options->scaler, options->columns, count,
                                   options->dtype, err);
    if (status)
        goto done;
    *out = gather;
    gather = NULL;
done:
    window_gather_free(gather);
    return status;
}

void window_gather_free(struct window_gather *gather)
{
    if (!gather)
        return;
    window_scale_reset(&gather->scale);
    memory_free(gather->columns);
    memory_free(gather->runs);
    memory_free(gather);
}

int window_gather_in_place(const struct window_gather *gather)
{
    return gather->whole;
}

uint64_t window_gather_row_bytes(const struct window_gather *gather)
{
    return gather->row_bytes;
}

uint64_t window_gather_to_bytes(const struct window_gather *gather)
{
    return gather->to_bytes;
}

void window_gather_tell(const struct window_gather *gather, struct window_gather_parts *parts)
{
    *parts = (struct window_gather_parts){.dtype = gather->dtype,
                                          .columns = gather->columns,
                                          .count = gather->count,
                                          .whole = gather->whole,
                                          .scale = gather->scaled ? &gather->scale : NULL};
}

/* --- copying ---------------------------------------------------------------------------------- */

static void copy_runs(const struct window_gather *gather, const uint8_t *from, uint64_t rows,
                      uint8_t *to)
{
    for (; rows > 0; rows--, from += gather->row_bytes, to += gather->to_bytes)
        for (uint32_t r = 0; r < gather->run_count; r++) {
            const struct column_run *run = &gather->runs[r];
            memcpy(to + run->to, from + run->from, run->bytes);
        }
}

/* Column by column; of an element's size that is known a copy is one move. */
#define COLUMNS(size)                                                                              \
    static void copy_columns_##size(const struct window_gather *gather, const uint8_t *from,       \
                                    uint64_t rows, uint8_t *to)                                    \
    {                                                                                              \
        for (; rows > 0; rows--, from += gather->row_bytes)                                        \
            for (uint32_t i = 0; i < gather->count; i++, to += size)                               \
                memcpy(to, from + (uint64_t)gather->columns[i] * size, size);                      \
    }
COLUMNS(2)
COLUMNS(4)
COLUMNS(8)

static void copy_some(const struct window_gather *gather, const uint8_t *from, uint64_t rows,
                      uint8_t *to)
{
    if (gather->run_count)
        copy_runs(gather, from, rows, to);
    else if (gather->element == 4)
        copy_columns_4(gather, from, rows, to);
    else if (gather->element == 2)
        copy_columns_2(gather, from, rows, to);
    else
        copy_columns_8(gather, from, rows, to);
}

void window_gather_stream(const struct window_gather *gather, const uint8_t *from, uint64_t rows,
                          uint8_t *to, const uint8_t *next)
{
    if (gather->whole && gather->scaled)
        window_scale_stream(&gather->scale, from, rows * gather->count, to, next);
    else
        window_gather_copy(gather, from, rows, to);
}

void window_gather_fence(void)
{
    window_scale_fence();
}

void window_gather_copy(const struct window_gather *gather, const uint8_t *from, uint64_t rows,
                        uint8_t *to)
{
    if (gather->whole) {
        if (gather->scaled)
            window_scale_run(&gather->scale, from, rows * gather->count, to);
        else if (to != from)
            memcpy(to, from, rows * gather->row_bytes);
        return;
    }
    if (!gather->scaled) {
        copy_some(gather, from, rows, to);
        return;
    }
    while (rows > 0) {
        uint64_t n = rows < gather->block ? rows : gather->block;
        copy_some(gather, from, n, to);
        window_scale_run(&gather->scale, to, n * gather->count, to);
        rows -= n;
        from += n * gather->row_bytes;
        to += n * gather->to_bytes;
    }
}
