/* Batches on a device, on the simulated driver (tests/sim_cuda) or a real one. The simulated one
 * runs streams late and out of step with each other, so a wait that is missing shows as wrong
 * bytes. */
#include "loader_fixture.h"

#include <dlfcn.h>

#include "gpu/gpu.h"

/* The simulated driver's own switches; NULL on a real GPU. */
static void *sim(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library ? dlsym(library, name) : NULL;
}

static void sim_fail(const char *what)
{
    void (*set)(const char *) = (void (*)(const char *))sim("sim_cuda_fail");
    if (set)
        set(what);
}

/* --- comparing -------------------------------------------------------------------------------- */

static void *brought(struct stk_batch *batch, const void *from, uint64_t size)
{
    struct stk_error err;
    void *copy = malloc(size + 1);
    assert_non_null(copy);
    if (stk_batch_copy_out(batch, copy, from, size, &err))
        fixture_fail(&err);
    return copy;
}

static void same(struct stk_batch *device, const void *there, const void *here, uint64_t size)
{
    if (!here) {
        assert_null(there);
        return;
    }
    assert_non_null(there);
    void *copy = brought(device, there, size);
    assert_memory_equal(copy, here, size);
    free(copy);
}

static void same_field(struct stk_batch *device, const struct stk_batch_field *there,
                       const struct stk_batch_field *here)
{
    uint32_t count = device->count;
    assert_ptr_equal(there->field, here->field);
    assert_int_equal(there->layout, here->layout);
    same(device, there->present, here->present, count);
    same(device, there->lengths, here->lengths, count * sizeof(int64_t));
    same(device, there->offsets, here->offsets, (count + 1) * sizeof(int64_t));
    if (here->bytes) {
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(there->bytes[i].len, here->bytes[i].len);
            assert_memory_equal(there->bytes[i].data, here->bytes[i].data, here->bytes[i].len);
        }
    } else if (here->layout == STK_RAGGED_LIST) {
        for (uint32_t i = 0; i < count; i++)
            same(device, there->items[i].data, here->items[i].data,
                 stk_tensor_size(&here->items[i]));
    } else {
        assert_int_equal(there->tensor.rank, here->tensor.rank);
        assert_memory_equal(there->tensor.shape, here->tensor.shape, 8 * here->tensor.rank);
        same(device, there->tensor.data, here->tensor.data, stk_tensor_size(&here->tensor));
    }
}

static void same_batch(struct stk_batch *device, const struct stk_batch *host)
{
    assert_int_equal(device->device, 0);
    assert_int_equal(host->device, -1);
    assert_int_equal(device->count, host->count);
    assert_int_equal(device->real, host->real);
    assert_int_equal(device->end, host->end);
    assert_int_equal(device->bytes, host->bytes);
    assert_int_equal(device->step, host->step);
    assert_memory_equal(device->samples, host->samples, host->count * sizeof(uint64_t));
    same(device, device->mask, host->mask, host->count);
    for (uint32_t f = 0; f < host->field_count; f++)
        same_field(device, &device->fields[f], &host->fields[f]);
}

/* Two epochs of the same loader, with and without a device. */
static void same_epochs(struct fixture *fixture, struct stk_loader_options options)
{
    struct stk_batch *here, *there;
    struct stk_loader *host = fixture_loader(fixture, &options);
    options.device = STK_DEVICE_CUDA;
    struct stk_loader *device = fixture_loader(fixture, &options);
    for (int epoch = 0; epoch < 2; epoch++) {
        while ((here = fixture_next(host)) != NULL) {
            there = fixture_next(device);
            assert_non_null(there);
            same_batch(there, here);
            stk_batch_release(here);
            stk_batch_release(there);
        }
        assert_null(fixture_next(device));
    }
    stk_loader_close(device);
    stk_loader_close(host);
}

/* --- equal bytes ------------------------------------------------------------------------------ */

