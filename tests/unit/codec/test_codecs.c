/* test_codecs.c -- every codec: what it takes, what it refuses, and bits that come out as they went
 * in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/npy_header.h"
#include "codec/codec.h"

static struct stk_bytes bytes_of(const char *text)
{
    return (struct stk_bytes){(const uint8_t *)text, strlen(text)};
}

static void a_field_is_read_by_its_last_suffix(void **state)
{
    (void)state;
    static const struct {
        const char *field, *codec;
    } cases[] = {
        {"npy", "npy"},       {"video.npy", "npy"},   {"NPY", "npy"},    {"cls", "int"},
        {"id", "int"},        {"index", "int"},       {"txt", "text"},   {"caption.text", "text"},
        {"json", "json"},     {"jpg", "image"},       {"", "bytes"},     {"npy.gz", "bytes"},
        {"my.cls", "int"},    {"cls.npy", "npy"},     {"npyx", "bytes"}, {"raw", "bytes"},
        {"seg.PNG", "image"}, {"webp", "image"},      {"flac", "audio"}, {"mp3", "audio"},
        {"mp4", "video"},     {"clip.webm", "video"}, {"ply", "points"}, {"pcd", "points"},
        {"bin", "bytes"},     {"jpg.txt", "text"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(codec_for(cases[i].field, STK_KIND_AUTO)->name, cases[i].codec);
}

static void a_kind_overrides_the_suffix(void **state)
{
    (void)state;
    assert_string_equal(codec_for("blob", STK_KIND_TENSOR)->name, "npy");
    assert_string_equal(codec_for("npy", STK_KIND_BYTES)->name, "bytes");
    assert_string_equal(codec_for("npy", STK_KIND_INT)->name, "int");
    assert_string_equal(codec_for("npy", STK_KIND_TEXT)->name, "text");
    assert_string_equal(codec_for("npy", STK_KIND_JSON)->name, "json");
}

static void the_table_is_sorted_and_found_by_name(void **state)
{
    (void)state;
    uint32_t row = 0;
    for (; codec_at(row); row++) {
        assert_ptr_equal(codec_find(codec_at(row)->name), codec_at(row));
        if (row)
            assert_true(strcmp(codec_at(row - 1)->name, codec_at(row)->name) < 0);
    }
    assert_int_equal(row, 11);
    assert_null(codec_find("jpeg"));
}

static void media_have_a_codec_each_and_are_left_to_pipelines(void **state)
{
    (void)state;
    for (int media = STK_MEDIA_TENSOR + 1; media < STK_MEDIA_COUNT; media++) {
        const struct codec_ops *codec = codec_of_media((enum stk_media)media);
        assert_string_equal(codec->name, stk_media_name((enum stk_media)media));
        assert_int_equal(codec->media, media);
        assert_int_equal(codec->kind, STK_KIND_TENSOR);
        assert_null(codec->probe);
    }
    assert_int_equal(codec_find("npy")->media, STK_MEDIA_TENSOR);
}

static void numbers_in_ascii_become_int64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"7\n", 7},
        {" -12 ", -12},
        {"+3", 3},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"\r\n5\t", 5},
        {"0007", 7},
    };
    const struct codec_ops *codec = codec_find("int");
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t value = 99;
        struct stk_tensor to = {.data = &value, .dtype = STK_I64};
        struct stk_bytes bytes = bytes_of(good[i].text);
        assert_int_equal(codec->decode(&bytes, &to, NULL), STK_OK);
        assert_true(value == good[i].value);
    }
}

static void what_is_no_number_is_corrupt(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", " ", "-", "1.5", "0x10", "1 2", "cat", "9223372036854775808", "1_000"};
    const struct codec_ops *codec = codec_find("int");
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t value;
        struct stk_error err = {0};
        struct stk_tensor to = {.data = &value, .dtype = STK_I64};
        struct stk_bytes bytes = bytes_of(bad[i]);
        assert_int_equal(codec->decode(&bytes, &to, &err), STK_CORRUPT);
        assert_non_null(strstr(err.remedy, "=text"));
    }
}

static void text_is_checked_for_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        stk_status status;
    } cases[] = {
        {"", STK_OK},
        {"plain", STK_OK},
        {"gr\xc3\xbc\xc3\x9f", STK_OK},
        {"\xe2\x82\xac \xf0\x9f\x98\x80", STK_OK},
        {"\xef\xbf\xbf \xf4\x8f\xbf\xbf", STK_OK},
        {"\xc0\x80", STK_CORRUPT},         /* overlong */
        {"\xe0\x80\x80", STK_CORRUPT},     /* overlong */
        {"\xed\xa0\x80", STK_CORRUPT},     /* a surrogate */
        {"\xf4\x90\x80\x80", STK_CORRUPT}, /* over U+10FFFF */
        {"\xe2\x82", STK_CORRUPT},         /* cut */
        {"\x80", STK_CORRUPT},
        {"\xff", STK_CORRUPT},
        {"a\xc3z", STK_CORRUPT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stk_bytes bytes = bytes_of(cases[i].text);
        assert_int_equal(codec_find("text")->check(&bytes, NULL), cases[i].status);
    }
}

