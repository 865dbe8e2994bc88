/* test_dataset_fields.c -- specs of fields: alternatives, optional ones, kinds, and what is
 * refused. */
#include "dataset/fixture.h"

#include "dataset/dataset_view.h"

/* a: jpg txt; b: png; c: jpg txt; each with an npy. */
static void make_mixed(const char *path)
{
    struct tar *tar = calloc(1, sizeof *tar);
    uint8_t npy[1024];
    size_t len = make_npy(npy, 0, 4);
    tar_add_text(tar, "a.jpg", "jpg of a");
    tar_add_text(tar, "a.txt", "12");
    tar_add(tar, "a.video.npy", npy, len);
    tar_add_text(tar, "b.png", "png of b");
    tar_add(tar, "b.video.npy", npy, len);
    tar_add_text(tar, "c.jpg", "jpg of c");
    tar_add_text(tar, "c.txt", "34");
    tar_add(tar, "c.video.npy", npy, len);
    tar_write(tar, path);
    free(tar);
}

static stk_status open_fields(struct stk_dataset **out, const char *path, struct stk_error *err,
                              const char *const *fields)
{
    struct stk_dataset_options options = {.fields = fields};
    while (fields[options.field_count])
        options.field_count++;
    return open_with(out, path, &options, err);
}

#define FIELDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void check_bytes(struct stk_dataset *dataset, uint64_t position, uint32_t field,
                        const char *text)
{
    struct stk_reader *reader;
    struct stk_value values[8];
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    read_or_fail(reader, position, values);
    assert_int_equal(values[field].present, text != NULL);
    if (text) {
        assert_int_equal(values[field].bytes.len, strlen(text));
        assert_memory_equal(values[field].bytes.data, text, strlen(text));
    }
    stk_reader_free(reader);
}

static void all_fields_by_default_and_the_incomplete_ones_optional(void **state)
{
    char *path = path_of(*state, "a.tar");
    make_mixed(path);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(stk_dataset_field_count(dataset), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct stk_field *field = stk_dataset_field(dataset, i);
        assert_int_equal(field->optional, strcmp(field->name, "video.npy") != 0);
    }
    stk_dataset_close(dataset);
}

static void the_first_alternative_that_is_there_counts(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct stk_dataset *dataset;
    make_mixed(path);
    assert_int_equal(open_fields(&dataset, path, NULL, FIELDS("jpg;png;webp=bytes", "video.npy")),
                     STK_OK);
    assert_string_equal(stk_dataset_field(dataset, 0)->name, "jpg;png;webp");
    assert_int_equal(stk_dataset_field(dataset, 0)->kind, STK_KIND_BYTES);
    assert_int_equal(stk_dataset_field(dataset, 0)->max_length, 8);
    assert_int_equal(stk_dataset_field(dataset, 1)->kind, STK_KIND_TENSOR);
    check_bytes(dataset, 0, 0, "jpg of a");
    check_bytes(dataset, 1, 0, "png of b");
    check_bytes(dataset, 2, 0, "jpg of c");
    stk_dataset_close(dataset);
}

static void a_missing_field_is_an_error_unless_optional(void **state) /* FAULTS 19 */
{
    char *path = path_of(*state, "a.tar");
    struct stk_dataset *dataset;
    struct stk_reader *reader;
    struct stk_value value;
    struct stk_error err = {0};
    make_mixed(path);
    assert_int_equal(open_fields(&dataset, path, NULL, FIELDS("txt")), STK_OK);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    assert_int_equal(stk_reader_read(reader, 1, &value, &err), STK_NOT_FOUND);
    assert_int_equal(err.sample, 1);
    assert_string_equal(err.key, "b");
    assert_string_equal(err.field, "txt");
    assert_non_null(strstr(err.remedy, "txt?"));
    struct stk_place place;
    struct stk_error untouched = {.what = "as it was"};
    assert_int_equal(stk_dataset_place(dataset, 1, 0, &place, &untouched), STK_NOT_FOUND);
    assert_string_equal(untouched.what, "as it was");
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    assert_int_equal(open_fields(&dataset, path, NULL, FIELDS("txt?")), STK_OK);
    assert_string_equal(stk_dataset_field(dataset, 0)->name, "txt");
    assert_int_equal(stk_dataset_field(dataset, 0)->optional, 1);
    check_bytes(dataset, 0, 0, "12");
    check_bytes(dataset, 1, 0, NULL);
    stk_dataset_close(dataset);
}

static void a_kind_can_be_asked_for(void **state)
{
    static const struct {
        const char *spec;
        enum stk_kind kind;
        int optional;
    } cases[] = {
        {"txt=int?", STK_KIND_INT, 1},          {"txt?=json", STK_KIND_JSON, 1},
        {"jpg;png=text", STK_KIND_TEXT, 0},     {"video.npy=bytes", STK_KIND_BYTES, 0},
        {"video.npy=auto", STK_KIND_TENSOR, 0},
    };
    char *path = path_of(*state, "a.tar");
    make_mixed(path);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stk_dataset *dataset;
        assert_int_equal(open_fields(&dataset, path, NULL, FIELDS(cases[i].spec)), STK_OK);
        assert_int_equal(stk_dataset_field(dataset, 0)->kind, cases[i].kind);
        assert_int_equal(stk_dataset_field(dataset, 0)->optional, cases[i].optional);
        stk_dataset_close(dataset);
    }
}

