/* test_loader_media.c -- encoded images and chains of transforms through the loader. */
#include "media_fixture.h"

#include "base/memory.h"

#define CHAIN "RandomResizedCrop(16) | RandomHorizontalFlip | ColorJitter(brightness=0.4)"
#define FIXED "Resize((16, 16))"

static const struct stk_field_chain crops = {"jpg", CHAIN}, resized = {"jpg", FIXED};

static struct stk_loader_options with_chain(const struct stk_field_chain *chain)
{
    return (struct stk_loader_options){.batch_size = 8,
                                       .shuffle = 1,
                                       .seed = 3,
                                       .threads = 2,
                                       .transforms = chain,
                                       .transform_count = 1};
}

static void images_without_a_chain_are_those_of_libjpeg(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 2, .each = 6, .width = 40, .height = 30};
    struct stk_batch *batch;
    fixture_images(&fixture, &set);
    struct stk_loader_options options = {.batch_size = 5, .shuffle = 1, .threads = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        const struct stk_batch_field *field = &batch->fields[0];
        assert_int_equal(field->tensor.rank, 4);
        assert_int_equal(field->tensor.shape[1], 30);
        assert_int_equal(field->tensor.shape[2], 40);
        for (uint32_t i = 0; i < batch->real; i++) {
            int width, height;
            struct stk_bytes image = fixture_image(&set, (uint32_t)batch->samples[i]);
            uint8_t *oracle = jpeg_oracle(&image, JCS_RGB, 8, &width, &height);
            const uint8_t *pixels = (const uint8_t *)field->tensor.data + i * 40 * 30 * 3;
            for (int p = 0; p < width * height * 3; p++)
                assert_in_range(pixels[p] + 1 - oracle[p], 0, 2);
            free((void *)(uintptr_t)image.data);
            free(oracle);
        }
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void digest_with(struct fixture *fixture, struct stk_loader_options options, char out[33])
{
    struct stk_loader *loader = fixture_loader(fixture, &options);
    fixture_digest(loader, out);
    stk_loader_close(loader);
}

static void threads_and_stores_do_not_change_the_pixels(void **state)
{
    (void)state;
    struct fixture fixture;
    /* many to a shard are mapped, two to a shard are read, the third is in chunks */
    struct image_set sets[] = {
        {.shards = 1, .each = 48, .width = 40, .height = 30, .grows = 1},
        {.shards = 24, .each = 2, .width = 40, .height = 30, .grows = 1},
        {.shards = 3, .each = 16, .width = 40, .height = 30, .grows = 1, .mode = "wb"},
    };
    char first[33] = "", other[33];
    for (int s = 0; s < 3; s++) {
        fixture_images(&fixture, &sets[s]);
        for (uint32_t threads = 1; threads <= 4; threads *= 2) {
            struct stk_loader_options options = with_chain(&crops);
            options.threads = threads;
            options.order = STK_ORDER_GLOBAL;
            options.batch_size = 5 + threads;
            options.io = threads == 2 ? STK_IO_URING : STK_IO_PREAD;
            digest_with(&fixture, options, other);
            if (!*first)
                strcpy(first, other);
            assert_string_equal(first, other);
            options.seed++;
            digest_with(&fixture, options, other);
            assert_string_not_equal(first, other);
        }
        fixture_close(&fixture);
    }
}

static void resuming_and_seeking_give_the_same_pixels(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 40, .width = 40, .height = 30};
    char whole[33], resumed[33], sought[33], text[STK_STATE_CAP];
    struct stk_error err;
    size_t len;
    fixture_images(&fixture, &set);
    struct stk_loader_options options = with_chain(&crops);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    fixture_digest(loader, whole);
    for (int i = 0; i < 2; i++)
        stk_batch_release(fixture_next(loader));
    assert_int_equal(stk_loader_save(loader, text, sizeof text, &len, &err), STK_OK);
    fixture_digest(loader, whole); /* the rest of the second epoch */
    assert_int_equal(stk_loader_seek(loader, 1, 16, &err), STK_OK);
    fixture_digest(loader, sought);
    stk_loader_close(loader);
    options.threads = 1;
    options.batch_size = 3;
    loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_load(loader, text, &err), STK_OK);
    fixture_digest(loader, resumed);
    stk_loader_close(loader);
    assert_string_equal(whole, resumed);
    assert_string_equal(whole, sought);
    fixture_close(&fixture);
}

