/* Whole epochs of a loader whose data lives on the device, against those of a loader without one.
 */
#include "series_fixture.h"

#include "gpu/gpu.h"

enum { EPOCHS = 4 };

static void good(stk_status status, const struct stk_error *err)
{
    if (status)
        print_error("%s %s\n", err->what, err->remedy);
    assert_int_equal(status, STK_OK);
}

static int no_device(void)
{
    struct stk_error err;
    if (gpu_count(&err))
        return 0;
    print_message("no device: %s\n", err.what);
    return 1;
}

static uint64_t field_size(const struct stk_batch_field *field)
{
    return stk_tensor_size(&field->tensor);
}

/* The values of a field, wherever they are; the caller frees them. */
static uint8_t *copy_values(struct stk_batch *batch, uint32_t f, uint64_t size)
{
    struct stk_error err;
    uint8_t *values = malloc(size + 1);
    assert_int_equal(field_size(&batch->fields[f]), size);
    good(stk_batch_copy_out(batch, values, batch->fields[f].tensor.data, size, &err), &err);
    return values;
}

static void check_field(struct stk_batch *right, struct stk_batch *batch, uint32_t f)
{
    uint64_t size = field_size(&right->fields[f]);
    uint8_t *want = copy_values(right, f, size), *got = copy_values(batch, f, size);
    assert_memory_equal(got, want, size);
    free(want);
    free(got);
}

static void check_batch(struct stk_batch *right, struct stk_batch *batch)
{
    assert_int_equal(batch->count, right->count);
    assert_int_equal(batch->real, right->real);
    assert_int_equal(batch->end, right->end);
    assert_int_equal(batch->bytes, right->bytes);
    assert_memory_equal(batch->samples, right->samples, right->count * sizeof(uint64_t));
    for (uint32_t f = 0; f < right->field_count; f++)
        check_field(right, batch, f);
}

static void check_state(const struct stk_loader *right, const struct stk_loader *loader)
{
    char want[STK_STATE_CAP], got[STK_STATE_CAP];
    struct stk_error err;
    size_t len;
    good(stk_loader_save(right, want, sizeof want, &len, &err), &err);
    good(stk_loader_save(loader, got, sizeof got, &len, &err), &err);
    assert_string_equal(got, want);
}

static void check_epoch(struct stk_loader *right, struct stk_loader *loader)
{
    struct stk_batch *want, *batch;
    while ((want = fixture_next(right))) {
        batch = fixture_next(loader);
        assert_non_null(batch);
        assert_int_equal(batch->device, 0);
        check_batch(want, batch);
        check_state(right, loader);
        stk_batch_release(want);
        stk_batch_release(batch);
    }
    assert_null(fixture_next(loader));
}

static struct stk_device_stats stats_of(struct stk_loader *loader)
{
    struct stk_loader_stats stats;
    stk_loader_stats(loader, &stats);
    return stats.device;
}

/* Every sample comes in an epoch, or all are sent beside it: then they are there. */
static void wait_for_all(struct stk_loader *loader, uint64_t samples)
{
    for (int i = 0; i < 10000 && stats_of(loader).resident_samples < samples; i++)
        usleep(1000);
    assert_int_equal(stats_of(loader).resident_samples, samples);
}

/* Bytes that an epoch ships when nothing lives on the device; and of two more batches at most. */
static uint64_t epoch_ships(struct fixture *fixture, struct stk_loader_options options)
{
    struct stk_batch *batch;
    options.resident = STK_RESIDENT_NO;
    options.depth = 2;
    struct stk_loader *loader = fixture_loader(fixture, &options);
    while ((batch = fixture_next(loader)))
        stk_batch_release(batch);
    uint64_t bytes = stats_of(loader).shipped_bytes;
    stk_loader_close(loader);
    return bytes;
}

