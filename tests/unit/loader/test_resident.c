/* Data that lives on the device, by itself: a small ship stage of the test's own lands values,
 * keeps them and gathers them; the dataset's reader says what they are. */
#include "series_fixture.h"

#include <dlfcn.h>

#include "../../sim_cuda/sim_cuda.h"
#include "base/memory.h"
#include "loader/layout.h"
#include "loader/resident.h"

enum { BATCH = 16, MOST_FIELDS = 8 };

static struct gpu *gpu;
static struct gpu_stream *stream;
static void (*sim_counts)(struct sim_cuda_counts *); /* NULL: the device is real */

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
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&sim_counts = library ? dlsym(library, "sim_cuda_counts") : NULL;
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

static uint64_t device_bytes(void)
{
    struct sim_cuda_counts counts = {0};
    if (sim_counts)
        sim_counts(&counts);
    return counts.allocated_bytes;
}

/* --- a ship stage ----------------------------------------------------------------------------- */

struct harbour {
    struct stk_dataset *dataset;
    struct layout layout;
    struct resident *resident;
    struct stk_reader *reader;
    struct box box;
    uint64_t *home[MOST_FIELDS];
    uint8_t *values[MOST_FIELDS]; /* of the host: what a batch should hold */
    gpu_address landed[MOST_FIELDS], homes[MOST_FIELDS];
    uint64_t before; /* bytes of device memory */
};

static stk_status harbour_try(struct harbour *harbour, struct stk_dataset *dataset, uint64_t limit,
                              struct stk_error *err)
{
    static const struct stk_loader_options options = {.batch_size = BATCH};
    const struct layout_request request = {
        .dataset = dataset, .options = &options, .capacity = BATCH};
    *harbour = (struct harbour){.dataset = dataset, .before = device_bytes()};
    good(layout_init(&harbour->layout, &request, err), err);
    const struct resident_options wanted = {.gpu = gpu, .dataset = dataset, .limit = limit};
    return resident_new(&harbour->resident, &wanted, &harbour->layout, err);
}

static void harbour_open(struct harbour *harbour, struct stk_dataset *dataset)
{
    struct stk_error err;
    good(harbour_try(harbour, dataset, UINT64_MAX, &err), &err);
    good(stk_reader_new(dataset, &harbour->reader, &err), &err);
    harbour->box.home = harbour->home;
    for (uint32_t f = 0; f < harbour->layout.field_count; f++) {
        uint64_t size = BATCH * harbour->layout.fields[f].item;
        harbour->home[f] = calloc(BATCH, sizeof(uint64_t));
        harbour->values[f] = calloc(1, size);
        good(gpu_alloc(gpu, size, &harbour->landed[f], &err), &err);
        good(gpu_alloc(gpu, BATCH * sizeof(uint64_t), &harbour->homes[f], &err), &err);
    }
}

static void harbour_close(struct harbour *harbour)
{
    for (uint32_t f = 0; f < harbour->layout.field_count; f++) {
        free(harbour->home[f]);
        free(harbour->values[f]);
        gpu_free(gpu, harbour->landed[f]);
        gpu_free(gpu, harbour->homes[f]);
    }
    stk_reader_free(harbour->reader);
    resident_free(harbour->resident);
    layout_reset(&harbour->layout);
    assert_int_equal(device_bytes(), harbour->before);
}

/* What samples hold, by the dataset's own reader. */
static void harbour_read(struct harbour *harbour, const uint64_t *positions, uint32_t count)
{
    struct stk_value values[MOST_FIELDS];
    struct stk_error err;
    for (uint32_t i = 0; i < count; i++) {
        good(stk_reader_read(harbour->reader, positions[i], values, &err), &err);
        for (uint32_t f = 0; f < harbour->layout.field_count; f++) {
            uint64_t item = harbour->layout.fields[f].item;
            memcpy(harbour->values[f] + i * item, values[f].tensor.data, item);
        }
    }
}

