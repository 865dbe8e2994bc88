/* test_tokens_open.c -- flat files of tokens as windows: which samples there are, and their bytes.
 */
#include <stdarg.h>

#include "base/memory.h"
#include "dataset/fixture.h"

#define WINDOW(tokens, step)                                                                       \
    (const struct stk_window_options)                                                              \
    {                                                                                              \
        .window = (tokens), .stride = (step), .horizon = STK_DEFAULT, .gap = STK_DEFAULT,          \
        .min_history = STK_DEFAULT                                                                 \
    }

/* uint16 tokens base, base + 1, ... */
static void make_tokens(const char *path, uint16_t base, size_t count, size_t extra)
{
    uint16_t *tokens = malloc(count * 2 + extra + 1);
    for (size_t i = 0; i < count; i++)
        tokens[i] = (uint16_t)(base + i);
    memset(tokens + count, 0, extra);
    make_file(path, tokens, count * 2 + extra);
    free(tokens);
}

static stk_status open_tokens(struct stk_dataset **out, const char *path, const char *dtype,
                              const struct stk_window_options *window, struct stk_error *err)
{
    struct stk_dataset_options options = {.format = "tokens", .dtype = dtype, .window = window};
    return stk_dataset_open(NULL, out, &path, 1, &options, err);
}

static struct stk_dataset *opened(const char *path, const char *dtype,
                                  const struct stk_window_options *window)
{
    struct stk_dataset *dataset = NULL;
    struct stk_error err = {0};
    stk_status status = open_tokens(&dataset, path, dtype, window, &err);
    if (status)
        fprintf(stderr, "%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return dataset;
}

static void refused(stk_status wanted, const char *words, const char *path, const char *dtype,
                    const struct stk_window_options *window)
{
    struct stk_dataset *dataset = NULL;
    struct stk_error err = {0};
    assert_int_equal(open_tokens(&dataset, path, dtype, window, &err), wanted);
    assert_null(dataset);
    if (!strstr(err.what, words))
        fprintf(stderr, "%s\n", err.what);
    assert_non_null(strstr(err.what, words));
}

/* Sample i begins with the token `first`. */
static void sample_is(struct stk_dataset *dataset, uint64_t i, uint16_t first, int64_t window)
{
    struct stk_reader *reader = NULL;
    struct stk_value value;
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    assert_int_equal(stk_reader_read(reader, i, &value, NULL), STK_OK);
    assert_int_equal(value.tensor.dtype, STK_U16);
    assert_int_equal(value.tensor.rank, 1);
    assert_int_equal(value.tensor.shape[0], window);
    for (int64_t k = 0; k < window; k++)
        assert_int_equal(((uint16_t *)value.tensor.data)[k], (uint16_t)(first + k));
    stk_reader_free(reader);
}

static void windows_follow_each_other_and_the_rest_is_no_sample(void **state)
{
    const char *path = path_of(*state, "tokens.bin");
    make_tokens(path, 100, 1003, 0);
    struct stk_dataset *dataset = opened(path, NULL, &WINDOW(10, STK_DEFAULT));
    assert_int_equal(stk_dataset_samples(dataset), 100);
    assert_int_equal(stk_dataset_field_count(dataset), 1);
    assert_string_equal(stk_dataset_field(dataset, 0)->name, "tokens");
    assert_int_equal(stk_dataset_field(dataset, 0)->shape.shape[0], 10);
    sample_is(dataset, 0, 100, 10);
    sample_is(dataset, 99, 1090, 10);
    stk_dataset_close(dataset);
}

static void a_stride_gives_every_window_that_fits(void **state)
{
    const char *path = path_of(*state, "tokens.bin");
    make_tokens(path, 0, 50, 0);
    for (uint64_t window = 1; window <= 50; window += 7) {
        for (uint64_t stride = 1; stride <= 60; stride += 13) {
            uint64_t count = 0;
            struct stk_dataset *dataset = opened(path, "uint16", &WINDOW(window, stride));
            for (uint64_t start = 0; start + window <= 50; start += stride)
                sample_is(dataset, count++, (uint16_t)start, (int64_t)window);
            assert_int_equal(stk_dataset_samples(dataset), count);
            stk_dataset_close(dataset);
        }
    }
}

static void no_window_reaches_over_its_file(void **state)
{
    make_tokens(path_of(*state, "a.bin"), 0, 25, 0);
    make_tokens(path_of(*state, "b.bin"), 1000, 9, 0); /* too short */
    make_tokens(path_of(*state, "c.bin"), 0, 0, 0);    /* empty */
    make_tokens(path_of(*state, "d.bin"), 2000, 30, 0);
    struct stk_dataset *dataset = opened(path_of(*state, "*.bin"), NULL, &WINDOW(10, 10));
    struct stk_bytes key;
    struct stk_place place;
    uint64_t position = 0;
    assert_int_equal(stk_dataset_samples(dataset), 5);
    sample_is(dataset, 1, 10, 10);
    sample_is(dataset, 2, 2000, 10);
    sample_is(dataset, 4, 2020, 10);
    assert_int_equal(stk_dataset_key(dataset, 3, &key, NULL), STK_OK);
    assert_int_equal(key.len, 8);
    assert_memory_equal(key.data, "d.bin:10", 8);
    assert_int_equal(stk_dataset_find(dataset, "d.bin:10", &position, NULL), STK_OK);
    assert_int_equal(position, 3);
    assert_int_equal(stk_dataset_place(dataset, 3, 0, &place, NULL), STK_OK);
    assert_string_equal(place.object, path_of(*state, "d.bin"));
    assert_int_equal(place.offset, 20);
    assert_int_equal(place.length, 20);
    stk_dataset_close(dataset);
}

static void an_npy_with_one_axis_brings_its_type(void **state)
{
    uint8_t bytes[4096];
    const char *path = path_of(*state, "tokens.npy");
    size_t len = make_npy(bytes, 70000, 23);
    make_file(path, bytes, len);
    struct stk_dataset *dataset = opened(path, NULL, &WINDOW(5, 5));
    struct stk_reader *reader = NULL;
    struct stk_value value;
    assert_int_equal(stk_dataset_samples(dataset), 4);
    assert_int_equal(stk_reader_new(dataset, &reader, NULL), STK_OK);
    assert_int_equal(stk_reader_read(reader, 3, &value, NULL), STK_OK);
    assert_int_equal(value.tensor.dtype, STK_I32);
    for (int i = 0; i < 5; i++)
        assert_int_equal(((int32_t *)value.tensor.data)[i], 70015 + i);
    stk_reader_free(reader);
    stk_dataset_close(dataset);
    refused(STK_SHAPE, "uint16", path, "uint16", &WINDOW(5, 5));
}

static void what_does_not_fit_is_refused_with_words(void **state)
{
    const char *path = path_of(*state, "tokens.bin");
    struct stk_window_options window = WINDOW(10, 10);
    make_tokens(path, 0, 25, 1);
    refused(STK_CORRUPT, "51 bytes are no whole number of tokens of 2 bytes", path, NULL, &window);
    make_tokens(path, 0, 25, 0);
    refused(STK_CORRUPT, "of 4 bytes", path, "uint32", &window);
    refused(STK_USAGE, "integers, not float32", path, "float32", &window);
    refused(STK_USAGE, "no dtype \"word\"", path, "word", &window);
    refused(STK_USAGE, "none is given", path, NULL, NULL);
    refused(STK_USAGE, "26 tokens: the longest has 25", path, NULL, &WINDOW(26, 1));
    refused(STK_USAGE, "at least 1", path, NULL, &WINDOW(0, 1));
    refused(STK_USAGE, "at least 1", path, NULL, &WINDOW(1, 0));
    refused(STK_USAGE, "window", path, NULL, &WINDOW(STK_DEFAULT - 1, 1));
    window.horizon = 1;
    refused(STK_USAGE, "nothing else", path, NULL, &window);
    refused(STK_NOT_FOUND, "cannot open", path_of(*state, "none.bin"), NULL, &WINDOW(1, 1));
}

static void the_fingerprint_is_of_files_type_and_windows(void **state)
{
    uint8_t first[16], second[16];
    const char *path = path_of(*state, "tokens.bin");
    make_tokens(path, 0, 40, 0);
    static const struct {
        const char *dtype;
        uint64_t window, stride;
        int same;
    } cases[] = {
        {"uint16", 10, 10, 1}, {"int16", 10, 10, 0}, {"uint16", 5, 10, 0}, {"uint16", 10, 5, 0}};
    struct stk_dataset *dataset = opened(path, NULL, &WINDOW(10, 10));
    stk_dataset_fingerprint(dataset, first);
    stk_dataset_close(dataset);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dataset = opened(path, cases[i].dtype, &WINDOW(cases[i].window, cases[i].stride));
        stk_dataset_fingerprint(dataset, second);
        assert_int_equal(!memcmp(first, second, 16), cases[i].same);
        stk_dataset_close(dataset);
    }
}