static void json_is_checked_by_its_grammar(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{}",
        "[]",
        " [1, -2.5e+3, \"a\\u00e9\\n\", true, false, null] ",
        "3",
        "\"x\"",
        "-0.1E-2",
        "{\"a\": {\"b\": [[], {}]}, \"a\": 1}",
        "NaN",
        "[-Infinity, Infinity]",
        "0",
    };
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "[1,]",
        "{\"a\":}",
        "{\"a\"}",
        "{a:1}",
        "01",
        "1.",
        ".5",
        "-",
        "1e",
        "tru",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"open",
        "[1] 2",
        "{\"a\":1,}",
        "\"tab\there\"",
        "'a'",
        "[1 2]",
        "\"\xff\"",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct stk_bytes bytes = bytes_of(good[i]);
        assert_int_equal(codec_find("json")->check(&bytes, NULL), STK_OK);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct stk_bytes bytes = bytes_of(bad[i]);
        assert_int_equal(codec_find("json")->check(&bytes, NULL), STK_CORRUPT);
    }
}

static void json_nested_ten_thousand_deep_is_refused_without_a_crash(void **state)
{
    (void)state;
    static char deep[10000];
    memset(deep, '[', sizeof deep);
    struct stk_bytes bytes = {(uint8_t *)deep, sizeof deep};
    assert_int_equal(codec_find("json")->check(&bytes, NULL), STK_CORRUPT);
}

/* ---- raw ----------------------------------------------------------------------------------- */

static void raw_bytes_pass_through_bit_exact(void **state)
{
    (void)state;
    const uint32_t patterns[4] = {0x7fc00001, 0xff800000, 0x80000000, 0x7f800001}; /* NaNs too */
    uint32_t out[4] = {0};
    struct stk_tensor to = {.data = out, .dtype = STK_F32, .rank = 2, .shape = {2, 2}};
    struct stk_bytes bytes = {(const uint8_t *)patterns, sizeof patterns};
    assert_int_equal(codec_find("raw")->decode(&bytes, &to, NULL), STK_OK);
    assert_memory_equal(out, patterns, sizeof out);
}

static void raw_of_another_length_is_refused(void **state)
{
    (void)state;
    uint32_t out[4];
    uint8_t in[15] = {0};
    struct stk_tensor to = {.data = out, .dtype = STK_F32, .rank = 1, .shape = {4}};
    struct stk_bytes bytes = {in, sizeof in};
    assert_int_equal(codec_find("raw")->decode(&bytes, &to, NULL), STK_SHAPE);
}

static void swapped_raw_is_put_in_order_decoded_or_in_place(void **state)
{
    (void)state;
    const uint8_t in[8] = {0, 0, 0, 1, 0x12, 0x34, 0x56, 0x78};
    uint32_t out[2];
    struct stk_tensor to = {.data = out, .dtype = STK_U32, .rank = 1, .shape = {2}};
    struct stk_bytes bytes = {in, sizeof in}, none = {in, 0};
    assert_int_equal(codec_find("raw_swapped")->decode(&bytes, &to, NULL), STK_OK);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 0x12345678);
    memcpy(out, in, sizeof out);
    assert_int_equal(codec_find("raw_swapped")->finish(&none, &to, NULL, NULL), STK_OK);
    assert_int_equal(out[1], 0x12345678);
}

