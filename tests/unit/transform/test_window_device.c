/* The device twins of copies and of window_gather.h, against loops and against window_gather_copy.
 */
#include "base/testing.h"

#include "base/half.h"
#include "base/random.h"
#include "gpu/gpu.h"
#include "transform/gather_device.h"
#include "transform/window_device.h"
#include "transform/window_gather.h"

enum { MOST_COLUMNS = 40, ROWS = 400 };

static struct gpu *gpu;
static struct gpu_stream *stream;

static int device_open(void **state)
{
    struct stk_error err;
    (void)state;
    if (!gpu_count(&err)) {
        print_message("no device: %s\n", err.what);
        return 0;
    }
    if (gpu_open(&gpu, 0, &err) || gpu_enter(gpu, &err) ||
        gpu_stream_new(gpu, GPU_NORMAL, &stream, &err)) {
        print_error("%s\n", err.what);
        return -1;
    }
    return 0;
}

static int device_close(void **state)
{
    (void)state;
    if (!gpu)
        return 0;
    gpu_stream_free(gpu, stream);
    gpu_leave(gpu);
    gpu_close(gpu);
    return 0;
}

static void good(stk_status status, const struct stk_error *err)
{
    if (status)
        print_error("%s\n", err->what);
    assert_int_equal(status, STK_OK);
}

static gpu_address upload(const void *data, uint64_t size)
{
    struct stk_error err;
    gpu_address address = 0;
    good(gpu_alloc(gpu, size, &address, &err), &err);
    good(gpu_copy_in(gpu, address, data, size, stream, &err), &err);
    good(gpu_stream_sync(gpu, stream, &err), &err);
    return address;
}

static void download(void *data, gpu_address from, uint64_t size)
{
    struct stk_error err;
    good(gpu_copy_out(gpu, data, from, size, stream, &err), &err);
    good(gpu_stream_sync(gpu, stream, &err), &err);
}

static void fill_random(uint8_t *data, size_t size, uint64_t key)
{
    for (size_t i = 0; i < size; i++)
        data[i] = (uint8_t)random_key(key, i);
}

/* --- copies ----------------------------------------------------------------------------------- */

#define PLACES 37
#define REAL 33

struct copies {
    uint64_t item;
    uint64_t grain; /* of homes */
    uint64_t shift; /* of where values begin */
    uint32_t blocks;
};

/* Every third place landed; the last places are masked. */
static void check_copies(const struct copies *copies)
{
    struct gather_device device;
    struct stk_error err;
    uint64_t item = copies->item, size = PLACES * item + copies->shift, stored = 64 * item + 4096;
    uint8_t *store = malloc(stored), *right = malloc(size), *got = malloc(size);
    uint64_t homes[PLACES];
    fill_random(store, stored, 3);
    fill_random(right, size, 4);
    memcpy(got, right, size);
    gpu_address on_store = upload(store, stored), values = upload(got, size);
    for (uint32_t i = 0; i < PLACES; i++) {
        homes[i] = random_key(5, i) % (63 * item + 1) / copies->grain * copies->grain;
        if (i % 3 == 1)
            homes[i] = GATHER_LANDED;
        else if (i < REAL)
            memcpy(right + copies->shift + i * item, store + homes[i], item);
        if (i >= REAL)
            memset(right + copies->shift + i * item, 0, item);
    }
    gpu_address on_homes = upload(homes, sizeof homes);
    good(gather_device_init(&device, gpu, copies->blocks, &err), &err);
    const struct gather_run run = {.store = on_store,
                                   .homes = on_homes,
                                   .values = values + copies->shift,
                                   .item = item,
                                   .grain = copies->grain,
                                   .count = PLACES,
                                   .real = REAL,
                                   .stream = stream};
    good(gather_device_run(&device, &run, &err), &err);
    download(got, values, size);
    assert_memory_equal(got, right, size);
    gpu_free(gpu, on_store);
    gpu_free(gpu, on_homes);
    gpu_free(gpu, values);
    free(store);
    free(right);
    free(got);
}

