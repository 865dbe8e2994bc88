#include "loader/time_order.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/random.h"
#include "index/windows_index.h"

#define NO_OBJECT UINT32_MAX
#define BLOCKS_BYTES ((uint64_t)4 << 20) /* of all blocks of a cursor, where entities are many */
#define BLOCK_MOST 512                   /* times */
#define WALK_LEAST 65536                 /* positions that are walked over rather than looked for */
#define WALK_EACH 16 /* and as many more for each entity: looking asks each of them */

/* The windows of one entity, of those that the dataset has. */
struct time_run {
    uint64_t first, count; /* samples */
    uint64_t row;          /* the last row of the first one */
    uint64_t origin;       /* the entity's own first row */
    uint64_t entity;
};

struct time_order {
    const struct stk_dataset *dataset;
    struct time_run *runs;
    uint32_t count, object; /* object: the times; NO_OBJECT: none */
    uint64_t stride;
    uint64_t time_rows; /* of the object */
    uint32_t block;     /* times read at once */
};

struct heap_entry {
    int64_t time;
    uint32_t run;
};

/* Some times of one entity, as they were last read. */
struct time_block {
    uint64_t first;
    uint32_t count;
};

struct time_cursor {
    const struct time_order *order;
    uint64_t position;       /* of the next sample; STK_NOWHERE: it stands nowhere */
    uint64_t *taken;         /* [runs] windows before the position */
    uint64_t *most, *before; /* [runs] while looking: bounds of taken, and what is before a pivot */
    struct heap_entry *heap; /* runs that have windows left, the earliest first */
    uint32_t heap_count;
    struct time_block *blocks; /* [runs] */
    int64_t *times;            /* [runs * order->block] */
};

/* --- the order -------------------------------------------------------------------------------- */

/* The part of a run that lies in samples [from, from + count). 0: none of it. */
static int run_clip(const struct windows_run *run, uint64_t from, uint64_t count, uint64_t stride,
                    struct time_run *out)
{
    uint64_t low = run->first > from ? run->first : from;
    uint64_t high = run->first + run->count < from + count ? run->first + run->count : from + count;
    if (low >= high)
        return 0;
    *out = (struct time_run){.first = low,
                             .count = high - low,
                             .row = run->last_row + (low - run->first) * stride,
                             .entity = run->entity};
    return 1;
}

static stk_status order_fill(struct time_order *order, struct stk_error *err)
{
    const struct index *index = dataset_index(order->dataset);
    uint64_t run_count, from = 0, samples = stk_dataset_samples(order->dataset);
    const struct windows_run *runs = windows_index_runs(index, &run_count);
    if (run_count >= UINT32_MAX)
        return fail(err, STK_LIMIT, "%llu entities cannot be put in order of time",
                    (unsigned long long)run_count);
    order->stride = windows_index_stride(index);
    order->runs = memory_zero(run_count + 1, sizeof *order->runs);
    if (!order->runs)
        return fail_memory(err, (run_count + 1) * sizeof *order->runs);
    if (samples)
        dataset_samples(order->dataset, &from, 1); /* the first one: a range need not begin at 0 */
    for (uint64_t i = 0; i < run_count; i++) {
        struct time_run *run = &order->runs[order->count];
        const char *name;
        uint64_t end;
        if (!run_clip(&runs[i], from, samples, order->stride, run))
            continue;
        stk_status status =
            stk_dataset_entity(order->dataset, run->entity, &name, &run->origin, &end, err);
        if (status)
            return status;
        order->count++;
    }
    return STK_OK;
}

static stk_status order_find_times(struct time_order *order, struct stk_error *err)
{
    struct index_object object;
    order->object = dataset_time_object(order->dataset);
    if (order->object == NO_OBJECT)
        return STK_OK;
    stk_status status = index_object(dataset_index(order->dataset), order->object, &object, err);
    if (status)
        return status;
    uint64_t fit = BLOCKS_BYTES / sizeof(int64_t) / (order->count + 1u);
    order->block = fit < 1 ? 1 : fit > BLOCK_MOST ? BLOCK_MOST : (uint32_t)fit;
    order->time_rows = object.size / sizeof(int64_t);
    return STK_OK;
}