static void records_on_a_device_are_those_of_the_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 1009);
    for (uint32_t depth = 0; depth < 3; depth++) {
        struct stk_loader_options options = {
            .batch_size = 32, .shuffle = 1, .seed = 7, .threads = 3, .depth = depth};
        same_epochs(&fixture, options);
    }
    fixture_close(&fixture);
}

static void masked_places_and_ranks_are_those_of_the_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 101);
    struct stk_loader_options options = {
        .batch_size = 16, .shuffle = 1, .rank = 2, .world_size = 3, .last = STK_LAST_MASK};
    same_epochs(&fixture, options);
    fixture_close(&fixture);
}

static void text_stays_with_the_cpu_and_numbers_go_to_the_device(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_shards(&fixture, 2, 25, "wbT");
    struct stk_loader_options options = {.batch_size = 8, .shuffle = 1};
    same_epochs(&fixture, options);
    fixture_close(&fixture);
    fixture_shards(&fixture, 2, 25, "wb");
    same_epochs(&fixture, options);
    fixture_close(&fixture);
}

/* KEY.cls, and for two samples of three KEY.txt. */
static void open_partly_missing(struct fixture *fixture)
{
    char path[256], name[32], zeros[1024] = {0};
    fixture_folder(fixture);
    fixture_path(fixture, "shard.tar", path, sizeof path);
    gzFile file = gzopen(path, "wbT");
    assert_non_null(file);
    for (int i = 0; i < 60; i++) {
        snprintf(name, sizeof name, "%06d.cls", i);
        fixture_member(file, name, "7", 1);
        snprintf(name, sizeof name, "%06d.txt", i);
        if (i % 3)
            fixture_member(file, name, name, strlen(name));
    }
    gzwrite(file, zeros, sizeof zeros);
    gzclose(file);
    fixture_open(fixture, "", NULL);
}

static void digest_epoch(struct fixture *fixture, const struct stk_loader_options *options,
                         char out[33])
{
    struct stk_loader *loader = fixture_loader(fixture, options);
    struct stk_digest digest;
    struct stk_batch *batch;
    stk_digest_init(&digest);
    while ((batch = fixture_next(loader)) != NULL) {
        assert_int_equal(stk_digest_add(&digest, batch, NULL), STK_OK);
        stk_batch_release(batch);
    }
    stk_digest_text(&digest, out);
    stk_loader_close(loader);
}

static void missing_text_is_known_on_the_device(void **state)
{
    (void)state;
    struct fixture fixture;
    char here[33], there[33];
    struct stk_loader_options options = {.batch_size = 8, .shuffle = 1, .last = STK_LAST_MASK};
    open_partly_missing(&fixture);
    same_epochs(&fixture, options);
    digest_epoch(&fixture, &options, here);
    options.device = STK_DEVICE_CUDA;
    digest_epoch(&fixture, &options, there);
    assert_string_equal(there, here);
    fixture_close(&fixture);
}

/* The first of two ranks has nothing in the last step, and shows zeros. */
static void masked_steps_of_resident_records_are_zeros(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 64 + 1);
    struct stk_loader_options options = {.batch_size = 16,
                                         .shuffle = 1,
                                         .rank = 0,
                                         .world_size = 2,
                                         .last = STK_LAST_MASK,
                                         .resident = STK_RESIDENT_YES};
    same_epochs(&fixture, options);
    fixture_close(&fixture);
}

static void resident_records_are_those_of_the_cpu(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 1009);
    struct stk_loader_options options = {
        .batch_size = 32, .shuffle = 1, .seed = 7, .threads = 3, .resident = STK_RESIDENT_YES};
    same_epochs(&fixture, options);
    options.last = STK_LAST_MASK;
    options.world_size = 3;
    same_epochs(&fixture, options);
    fixture_close(&fixture);
}