/* ---- npy ----------------------------------------------------------------------------------- */

static size_t npy_make(uint8_t *out, const char *descr, const char *order, const char *shape,
                       const void *payload, size_t payload_len)
{
    char header[119];
    int len = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': %s, }",
                       descr, order, shape);
    memcpy(out, "\x93NUMPY\x01\x00\x76\x00", 10);
    memset(out + 10, ' ', 118);
    memcpy(out + 10, header, (size_t)len);
    out[127] = '\n';
    memcpy(out + 128, payload, payload_len);
    return 128 + payload_len;
}

static const int16_t c_order[6] = {1, 2, 3, 4, 5, 6};       /* (2, 3) */
static const int16_t fortran_order[6] = {1, 4, 2, 5, 3, 6}; /* the same */

static void an_array_tells_its_shape_and_head(void **state)
{
    (void)state;
    uint8_t file[256];
    struct codec_shape shape;
    size_t len = npy_make(file, "<i2", "False", "(2, 3)", c_order, sizeof c_order);
    struct stk_bytes head = {file, 128};
    assert_int_equal(codec_find("npy")->probe(&head, len, &shape, NULL), STK_OK);
    assert_int_equal(shape.head, 128);
    assert_int_equal(shape.tensor.dtype, STK_I16);
    assert_int_equal(shape.tensor.rank, 2);
    assert_int_equal(shape.tensor.shape[0], 2);
    assert_int_equal(shape.tensor.shape[1], 3);
    assert_null(shape.tensor.data);
}

/* Both ways to the same values: decode from bytes, and finish in place. */
static void check_both_ways(const char *descr, const char *order, const int16_t *payload)
{
    uint8_t file[256];
    int16_t out[6], scratch[6];
    size_t len = npy_make(file, descr, order, "(2, 3)", payload, sizeof c_order);
    struct stk_tensor to = {.data = out, .dtype = STK_I16, .rank = 2, .shape = {2, 3}};
    struct stk_bytes bytes = {file, len}, head = {file, 128};
    assert_int_equal(codec_find("npy")->decode(&bytes, &to, NULL), STK_OK);
    assert_memory_equal(out, c_order, sizeof out);
    memcpy(out, payload, sizeof out);
    assert_int_equal(codec_find("npy")->finish(&head, &to, scratch, NULL), STK_OK);
    assert_memory_equal(out, c_order, sizeof out);
}

static void big_endian_and_fortran_arrays_come_out_in_order(void **state)
{
    (void)state;
    int16_t swapped[6], both[6];
    for (int i = 0; i < 6; i++) {
        swapped[i] = (int16_t)(c_order[i] << 8);
        both[i] = (int16_t)(fortran_order[i] << 8);
    }
    check_both_ways("<i2", "False", c_order);
    check_both_ways(">i2", "False", swapped);
    check_both_ways("<i2", "True", fortran_order);
    check_both_ways(">i2", "True", both);
}

static void fortran_in_place_without_scratch_says_that_it_needs_it(void **state)
{
    (void)state;
    uint8_t file[256];
    int16_t out[6];
    npy_make(file, "<i2", "True", "(2, 3)", fortran_order, sizeof out);
    struct stk_tensor to = {.data = out, .dtype = STK_I16, .rank = 2, .shape = {2, 3}};
    struct stk_bytes head = {file, 128};
    assert_int_equal(codec_find("npy")->finish(&head, &to, NULL, NULL), STK_MEMORY);
}

static void a_payload_put_in_place_behind_another_head_is_refused(void **state)
{
    (void)state;
    uint8_t file[256];
    int16_t out[6];
    npy_make(file, "<i2", "False", "(2, 3)", c_order, sizeof out);
    struct stk_tensor to = {.data = out, .dtype = STK_I16, .rank = 2, .shape = {2, 3}};
    struct stk_bytes head = {file, 136}; /* what lies in out would begin 8 bytes too late */
    assert_int_equal(codec_find("npy")->finish(&head, &to, NULL, NULL), STK_SHAPE);
    head.len = 10;
    assert_int_not_equal(codec_find("npy")->finish(&head, &to, NULL, NULL), STK_OK);
}