stk_status time_order_new(struct time_order **out, const struct stk_dataset *dataset,
                          struct stk_error *err)
{
    uint64_t unused;
    stk_status status;
    *out = NULL;
    if (!windows_index_runs(dataset_index(dataset), &unused)) {
        status = fail(err, STK_USAGE, "only windows of a series can come in order of time");
        fail_remedy(err, "open a series (`stoker pack --to series` makes one), or take "
                         "another order=");
        return status;
    }
    if (!dataset_is_whole(dataset)) {
        status = fail(err, STK_USAGE, "a subset of windows that are no range has no order of time");
        fail_remedy(err, "take a split of the series itself (split=), or another order=");
        return status;
    }
    struct time_order *order = memory_zero(1, sizeof *order);
    if (!order)
        return fail_memory(err, sizeof *order);
    order->dataset = dataset;
    status = order_fill(order, err);
    if (!status)
        status = order_find_times(order, err);
    if (status)
        goto done;
    *out = order;
    order = NULL;
done:
    time_order_free(order);
    return status;
}

void time_order_free(struct time_order *order)
{
    if (!order)
        return;
    memory_free(order->runs);
    memory_free(order);
}

/* --- the cursor ------------------------------------------------------------------------------- */

uint64_t time_cursor_size(const struct time_order *order)
{
    uint64_t each = 3 * sizeof(uint64_t) + sizeof(struct heap_entry) + sizeof(struct time_block) +
                    order->block * sizeof(int64_t);
    return sizeof(struct time_cursor) + order->count * each;
}

stk_status time_cursor_new(struct time_cursor **out, const struct time_order *order,
                           struct stk_error *err)
{
    *out = NULL;
    size_t count = order->count + (size_t)1;
    struct time_cursor *cursor = memory_zero(1, sizeof *cursor);
    if (!cursor)
        return fail_memory(err, sizeof *cursor);
    cursor->order = order;
    cursor->position = STK_NOWHERE;
    cursor->taken = memory_zero(count, sizeof *cursor->taken);
    cursor->most = memory_zero(count, sizeof *cursor->most);
    cursor->before = memory_zero(count, sizeof *cursor->before);
    cursor->heap = memory_zero(count, sizeof *cursor->heap);
    cursor->blocks = memory_zero(count, sizeof *cursor->blocks);
    cursor->times = memory_zero(count, order->block * sizeof *cursor->times + 1);
    if (!cursor->taken || !cursor->most || !cursor->before || !cursor->heap || !cursor->blocks ||
        !cursor->times) {
        time_cursor_free(cursor);
        return fail_memory(err, time_cursor_size(order));
    }
    *out = cursor;
    return STK_OK;
}

void time_cursor_free(struct time_cursor *cursor)
{
    if (!cursor)
        return;
    memory_free(cursor->taken);
    memory_free(cursor->most);
    memory_free(cursor->before);
    memory_free(cursor->heap);
    memory_free(cursor->blocks);
    memory_free(cursor->times);
    memory_free(cursor);
}

/* --- times ------------------------------------------------------------------------------------ */

/* Reads the block of rows that holds this one. */
static stk_status block_read(struct time_cursor *cursor, uint32_t run, uint64_t row,
                             struct stk_error *err)
{
    const struct time_order *order = cursor->order;
    struct time_block *block = &cursor->blocks[run];
    uint64_t first = row - row % order->block, left = order->time_rows - first;
    uint32_t count = left < order->block ? (uint32_t)left : order->block;
    struct iovec part = {.iov_base = cursor->times + (uint64_t)run * order->block,
                         .iov_len = count * sizeof(int64_t)};
    struct store_read read = {.object = order->object,
                              .offset = first * sizeof(int64_t),
                              .length = part.iov_len,
                              .parts = &part,
                              .part_count = 1};
    struct store *store = dataset_store(order->dataset);
    block->count = 0; /* nothing of it is good when the read fails */
    if (store_read_now(store, &read))
        return store_explain(store, &read, err);
    *block = (struct time_block){.first = first, .count = count};
    return STK_OK;
}