/* samples: that can live on the device. */
static void check_against(struct fixture *fixture, struct stk_loader *right,
                          struct stk_loader_options options, uint64_t samples)
{
    options.device = STK_DEVICE_CUDA;
    options.resident = STK_RESIDENT_YES;
    struct stk_loader *loader = fixture_loader(fixture, &options);
    uint64_t steps = stk_loader_steps(loader), shipped = 0;
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        check_epoch(right, loader);
        if (epoch == 1)
            wait_for_all(loader, samples);
        if (epoch == 2)
            shipped = stats_of(loader).shipped_bytes;
    }
    struct stk_device_stats stats = stats_of(loader);
    assert_true(stats.resident_batches >= steps || samples < stk_dataset_samples(fixture->dataset));
    assert_true(stats.resident_bytes > 0);
    /* The last epoch sent where values lie, not the values: a quarter of them at most here, or
     * twice that where the loader has run ahead into the next epoch. */
    assert_true(3 * (stats.shipped_bytes - shipped) < 2 * epoch_ships(fixture, options));
    stk_loader_close(loader);
    stk_loader_close(right);
}

static void check_loader(struct fixture *fixture, struct stk_loader_options options)
{
    check_against(fixture, fixture_loader(fixture, &options), options,
                  stk_dataset_samples(fixture->dataset));
}

/* Shards of KEY.npy, 64 float32, and KEY.cls. */
static void open_shards(struct fixture *fixture, uint32_t samples, const char *mode)
{
    char path[256], name[64], text[16], npy[128 + 256] = "\x93NUMPY\x01", zeros[1024] = {0};
    const char *head = "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 16), }";
    memset(npy + 10, ' ', 118);
    npy[8] = 118;
    memcpy(npy + 10, head, strlen(head));
    npy[127] = '\n';
    fixture_folder(fixture);
    snprintf(name, sizeof name, "shard.tar%s", strchr(mode, 'T') ? "" : ".gz");
    fixture_path(fixture, name, path, sizeof path);
    gzFile file = gzopen(path, mode);
    assert_non_null(file);
    for (uint32_t i = 0; i < samples; i++) {
        for (uint32_t k = 0; k < 64; k++)
            memcpy(npy + 128 + 4 * k, &(float){(float)(i * 100 + k)}, 4);
        snprintf(name, sizeof name, "%06u.npy", i);
        fixture_member(file, name, npy, sizeof npy);
        snprintf(name, sizeof name, "%06u.cls", i);
        snprintf(text, sizeof text, "%u", i * 3);
        fixture_member(file, name, text, strlen(text));
    }
    gzwrite(file, zeros, 1024);
    gzclose(file);
    fixture_open(fixture, "", NULL);
}

static void tensors_are_the_same_in_every_epoch(void **state)
{
    struct fixture fixture;
    (void)state;
    if (no_device())
        skip();
    open_shards(&fixture, 150, "wbT");
    check_loader(&fixture, (struct stk_loader_options){
                               .batch_size = 16, .order = STK_ORDER_GLOBAL, .seed = 5});
    check_loader(&fixture, (struct stk_loader_options){.batch_size = 16, /* masks the last places */
                                                       .order = STK_ORDER_GLOBAL,
                                                       .last = STK_LAST_MASK});
    fixture_close(&fixture);
}

static void tensors_of_compressed_shards_are_the_same(void **state)
{
    struct fixture fixture;
    (void)state;
    if (no_device())
        skip();
    open_shards(&fixture, 150, "wb");
    check_loader(&fixture, (struct stk_loader_options){
                               .batch_size = 16, .order = STK_ORDER_LOCAL, .seed = 2});
    fixture_close(&fixture);
}

static void a_part_of_the_samples_is_the_same(void **state)
{
    struct fixture fixture;
    struct stk_dataset *whole, *part;
    struct stk_error err;
    (void)state;
    if (no_device())
        skip();
    fixture_records(&fixture, 1000);
    whole = fixture.dataset;
    good(stk_dataset_split(whole, &part, (const double[]){0.3}, 1, 0, 9, &err), &err);
    fixture.dataset = part;
    check_loader(&fixture,
                 (struct stk_loader_options){.batch_size = 20, .order = STK_ORDER_GLOBAL});
    stk_dataset_close(whole);
    fixture_close(&fixture);
}

static void windows_are_the_same_in_every_epoch(void **state)
{
    static const char *const fields[] = {"x", "y", "entity", "start", "time"};
    static const struct series_options kinds[] = {
        {.horizon = 2},
        {.late = 1, .stride = 2},
        {.pad = 1, .window = 12, .late = 1},
        {.fields = fields, .field_count = 5, .late = 1},
    };
    struct series series;
    (void)state;
    if (no_device())
        skip();
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        series_open(&series, kinds[i]);
        check_loader(&series.fixture, (struct stk_loader_options){.batch_size = 32,
                                                                  .order = STK_ORDER_GLOBAL,
                                                                  .last = STK_LAST_MASK});
        series_close(&series);
    }
}