/* Large values are moved one by one, small ones by a kernel. */
static void large_resident_records_are_those_of_the_cpu(void **state)
{
    (void)state;
    static const int64_t shape[] = {40000};
    static int64_t record[40000];
    struct fixture fixture;
    char path[256];
    fixture_folder(&fixture);
    fixture_path(&fixture, "large.bin", path, sizeof path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int64_t i = 0; i < 21; i++) {
        for (int64_t j = 0; j < 40000; j++)
            record[j] = i * 40000 + j;
        assert_int_equal(fwrite(record, sizeof record, 1, file), 1);
    }
    fclose(file);
    const struct stk_dataset_options wanted = {
        .format = "raw", .dtype = "int64", .shape = shape, .rank = 1};
    fixture_open(&fixture, "large.bin", &wanted);
    struct stk_loader_options options = {
        .batch_size = 4, .shuffle = 1, .last = STK_LAST_MASK, .resident = STK_RESIDENT_YES};
    same_epochs(&fixture, options);
    fixture_close(&fixture);
}

/* --- the caller ------------------------------------------------------------------------------- */

static void batches_that_the_caller_keeps_stay_as_they_are(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *kept[40];
    struct stk_loader_stats stats;
    fixture_records(&fixture, 640);
    struct stk_loader_options options = {
        .batch_size = 16, .device = STK_DEVICE_CUDA, .device_memory = 4096};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    for (int i = 0; i < 40; i++)
        assert_non_null(kept[i] = fixture_next(loader));
    stk_loader_stats(loader, &stats);
    assert_true(stats.device.caller_bytes >= 40 * 16 * 32);
    assert_true(stats.device.held_bytes <= 4096);
    stk_loader_close(loader); /* they outlive the loader */
    for (int i = 0; i < 40; i++) {
        int64_t *values = brought(kept[i], kept[i]->fields[0].tensor.data, 16 * 32);
        for (int j = 0; j < 16; j++)
            assert_int_equal(values[4 * j], i * 16 + j);
        free(values);
        stk_batch_release(kept[i]);
    }
    fixture_close(&fixture);
}

static double seconds_of_an_epoch(struct fixture *fixture, uint64_t device_memory)
{
    struct stk_loader_stats stats;
    struct stk_batch *batch;
    struct stk_loader_options options = {
        .batch_size = 16, .threads = 2, .device = STK_DEVICE_CUDA, .device_memory = device_memory};
    struct stk_loader *loader = fixture_loader(fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        usleep(200);
        stk_batch_release(batch);
    }
    stk_loader_stats(loader, &stats);
    stk_loader_close(loader);
    return stats.seconds;
}

/* A batch is made as soon as the one before is taken, not when someone looks again. */
static void one_batch_at_a_time_comes_without_delay(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 16 * 300);
    double usual = seconds_of_an_epoch(&fixture, 0);
    assert_true(seconds_of_an_epoch(&fixture, 1) < 3 * usual + 0.5);
    fixture_close(&fixture);
}