static void values_of_any_size_come_from_their_homes(void **state)
{
    static const uint64_t items[] = {1,  2,   3,   4,    6,    7,    8,    12,   16,    48,
                                     64, 100, 512, 2048, 3840, 4096, 4100, 6000, 10000, 70000};
    (void)state;
    if (!gpu)
        skip();
    for (size_t i = 0; i < sizeof items / sizeof items[0]; i++) {
        check_copies(&(struct copies){.item = items[i], .grain = items[i]});
        check_copies(&(struct copies){.item = items[i], .grain = 1, .blocks = 3});
    }
}

static void values_that_begin_anywhere_are_copied_too(void **state)
{
    (void)state;
    if (!gpu)
        skip();
    for (uint64_t shift = 1; shift <= 16; shift *= 2)
        for (uint64_t grain = 1; grain <= 16; grain *= 2)
            check_copies(&(struct copies){.item = 240, .grain = grain, .shift = shift});
}

static void no_values_and_empty_values_are_fine(void **state)
{
    struct gather_device device;
    struct stk_error err;
    (void)state;
    if (!gpu)
        skip();
    good(gather_device_init(&device, gpu, 0, &err), &err);
    struct gather_run run = {.item = 16, .grain = 16, .stream = stream};
    good(gather_device_run(&device, &run, &err), &err);
    run.count = run.real = 4;
    run.item = 0;
    good(gather_device_run(&device, &run, &err), &err);
    good(gpu_stream_sync(gpu, stream, &err), &err);
}

/* More moves than one job holds, to rows in another order. */
static void values_are_kept_in_their_rows(void **state)
{
    enum { COUNT = 1100, ITEM = 20 };
    struct gather_device device;
    struct stk_error err;
    static uint8_t values[COUNT * ITEM], store[COUNT * ITEM], right[COUNT * ITEM];
    static struct keep_move moves[COUNT];
    uint32_t n = 0;
    (void)state;
    if (!gpu)
        skip();
    fill_random(values, sizeof values, 6);
    fill_random(store, sizeof store, 7);
    memcpy(right, store, sizeof store);
    for (uint32_t i = 0; i < COUNT; i++) {
        if (i % 10 == 3)
            continue;
        moves[n] = (struct keep_move){.place = i, .row = (i * 7 + 5) % COUNT};
        memcpy(right + (uint64_t)moves[n++].row * ITEM, values + (uint64_t)i * ITEM, ITEM);
    }
    gpu_address from = upload(values, sizeof values), to = upload(store, sizeof store);
    good(gather_device_init(&device, gpu, 0, &err), &err);
    const struct keep_run run = {
        .store = to, .values = from, .item = ITEM, .moves = moves, .count = n, .stream = stream};
    good(gather_device_keep(&device, &run, &err), &err);
    download(store, to, sizeof store);
    assert_memory_equal(store, right, sizeof store);
    gpu_free(gpu, from);
    gpu_free(gpu, to);
}

/* --- windows ---------------------------------------------------------------------------------- */

static struct scaler_column scaler_columns[MOST_COLUMNS];

struct windows {
    enum stk_dtype dtype;
    uint32_t row_columns, rows; /* of a stored row; of a window */
    const uint32_t *columns;
    uint32_t count;
    int scaled, padded;
    uint64_t shift; /* of where values begin */
};

static struct window_gather *twin_of(const struct windows *windows, struct scaler *scaler)
{
    struct window_gather *gather;
    for (uint32_t i = 0; i < windows->row_columns; i++)
        scaler_columns[i] =
            (struct scaler_column){.center = 4000.37 * (i % 5) - 1, .scale = 0.5 + 0.3 * i};
    *scaler = (struct scaler){.count = windows->row_columns, .columns = scaler_columns};
    const struct window_gather_options options = {.dtype = windows->dtype,
                                                  .row_columns = windows->row_columns,
                                                  .columns = windows->columns,
                                                  .count = windows->count,
                                                  .scaler = windows->scaled ? scaler : NULL};
    assert_int_equal(window_gather_new(&gather, &options, NULL), STK_OK);
    return gather;
}