static void windows_of_tokens_are_the_same(void **state)
{
    struct fixture fixture;
    static uint16_t tokens[5003];
    char path[256];
    (void)state;
    if (no_device())
        skip();
    fixture_folder(&fixture);
    for (int part = 0; part < 3; part++) { /* each file begins anywhere in the others' memory */
        char name[16];
        for (int i = 0; i < 5003; i++)
            tokens[i] = (uint16_t)(part * 7919 + i);
        snprintf(name, sizeof name, "%d.bin", part);
        fixture_path(&fixture, name, path, sizeof path);
        FILE *file = fopen(path, "wb");
        assert_int_equal(fwrite(tokens, sizeof tokens - part * 2, 1, file), 1);
        fclose(file);
    }
    for (uint64_t stride = 3; stride < 100; stride += 61) { /* 3: of 6 bytes; 64: of 128 */
        const struct stk_window_options window = {.window = 96,
                                                  .stride = stride,
                                                  .horizon = STK_DEFAULT,
                                                  .gap = STK_DEFAULT,
                                                  .min_history = STK_DEFAULT};
        const struct stk_dataset_options options = {
            .format = "tokens", .dtype = "uint16", .window = &window};
        stk_dataset_close(fixture.dataset);
        fixture_open(&fixture, "*.bin", &options);
        check_loader(&fixture,
                     (struct stk_loader_options){.batch_size = 64, .order = STK_ORDER_GLOBAL});
    }
    fixture_close(&fixture);
}

/* The chain is the device's, with new dice in every epoch; against a loader that ships them all. */
static void check_chain(const char *field, const char *text, struct fixture *fixture)
{
    const struct stk_field_chain chain = {field, text};
    struct stk_loader_options options = {.batch_size = 16,
                                         .order = STK_ORDER_GLOBAL,
                                         .last = STK_LAST_MASK,
                                         .device = STK_DEVICE_CUDA,
                                         .transforms = &chain,
                                         .transform_count = 1};
    check_against(fixture, fixture_loader(fixture, &options), options,
                  stk_dataset_samples(fixture->dataset));
}

static void chains_of_the_device_are_drawn_anew(void **state)
{
    static const int64_t shape[] = {48, 40, 3}; /* far more bytes than what is drawn for a sample */
    const struct stk_dataset_options pixels = {
        .format = "raw", .dtype = "uint8", .shape = shape, .rank = 3};
    struct fixture fixture;
    char path[256];
    (void)state;
    if (no_device())
        skip();
    fixture_folder(&fixture);
    fixture_path(&fixture, "pixels.bin", path, sizeof path);
    FILE *file = fopen(path, "wb");
    for (uint32_t i = 0; i < 50 * 48 * 40 * 3; i++)
        assert_true(fputc((int)(i * 2654435761u >> 24), file) >= 0);
    fclose(file);
    fixture_open(&fixture, "pixels.bin", &pixels);
    const char *name = stk_dataset_field(fixture.dataset, 0)->name;
    check_chain(name, "Cast(float32)", &fixture);
    check_chain(name, "RandomCrop((45, 37)) | RandomHorizontalFlip() | Normalize(imagenet)",
                &fixture);
    fixture_close(&fixture);
}

/* A sample that is bad is bad in every epoch, and never lives there. */
static void substitutes_are_the_same(void **state)
{
    struct fixture fixture;
    char path[256];
    (void)state;
    if (no_device())
        skip();
    open_shards(&fixture, 100, "wbT");
    fixture_path(&fixture, "shard.tar", path, sizeof path);
    FILE *file = fopen(path, "r+b"); /* sample 7's npy is no npy; sample 20's cls no number */
    fseek(file, 7 * 2048 + 512, SEEK_SET);
    assert_true(fputc('x', file) >= 0);
    fseek(file, 20 * 2048 + 1536, SEEK_SET);
    assert_true(fputc('x', file) >= 0);
    fclose(file);
    stk_dataset_close(fixture.dataset);
    fixture_open(&fixture, "", NULL);
    struct stk_loader_options options = {
        .batch_size = 16, .order = STK_ORDER_GLOBAL, .bad = STK_BAD_REPLACE};
    check_against(&fixture, fixture_loader(&fixture, &options), options, 98);
    fixture_close(&fixture);
}