/* Checks that each place holds what the chain makes of its sample alone. */
static void check_alone(struct fixture *fixture, const struct image_set *set,
                        const struct stk_batch *batch, uint64_t seed)
{
    struct stk_pipeline *pipeline;
    struct stk_error err;
    assert_int_equal(stk_pipeline_new(fixture->context, &pipeline, CHAIN, STK_MEDIA_IMAGE, &err),
                     STK_OK);
    for (uint32_t i = 0; i < batch->real; i++) {
        struct stk_bytes image = fixture_image(set, (uint32_t)batch->samples[i]);
        struct stk_pipeline_input input = {
            .bytes = &image, .seed = seed, .epoch = batch->epoch, .sample = batch->samples[i]};
        struct stk_flow flow = {0};
        if (stk_pipeline_run(pipeline, &input, &flow, &err))
            fixture_fail(&err);
        assert_memory_equal(flow.tensor.data,
                            (const uint8_t *)batch->fields[0].tensor.data + i * 16 * 16 * 3,
                            16 * 16 * 3);
        free((void *)(uintptr_t)image.data);
    }
    stk_pipeline_free(pipeline);
}

static void a_batch_holds_what_the_chain_makes_of_each_sample(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 20, .width = 40, .height = 30, .grows = 1};
    struct stk_batch *batch;
    char first[33], second[33];
    fixture_images(&fixture, &set);
    struct stk_loader_options options = with_chain(&crops);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        check_alone(&fixture, &set, batch, options.seed);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    options.order = STK_ORDER_SEQUENTIAL;
    options.shuffle = 0;
    loader = fixture_loader(&fixture, &options);
    fixture_digest(loader, first);
    fixture_digest(loader, second); /* another epoch draws anew */
    assert_string_not_equal(first, second);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static void a_sample_drawn_twice_is_not_the_same_twice(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 4, .width = 40, .height = 30};
    double weights[4] = {0, 1, 0, 0};
    fixture_images(&fixture, &set);
    struct stk_loader_options options = with_chain(&crops);
    options.weights = weights;
    options.batch_size = 4;
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    struct stk_batch *batch = fixture_next(loader);
    const uint8_t *pixels = batch->fields[0].tensor.data;
    assert_int_equal(batch->samples[0], batch->samples[1]);
    assert_memory_not_equal(pixels, pixels + 16 * 16 * 3, 16 * 16 * 3);
    stk_batch_release(batch);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* --- bad images ------------------------------------------------------------------------------- */

static enum flaw some_flaws(uint32_t number)
{
    return number == 5    ? FLAW_CUT
           : number == 11 ? FLAW_EMPTY
           : number == 17 ? FLAW_HTML
                          : FLAW_NONE;
}

/* FAULTS 53, 55 */
static void bad_images_are_replaced_and_kept_in_quarantine(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set sets[] = {
        {.shards = 1, .each = 24, .width = 40, .height = 30, .flaw = some_flaws},
        {.shards = 12, .each = 2, .width = 40, .height = 30, .flaw = some_flaws},
        {.shards = 2, .each = 12, .width = 40, .height = 30, .flaw = some_flaws, .mode = "wb"},
    };
    for (int s = 0; s < 3; s++) {
        struct stk_quarantined bad[8];
        struct stk_batch *batch;
        uint64_t at = 0, substitutes = 0;
        fixture_images(&fixture, &sets[s]);
        struct stk_loader_options options = with_chain(&crops);
        options.bad = STK_BAD_REPLACE;
        options.shuffle = 0;
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        while ((batch = fixture_next(loader)) != NULL) {
            for (uint32_t i = 0; i < batch->real; i++, at++) {
                int is_bad = some_flaws((uint32_t)at) != FLAW_NONE;
                assert_int_equal(batch->samples[i] != at, is_bad);
                assert_int_equal(some_flaws((uint32_t)batch->samples[i]), FLAW_NONE);
                assert_int_equal(((int64_t *)batch->fields[1].tensor.data)[i],
                                 batch->samples[i] % 10);
                substitutes += is_bad;
            }
            check_alone(&fixture, &sets[s], batch, options.seed);
            stk_batch_release(batch);
        }
        assert_int_equal(at, 24);
        assert_int_equal(substitutes, 3);
        assert_int_equal(stk_loader_quarantine(loader, bad, 8), 3);
        assert_int_equal(bad[0].sample, 5);
        assert_int_equal(bad[1].sample, 11);
        assert_int_equal(bad[2].sample, 17);
        for (int i = 0; i < 3; i++) {
            assert_string_equal(bad[i].error.field, "jpg");
            assert_int_equal(bad[i].error.sample, bad[i].sample);
            assert_non_null(strstr(bad[i].error.object, "shard-"));
        }
        stk_loader_close(loader);
        fixture_close(&fixture);
    }
}