/* What a run's number-th window is ordered by. */
static stk_status time_of(struct time_cursor *cursor, uint32_t run, uint64_t number, int64_t *out,
                          struct stk_error *err)
{
    const struct time_order *order = cursor->order;
    uint64_t row = order->runs[run].row + number * order->stride;
    if (order->object == NO_OBJECT) {
        *out = (int64_t)(row - order->runs[run].origin);
        return STK_OK;
    }
    const struct time_block *block = &cursor->blocks[run];
    if (row - block->first >= block->count) {
        if (row >= order->time_rows)
            return fail(err, STK_CORRUPT, "row %llu has no time: there are %llu times",
                        (unsigned long long)row, (unsigned long long)order->time_rows);
        stk_status status = block_read(cursor, run, row, err);
        if (status)
            return status;
    }
    *out = cursor->times[(uint64_t)run * order->block + (row - block->first)];
    return STK_OK;
}

static stk_status fail_decrease(const struct time_order *order, uint32_t run, uint64_t number,
                                struct stk_error *err)
{
    uint64_t start = 0, end, row = order->runs[run].row + number * order->stride;
    const char *name = "?";
    if (stk_dataset_entity(order->dataset, order->runs[run].entity, &name, &start, &end, NULL))
        name = "?";
    stk_status status =
        fail(err, STK_CORRUPT, "the times of entity %s decrease before its row %llu", name,
             (unsigned long long)(row - start));
    fail_remedy(err, "pack the series anew with its time column: rows are put in order then");
    return status;
}

/* --- walking ---------------------------------------------------------------------------------- */

static int entry_before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->time != b->time ? a->time < b->time : a->run < b->run;
}

/* Puts an entry where place `at` is free, or below it. */
static void heap_sink(struct time_cursor *cursor, uint32_t at, struct heap_entry entry)
{
    struct heap_entry *heap = cursor->heap;
    for (;;) {
        uint64_t child = (uint64_t)at * 2 + 1;
        if (child >= cursor->heap_count)
            break;
        if (child + 1 < cursor->heap_count && entry_before(&heap[child + 1], &heap[child]))
            child++;
        if (!entry_before(&heap[child], &entry))
            break;
        heap[at] = heap[child];
        at = (uint32_t)child;
    }
    heap[at] = entry;
}

/* The runs' next windows, from what was taken of each. */
static stk_status heap_build(struct time_cursor *cursor, struct stk_error *err)
{
    const struct time_order *order = cursor->order;
    cursor->heap_count = 0;
    for (uint32_t r = 0; r < order->count; r++) {
        struct heap_entry *entry = &cursor->heap[cursor->heap_count];
        if (cursor->taken[r] == order->runs[r].count)
            continue;
        stk_status status = time_of(cursor, r, cursor->taken[r], &entry->time, err);
        if (status)
            return status;
        entry->run = r;
        cursor->heap_count++;
    }
    for (uint32_t at = cursor->heap_count / 2; at-- > 0;)
        heap_sink(cursor, at, cursor->heap[at]);
    return STK_OK;
}

/* The earliest window: its sample, and the heap without it. */
static stk_status cursor_step(struct time_cursor *cursor, uint64_t *sample, struct stk_error *err)
{
    const struct time_order *order = cursor->order;
    struct heap_entry entry = cursor->heap[0];
    const struct time_run *run = &order->runs[entry.run];
    uint64_t number = cursor->taken[entry.run]++;
    *sample = run->first + number;
    if (number + 1 == run->count) {
        if (--cursor->heap_count)
            heap_sink(cursor, 0, cursor->heap[cursor->heap_count]);
        return STK_OK;
    }
    int64_t before = entry.time;
    stk_status status = time_of(cursor, entry.run, number + 1, &entry.time, err);
    if (status)
        return status;
    if (entry.time < before)
        return fail_decrease(order, entry.run, number + 1, err);
    heap_sink(cursor, 0, entry);
    return STK_OK;
}

