/* test_dataset_media.c -- fields of encoded media: what they are taken for, and single samples. */
#include "fixture.h"

#include "../codec/jpeg_making.h"
#include "dataset/dataset_view.h"

static const char html[] = "<!DOCTYPE html><html><body>404 not found</body></html>";

/* a.jpg 40x30, b.jpg 24x16, each with a cls. */
static void make_images(const char *path, const char *first, size_t len)
{
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_bytes a = jpeg_made(&(struct jpeg_recipe){.width = 40, .height = 30});
    struct stk_bytes b = jpeg_made(&(struct jpeg_recipe){.width = 24, .height = 16});
    if (first)
        tar_add(tar, "0.jpg", first, len);
    tar_add(tar, "a.jpg", a.data, a.len);
    tar_add(tar, "b.jpg", b.data, b.len);
    tar_write(tar, path);
    free((void *)(uintptr_t)a.data);
    free((void *)(uintptr_t)b.data);
    free(tar);
}

static void an_image_has_the_shape_of_its_first_sample(void **state)
{
    char *path = path_of(*state, "a.tar");
    make_images(path, NULL, 0);
    struct stk_dataset *dataset = must_open(path, NULL);
    const struct stk_field *field = stk_dataset_field(dataset, 0);
    assert_int_equal(field->kind, STK_KIND_TENSOR);
    assert_int_equal(field->media, STK_MEDIA_IMAGE);
    assert_int_equal(field->shape.dtype, STK_U8);
    assert_int_equal(field->shape.rank, 3);
    assert_int_equal(field->shape.shape[0], 30);
    assert_int_equal(field->shape.shape[1], 40);
    assert_int_equal(field->shape.shape[2], 3);
    assert_int_equal(dataset_field(dataset, 0)->probed, 0);
    stk_dataset_close(dataset);
}

static void a_sample_is_decoded_as_libjpeg_does(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct stk_reader *reader;
    struct stk_value value;
    int width, height;
    make_images(path, NULL, 0);
    struct stk_dataset *dataset = must_open(path, NULL);
    struct stk_bytes b = jpeg_made(&(struct jpeg_recipe){.width = 24, .height = 16});
    uint8_t *oracle = jpeg_oracle(&b, JCS_RGB, 8, &width, &height);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    for (int again = 0; again < 2; again++) {
        read_or_fail(reader, 1, &value);
        assert_int_equal(value.tensor.shape[0], height);
        assert_int_equal(value.tensor.shape[1], width);
        const uint8_t *pixels = value.tensor.data;
        for (int i = 0; i < width * height * 3; i++)
            assert_in_range(pixels[i] + 1 - oracle[i], 0, 2);
        read_or_fail(reader, 0, &value);
    }
    struct stk_bytes stored;
    assert_int_equal(stk_reader_bytes(reader, 1, 0, &stored, NULL), STK_OK);
    assert_int_equal(stored.len, b.len);
    assert_memory_equal(stored.data, b.data, b.len);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    free((void *)(uintptr_t)b.data);
    free(oracle);
}

static void two_images_of_one_sample_live_at_the_same_time(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_bytes a = jpeg_made(&(struct jpeg_recipe){.width = 40, .height = 30});
    struct stk_bytes b = jpeg_made(&(struct jpeg_recipe){.width = 40, .height = 30, .quality = 20});
    struct stk_reader *reader;
    struct stk_value values[2];
    tar_add(tar, "a.left.jpg", a.data, a.len);
    tar_add(tar, "a.right.jpg", b.data, b.len);
    tar_write(tar, path);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, 0, values);
    assert_true(values[0].tensor.data != values[1].tensor.data);
    assert_memory_not_equal(values[0].tensor.data, values[1].tensor.data, 40 * 30 * 3);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    free((void *)(uintptr_t)a.data);
    free((void *)(uintptr_t)b.data);
    free(tar);
}

static void a_damaged_first_image_does_not_hide_the_shape(void **state)
{
    char *path = path_of(*state, "a.tar");
    make_images(path, html, sizeof html);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(dataset_field(dataset, 0)->probed, 1);
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.shape[1], 40);
    stk_dataset_close(dataset);
}