static uint32_t harbour_find(struct harbour *harbour, const uint64_t *samples, uint32_t count)
{
    struct extent extents[BATCH * MOST_FIELDS], scratch[BATCH * MOST_FIELDS];
    good(dataset_resolve(harbour->dataset, samples, count, scratch, extents, NULL),
         &(struct stk_error){0});
    const struct resident_span span = {&harbour->box, 0, count, samples, extents};
    return resident_find(harbour->resident, &span);
}

/* Values land from the host; then those that are not there yet are kept. */
static void harbour_land(struct harbour *harbour, const uint64_t *samples, uint32_t count)
{
    struct stk_error err;
    for (uint32_t f = 0; f < harbour->layout.field_count; f++) {
        good(gpu_copy_in(gpu, harbour->landed[f], harbour->values[f],
                         count * harbour->layout.fields[f].item, stream, &err),
             &err);
        const struct resident_batch batch = {.field = f,
                                             .count = count,
                                             .real = count,
                                             .values = harbour->landed[f],
                                             .samples = samples,
                                             .stream = stream};
        if (harbour->layout.fields[f].resident)
            good(resident_keep(harbour->resident, &batch, &err), &err);
    }
    resident_found(harbour->resident, samples, count);
}

/* Gathers what has a home over memory that holds `rubbish`, and compares places 0 .. count-1 with
 * what they should hold; those that have no home must hold the rubbish still. */