/* --- looking for a position ------------------------------------------------------------------- */

/* One window that all others are compared with. */
struct pivot {
    int64_t time;
    uint32_t run;
    uint64_t number;
};

/* How many windows of a run come before the pivot, between the bounds that are known. */
static stk_status count_before(struct time_cursor *cursor, uint32_t run, const struct pivot *pivot,
                               uint64_t *out, struct stk_error *err)
{
    uint64_t low = cursor->taken[run], high = cursor->most[run];
    if (run == pivot->run)
        low = high = pivot->number;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        int64_t time;
        stk_status status = time_of(cursor, run, middle, &time, err);
        if (status)
            return status;
        if (time < pivot->time || (time == pivot->time && run < pivot->run))
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return STK_OK;
}

/* Any of the windows that may lie on either side of the position, each with the same chance: so the
 * rest is halved again and again, however the entities lie in time. */
static stk_status pick_pivot(struct time_cursor *cursor, uint64_t left, uint64_t turn,
                             struct pivot *out, struct stk_error *err)
{
    uint64_t place = random_below(left, turn, left);
    uint32_t run = 0;
    while (place >= cursor->most[run] - cursor->taken[run]) {
        place -= cursor->most[run] - cursor->taken[run];
        run++;
    }
    out->run = run;
    out->number = cursor->taken[run] + place;
    return time_of(cursor, run, out->number, &out->time, err);
}

/* One turn: the pivot and all before it are taken, or it and all behind it are not. *left: windows
 * that may still lie on either side. */
static stk_status narrow(struct time_cursor *cursor, uint64_t position, const struct pivot *pivot,
                         uint64_t *left, struct stk_error *err)
{
    uint32_t count = cursor->order->count;
    uint64_t sum = 0;
    for (uint32_t r = 0; r < count; r++) {
        stk_status status = count_before(cursor, r, pivot, &cursor->before[r], err);
        if (status)
            return status;
        sum += cursor->before[r];
    }
    *left = 0;
    for (uint32_t r = 0; r < count; r++) {
        if (sum <= position)
            cursor->taken[r] = cursor->before[r] + (sum < position && r == pivot->run);
        if (sum >= position)
            cursor->most[r] = cursor->before[r];
        *left += cursor->most[r] - cursor->taken[r];
    }
    return STK_OK;
}

static stk_status cursor_seek(struct time_cursor *cursor, uint64_t position, struct stk_error *err)
{
    const struct time_order *order = cursor->order;
    uint64_t left = 0, sum = 0;
    stk_status status = STK_OK;
    for (uint32_t r = 0; r < order->count; r++) {
        cursor->taken[r] = 0;
        cursor->most[r] = position ? order->runs[r].count : 0;
        left += cursor->most[r];
    }
    for (uint64_t turn = 0; left && !status; turn++) {
        struct pivot pivot;
        status = pick_pivot(cursor, left, turn, &pivot, err);
        if (!status)
            status = narrow(cursor, position, &pivot, &left, err);
    }
    for (uint32_t r = 0; r < order->count; r++)
        sum += cursor->taken[r];
    if (!status && sum != position)
        status = fail(err, STK_CORRUPT, "the times of some entity decrease");
    if (!status)
        status = heap_build(cursor, err);
    if (!status)
        cursor->position = position;
    return status;
}

stk_status time_cursor_samples(struct time_cursor *cursor, uint64_t position, uint32_t n,
                               uint64_t *out, struct stk_error *err)
{
    uint64_t walk = WALK_LEAST + (uint64_t)WALK_EACH * cursor->order->count, sample;
    uint64_t at = cursor->position;
    stk_status status = STK_OK;
    cursor->position = STK_NOWHERE; /* until all went well */
    if (at > position || position - at > walk) {
        status = cursor_seek(cursor, position, err);
        at = position;
    }
    for (; !status && at < position; at++)
        status = cursor_step(cursor, &sample, err);
    for (uint32_t i = 0; !status && i < n; i++)
        status = cursor_step(cursor, &out[i], err);
    if (!status)
        cursor->position = position + n;
    return status;
}
