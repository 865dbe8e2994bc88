/* test_loader_chains.c -- chains over what is no image: recordings, points, arrays, windows; and
 * values that are missing or masked. */
#include "media_fixture.h"
#include "series_fixture.h"

static gzFile shard_begin(struct fixture *fixture)
{
    char path[256];
    fixture_folder(fixture);
    fixture_path(fixture, "a.tar", path, sizeof path);
    gzFile file = gzopen(path, "wbT");
    assert_non_null(file);
    return file;
}

static void shard_end(struct fixture *fixture, gzFile file, const char *field)
{
    char zeros[1024] = {0};
    const struct stk_dataset_options options = {.fields = &field, .field_count = 1};
    gzwrite(file, zeros, 1024);
    gzclose(file);
    fixture_open(fixture, "a.tar", &options);
}

static void put32(uint8_t *to, uint32_t number)
{
    memcpy(to, &number, 4);
}

/* A recording of 16 bits, one channel, 8,000 frames a second: frame i is i * 64. */
static size_t make_wav(uint8_t *out, uint32_t frames)
{
    memcpy(out, "RIFF....WAVEfmt ", 16);
    put32(out + 4, 36 + frames * 2);
    put32(out + 16, 16);
    put32(out + 20, 1 | 1 << 16); /* plain numbers, one channel */
    put32(out + 24, 8000);
    put32(out + 28, 16000);
    put32(out + 32, 2 | 16 << 16);
    memcpy(out + 36, "data", 4);
    put32(out + 40, frames * 2);
    for (uint32_t i = 0; i < frames; i++) {
        int16_t value = (int16_t)(i * 64);
        memcpy(out + 44 + i * 2, &value, 2);
    }
    return 44 + frames * 2;
}