static void harbour_check(struct harbour *harbour, uint32_t count, uint32_t real)
{
    struct stk_error err;
    for (uint32_t f = 0; f < harbour->layout.field_count; f++) {
        uint64_t item = harbour->layout.fields[f].item;
        uint8_t *got = malloc(count * item), *rubbish = malloc(item);
        if (!harbour->layout.fields[f].resident) {
            free(got);
            free(rubbish);
            continue;
        }
        memset(got, 0xa5, count * item);
        memset(rubbish, 0xa5, item);
        good(gpu_copy_in(gpu, harbour->landed[f], got, count * item, stream, &err), &err);
        good(gpu_copy_in(gpu, harbour->homes[f], harbour->home[f], count * sizeof(uint64_t), stream,
                         &err),
             &err);
        const struct resident_batch batch = {.field = f,
                                             .count = count,
                                             .real = real,
                                             .home = harbour->homes[f],
                                             .values = harbour->landed[f],
                                             .stream = stream};
        good(resident_gather(harbour->resident, &batch, &err), &err);
        good(gpu_copy_out(gpu, got, harbour->landed[f], count * item, stream, &err), &err);
        good(gpu_stream_sync(gpu, stream, &err), &err);
        for (uint32_t i = 0; i < real; i++)
            assert_memory_equal(
                got + i * item,
                harbour->home[f][i] == STK_NOWHERE ? rubbish : harbour->values[f] + i * item, item);
        for (uint64_t i = real * item; i < count * item; i++)
            assert_int_equal(got[i], 0);
        free(got);
        free(rubbish);
    }
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* Shards with a tensor of 6 float32 and a number in each sample. */
static void shards_open(struct fixture *fixture, uint32_t samples)
{
    char path[256], name[64], npy[128 + 24] = "\x93NUMPY\x01";
    const char *head = "{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }";
    char zeros[1024] = {0};
    memset(npy + 10, ' ', 118);
    npy[8] = 118;
    memcpy(npy + 10, head, strlen(head));
    npy[127] = '\n';
    fixture_folder(fixture);
    fixture_path(fixture, "shard.tar", path, sizeof path);
    gzFile file = gzopen(path, "wbT");
    assert_non_null(file);
    for (uint32_t i = 0; i < samples; i++) {
        for (uint32_t k = 0; k < 6; k++)
            memcpy(npy + 128 + 4 * k, &(float){(float)(i * 10 + k)}, 4);
        snprintf(name, sizeof name, "%06u.npy", i);
        fixture_member(file, name, npy, sizeof npy);
        snprintf(name, sizeof name, "%06u.cls", i);
        char text[16];
        snprintf(text, sizeof text, "%u", i * 3);
        fixture_member(file, name, text, strlen(text));
    }
    gzwrite(file, zeros, 1024);
    gzclose(file);
    fixture_open(fixture, "", NULL);
}

static void samples_are_found_once_they_were_kept(void **state)
{
    static const uint64_t first[] = {3, 1, 4, 0, 9}, then[] = {9, 2, 3, 3, 8, 0};
    struct fixture fixture;
    struct harbour harbour;
    (void)state;
    if (!gpu)
        skip();
    shards_open(&fixture, 20);
    harbour_open(&harbour, fixture.dataset);
    assert_int_equal(harbour_find(&harbour, first, 5), 0);
    assert_int_equal(resident_has(harbour.resident, 3), 0);
    harbour_read(&harbour, first, 5);
    harbour_land(&harbour, first, 5);
    assert_int_equal(resident_samples(harbour.resident), 5);
    assert_int_not_equal(resident_has(harbour.resident, 3), 0);
    assert_int_equal(harbour_find(&harbour, then, 6), 4);
    harbour_read(&harbour, then, 6);
    harbour_check(&harbour, 6, 6);
    assert_int_equal(harbour.home[0][1], STK_NOWHERE);
    harbour_land(&harbour, then, 6);
    assert_int_equal(harbour_find(&harbour, then, 6), 6);
    assert_int_equal(resident_samples(harbour.resident), 7);
    harbour_check(&harbour, 6, 6);
    harbour_close(&harbour);
    fixture_close(&fixture);
}

static void masked_places_are_cleared(void **state)
{
    static const uint64_t samples[] = {7, 5, 6};
    struct fixture fixture;
    struct harbour harbour;
    (void)state;
    if (!gpu)
        skip();
    shards_open(&fixture, 20);
    harbour_open(&harbour, fixture.dataset);
    harbour_read(&harbour, samples, 3);
    harbour_land(&harbour, samples, 3);
    assert_int_equal(harbour_find(&harbour, samples, 3), 3);
    harbour_check(&harbour, 9, 3);
    harbour_close(&harbour);
    fixture_close(&fixture);
}

static void a_place_that_is_read_otherwise_lands(void **state)
{
    static const uint64_t samples[] = {7, 5};
    struct fixture fixture;
    struct harbour harbour;
    (void)state;
    if (!gpu)
        skip();
    shards_open(&fixture, 20);
    harbour_open(&harbour, fixture.dataset);
    harbour_read(&harbour, samples, 2);
    harbour_land(&harbour, samples, 1);
    assert_int_equal(harbour_find(&harbour, samples, 2), 1);
    assert_int_not_equal(resident_land(harbour.resident, &harbour.box, 0), 0);
    assert_int_equal(resident_land(harbour.resident, &harbour.box, 0), 0);
    assert_int_equal(resident_land(harbour.resident, &harbour.box, 1), 0);
    harbour_check(&harbour, 2, 2);
    harbour_close(&harbour);
    fixture_close(&fixture);
}

/* Substitutes and masked places: samples twice in a batch, and places without one. */
static void a_sample_that_comes_twice_is_kept_once(void **state)
{
    static const uint64_t samples[] = {4, 4, STK_NOWHERE, 4}, one[] = {4};
    struct fixture fixture;
    struct harbour harbour;
    (void)state;
    if (!gpu)
        skip();
    shards_open(&fixture, 20);
    harbour_open(&harbour, fixture.dataset);
    harbour_read(&harbour, (const uint64_t[]){4, 4, 4, 4}, 4);
    harbour_land(&harbour, samples, 4);
    assert_int_equal(resident_samples(harbour.resident), 1);
    assert_int_equal(harbour_find(&harbour, one, 1), 1);
    harbour_check(&harbour, 1, 1);
    harbour_close(&harbour);
    fixture_close(&fixture);
}

/* Samples are numbered by the index, but a part of it needs room for its own alone. */
static void a_part_of_a_dataset_needs_its_own_memory_alone(void **state)
{
    static const uint64_t positions[] = {900, 17, 512, 3};
    struct fixture fixture;
    struct harbour harbour;
    struct stk_dataset *part;
    struct stk_error err;
    (void)state;
    if (!gpu)
        skip();
    fixture_records(&fixture, 1000); /* of 32 bytes */
    good(stk_dataset_select(fixture.dataset, &part, positions, 4, &err), &err);
    harbour_open(&harbour, part);
    assert_true(resident_bytes(harbour.resident) <= 256);
    harbour_read(&harbour, (const uint64_t[]){0, 1, 2, 3}, 4);
    harbour_land(&harbour, positions, 4);
    assert_int_equal(harbour_find(&harbour, positions, 4), 4);
    harbour_check(&harbour, 4, 4);
    harbour_close(&harbour);
    stk_dataset_close(part);
    fixture_close(&fixture);
}

static void a_field_that_cannot_live_there_is_named(void **state)
{
    struct fixture fixture;
    struct harbour harbour;
    struct stk_error err;
    (void)state;
    if (!gpu)
        skip();
    fixture_shards(&fixture, 1, 10, "wbT");
    assert_int_equal(harbour_try(&harbour, fixture.dataset, UINT64_MAX, &err), STK_UNSUPPORTED);
    assert_null(harbour.resident);
    assert_string_equal(err.field, "txt");
    assert_non_null(strstr(err.what, "bytes"));
    assert_int_equal(harbour.layout.fields[0].resident, 0);
    harbour_close(&harbour);
    fixture_close(&fixture);
}

static void what_does_not_fit_says_how_much_it_needs(void **state)
{
    struct fixture fixture;
    struct harbour harbour;
    struct stk_error err;
    (void)state;
    if (!gpu)
        skip();
    fixture_records(&fixture, 200000); /* 6.1 MiB */
    assert_int_equal(harbour_try(&harbour, fixture.dataset, 5 << 20, &err), STK_MEMORY);
    assert_non_null(strstr(err.what, "7 MiB"));
    assert_non_null(strstr(err.what, "5 MiB"));
    harbour_close(&harbour);
    assert_int_equal(harbour_try(&harbour, fixture.dataset, 7 << 20, &err), STK_OK);
    harbour_close(&harbour);
    fixture_close(&fixture);
}

/* --- series ----------------------------------------------------------------------------------- */

static void feed_all(struct harbour *harbour)
{
    while (resident_feed(harbour->resident, stream))
        usleep(100);
}

/* All windows, a few at a time. */
static void check_all_windows(struct series *series)
{
    struct harbour harbour;
    uint64_t samples[BATCH];
    harbour_open(&harbour, series->fixture.dataset);
    assert_int_equal(resident_samples(harbour.resident), 0);
    feed_all(&harbour);
    assert_int_equal(resident_samples(harbour.resident), series->count);
    assert_int_equal(resident_needs_extents(harbour.resident), 1);
    for (uint32_t first = 0; first < series->count; first += BATCH) {
        uint32_t n = series->count - first < BATCH ? series->count - first : BATCH;
        for (uint32_t i = 0; i < n; i++)
            samples[i] = first + i;
        const struct resident_span span = {&harbour.box, 0, n, samples, NULL};
        harbour_read(&harbour, samples, n);
        /* windows that lack nothing are found without their extents */
        assert_int_equal(resident_find(harbour.resident, &span), series->options.pad ? 0 : n);
        if (series->options.pad)
            assert_int_equal(harbour_find(&harbour, samples, n), n);
        harbour_check(&harbour, n, n);
    }
    harbour_close(&harbour);
    series_close(series);
}

static void windows_are_gathered_as_the_reader_has_them(void **state)
{
    static const char *const fields[] = {"x", "y", "entity", "start", "time", "y_time"};
    static const char *const some[] = {"d", "a"}, *const labels[] = {"e", "b", "c"};
    struct series series;
    (void)state;
    if (!gpu)
        skip();
    series_open(&series, (struct series_options){0});
    check_all_windows(&series);
    series_open(&series, (struct series_options){.late = 1, .horizon = 3, .gap = 2, .stride = 3});
    check_all_windows(&series);
    series_open(&series, (struct series_options){.fields = fields, .field_count = 6});
    check_all_windows(&series);
    series_open(&series, (struct series_options){.late = 1,
                                                 .horizon = 2,
                                                 .features = some,
                                                 .feature_count = 2,
                                                 .labels = labels,
                                                 .label_count = 3});
    check_all_windows(&series);
}

static void short_histories_are_padded(void **state)
{
    struct series series;
    (void)state;
    if (!gpu)
        skip();
    series_open(&series, (struct series_options){.pad = 1, .window = 12});
    check_all_windows(&series);
    series_open(&series, (struct series_options){.pad = 1, .window = 12, .late = 1});
    check_all_windows(&series);
}

static void nothing_is_found_before_all_of_a_series_is_there(void **state)
{
    static const uint64_t samples[] = {5, 0, 9};
    struct series series;
    struct harbour harbour;
    (void)state;
    if (!gpu)
        skip();
    series_open(&series, (struct series_options){.big = 1}); /* 64 MiB: several pieces */
    harbour_open(&harbour, series.fixture.dataset);
    assert_int_not_equal(resident_feed(harbour.resident, stream), 0);
    assert_int_equal(harbour_find(&harbour, samples, 3), 0);
    assert_int_equal(harbour.home[0][2], STK_NOWHERE);
    feed_all(&harbour);
    assert_int_equal(harbour_find(&harbour, samples, 3), 3);
    harbour_close(&harbour);
    harbour_open(&harbour, series.fixture.dataset);
    resident_feed(harbour.resident, stream); /* closed while a piece is under way */
    harbour_close(&harbour);
    series_close(&series);
}

static void a_series_that_cannot_be_read_never_comes(void **state)
{
    static const uint64_t samples[] = {5};
    struct series series;
    struct harbour harbour;
    char path[256];
    (void)state;
    if (!gpu)
        skip();
    series_open(&series, (struct series_options){0});
    fixture_path(&series.fixture, "all_features.mmap", path, sizeof path);
    assert_int_equal(truncate(path, 100), 0);
    harbour_open(&harbour, series.fixture.dataset);
    feed_all(&harbour);
    assert_int_equal(resident_samples(harbour.resident), 0);
    assert_int_equal(harbour_find(&harbour, samples, 1), 0);
    harbour_close(&harbour);
    series_close(&series);
}

static void computed_fields_of_a_series_land(void **state)
{
    static const char *const fields[] = {"entity", "x", "start"}, *const none[] = {"entity"};
    struct series series;
    struct harbour harbour;
    struct stk_error err;
    (void)state;
    if (!gpu)
        skip();
    series_open(&series, (struct series_options){.fields = fields, .field_count = 3});
    harbour_open(&harbour, series.fixture.dataset);
    assert_int_equal(harbour.layout.fields[0].resident, 0);
    assert_int_equal(harbour.layout.fields[1].resident, 1);
    assert_int_equal(harbour.layout.fields[2].resident, 0);
    harbour_close(&harbour);
    series_close(&series);
    series_open(&series, (struct series_options){.fields = none, .field_count = 1});
    assert_int_equal(harbour_try(&harbour, series.fixture.dataset, UINT64_MAX, &err),
                     STK_UNSUPPORTED);
    harbour_close(&harbour);
    series_close(&series);
}

static void a_series_that_does_not_fit_says_so(void **state)
{
    struct series series;
    struct harbour harbour;
    struct stk_error err;
    (void)state;
    if (!gpu)
        skip();
    series_open(&series, (struct series_options){.big = 1});
    assert_int_equal(harbour_try(&harbour, series.fixture.dataset, 10 << 20, &err), STK_MEMORY);
    assert_non_null(strstr(err.what, "10 MiB"));
    harbour_close(&harbour);
    series_close(&series);
}

/* --- what goes wrong -------------------------------------------------------------------------- */

static int (*sim_fail)(const char *);
static uint64_t (*sim_calls)(void);

/* The nth call of the driver fails, then the one after it, until all goes well. */
static void fail_each_call(struct stk_dataset *dataset)
{
    struct harbour harbour;
    struct stk_error err;
    char text[32];
    uint64_t calls = UINT64_MAX, refused = 0;
    for (uint64_t n = 1; n <= calls; n++) {
        snprintf(text, sizeof text, "*:%d:2", (int)n);
        assert_int_equal(sim_fail(text), 0);
        stk_status status = harbour_try(&harbour, dataset, UINT64_MAX, &err);
        calls = status ? UINT64_MAX : sim_calls();
        sim_fail(NULL);
        refused += status != STK_OK;
        assert_true(status || harbour.resident); /* memory that is not locked serves too */
        harbour_close(&harbour);                 /* and nothing is left of it */
    }
    assert_true(refused > 1);
}

static void every_call_of_the_driver_may_fail(void **state)
{
    struct fixture fixture;
    struct series series;
    (void)state;
    void *library = gpu ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
    *(void **)&sim_fail = library ? dlsym(library, "sim_cuda_fail") : NULL;
    *(void **)&sim_calls = library ? dlsym(library, "sim_cuda_calls") : NULL;
    if (!sim_fail || !sim_calls)
        skip();
    shards_open(&fixture, 20);
    fail_each_call(fixture.dataset);
    fixture_close(&fixture);
    series_open(&series, (struct series_options){.late = 1});
    fail_each_call(series.fixture.dataset);
    series_close(&series);
}

static int fail_nth(void *user, size_t size)
{
    long *left = user;
    (void)size;
    return --*left == 0;
}

static void fail_each_allocation(struct stk_dataset *dataset)
{
    const struct stk_loader_options options = {.batch_size = BATCH};
    const struct layout_request request = {
        .dataset = dataset, .options = &options, .capacity = BATCH};
    const struct resident_options wanted = {.gpu = gpu, .dataset = dataset, .limit = UINT64_MAX};
    struct layout layout;
    struct stk_error err;
    struct resident *resident;
    stk_status status = STK_MEMORY;
    good(layout_init(&layout, &request, &err), &err);
    uint64_t before = device_bytes();
    for (long n = 1; status && n < 1000; n++) {
        long left = n;
        memory_set_hook(fail_nth, &left);
        status = resident_new(&resident, &wanted, &layout, &err);
        memory_set_hook(NULL, NULL);
        assert_true(status == STK_OK || status == STK_MEMORY);
        resident_free(resident);
        assert_int_equal(device_bytes(), before);
    }
    assert_int_equal(status, STK_OK);
    layout_reset(&layout);
}

static void every_allocation_may_fail(void **state)
{
    struct fixture fixture;
    struct series series;
    (void)state;
    if (!gpu)
        skip();
    shards_open(&fixture, 20);
    fail_each_allocation(fixture.dataset);
    fixture_close(&fixture);
    series_open(&series, (struct series_options){.late = 1});
    fail_each_allocation(series.fixture.dataset);
    series_close(&series);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_found_once_they_were_kept),
        cmocka_unit_test(masked_places_are_cleared),
        cmocka_unit_test(a_place_that_is_read_otherwise_lands),
        cmocka_unit_test(a_sample_that_comes_twice_is_kept_once),
        cmocka_unit_test(a_part_of_a_dataset_needs_its_own_memory_alone),
        cmocka_unit_test(a_field_that_cannot_live_there_is_named),
        cmocka_unit_test(what_does_not_fit_says_how_much_it_needs),
        cmocka_unit_test(windows_are_gathered_as_the_reader_has_them),
        cmocka_unit_test(short_histories_are_padded),
        cmocka_unit_test(nothing_is_found_before_all_of_a_series_is_there),
        cmocka_unit_test(a_series_that_cannot_be_read_never_comes),
        cmocka_unit_test(computed_fields_of_a_series_land),
        cmocka_unit_test(a_series_that_does_not_fit_says_so),
        cmocka_unit_test(every_call_of_the_driver_may_fail),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, device_open, device_close);
}