/* Numbers near their column's center, so that no part of it may be lost; not any bits: what becomes
 * of NaN's is the processor's affair. */
static void fill_rows(uint8_t *rows, const struct windows *windows)
{
    uint32_t n = ROWS * windows->row_columns;
    for (uint32_t i = 0; i < n; i++) {
        double center = scaler_columns[i % windows->row_columns].center;
        double value = center + (random_unit(8, i) - 0.5) * (i % 7 ? 10 : 1e-3);
        float small = (float)value;
        uint16_t half = half_of_float(small), bfloat = bfloat_of_float(small);
        if (windows->dtype == STK_F64)
            memcpy(rows + i * sizeof value, &value, sizeof value);
        else if (windows->dtype == STK_F32)
            memcpy(rows + i * sizeof small, &small, sizeof small);
        else
            memcpy(rows + i * sizeof half, windows->dtype == STK_F16 ? &half : &bfloat,
                   sizeof half);
    }
}

/* The homes of PLACES windows, and what is to come of them. */
static void make_windows(const struct windows *windows, const struct window_gather *gather,
                         const uint8_t *rows, uint64_t *homes, uint8_t *right)
{
    uint64_t row = window_gather_row_bytes(gather), to = window_gather_to_bytes(gather);
    uint64_t item = windows->rows * to;
    for (uint32_t i = 0; i < PLACES; i++, right += item) {
        uint64_t missing = windows->padded ? random_key(9, i) % windows->rows : 0;
        uint64_t first = random_key(10, i) % (ROWS - windows->rows);
        homes[i] = i % 5 == 2 ? GATHER_LANDED : window_home(first * row, missing);
        if (i >= REAL)
            memset(right, 0, item);
        else if (i % 5 != 2) {
            memset(right, 0, missing * to);
            window_gather_copy(gather, rows + first * row, windows->rows - missing,
                               right + missing * to);
        }
    }
}

static void check_windows(const struct windows *windows)
{
    struct scaler scaler;
    struct stk_error err;
    struct window_device *device;
    struct window_gather *gather = twin_of(windows, &scaler);
    uint64_t item = windows->rows * window_gather_to_bytes(gather), homes[PLACES];
    uint64_t size = PLACES * item + windows->shift;
    uint64_t stored = ROWS * window_gather_row_bytes(gather);
    uint8_t *rows = malloc(stored), *right = malloc(size), *got = malloc(size);
    fill_rows(rows, windows);
    fill_random(right, size, 11);
    memcpy(got, right, size);
    make_windows(windows, gather, rows, homes, right + windows->shift);
    gpu_address store = upload(rows, stored), on_homes = upload(homes, sizeof homes);
    gpu_address values = upload(got, size);
    const struct window_device_options options = {.gpu = gpu,
                                                  .gather = gather,
                                                  .grain = window_gather_row_bytes(gather),
                                                  .item = item,
                                                  .padded = windows->padded};
    good(window_device_new(&device, &options, &err), &err);
    const struct window_run run = {store, on_homes, values + windows->shift, PLACES, REAL, stream};
    good(window_device_run(device, &run, &err), &err);
    download(got, values, size);
    assert_memory_equal(got, right, size);
    window_device_free(device);
    window_gather_free(gather);
    gpu_free(gpu, store);
    gpu_free(gpu, on_homes);
    gpu_free(gpu, values);
    free(rows);
    free(right);
    free(got);
}

static const enum stk_dtype dtypes[] = {STK_F32, STK_F16, STK_BF16, STK_F64};