static void a_stream_that_uses_a_batch_finds_it_whole(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_error err;
    struct stk_batch *batch;
    fixture_records(&fixture, 512);
    struct stk_loader_options options = {.batch_size = 16, .device = STK_DEVICE_CUDA};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        const void *data = batch->fields[0].tensor.data;
        assert_int_equal(stk_batch_use(batch, NULL, &err), STK_OK);
        assert_int_equal(stk_loader_use(loader, data, NULL, &err), STK_OK);
        assert_int_equal(stk_loader_use(loader, (void *)(uintptr_t)64, NULL, &err), STK_NOT_FOUND);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void seeking_drops_what_was_shipped(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_error err;
    fixture_records(&fixture, 512);
    struct stk_loader_options options = {.batch_size = 16, .device = STK_DEVICE_CUDA};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    for (uint64_t position = 0; position < 512; position += 112) {
        assert_int_equal(stk_loader_seek(loader, 3, position, &err), STK_OK);
        struct stk_batch *batch = fixture_next(loader);
        assert_int_equal(batch->samples[0], position);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* --- faults ----------------------------------------------------------------------------------- */

/* FAULTS 96: whatever call of CUDA fails, the caller gets an error, and nothing is left behind. */
static void every_failing_call_of_cuda_is_an_error_and_not_a_crash(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 128);
    if (!sim("sim_cuda_fail"))
        skip();
    int whole = 0;
    for (int n = 1; n < 400 && !whole; n++) {
        char what[32];
        struct stk_loader *loader;
        struct stk_batch *batch;
        struct stk_error err;
        struct stk_loader_options options = {.batch_size = 16, .device = STK_DEVICE_CUDA};
        snprintf(what, sizeof what, "*:%d:2", n);
        sim_fail(what);
        stk_status status =
            stk_loader_open(fixture.context, fixture.dataset, &loader, &options, &err);
        uint64_t samples = 0;
        while (!status && !(status = stk_loader_next(loader, &batch, &err))) {
            samples += batch->real;
            stk_batch_release(batch);
        }
        assert_true(status == STK_END ? samples == 128 : status != STK_OK);
        whole = n > 60 && status == STK_END;
        stk_loader_close(loader);
    }
    assert_true(whole);
    sim_fail(NULL);
    fixture_close(&fixture);
}

/* The driver's functions that a consumer calls. */
struct consumer {
    struct gpu *gpu;
    struct gpu_stream *stream;
    int64_t *got; /* [64] what the last copy found; locked: else a copy is waited for */
};

/* Work that takes a while: many copies of the first field's values. */
static void consume_slowly(struct consumer *consumer, struct stk_batch *batch)
{
    struct stk_error err;
    gpu_address from = (gpu_address)(uintptr_t)batch->fields[0].tensor.data;
    assert_int_equal(stk_batch_use(batch, consumer->stream, &err), STK_OK);
    assert_int_equal(gpu_enter(consumer->gpu, &err), STK_OK);
    for (int i = 0; i < 1500; i++)
        assert_int_equal(
            gpu_copy_out(consumer->gpu, consumer->got, from, 512, consumer->stream, &err), STK_OK);
    gpu_leave(consumer->gpu);
}

static void consumer_open(struct consumer *consumer)
{
    struct stk_error err;
    assert_int_equal(gpu_open(&consumer->gpu, 0, &err), STK_OK);
    assert_int_equal(gpu_enter(consumer->gpu, &err), STK_OK);
    assert_int_equal(gpu_stream_new(consumer->gpu, GPU_NORMAL, &consumer->stream, &err), STK_OK);
    assert_non_null(consumer->got = aligned_alloc(4096, 4096));
    assert_int_equal(gpu_pin(consumer->gpu, consumer->got, 4096, &err), STK_OK);
    gpu_leave(consumer->gpu);
}

static void consumer_close(struct consumer *consumer)
{
    struct stk_error err;
    assert_int_equal(gpu_enter(consumer->gpu, &err), STK_OK);
    assert_int_equal(gpu_stream_sync(consumer->gpu, consumer->stream, &err), STK_OK);
    gpu_stream_free(consumer->gpu, consumer->stream);
    gpu_unpin(consumer->gpu, consumer->got);
    gpu_leave(consumer->gpu);
    gpu_close(consumer->gpu);
}

/* A batch's values, read slowly while its memory is asked for again. query: the call of those that
 * ask whether the device is done that fails; 0: none does. */
static void read_slowly(struct fixture *fixture, int query)
{
    char what[32];
    struct consumer consumer;
    struct stk_batch *kept[4]; /* so many that memory is used again rather than added */
    struct stk_loader_options options = {
        .batch_size = 16, .threads = 1, .depth = 1, .device = STK_DEVICE_CUDA};
    struct stk_loader *loader = fixture_loader(fixture, &options);
    consumer_open(&consumer);
    struct stk_batch *batch = fixture_next(loader);
    for (int i = 0; i < 4; i++)
        assert_non_null(kept[i] = fixture_next(loader));
    usleep(20000); /* the next batch is there, in memory of its own */
    consume_slowly(&consumer, batch);
    snprintf(what, sizeof what, "cuEventQuery:%d:2", query);
    sim_fail(query ? what : NULL);
    stk_batch_release(batch);
    struct stk_batch *second = fixture_next(loader);
    stk_batch_release(fixture_next(loader));
    stk_batch_release(second);
    for (int i = 0; i < 4; i++)
        stk_batch_release(kept[i]);
    consumer_close(&consumer);
    sim_fail(NULL);
    for (int i = 0; i < 64; i++)
        assert_int_equal(consumer.got[i], i / 4);
    free(consumer.got);
    stk_loader_close(loader);
}

static void memory_that_the_caller_still_reads_is_not_written(void **state)
{
    (void)state;
    struct fixture fixture;
    if (!sim("sim_cuda_fail"))
        skip();
    fixture_records(&fixture, 256);
    for (int query = 0; query < 6; query++)
        read_slowly(&fixture, query);
    fixture_close(&fixture);
}

/* A driver that does not say whether a copy is over: its box is still being read. */
static void a_copy_of_which_nothing_is_known_is_waited_for(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    if (!sim("sim_cuda_fail"))
        skip();
    fixture_records(&fixture, 2000 * 8);
    for (int n = 1; n < 40; n++) {
        char what[32];
        struct stk_loader_options options = {
            .batch_size = 2000, .threads = 1, .device = STK_DEVICE_CUDA};
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        snprintf(what, sizeof what, "cuEventQuery:%d:2", n);
        sim_fail(what);
        while ((batch = fixture_next(loader)) != NULL) {
            uint64_t size = stk_tensor_size(&batch->fields[0].tensor);
            int64_t *values = brought(batch, batch->fields[0].tensor.data, size);
            for (uint32_t i = 0; i < batch->count; i++)
                assert_int_equal(values[4 * i], batch->samples[i]);
            free(values);
            stk_batch_release(batch);
        }
        stk_loader_close(loader);
    }
    sim_fail(NULL);
    fixture_close(&fixture);
}

static void memory_that_cannot_be_locked_is_used_as_it_is(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_loader_stats stats;
    struct stk_batch *batch;
    if (!sim("sim_cuda_fail"))
        skip();
    fixture_records(&fixture, 128);
    struct stk_loader_options options = {.batch_size = 64, .device = STK_DEVICE_CUDA};
    sim_fail("cuMemHostRegister_v2:1:2");
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        int64_t *values = brought(batch, batch->fields[0].tensor.data, 64 * 32);
        assert_int_equal(values[0], batch->samples[0]);
        free(values);
        stk_batch_release(batch);
    }
    stk_loader_stats(loader, &stats);
    assert_true(stats.device.pageable_batches >= 1);
    stk_loader_close(loader);
    sim_fail(NULL);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_on_a_device_are_those_of_the_cpu),
        cmocka_unit_test(masked_places_and_ranks_are_those_of_the_cpu),
        cmocka_unit_test(text_stays_with_the_cpu_and_numbers_go_to_the_device),
        cmocka_unit_test(missing_text_is_known_on_the_device),
        cmocka_unit_test(masked_steps_of_resident_records_are_zeros),
        cmocka_unit_test(resident_records_are_those_of_the_cpu),
        cmocka_unit_test(large_resident_records_are_those_of_the_cpu),
        cmocka_unit_test(batches_that_the_caller_keeps_stay_as_they_are),
        cmocka_unit_test(one_batch_at_a_time_comes_without_delay),
        cmocka_unit_test(a_stream_that_uses_a_batch_finds_it_whole),
        cmocka_unit_test(seeking_drops_what_was_shipped),
        cmocka_unit_test(every_failing_call_of_cuda_is_an_error_and_not_a_crash),
        cmocka_unit_test(memory_that_the_caller_still_reads_is_not_written),
        cmocka_unit_test(a_copy_of_which_nothing_is_known_is_waited_for),
        cmocka_unit_test(memory_that_cannot_be_locked_is_used_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