static void a_bad_image_is_an_error_that_names_it(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 24, .width = 40, .height = 30, .flaw = some_flaws};
    struct stk_batch *batch;
    struct stk_error err = {0};
    fixture_images(&fixture, &set);
    struct stk_loader_options options = with_chain(&resized);
    options.shuffle = 0;
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    assert_int_not_equal(stk_loader_next(loader, &batch, &err), STK_OK);
    assert_int_equal(err.sample, 5);
    assert_string_equal(err.field, "jpg");
    assert_non_null(strstr(err.object, "shard-0000.tar"));
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* The file is cut short under its map. */
static void a_shard_cut_short_is_an_error_and_no_crash(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 64, .width = 64, .height = 64};
    struct stk_batch *batch;
    struct stk_error err = {0};
    char path[256];
    stk_status status = STK_OK;
    fixture_images(&fixture, &set);
    struct stk_loader_options options = with_chain(&resized);
    options.shuffle = 0;
    options.depth = 1;
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    stk_batch_release(fixture_next(loader));
    fixture_path(&fixture, "shard-0000.tar", path, sizeof path);
    assert_int_equal(truncate(path, 4096), 0);
    for (int i = 0; i < 8 && !status; i++) {
        status = stk_loader_next(loader, &batch, &err);
        if (!status)
            stk_batch_release(batch);
    }
    assert_true(status == STK_STALE || status == STK_TRUNCATED);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* --- unequal shapes --------------------------------------------------------------------------- */

static void images_of_unequal_size_want_a_chain_or_a_list(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 10, .width = 40, .height = 30, .grows = 1};
    struct stk_batch *batch;
    struct stk_error err = {0};
    fixture_images(&fixture, &set);
    struct stk_loader_options options = {.batch_size = 5, .threads = 2};
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    assert_int_equal(stk_loader_next(loader, &batch, &err), STK_SHAPE);
    assert_int_equal(err.sample, 1);
    assert_non_null(strstr(err.what, "(30, 41, 3)"));
    assert_non_null(strstr(err.remedy, "Resize"));
    stk_loader_close(loader);
    options.ragged = STK_RAGGED_LIST;
    loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        assert_int_equal(batch->fields[0].layout, STK_RAGGED_LIST);
        for (uint32_t i = 0; i < batch->real; i++) {
            const struct stk_tensor *item = &batch->fields[0].items[i];
            assert_int_equal(item->shape[0], 30);
            assert_int_equal(item->shape[1], 40 + batch->samples[i] % 5);
        }
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

static struct stk_tensor one_alone(struct fixture *fixture, struct stk_reader **reader,
                                   uint64_t position)
{
    struct stk_value values[2];
    struct stk_error err;
    if (!*reader)
        assert_int_equal(stk_reader_new(fixture->dataset, reader, &err), STK_OK);
    assert_int_equal(stk_reader_read(*reader, position, values, &err), STK_OK);
    return values[0].tensor;
}

/* Images of unequal height, that is, of unequal rows. */
static void make_tall(struct fixture *fixture)
{
    char path[256], name[64], zeros[1024] = {0};
    fixture_folder(fixture);
    fixture_path(fixture, "a.tar", path, sizeof path);
    gzFile file = gzopen(path, "wbT");
    for (uint32_t i = 0; i < 10; i++) {
        struct image_set set = {.width = 20, .height = 10 + (int)i % 4};
        struct stk_bytes image = fixture_image(&set, i);
        snprintf(name, sizeof name, "%06u.jpg", i);
        fixture_member(file, name, image.data, image.len);
        free((void *)(uintptr_t)image.data);
    }
    gzwrite(file, zeros, 1024);
    gzclose(file);
    fixture_open(fixture, "a.tar", NULL);
}