static int fail_nth(void *user, size_t size)
{
    (void)size;
    return --*(long *)user == 0;
}

static void every_allocation_may_fail(void **state)
{
    const char *path = path_of(*state, "tokens.bin");
    struct stk_window_options window = WINDOW(10, 10);
    struct stk_dataset *dataset = NULL;
    long n = 0, left;
    make_tokens(path, 0, 40, 0);
    do { /* until a run needs fewer than n */
        left = ++n;
        memory_set_hook(fail_nth, &left);
        stk_status status = open_tokens(&dataset, path, NULL, &window, NULL);
        memory_set_hook(NULL, NULL);
        assert_int_equal(status != STK_OK, dataset == NULL);
    } while (!dataset);
    assert_true(n > 5);
    assert_true(left > 0);
    stk_dataset_close(dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(windows_follow_each_other_and_the_rest_is_no_sample,
                                        fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(a_stride_gives_every_window_that_fits, fixture_open,
                                        fixture_close),
        cmocka_unit_test_setup_teardown(no_window_reaches_over_its_file, fixture_open,
                                        fixture_close),
        cmocka_unit_test_setup_teardown(an_npy_with_one_axis_brings_its_type, fixture_open,
                                        fixture_close),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_refused_with_words, fixture_open,
                                        fixture_close),
        cmocka_unit_test_setup_teardown(every_allocation_may_fail, fixture_open, fixture_close),
        cmocka_unit_test_setup_teardown(the_fingerprint_is_of_files_type_and_windows, fixture_open,
                                        fixture_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