/* All columns, some of them in another order, one, one twice. */
static void windows_are_those_of_the_cpu_to_the_bit(void **state)
{
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint32_t some[] = {3, 4, 5, 6, 19, 0, 1}, one[] = {13}, twice[] = {2, 2, 18};
    static const struct {
        const uint32_t *columns;
        uint32_t count, row;
    } choices[] = {{all, 16, 16}, {all, 5, 5},  {all, 1, 1},   {all, 16, 20},
                   {some, 7, 20}, {one, 1, 20}, {twice, 3, 20}};
    (void)state;
    if (!gpu)
        skip();
    for (int t = 0; t < 4; t++)
        for (size_t c = 0; c < sizeof choices / sizeof choices[0]; c++)
            for (int kind = 0; kind < 4; kind++)
                check_windows(&(struct windows){.dtype = dtypes[t],
                                                .row_columns = choices[c].row,
                                                .rows = kind & 1 ? 60 : 7,
                                                .columns = choices[c].columns,
                                                .count = choices[c].count,
                                                .scaled = kind & 1,
                                                .padded = kind >> 1});
}

/* Rows are whole vectors of 16 bytes, but places are not where vectors may be written. */
static void windows_that_begin_anywhere_are_gathered_too(void **state)
{
    static const uint32_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};
    (void)state;
    if (!gpu)
        skip();
    for (int t = 0; t < 4; t++)
        check_windows(&(struct windows){.dtype = dtypes[t],
                                        .row_columns = 8,
                                        .rows = 9,
                                        .columns = all,
                                        .count = 8,
                                        .scaled = 1,
                                        .shift = 8});
}

/* Elements are told apart by a multiplication: every number of columns divides right. */
static void any_number_of_columns_is_scaled_by_its_own(void **state)
{
    uint32_t columns[MOST_COLUMNS];
    (void)state;
    if (!gpu)
        skip();
    for (uint32_t i = 0; i < MOST_COLUMNS; i++)
        columns[i] = i;
    for (uint32_t count = 1; count <= MOST_COLUMNS; count++)
        check_windows(&(struct windows){.dtype = dtypes[count % 4],
                                        .row_columns = count,
                                        .rows = 11,
                                        .columns = columns,
                                        .count = count,
                                        .scaled = 1,
                                        .padded = 1});
}

static void tables_are_freed_with_the_windows(void **state)
{
    static const uint32_t columns[] = {1, 0};
    const struct windows windows = {
        .dtype = STK_F32, .row_columns = 3, .rows = 4, .columns = columns, .count = 2, .scaled = 1};
    struct scaler scaler;
    struct stk_error err;
    struct window_device *device;
    (void)state;
    if (!gpu)
        skip();
    struct window_gather *gather = twin_of(&windows, &scaler);
    struct window_device_options options = {.gpu = gpu, .gather = gather, .grain = 12, .item = 32};
    good(window_device_new(&device, &options, &err), &err);
    assert_true(window_device_bytes(device) > 0);
    window_device_free(device);
    options.item = GATHER_ITEM_MOST;
    assert_int_equal(window_device_new(&device, &options, &err), STK_LIMIT);
    assert_null(device);
    window_gather_free(gather);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_any_size_come_from_their_homes),
        cmocka_unit_test(values_that_begin_anywhere_are_copied_too),
        cmocka_unit_test(no_values_and_empty_values_are_fine),
        cmocka_unit_test(values_are_kept_in_their_rows),
        cmocka_unit_test(windows_are_those_of_the_cpu_to_the_bit),
        cmocka_unit_test(windows_that_begin_anywhere_are_gathered_too),
        cmocka_unit_test(any_number_of_columns_is_scaled_by_its_own),
        cmocka_unit_test(tables_are_freed_with_the_windows),
    };
    return cmocka_run_group_tests(tests, device_open, device_close);
}