static void rows_of_images_can_be_joined_or_padded(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_reader *reader = NULL;
    make_tall(&fixture);
    for (int pad = 0; pad < 2; pad++) {
        struct stk_loader_options options = {.batch_size = 4,
                                             .threads = 2,
                                             .last = STK_LAST_MASK,
                                             .ragged = pad ? STK_RAGGED_PAD : STK_RAGGED_FLAT};
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        struct stk_batch *batch;
        while ((batch = fixture_next(loader)) != NULL) {
            const struct stk_batch_field *field = &batch->fields[0];
            const uint8_t *data = field->tensor.data;
            uint64_t stride = pad ? (uint64_t)field->tensor.shape[1] * 60 : 0;
            assert_int_equal(field->layout, options.ragged);
            for (uint32_t i = 0; i < batch->real; i++) {
                struct stk_tensor own = one_alone(&fixture, &reader, batch->samples[i]);
                const uint8_t *rows = pad ? data + stride * i : data + field->offsets[i] * 60;
                int64_t length =
                    pad ? field->lengths[i] : field->offsets[i + 1] - field->offsets[i];
                assert_int_equal(length, own.shape[0]);
                assert_memory_equal(rows, own.data, (size_t)length * 60);
            }
            if (!pad)
                assert_int_equal(field->offsets[batch->count], field->tensor.shape[0]);
            stk_batch_release(batch);
        }
        stk_loader_close(loader);
    }
    stk_reader_free(reader);
    fixture_close(&fixture);
}

/* --- stored arrays ---------------------------------------------------------------------------- */

/* int16 (rows, 3), rows 4 to 6: each element is the sample's number. */
static void make_arrays(struct fixture *fixture)
{
    char path[256], name[64], value[512], zeros[1024] = {0};
    fixture_folder(fixture);
    fixture_path(fixture, "a.tar", path, sizeof path);
    gzFile file = gzopen(path, "wbT");
    for (uint32_t i = 0; i < 12; i++) {
        int rows = 4 + (int)i % 3;
        memset(value, ' ', 128);
        memcpy(value, "\x93NUMPY\x01\x00\x76\x00", 10);
        int len =
            snprintf(value + 10, 118, "{'descr': '<i2', 'fortran_order': %s, 'shape': (%d, 3), }",
                     i % 2 ? "True" : "False", rows);
        value[10 + len] = ' ';
        value[127] = '\n';
        for (int e = 0; e < rows * 3; e++) {
            int16_t element = (int16_t)i;
            memcpy(value + 128 + e * 2, &element, 2);
        }
        snprintf(name, sizeof name, "%06u.npy", i);
        fixture_member(file, name, value, 128 + (size_t)rows * 6);
    }
    gzwrite(file, zeros, 1024);
    gzclose(file);
    fixture_open(fixture, "a.tar", NULL);
}

static void a_stored_array_goes_through_its_chain(void **state)
{
    (void)state;
    struct fixture fixture;
    const struct stk_field_chain chain = {"npy", "TemporalCrop(4) | Cast(float32)"};
    struct stk_batch *batch;
    make_arrays(&fixture);
    struct stk_loader_options options = with_chain(&chain);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    while ((batch = fixture_next(loader)) != NULL) {
        const struct stk_tensor *tensor = &batch->fields[0].tensor;
        const float *values = tensor->data;
        assert_int_equal(tensor->dtype, STK_F32);
        assert_int_equal(tensor->rank, 3);
        assert_int_equal(tensor->shape[1], 4);
        for (uint32_t i = 0; i < batch->real; i++)
            for (int e = 0; e < 12; e++)
                assert_true(values[i * 12 + (uint32_t)e] == (float)batch->samples[i]);
        stk_batch_release(batch);
    }
    stk_loader_close(loader);
    fixture_close(&fixture);
}

/* --- what is refused -------------------------------------------------------------------------- */

static void check_refused(struct fixture *fixture, const char *field, const char *chain,
                          const char *words)
{
    const struct stk_field_chain own = {field, chain};
    struct stk_loader_options options = with_chain(&own);
    struct stk_loader *loader;
    struct stk_error err = {0};
    char text[2048];
    assert_int_equal(stk_loader_open(fixture->context, fixture->dataset, &loader, &options, &err),
                     STK_USAGE);
    assert_null(loader);
    stk_error_format(&err, text, sizeof text);
    if (!strstr(text, words))
        fixture_fail(&err);
    assert_string_equal(err.field, field);
}