static void images_that_are_all_damaged_are_found_when_read(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_reader *reader;
    struct stk_value value;
    struct stk_error err = {0};
    tar_add(tar, "a.jpg", html, sizeof html);
    tar_add(tar, "b.jpg", "", 0);
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_true(dataset_field(dataset, 0)->probed == STK_NOWHERE);
    assert_int_not_equal(dataset_field(dataset, 0)->problem, STK_OK);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    for (uint64_t i = 0; i < 2; i++) {
        assert_int_not_equal(stk_reader_read(reader, i, &value, &err), STK_OK);
        assert_int_equal(err.sample, i);
        assert_string_equal(err.field, "jpg");
        assert_string_equal(err.object, path);
    }
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

static void count_bad(void *user, const struct stk_bad *bad)
{
    uint64_t *samples = user;
    *samples |= UINT64_C(1) << bad->sample;
}

static void verify_finds_the_damaged_image(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_bytes a = jpeg_made(&(struct jpeg_recipe){.width = 200, .height = 200});
    uint64_t bad = 0, samples = 0;
    struct stk_error err;
    tar_add(tar, "a.jpg", a.data, a.len);
    tar_add(tar, "b.jpg", a.data, a.len / 2);
    tar_add(tar, "c.jpg", html, sizeof html);
    tar_add(tar, "d.jpg", a.data, a.len);
    tar_write(tar, path);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_dataset_verify(dataset, 2, count_bad, &samples, &bad, &err), STK_OK);
    assert_int_equal(bad, 2);
    assert_int_equal(samples, 2 | 4);
    stk_dataset_close(dataset);
    free((void *)(uintptr_t)a.data);
    free(tar);
}

static stk_status open_field(struct stk_dataset **out, const char *path, const char *field,
                             struct stk_error *err)
{
    struct stk_dataset_options options = {.fields = &field, .field_count = 1};
    return open_with(out, path, &options, err);
}

static void the_kind_of_media_can_be_asked_for(void **state)
{
    static const struct {
        const char *spec;
        enum stk_media media;
    } cases[] = {
        {"blob=image", STK_MEDIA_IMAGE},         {"blob=audio", STK_MEDIA_AUDIO},
        {"blob?=video", STK_MEDIA_VIDEO},        {"blob=points", STK_MEDIA_POINTS},
        {"blob=bytes", STK_MEDIA_TENSOR},        {"blob", STK_MEDIA_TENSOR},
        {"jpg;png;blob=image", STK_MEDIA_IMAGE},
    };
    char *path = path_of(*state, "a.tar");
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_dataset *dataset;
    tar_add(tar, "a.blob", html, sizeof html);
    tar_write(tar, path);
    free(tar);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(open_field(&dataset, path, cases[i].spec, NULL), STK_OK);
        assert_int_equal(stk_dataset_field(dataset, 0)->media, cases[i].media);
        stk_dataset_close(dataset);
    }
    struct stk_error err;
    assert_int_equal(open_field(&dataset, path, "blob=picture", &err), STK_USAGE);
    assert_non_null(strstr(err.remedy, "image, audio, video, points"));
}

static void rows_of_an_array_are_not_taken_for_encoded(void **state)
{
    static const int64_t shape[] = {4};
    char *path = path_of(*state, "a.bin");
    const char *field = "data=image";
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    make_file(path, "abcdefgh", 8);
    struct stk_dataset_options options = {
        .format = "raw", .dtype = "uint8", .shape = shape, .rank = 1};
    dataset = must_open(path, &options);
    char spec[64];
    snprintf(spec, sizeof spec, "%s=image", stk_dataset_field(dataset, 0)->name);
    stk_dataset_close(dataset);
    field = spec;
    options.fields = &field;
    options.field_count = 1;
    assert_int_equal(open_with(&dataset, path, &options, &err), STK_USAGE);
    assert_non_null(strstr(err.what, "not encoded"));
}

#define FIXTURED(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIXTURED(an_image_has_the_shape_of_its_first_sample),
        FIXTURED(a_sample_is_decoded_as_libjpeg_does),
        FIXTURED(two_images_of_one_sample_live_at_the_same_time),
        FIXTURED(a_damaged_first_image_does_not_hide_the_shape),
        FIXTURED(images_that_are_all_damaged_are_found_when_read),
        FIXTURED(verify_finds_the_damaged_image),
        FIXTURED(the_kind_of_media_can_be_asked_for),
        FIXTURED(rows_of_an_array_are_not_taken_for_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