static void recordings_of_one_length_tell_what_is_real(void **state)
{
    (void)state;
    struct fixture fixture;
    const struct stk_field_chain chain = {"wav", "DecodeAudio(frames=100)"};
    struct stk_batch *batch;
    gzFile file = shard_begin(&fixture);
    for (uint32_t i = 0; i < 10; i++) {
        uint8_t wav[1024];
        char name[64];
        snprintf(name, sizeof name, "%06u.wav", i);
        fixture_member(file, name, wav, make_wav(wav, 60 + i * 10));
    }
    shard_end(&fixture, file, "wav");
    struct stk_loader_options options = {.batch_size = 4,
                                         .last = STK_LAST_MASK,
                                         .threads = 2,
                                         .transforms = &chain,
                                         .transform_count = 1};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        const struct stk_batch_field *field = &batch->fields[0];
        assert_int_equal(field->tensor.rank, 3);
        assert_int_equal(field->tensor.dtype, STK_F32);
        assert_int_equal(field->tensor.shape[2], 100);
        assert_int_equal(field->layout, STK_RAGGED_ERROR);
        for (uint32_t i = 0; i < batch->count; i++) {
            int64_t frames = i < batch->real ? 60 + (int64_t)batch->samples[i] * 10 : 0;
            assert_int_equal(field->lengths[i], frames < 100 ? frames : 100);
            for (int64_t k = 0; k < 100; k++) {
                float own = ((const float *)field->tensor.data)[i * 100 + k];
                assert_true(own == (k < field->lengths[i] ? (float)(k * 64) / 32768 : 0));
            }
        }
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* Point k of sample n is (n, k, k + n). */
static size_t make_ply(char *out, uint32_t number, uint32_t points)
{
    int len = sprintf(out,
                      "ply\nformat ascii 1.0\nelement vertex %u\nproperty float x\nproperty "
                      "float y\nproperty float z\nend_header\n",
                      points);
    for (uint32_t k = 0; k < points; k++)
        len += sprintf(out + len, "%u %u %u\n", number, k, k + number);
    return (size_t)len;
}

static void clouds_of_unequal_size_are_joined_with_offsets(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    gzFile file = shard_begin(&fixture);
    for (uint32_t i = 0; i < 11; i++) {
        char ply[2048], name[64];
        snprintf(name, sizeof name, "%06u.ply", i);
        fixture_member(file, name, ply, make_ply(ply, i, 1 + i * 3));
    }
    shard_end(&fixture, file, "ply");
    struct stk_loader_options options = {
        .batch_size = 4, .shuffle = 1, .threads = 2, .ragged = STK_RAGGED_FLAT};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        const struct stk_batch_field *field = &batch->fields[0];
        const float *rows = field->tensor.data;
        assert_int_equal(field->layout, STK_RAGGED_FLAT);
        assert_int_equal(field->tensor.rank, 2);
        assert_int_equal(field->tensor.shape[1], 3);
        assert_int_equal(field->offsets[0], 0);
        assert_int_equal(field->offsets[batch->count], field->tensor.shape[0]);
        for (uint32_t i = 0; i < batch->real; i++) {
            uint64_t own = batch->samples[i];
            assert_int_equal(field->offsets[i + 1] - field->offsets[i], 1 + own * 3);
            for (int64_t k = field->offsets[i]; k < field->offsets[i + 1]; k++) {
                assert_true(rows[k * 3] == (float)own);
                assert_true(rows[k * 3 + 1] == (float)(k - field->offsets[i]));
            }
        }
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* Two fields with chains, one of them missing in every third sample. */
static void a_missing_image_is_zeros_and_not_present(void **state)
{
    (void)state;
    struct fixture fixture;
    const char *fields[] = {"jpg?", "npy"};
    const struct stk_dataset_options opening = {.fields = fields, .field_count = 2};
    const struct stk_field_chain chains[] = {{"jpg", "Resize((8, 8))"}, {"npy", "Cast(float32)"}};
    struct image_set set = {.width = 20, .height = 20};
    struct stk_batch *batch;
    char name[64], zeros[1024] = {0}, npy[136];
    gzFile file = shard_begin(&fixture);
    for (uint32_t i = 0; i < 12; i++) {
        struct stk_bytes image = fixture_image(&set, i);
        snprintf(name, sizeof name, "%06u.jpg", i);
        if (i % 3)
            fixture_member(file, name, image.data, image.len);
        free((void *)(uintptr_t)image.data);
        memset(npy, ' ', sizeof npy);
        memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
        memcpy(npy + 10, "{'descr': '>i4', 'fortran_order': False, 'shape': (2,), }", 57);
        npy[127] = '\n';
        memcpy(npy + 128, (const uint8_t[8]){0, 0, 0, (uint8_t)i, 0, 0, 0, 7}, 8);
        snprintf(name, sizeof name, "%06u.npy", i);
        fixture_member(file, name, npy, sizeof npy);
    }
    gzwrite(file, zeros, 1024);
    gzclose(file);
    fixture_open(&fixture, "a.tar", &opening);
    struct stk_loader_options options = {
        .batch_size = 4, .threads = 2, .transforms = chains, .transform_count = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        for (uint32_t i = 0; i < batch->real; i++) {
            const uint8_t *pixels = (const uint8_t *)batch->fields[0].tensor.data + i * 192;
            const float *values = (const float *)batch->fields[1].tensor.data + i * 2;
            int there = batch->samples[i] % 3 != 0, sum = 0;
            for (int p = 0; p < 192; p++)
                sum += pixels[p];
            assert_int_equal(batch->fields[0].present[i], there);
            assert_int_equal(sum > 0, there);
            assert_true(values[0] == (float)batch->samples[i]); /* the bytes were swapped */
            assert_true(values[1] == 7);
        }
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void open_rows(struct fixture *fixture, const void *rows, size_t size, const int64_t *shape)
{
    char path[256];
    fixture_folder(fixture);
    fixture_path(fixture, "rows.bin", path, sizeof path);
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(rows, size, 1, file), 1);
    fclose(file);
    struct stk_dataset_options opening = {
        .format = "raw", .dtype = "uint8", .shape = shape, .rank = 3};
    fixture_open(fixture, "rows.bin", &opening);
}

/* Rows of an array of bytes, (H, W, 3), are images: cropped as they lie. */
static void rows_of_bytes_are_cropped_as_images(void **state)
{
    (void)state;
    static const int64_t shape[] = {6, 5, 3};
    static uint8_t rows[9][6][5][3];
    struct fixture fixture;
    struct stk_batch *batch;
    for (uint32_t i = 0; i < sizeof rows; i++)
        (&rows[0][0][0][0])[i] = (uint8_t)made_noise(i);
    open_rows(&fixture, rows, sizeof rows, shape);
    struct stk_field_chain chain = {stk_dataset_field(fixture.dataset, 0)->name,
                                    "CenterCrop((4, 3))"};
    struct stk_loader_options options = {
        .batch_size = 4, .shuffle = 1, .threads = 2, .transforms = &chain, .transform_count = 1};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        const uint8_t *pixels = batch->fields[0].tensor.data;
        assert_int_equal(batch->fields[0].tensor.shape[1], 4);
        assert_int_equal(batch->fields[0].tensor.shape[2], 3);
        for (uint32_t i = 0; i < batch->real; i++)
            for (int y = 0; y < 4; y++, pixels += 9)
                assert_memory_equal(pixels, rows[batch->samples[i]][y + 1][1], 9);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

#define ROW_SIDE 70 /* a row is 14,700 bytes: it ends anywhere in a page */
static void rows_are_what_the_chain_makes_of_them_alone(void **state)
{
    (void)state;
    static const int64_t shape[] = {ROW_SIDE, ROW_SIDE, 3};
    static uint8_t rows[40][ROW_SIDE * ROW_SIDE * 3];
    struct fixture fixture;
    struct stk_batch *batch;
    struct stk_pipeline *pipeline;
    struct stk_error err;
    for (uint32_t i = 0; i < sizeof rows; i++)
        (&rows[0][0])[i] = (uint8_t)made_noise(i);
    open_rows(&fixture, rows, sizeof rows, shape);
    struct stk_field_chain chain = {stk_dataset_field(fixture.dataset, 0)->name,
                                    "RandomResizedCrop(24) | RandomHorizontalFlip"};
    struct stk_loader_options options = {.batch_size = 7,
                                         .shuffle = 1,
                                         .seed = 9,
                                         .threads = 2,
                                         .transforms = &chain,
                                         .transform_count = 1};
    assert_int_equal(
        stk_pipeline_new(fixture.context, &pipeline, chain.chain, STK_MEDIA_TENSOR, &err), STK_OK);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        for (uint32_t i = 0; i < batch->real; i++) {
            struct stk_tensor array = {.data = rows[batch->samples[i]],
                                       .dtype = STK_U8,
                                       .rank = 3,
                                       .shape = {ROW_SIDE, ROW_SIDE, 3}};
            struct stk_pipeline_input input = {
                .array = &array, .seed = 9, .epoch = 0, .sample = batch->samples[i]};
            struct stk_flow flow = {0};
            assert_int_equal(stk_pipeline_run(pipeline, &input, &flow, &err), STK_OK);
            assert_memory_equal((const uint8_t *)batch->fields[0].tensor.data + i * 24 * 24 * 3,
                                flow.tensor.data, 24 * 24 * 3);
        }
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    stk_pipeline_free(pipeline);
    fixture_close(&fixture);
}

static void rows_cut_short_under_a_run_are_an_error_and_no_crash(void **state)
{
    (void)state;
    static const int64_t shape[] = {ROW_SIDE, ROW_SIDE, 3};
    static uint8_t rows[400][ROW_SIDE * ROW_SIDE * 3];
    struct fixture fixture;
    struct stk_batch *batch;
    struct stk_error err;
    stk_status status = STK_OK;
    char path[256];
    open_rows(&fixture, rows, sizeof rows, shape);
    struct stk_field_chain chain = {stk_dataset_field(fixture.dataset, 0)->name,
                                    "RandomResizedCrop(24)"};
    struct stk_loader_options options = {
        .batch_size = 4, .depth = 1, .threads = 2, .transforms = &chain, .transform_count = 1};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    stk_batch_release(fixture_next(loader));
    fixture_path(&fixture, "rows.bin", path, sizeof path);
    assert_int_equal(truncate(path, 40 * ROW_SIDE * ROW_SIDE * 3), 0);
    while (status == STK_OK) {
        status = stk_loader_next(loader, &batch, &err);
        stk_batch_release(batch);
    }
    assert_true(status == STK_STALE || status == STK_TRUNCATED);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* Windows that are taken as they lie, and those that are scaled and padded while they are read. */
static void a_window_goes_through_its_chain(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        struct series series;
        struct series_options shape = {.late = kind & 1, .pad = kind & 1, .big = kind >> 1};
        const struct stk_field_chain chain = {"x", "Cast(float64)"};
        struct stk_batch *plain, *cast;
        series_open(&series, shape);
        struct stk_loader_options options = {
            .batch_size = 32, .shuffle = 1, .seed = 1, .threads = 2, .memory = 8 << 20};
        struct stk_loader *one = fixture_loader(&series.fixture, &options);
        options.transforms = &chain;
        options.transform_count = 1;
        struct stk_loader *other = fixture_loader(&series.fixture, &options);
        while ((plain = fixture_next(one)) != NULL) {
            cast = fixture_next(other);
            const struct stk_tensor *tensor = &cast->fields[0].tensor;
            assert_int_equal(tensor->dtype, STK_F64);
            const float *from = plain->fields[0].tensor.data;
            const double *to = tensor->data;
            for (uint64_t i = 0; i < stk_tensor_size(tensor) / 8; i++)
                assert_true(to[i] == (double)from[i]);
            stk_batch_release(plain);
            stk_batch_release(cast);
        }
        assert_null(fixture_next(other));
        stk_loader_close(one);
        stk_loader_close(other);
        series_close(&series);
    }
}

static void arrays_of_unequal_length_are_joined_without_a_chain(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_batch *batch;
    gzFile file = shard_begin(&fixture);
    for (uint32_t i = 0; i < 10; i++) {
        char name[64], npy[256];
        memset(npy, ' ', 128);
        memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
        int len = snprintf(npy + 10, 118,
                           "{'descr': '<i2', 'fortran_order': False, 'shape': (%u, 2), }", i % 4);
        npy[10 + len] = ' ';
        npy[127] = '\n';
        for (uint32_t e = 0; e < i % 4 * 2; e++) {
            int16_t value = (int16_t)(i * 10 + e);
            memcpy(npy + 128 + e * 2, &value, 2);
        }
        snprintf(name, sizeof name, "%06u.npy", i);
        fixture_member(file, name, npy, 128 + i % 4 * 4);
    }
    shard_end(&fixture, file, "npy");
    struct stk_loader_options options = {
        .batch_size = 4, .threads = 2, .ragged = STK_RAGGED_FLAT, .last = STK_LAST_MASK};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        const struct stk_batch_field *field = &batch->fields[0];
        const int16_t *rows = field->tensor.data;
        for (uint32_t i = 0; i < batch->count; i++) {
            int64_t count = i < batch->real ? (int64_t)batch->samples[i] % 4 : 0;
            assert_int_equal(field->offsets[i + 1] - field->offsets[i], count);
            for (int64_t e = 0; e < count * 2; e++)
                assert_int_equal(rows[field->offsets[i] * 2 + e],
                                 (int64_t)batch->samples[i] * 10 + e);
        }
        assert_int_equal(field->tensor.shape[0], field->offsets[batch->count]);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recordings_of_one_length_tell_what_is_real),
        cmocka_unit_test(clouds_of_unequal_size_are_joined_with_offsets),
        cmocka_unit_test(a_missing_image_is_zeros_and_not_present),
        cmocka_unit_test(rows_of_bytes_are_cropped_as_images),
        cmocka_unit_test(rows_are_what_the_chain_makes_of_them_alone),
        cmocka_unit_test(rows_cut_short_under_a_run_are_an_error_and_no_crash),
        cmocka_unit_test(a_window_goes_through_its_chain),
        cmocka_unit_test(arrays_of_unequal_length_are_joined_without_a_chain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