static void bytes_asked_for_as_a_tensor_are_probed(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    uint8_t npy[1024];
    char *path = path_of(*state, "a.tar");
    struct stk_dataset *dataset;
    tar_add(tar, "a.blob", npy, make_npy(npy, 0, 3));
    tar_write(tar, path);
    free(tar);
    assert_int_equal(open_fields(&dataset, path, NULL, FIELDS("blob=tensor")), STK_OK);
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.shape[0], 3);
    const struct dataset_field *field = dataset_field(dataset, 0);
    assert_int_equal(field->payload, 12);
    assert_int_equal(field->head, 128);
    assert_memory_equal(field->head_bytes, npy, 128);
    assert_int_equal(field->probed, 0);
    stk_dataset_close(dataset);
}

static void check_refused(const char *path, stk_status status, const char *words,
                          const char *const *fields)
{
    struct stk_dataset *dataset;
    struct stk_error err = {0};
    assert_int_equal(open_fields(&dataset, path, &err, fields), status);
    assert_null(dataset);
    if (!strstr(err.what, words) && !strstr(err.remedy, words))
        fail_msg("\"%s\" \"%s\" lacks \"%s\"", err.what, err.remedy, words);
}

static void specs_that_make_no_sense_are_refused(void **state)
{
    char *path = path_of(*state, "a.tar");
    make_mixed(path);
    check_refused(path, STK_NOT_FOUND, "jpg, txt, video.npy, png", FIELDS("wav"));
    check_refused(path, STK_NOT_FOUND, "did you mean \"jpg\"", FIELDS("jpeg"));
    check_refused(path, STK_NOT_FOUND, "no field \"bmp;gif\"", FIELDS("bmp;gif"));
    check_refused(path, STK_USAGE, "kinds: tensor", FIELDS("jpg=float"));
    check_refused(path, STK_USAGE, "no name", FIELDS("?"));
    check_refused(path, STK_USAGE, "no name", FIELDS("=int"));
    check_refused(path, STK_USAGE, "twice", FIELDS("jpg", "jpg?"));
    check_refused(path, STK_USAGE, "jpg;txt=bytes", FIELDS("jpg;txt"));
}

static void an_optional_field_that_no_sample_has_is_always_absent(void **state)
{
    char *path = path_of(*state, "a.tar");
    struct stk_dataset *dataset;
    make_mixed(path);
    assert_int_equal(open_fields(&dataset, path, NULL, FIELDS("jpg=bytes?", "mask.npy?")), STK_OK);
    assert_int_equal(stk_dataset_field(dataset, 1)->kind, STK_KIND_TENSOR);
    check_bytes(dataset, 0, 1, NULL);
    stk_dataset_close(dataset);
}

static void a_damaged_first_value_does_not_hide_the_shape(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    uint8_t npy[1024];
    char *path = path_of(*state, "a.tar");
    size_t len = make_npy(npy, 0, 3);
    tar_add_text(tar, "a.npy", "not numpy");
    tar_add(tar, "b.npy", npy, len);
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_int_equal(dataset_field(dataset, 0)->probed, 1);
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.shape[0], 3);
    stk_dataset_close(dataset);
}

static void values_that_are_all_damaged_are_found_when_read(void **state)
{
    struct tar *tar = calloc(1, sizeof *tar);
    struct stk_reader *reader;
    struct stk_value value;
    struct stk_error err = {0};
    char *path = path_of(*state, "a.tar");
    tar_add_text(tar, "a.npy", "not numpy");
    tar_write(tar, path);
    free(tar);
    struct stk_dataset *dataset = must_open(path, NULL);
    assert_true(dataset_field(dataset, 0)->probed == STK_NOWHERE);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    assert_int_not_equal(stk_reader_read(reader, 0, &value, &err), STK_OK);
    assert_string_equal(err.object, path);
    assert_int_equal(err.offset, 512);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
}

#define WITH_FOLDER(test) cmocka_unit_test_setup_teardown(test, fixture_open, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FOLDER(all_fields_by_default_and_the_incomplete_ones_optional),
        WITH_FOLDER(the_first_alternative_that_is_there_counts),
        WITH_FOLDER(a_missing_field_is_an_error_unless_optional),
        WITH_FOLDER(a_kind_can_be_asked_for),
        WITH_FOLDER(bytes_asked_for_as_a_tensor_are_probed),
        WITH_FOLDER(specs_that_make_no_sense_are_refused),
        WITH_FOLDER(an_optional_field_that_no_sample_has_is_always_absent),
        WITH_FOLDER(a_damaged_first_value_does_not_hide_the_shape),
        WITH_FOLDER(values_that_are_all_damaged_are_found_when_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