static void another_dtype_or_shape_names_both(void **state)
{
    (void)state;
    uint8_t file[256];
    int16_t out[6];
    struct stk_error err = {0};
    size_t len = npy_make(file, "<i2", "False", "(2, 3)", c_order, sizeof out);
    struct stk_tensor to = {.data = out, .dtype = STK_I16, .rank = 2, .shape = {3, 2}};
    struct stk_bytes bytes = {file, len};
    assert_int_equal(codec_find("npy")->decode(&bytes, &to, &err), STK_SHAPE);
    assert_non_null(strstr(err.what, "int16 (2, 3)"));
    assert_non_null(strstr(err.what, "int16 (3, 2)"));
    to = (struct stk_tensor){.data = out, .dtype = STK_F16, .rank = 2, .shape = {2, 3}};
    assert_int_equal(codec_find("npy")->decode(&bytes, &to, &err), STK_SHAPE);
}

static void an_array_of_objects_is_never_unpickled(void **state) /* FAULTS 28 */
{
    (void)state;
    uint8_t file[256];
    struct codec_shape shape;
    size_t len = npy_make(file, "|O", "False", "(2, 3)", c_order, sizeof c_order);
    struct stk_bytes head = {file, len};
    assert_int_equal(codec_find("npy")->probe(&head, len, &shape, NULL), STK_UNSUPPORTED);
}

static void an_array_shorter_than_its_shape_is_truncated(void **state) /* FAULTS 31 */
{
    (void)state;
    uint8_t file[256];
    int16_t out[6];
    size_t len = npy_make(file, "<i2", "False", "(2, 3)", c_order, sizeof c_order);
    struct stk_tensor to = {.data = out, .dtype = STK_I16, .rank = 2, .shape = {2, 3}};
    struct stk_bytes bytes = {file, len - 1};
    assert_int_equal(codec_find("npy")->decode(&bytes, &to, NULL), STK_TRUNCATED);
}

static void arrays_of_no_axes_or_no_elements_are_fine(void **state)
{
    (void)state;
    uint8_t file[256];
    int16_t out[1] = {0};
    size_t len = npy_make(file, "<i2", "False", "()", c_order, 2);
    struct stk_tensor to = {.data = out, .dtype = STK_I16};
    struct stk_bytes bytes = {file, len};
    assert_int_equal(codec_find("npy")->decode(&bytes, &to, NULL), STK_OK);
    assert_int_equal(out[0], 1);
    len = npy_make(file, "<i2", "True", "(0, 3)", c_order, 0);
    to = (struct stk_tensor){.data = out, .dtype = STK_I16, .rank = 2, .shape = {0, 3}};
    bytes = (struct stk_bytes){file, len};
    assert_int_equal(codec_find("npy")->decode(&bytes, &to, NULL), STK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_is_read_by_its_last_suffix),
        cmocka_unit_test(a_kind_overrides_the_suffix),
        cmocka_unit_test(the_table_is_sorted_and_found_by_name),
        cmocka_unit_test(media_have_a_codec_each_and_are_left_to_pipelines),
        cmocka_unit_test(numbers_in_ascii_become_int64),
        cmocka_unit_test(what_is_no_number_is_corrupt),
        cmocka_unit_test(text_is_checked_for_utf8),
        cmocka_unit_test(json_is_checked_by_its_grammar),
        cmocka_unit_test(json_nested_ten_thousand_deep_is_refused_without_a_crash),
        cmocka_unit_test(raw_bytes_pass_through_bit_exact),
        cmocka_unit_test(raw_of_another_length_is_refused),
        cmocka_unit_test(swapped_raw_is_put_in_order_decoded_or_in_place),
        cmocka_unit_test(an_array_tells_its_shape_and_head),
        cmocka_unit_test(big_endian_and_fortran_arrays_come_out_in_order),
        cmocka_unit_test(fortran_in_place_without_scratch_says_that_it_needs_it),
        cmocka_unit_test(a_payload_put_in_place_behind_another_head_is_refused),
        cmocka_unit_test(another_dtype_or_shape_names_both),
        cmocka_unit_test(an_array_of_objects_is_never_unpickled),
        cmocka_unit_test(an_array_shorter_than_its_shape_is_truncated),
        cmocka_unit_test(arrays_of_no_axes_or_no_elements_are_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