static void a_chain_that_does_not_fit_is_refused_at_open(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 4, .width = 40, .height = 30};
    fixture_images(&fixture, &set);
    check_refused(&fixture, "jpeg", FIXED, "did you mean \"jpg\"");
    check_refused(&fixture, "cls", FIXED, "numbers");
    check_refused(&fixture, "jpg", "Resise(3)", "did you mean \"Resize\"");
    check_refused(&fixture, "jpg", "Resize(-3)", "Resize");
    check_refused(&fixture, "jpg", "LogMel", "image");
    check_refused(&fixture, "jpg", "MixUp(classes=3)", "MixUp");
    const struct stk_field_chain twice[] = {{"jpg", FIXED}, {"jpg", FIXED}};
    struct stk_loader_options options = {
        .batch_size = 2, .transforms = twice, .transform_count = 2};
    struct stk_loader *loader;
    struct stk_error err;
    assert_int_equal(stk_loader_open(fixture.context, fixture.dataset, &loader, &options, &err),
                     STK_USAGE);
    fixture_close(&fixture);
}

/* --- memory ----------------------------------------------------------------------------------- */

static int count_allocation(void *user, size_t size)
{
    (void)size;
    ++*(int *)user;
    return 0;
}

static void a_second_epoch_allocates_nothing(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set sets[] = {
        {.shards = 1, .each = 40, .width = 40, .height = 30},
        {.shards = 20, .each = 2, .width = 40, .height = 30},
    };
    for (int s = 0; s < 2; s++) {
        int allocations = 0;
        char digest[33];
        const struct stk_field_chain chain = {"jpg", FIXED " | RandomHorizontalFlip | "
                                                           "Normalize(imagenet) | Layout(CHW)"};
        fixture_images(&fixture, &sets[s]);
        struct stk_loader_options options = with_chain(&chain);
        options.threads = 1;
        options.shuffle = 0;
        options.depth = 2;
        struct stk_loader *loader = fixture_loader(&fixture, &options);
        struct stk_batch *held[4]; /* as many boxes as will ever be in use */
        for (int i = 0; i < 4; i++)
            held[i] = fixture_next(loader);
        for (int i = 0; i < 4; i++)
            stk_batch_release(held[i]);
        fixture_digest(loader, digest);
        stk_batch_release(fixture_next(loader));
        memory_set_hook(count_allocation, &allocations);
        fixture_digest(loader, digest);
        fixture_digest(loader, digest);
        memory_set_hook(NULL, NULL);
        assert_int_equal(allocations, 0);
        stk_loader_close(loader);
        fixture_close(&fixture);
    }
}

static void what_pipelines_hold_is_counted(void **state)
{
    (void)state;
    struct fixture fixture;
    struct image_set set = {.shards = 1, .each = 8, .width = 400, .height = 300};
    struct stk_loader_stats before, after;
    char digest[33];
    fixture_images(&fixture, &set);
    /* a whole image is made before it is resized */
    const struct stk_field_chain chain = {"jpg", "ColorJitter(brightness=0.4) | " FIXED};
    struct stk_loader_options options = with_chain(&chain);
    struct stk_loader *loader = fixture_loader(&fixture, &options);
    stk_loader_stats(loader, &before);
    fixture_digest(loader, digest);
    stk_loader_stats(loader, &after);
    assert_true(after.held_bytes > before.held_bytes + 400 * 300 * 3);
    stk_loader_close(loader);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(images_without_a_chain_are_those_of_libjpeg),
        cmocka_unit_test(threads_and_stores_do_not_change_the_pixels),
        cmocka_unit_test(resuming_and_seeking_give_the_same_pixels),
        cmocka_unit_test(a_batch_holds_what_the_chain_makes_of_each_sample),
        cmocka_unit_test(a_sample_drawn_twice_is_not_the_same_twice),
        cmocka_unit_test(bad_images_are_replaced_and_kept_in_quarantine),
        cmocka_unit_test(a_bad_image_is_an_error_that_names_it),
        cmocka_unit_test(a_shard_cut_short_is_an_error_and_no_crash),
        cmocka_unit_test(images_of_unequal_size_want_a_chain_or_a_list),
        cmocka_unit_test(rows_of_images_can_be_joined_or_padded),
        cmocka_unit_test(a_stored_array_goes_through_its_chain),
        cmocka_unit_test(a_chain_that_does_not_fit_is_refused_at_open),
        cmocka_unit_test(a_second_epoch_allocates_nothing),
        cmocka_unit_test(what_pipelines_hold_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