/* Drawn with replacement: a sample may come twice in a batch. */
static void weighted_samples_are_the_same(void **state)
{
    struct fixture fixture;
    double weights[40];
    (void)state;
    if (no_device())
        skip();
    for (int i = 0; i < 40; i++)
        weights[i] = 1 + i % 3;
    fixture_records(&fixture, 40);
    const struct stk_loader_options options = {
        .batch_size = 160, .weights = weights, .world_size = 1};
    struct stk_loader *right = fixture_loader(&fixture, &options);
    struct stk_loader_options device = options;
    device.device = STK_DEVICE_CUDA;
    device.resident = STK_RESIDENT_YES;
    struct stk_loader *loader = fixture_loader(&fixture, &device);
    for (int epoch = 0; epoch < 3 * EPOCHS; epoch++)
        check_epoch(right, loader);
    stk_loader_close(loader);
    stk_loader_close(right);
    fixture_close(&fixture);
}

/* 32 bytes a sample land, with what the device half is told of it, and 16 are made of them. */
static void what_batches_land_in_is_within_the_budget(void **state)
{
    struct fixture fixture;
    struct stk_loader *loader;
    struct stk_error err;
    (void)state;
    if (no_device())
        skip();
    fixture_records(&fixture, 1000);
    const struct stk_field_chain chain = {stk_dataset_field(fixture.dataset, 0)->name,
                                          "Cast(float32)"};
    struct stk_loader_options options = {.batch_size = 500,
                                         .device = STK_DEVICE_CUDA,
                                         .device_memory = 60000,
                                         .resident = STK_RESIDENT_YES,
                                         .transforms = &chain,
                                         .transform_count = 1};
    assert_int_equal(stk_loader_open(fixture.context, fixture.dataset, &loader, &options, &err),
                     STK_MEMORY);
    options.device_memory = 1 << 20;
    loader = fixture_loader(&fixture, &options);
    for (int i = 0; i < 6; i++)
        stk_batch_release(fixture_next(loader));
    struct stk_loader_stats stats;
    stk_loader_stats(loader, &stats);
    assert_true(stats.device.resident_bytes > 0);
    assert_in_range(stats.device.peak_bytes, 1, options.device_memory);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void a_budget_that_is_too_small_is_told_or_left(void **state)
{
    struct fixture fixture;
    struct stk_loader *loader;
    struct stk_error err;
    struct stk_loader_options options = {.batch_size = 16,
                                         .device = STK_DEVICE_CUDA,
                                         .device_memory = 4 << 20,
                                         .resident = STK_RESIDENT_YES};
    (void)state;
    if (no_device())
        skip();
    fixture_records(&fixture, 200000); /* 6.1 MiB */
    assert_int_equal(stk_loader_open(fixture.context, fixture.dataset, &loader, &options, &err),
                     STK_MEMORY);
    assert_non_null(strstr(err.what, "7 MiB"));
    options.resident = STK_RESIDENT_AUTO;
    loader = fixture_loader(&fixture, &options);
    struct stk_batch *batch = fixture_next(loader);
    assert_non_null(batch);
    stk_batch_release(batch);
    assert_int_equal(stats_of(loader).resident_bytes, 0);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_the_same_in_every_epoch),
        cmocka_unit_test(tensors_of_compressed_shards_are_the_same),
        cmocka_unit_test(a_part_of_the_samples_is_the_same),
        cmocka_unit_test(windows_are_the_same_in_every_epoch),
        cmocka_unit_test(windows_of_tokens_are_the_same),
        cmocka_unit_test(chains_of_the_device_are_drawn_anew),
        cmocka_unit_test(substitutes_are_the_same),
        cmocka_unit_test(weighted_samples_are_the_same),
        cmocka_unit_test(what_batches_land_in_is_within_the_budget),
        cmocka_unit_test(a_budget_that_is_too_small_is_told_or_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
