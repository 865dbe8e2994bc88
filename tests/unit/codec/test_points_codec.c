/* test_points_codec.c -- every kind of cloud: what was written is read back bit by bit, and what
 * lies is refused before memory is asked for. */
#include <math.h>

#include "base/fail.h"
#include "base/npy_header.h"
#include "base/random.h"
#include "codec/lzf.h"
#include "codec/points_codec.h"
#include "codec/points_maker.h"

struct cloud {
    struct points_header header;
    float *values;
};

static stk_status cloud_try(struct cloud *cloud, struct blob *blob, const uint32_t *rows,
                            int64_t count, int32_t columns, struct stk_error *err)
{
    struct stk_bytes bytes = blob_bytes(blob);
    struct scratch scratch = {0};
    *cloud = (struct cloud){0};
    stk_status status = points_probe(&bytes, &cloud->header, err);
    if (!status) {
        count = count < 0 ? cloud->header.count : count;
        columns = columns ? columns : cloud->header.columns;
        cloud->values = malloc((size_t)count * (size_t)columns * sizeof(float) + 1);
        status =
            points_read(&bytes, &cloud->header, rows, count, columns, cloud->values, &scratch, err);
    }
    scratch_free(&scratch);
    return status;
}

static struct cloud cloud_read(struct blob *blob)
{
    struct cloud cloud;
    struct stk_error err = {0};
    stk_status status = cloud_try(&cloud, blob, NULL, -1, 0, &err);
    if (status)
        fprintf(stderr, "%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return cloud;
}

static void cloud_is(struct cloud *cloud, const char *format, int64_t count, int32_t columns,
                     const float *values)
{
    assert_string_equal(cloud->header.format, format);
    assert_int_equal(cloud->header.count, count);
    assert_int_equal(cloud->header.columns, columns);
    assert_memory_equal(cloud->values, values, (size_t)count * (size_t)columns * sizeof *values);
    free(cloud->values);
}

static stk_status refused(struct blob *blob, const char *words)
{
    struct cloud cloud;
    struct stk_error err = {0};
    stk_status status = cloud_try(&cloud, blob, NULL, -1, 0, &err);
    free(cloud.values);
    if (!strstr(err.what, words))
        fprintf(stderr, "wanted \"%s\", got \"%s\"\n", words, err.what);
    assert_non_null(strstr(err.what, words));
    blob_free(blob);
    return status;
}

static stk_status text_refused(const char *text, const char *words)
{
    struct blob blob = {0};
    blob_text(&blob, text);
    return refused(&blob, words);
}

/* ---- bin and npy --------------------------------------------------------------------------- */

/* Also NaNs with a load, which no arithmetic would keep. */
static void fill_bits(float *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)random_at(5, i);
        if (i % 7 == 0)
            bits = 0x7f800001u + (uint32_t)i; /* signalling */
        memcpy(&values[i], &bits, sizeof bits);
    }
}

static void a_bin_of_kitti_comes_out_bit_by_bit(void **state)
{
    (void)state;
    float values[40];
    struct blob blob = {0};
    fill_bits(values, 40);
    blob_add(&blob, values, sizeof values);
    struct cloud cloud = cloud_read(&blob);
    cloud_is(&cloud, "bin", 10, 4, values);
    blob_free(&blob);
}

static void a_bin_of_another_width_is_refused_with_a_remedy(void **state)
{
    (void)state;
    struct blob blob = {0};
    struct cloud cloud;
    struct stk_error err;
    static const uint8_t zeros[60];
    blob_add(&blob, zeros, 60);
    assert_int_equal(cloud_try(&cloud, &blob, NULL, -1, 0, &err), STK_CORRUPT);
    assert_non_null(strstr(err.remedy, "(N, 5)"));
    blob.len = 33;
    assert_int_equal(cloud_try(&cloud, &blob, NULL, -1, 0, &err), STK_CORRUPT);
    assert_non_null(strstr(err.what, "33 bytes"));
    blob.len = 0;
    assert_int_equal(cloud_try(&cloud, &blob, NULL, -1, 0, &err), STK_TRUNCATED);
    blob_free(&blob);
}

static void npy_make(struct blob *blob, enum stk_dtype dtype, int64_t rows, int64_t columns)
{
    char head[512];
    size_t len;
    struct stk_tensor shape = {.dtype = dtype, .rank = 2, .shape = {rows, columns}};
    npy_header_write(&shape, head, sizeof head, &len);
    blob_add(blob, head, len);
}

static void an_npy_of_every_float_becomes_float32(void **state)
{
    (void)state;
    static const float values[] = {1, -2.5f, 0.25f, 65504, 1e-7f, 3};
    static const uint16_t halves[] = {0x3c00, 0xc100, 0x3400, 0x7bff, 0x0002, 0x4200};
    struct blob blob = {0};
    npy_make(&blob, STK_F32, 2, 3);
    blob_add(&blob, values, sizeof values);
    struct cloud cloud = cloud_read(&blob);
    cloud_is(&cloud, "npy", 2, 3, values);
    blob.len = 0;
    npy_make(&blob, STK_F64, 2, 3);
    for (int i = 0; i < 6; i++)
        blob_add(&blob, &(double){values[i]}, 8);
    cloud = cloud_read(&blob);
    cloud_is(&cloud, "npy", 2, 3, values);
    blob.len = 0;
    npy_make(&blob, STK_F16, 2, 3);
    blob_add(&blob, halves, sizeof halves);
    cloud = cloud_read(&blob);
    assert_true(cloud.values[1] == -2.5f && cloud.values[3] == 65504 &&
                cloud.values[4] == 0x1p-23f);
    free(cloud.values);
    blob_free(&blob);
}

static void a_big_endian_npy_in_fortran_order_is_put_in_order(void **state)
{
    (void)state;
    static const char head[] = "\x93NUMPY\x01\x00\x36\x00{'descr': '>f8', 'fortran_order': True, "
                               "'shape': (2,3), }";
    static const float values[] = {1, 2, 3, 4, 5, 6};
    static const int order[] = {0, 3, 1, 4, 2, 5};
    struct blob blob = {0};
    blob_add(&blob, head, sizeof head - 1);
    for (int i = 0; i < 6; i++)
        blob_value(&blob, &(double){values[order[i]]}, 8, 1);
    blob.data[8] = (uint8_t)(sizeof head - 1 - 10);
    struct cloud cloud = cloud_read(&blob);
    cloud_is(&cloud, "npy", 2, 3, values);
    blob_free(&blob);
}

static void an_npy_of_other_axes_or_types_is_refused(void **state)
{
    (void)state;
    struct blob blob = {0};
    char head[512];
    size_t len;
    struct stk_tensor shape = {.dtype = STK_F32, .rank = 1, .shape = {4}};
    npy_header_write(&shape, head, sizeof head, &len);
    blob_add(&blob, head, len);
    blob_add(&blob, head, 16);
    assert_int_equal(refused(&blob, "(N, columns)"), STK_SHAPE);
    npy_make(&blob, STK_C64, 1, 2);
    blob_add(&blob, head, 16);
    assert_int_equal(refused(&blob, "complex64"), STK_UNSUPPORTED);
    npy_make(&blob, STK_F32, 1, 513);
    uint8_t *payload = calloc(513, 4);
    blob_add(&blob, payload, 513 * 4);
    assert_int_equal(refused(&blob, "512"), STK_LIMIT);
    npy_make(&blob, STK_F32, 1000, 4);
    blob_add(&blob, payload, 64);
    assert_int_equal(refused(&blob, "16000 bytes"), STK_TRUNCATED);
    free(payload);
}

/* ---- pcd ----------------------------------------------------------------------------------- */

#define PCD_HEAD                                                                                   \
    "# .PCD v0.7 - Point Cloud Data file format\nVERSION 0.7\n"                                    \
    "FIELDS z _ intensity x normal y\nSIZE 4 1 2 8 4 4\nTYPE F U U F F I\nCOUNT 1 3 1 1 2 1\n"
#define PCD_RECORD (4 + 3 + 2 + 8 + 8 + 4)

struct pcd_point {
    float z, normal[2];
    uint16_t intensity;
    double x;
    int32_t y;
};

static struct pcd_point pcd_point(int i)
{
    return (struct pcd_point){.z = (float)i + 0.5f,
                              .normal = {(float)i * 0.1f, -1e-20f},
                              .intensity = (uint16_t)(60000 + i),
                              .x = i * 0.25,
                              .y = -i};
}

static void pcd_expect(float *out, int count)
{
    for (int i = 0; i < count; i++) {
        struct pcd_point p = pcd_point(i);
        float row[] = {(float)p.x, (float)p.y, p.z, p.intensity, p.normal[0], p.normal[1]};
        memcpy(out + 6 * i, row, sizeof row);
    }
}

static void pcd_records(struct blob *blob, int count)
{
    for (int i = 0; i < count; i++) {
        struct pcd_point p = pcd_point(i);
        blob_value(blob, &p.z, 4, 0);
        blob_add(blob, "abc", 3);
        blob_value(blob, &p.intensity, 2, 0);
        blob_value(blob, &p.x, 8, 0);
        blob_value(blob, &p.normal[0], 4, 0);
        blob_value(blob, &p.normal[1], 4, 0);
        blob_value(blob, &p.y, 4, 0);
    }
}

/* The records field by field, packed, with the two lengths before them. */
static void pcd_packed(struct blob *blob, int count)
{
    static const size_t sizes[] = {4, 3, 2, 8, 8, 4};
    struct blob records = {0}, planes = {0}, packed = {0};
    size_t offset = 0;
    pcd_records(&records, count);
    for (int field = 0; field < 6; offset += sizes[field++])
        for (int i = 0; i < count; i++)
            blob_add(&planes, records.data + (size_t)i * PCD_RECORD + offset, sizes[field]);
    lzf_pack(&packed, planes.data, planes.len);
    blob_value(blob, &(uint32_t){(uint32_t)packed.len}, 4, 0);
    blob_value(blob, &(uint32_t){(uint32_t)planes.len}, 4, 0);
    blob_add(blob, packed.data, packed.len);
    blob_free(&records);
    blob_free(&planes);
    blob_free(&packed);
}

static void pcd_make(struct blob *blob, const char *data, int count)
{
    char text[256];
    blob_text(blob, PCD_HEAD);
    snprintf(text, sizeof text, "WIDTH %d\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS %d\nDATA %s\n",
             count, count, data);
    blob_text(blob, text);
    if (!strcmp(data, "binary"))
        pcd_records(blob, count);
    else if (!strcmp(data, "binary_compressed"))
        pcd_packed(blob, count);
    for (int i = 0; !strcmp(data, "ascii") && i < count; i++) {
        struct pcd_point p = pcd_point(i);
        snprintf(text, sizeof text, "%.9g 1 2 3 %d %.17g\t%.9g %.9g %d%s\n", p.z, p.intensity, p.x,
                 p.normal[0], p.normal[1], p.y, i % 2 ? " \r" : "");
        blob_text(blob, text);
    }
}

static const char *const pcd_kinds[] = {"ascii", "binary", "binary_compressed"};

static void a_pcd_of_every_kind_gives_x_y_z_then_the_others(void **state)
{
    (void)state;
    float expected[6 * 300];
    pcd_expect(expected, 300);
    for (int kind = 0; kind < 3; kind++) {
        struct blob blob = {0};
        pcd_make(&blob, pcd_kinds[kind], 300);
        struct cloud cloud = cloud_read(&blob);
        cloud_is(&cloud, "pcd", 300, 6, expected);
        blob_free(&blob);
    }
}

static void chosen_rows_and_columns_alone_are_read(void **state)
{
    (void)state;
    static const uint32_t rows[] = {0, 3, 4, 17, 299};
    float expected[6 * 300];
    pcd_expect(expected, 300);
    for (int kind = 0; kind < 3; kind++) {
        struct blob blob = {0};
        struct cloud cloud;
        pcd_make(&blob, pcd_kinds[kind], 300);
        assert_int_equal(cloud_try(&cloud, &blob, rows, 5, 4, NULL), STK_OK);
        for (int i = 0; i < 5; i++)
            assert_memory_equal(cloud.values + 4 * i, expected + 6 * rows[i], 4 * sizeof(float));
        free(cloud.values);
        assert_int_equal(cloud_try(&cloud, &blob, &(uint32_t){300}, 1, 4, NULL), STK_SHAPE);
        free(cloud.values);
        assert_int_equal(cloud_try(&cloud, &blob, NULL, 1, 7, NULL), STK_SHAPE);
        free(cloud.values);
        blob_free(&blob);
    }
}

static void a_pcd_without_points_is_empty(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        struct blob blob = {0};
        pcd_make(&blob, pcd_kinds[kind], 0);
        struct cloud cloud = cloud_read(&blob);
        assert_int_equal(cloud.header.count, 0);
        assert_int_equal(cloud.header.columns, 6);
        free(cloud.values);
        blob_free(&blob);
    }
}

static void nan_and_packed_colours_pass_through(void **state)
{
    (void)state;
    struct blob blob = {0};
    uint32_t bits[] = {0x7fc00000, 0xffc12345, 0x3f800000, 0x00ff8040}, found[4];
    blob_text(&blob, "VERSION .7\nFIELDS x y z rgb\nSIZE 4 4 4 4\nTYPE F F F F\nCOUNT 1 1 1 1\n"
                     "WIDTH 1\nHEIGHT 1\nPOINTS 1\nDATA binary\n");
    for (int i = 0; i < 4; i++)
        blob_value(&blob, &bits[i], 4, 0);
    struct cloud cloud = cloud_read(&blob);
    memcpy(found, cloud.values, sizeof found);
    assert_memory_equal(found, bits, sizeof bits);
    free(cloud.values);
    blob.len = 0;
    blob_text(&blob, "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS 1\nDATA ascii\nnan -NaN -inf");
    cloud = cloud_read(&blob);
    assert_true(isnan(cloud.values[0]) && isnan(cloud.values[1]) && cloud.values[2] == -INFINITY);
    free(cloud.values);
    blob_free(&blob);
}

#define PCD_XYZ "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\n"

static void a_pcd_whose_count_lies_is_refused(void **state)
{
    (void)state;
    struct blob blob = {0};
    char *more;
    assert_int_equal(text_refused(PCD_XYZ "POINTS 3\nDATA ascii\n1 2 3\n4 5 6\n", "2 lines"),
                     STK_CORRUPT);
    assert_int_equal(text_refused(PCD_XYZ "POINTS 1\nDATA ascii\n1 2 3\n4 5 6\n", "2 lines"),
                     STK_CORRUPT);
    assert_int_equal(
        text_refused(PCD_XYZ "POINTS 4000000000\nDATA binary\n012345678901", "4000000000 points"),
        STK_CORRUPT);
    assert_int_equal(text_refused(PCD_XYZ "POINTS 18446744073709551615\nDATA binary\n", "points"),
                     STK_CORRUPT);
    assert_int_equal(text_refused(PCD_XYZ "POINTS 1\nDATA binary\n012345678901012345678901",
                                  "24 bytes are there"),
                     STK_CORRUPT);
    assert_int_equal(
        text_refused(PCD_XYZ "WIDTH 2\nHEIGHT 3\nPOINTS 5\nDATA ascii\n", "is not POINTS 5"),
        STK_CORRUPT);
    assert_int_equal(
        text_refused(PCD_XYZ "WIDTH 4294967296\nHEIGHT 4294967296\nDATA ascii\n", "4294967296"),
        STK_CORRUPT);
    assert_int_equal(text_refused(PCD_XYZ "DATA ascii\n", "neither"), STK_CORRUPT);
    pcd_make(&blob, "binary_compressed", 100);
    more = strstr((char *)blob.data, "POINTS 100");
    memcpy(more, "POINTS 999", 10);
    memcpy(strstr((char *)blob.data, "WIDTH 100"), "WIDTH 999", 9);
    assert_int_equal(refused(&blob, "999 points"), STK_CORRUPT);
}

static void a_broken_pcd_header_is_refused_with_words(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        stk_status status;
    } cases[] = {
        {"VERSION 0.7\n", "end within the header", STK_TRUNCATED},
        {"VERSION 0.9\n" PCD_XYZ "POINTS 0\nDATA ascii\n", "version 0.9", STK_UNSUPPORTED},
        {PCD_XYZ "POINTS 0\nDATA text\n", "not text", STK_UNSUPPORTED},
        {PCD_XYZ "POINTS 0\nDATA\n", "DATA", STK_CORRUPT},
        {PCD_XYZ "POINTS x\nDATA ascii\n", "no number", STK_CORRUPT},
        {PCD_XYZ "POINTS 0\nPOINTS 0\nDATA ascii\n", "a second", STK_CORRUPT},
        {PCD_XYZ "COLOUR 0\nDATA ascii\n", "unknown line \"COLOUR\"", STK_CORRUPT},
        {"FIELDS x\nSIZE 4\nPOINTS 0\nDATA ascii\n", "TYPE is missing", STK_CORRUPT},
        {"FIELDS x y\nSIZE 4\nTYPE F F\nPOINTS 0\nDATA ascii\n", "fewer values", STK_CORRUPT},
        {"FIELDS x\nSIZE 3\nTYPE F\nPOINTS 0\nDATA ascii\n", "of SIZE 3", STK_CORRUPT},
        {"FIELDS x\nSIZE 4\nTYPE Q\nPOINTS 0\nDATA ascii\n", "TYPE Q", STK_CORRUPT},
        {"FIELDS x\nSIZE 4\nTYPE F\nCOUNT 513\nPOINTS 0\nDATA ascii\n", "COUNT 513", STK_LIMIT},
        {"FIELDS x\nSIZE 4\nTYPE F\nCOUNT 0\nPOINTS 0\nDATA ascii\n", "COUNT 0", STK_LIMIT},
        {"FIELDS _\nSIZE 4\nTYPE F\nPOINTS 0\nDATA ascii\n", "no field", STK_CORRUPT},
        {"FIELDS\nSIZE\nTYPE\nPOINTS 0\nDATA ascii\n", "no field", STK_CORRUPT},
        {PCD_XYZ "POINTS 1\nDATA ascii\n10.5 20\n", "fewer numbers", STK_CORRUPT},
        {PCD_XYZ "POINTS 1\nDATA ascii\n1 2 3 4\n", "more numbers", STK_CORRUPT},
        {PCD_XYZ "POINTS 1\nDATA ascii\n1 2 three\n", "no number", STK_CORRUPT},
        {PCD_XYZ "POINTS 1\nDATA ascii\n1 2 0x3\n", "no number", STK_CORRUPT},
        {PCD_XYZ "POINTS 2\nDATA ascii\n1\n2\n", "4 bytes are there", STK_CORRUPT},
        {PCD_XYZ "POINTS 1\nDATA binary_compressed\n\1\0\0", "lengths", STK_TRUNCATED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(text_refused(cases[i].text, cases[i].words), cases[i].status);
}

static void a_header_over_64_kib_is_refused(void **state)
{
    (void)state;
    struct blob blob = {0};
    blob_text(&blob, "VERSION 0.7\n");
    while (blob.len < 70000)
        blob_text(&blob, "# a comment that has no end\n");
    assert_int_equal(refused(&blob, "65536"), STK_LIMIT);
}

static void packed_points_that_lie_are_refused(void **state)
{
    (void)state;
    static const struct {
        uint32_t packed, unpacked;
        const char *bytes, *words;
        stk_status status;
    } cases[] = {
        {900, 12, "\0a", "900 bytes of packed", STK_TRUNCATED},
        {2, 24, "\0a", "unpack to 24", STK_CORRUPT},
        {0, 12, "", "cannot hold", STK_CORRUPT},
        {2, 12, "\0a", "no LZF", STK_CORRUPT},
        {4, 12, "\0a\x20\x05", "no LZF", STK_CORRUPT},   /* from before the first byte */
        {5, 12, "\0a\xe0\xff\0", "no LZF", STK_CORRUPT}, /* past the last */
        {3, 12, "\0a\xe0", "no LZF", STK_CORRUPT},       /* ends within a control */
        {3, 12,
         "\x1f"
         "ab",
         "no LZF", STK_CORRUPT}, /* fewer bytes than announced */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct blob blob = {0};
        blob_text(&blob, PCD_XYZ "POINTS 1\nDATA binary_compressed\n");
        blob_value(&blob, &cases[i].packed, 4, 0);
        blob_value(&blob, &cases[i].unpacked, 4, 0);
        blob_add(&blob, cases[i].bytes, cases[i].packed < 100 ? cases[i].packed : 2);
        assert_int_equal(refused(&blob, cases[i].words), cases[i].status);
    }
}

static void what_lzf_packs_is_unpacked(void **state)
{
    (void)state;
    for (uint64_t kind = 0; kind < 40; kind++) {
        struct blob plain = {0}, packed = {0};
        size_t len = random_below(kind, 0, 1500);
        for (size_t i = 0; i < len; i++) {
            uint8_t byte = (uint8_t)random_below(kind, i + 1, kind % 4 ? kind : 256);
            blob_add(&plain, &byte, 1);
        }
        lzf_pack(&packed, plain.data, plain.len);
        struct stk_bytes from = blob_bytes(&packed);
        uint8_t *to = malloc(len + 1);
        assert_true(lzf_unpack(from.data, from.len, to, len));
        if (len)
            assert_memory_equal(to, plain.data, len);
        assert_true(!len || !lzf_unpack(from.data, from.len, to, len - 1));
        assert_false(lzf_unpack(from.data, from.len, to, len + 1));
        free(to);
        blob_free(&plain);
        blob_free(&packed);
    }
}

/* ---- ply ----------------------------------------------------------------------------------- */

#define PLY_BODY                                                                                   \
    "comment made by hand\nelement camera 2\nproperty uchar a\nproperty double b\n"                \
    "element vertex 50\nproperty float z\nproperty uchar red\nproperty short y\n"                  \
    "property double x\nproperty uint label\nelement face 1\n"                                     \
    "property list uchar int vertex_index\nend_header\n"

static void ply_expect(float *out)
{
    for (int i = 0; i < 50; i++) {
        float row[] = {(float)i / 8, (float)-i, (float)i + 0.1f, (float)(250 - i),
                       (float)(4000000000u + (uint32_t)i)};
        memcpy(out + 5 * i, row, sizeof row);
    }
}

static void ply_make(struct blob *blob, const char *format)
{
    int big = !strcmp(format, "binary_big_endian");
    char text[128];
    snprintf(text, sizeof text, "ply\r\nformat %s 1.0\r\n", format);
    blob_text(blob, text);
    blob_text(blob, PLY_BODY);
    if (!strcmp(format, "ascii")) {
        blob_text(blob, "1 2.5\n2 3.5\n\n");
        for (int i = 0; i < 50; i++) {
            snprintf(text, sizeof text, "%.9g %d %d %.17g %u\n", (float)i + 0.1f, 250 - i, -i,
                     i / 8.0, 4000000000u + (uint32_t)i);
            blob_text(blob, text);
        }
        blob_text(blob, "3 0 1 2\n");
        return;
    }
    blob_add(blob, "123456789987654321", 18);
    for (int i = 0; i < 50; i++) {
        blob_value(blob, &(float){(float)i + 0.1f}, 4, big);
        blob_value(blob, &(uint8_t){(uint8_t)(250 - i)}, 1, big);
        blob_value(blob, &(int16_t){(int16_t)-i}, 2, big);
        blob_value(blob, &(double){i / 8.0}, 8, big);
        blob_value(blob, &(uint32_t){4000000000u + (uint32_t)i}, 4, big);
    }
    blob_add(blob, "\3zzzzyyyyxxxx", 13);
}

static void a_ply_of_every_kind_gives_x_y_z_then_the_others(void **state)
{
    (void)state;
    static const char *const formats[] = {"ascii", "binary_little_endian", "binary_big_endian"};
    static const uint32_t rows[] = {7, 8, 49};
    float expected[5 * 50];
    ply_expect(expected);
    for (int i = 0; i < 3; i++) {
        struct blob blob = {0};
        struct cloud cloud;
        ply_make(&blob, formats[i]);
        cloud = cloud_read(&blob);
        cloud_is(&cloud, "ply", 50, 5, expected);
        assert_int_equal(cloud_try(&cloud, &blob, rows, 3, 2, NULL), STK_OK);
        for (int k = 0; k < 3; k++)
            assert_memory_equal(cloud.values + 2 * k, expected + 5 * rows[k], 2 * sizeof(float));
        free(cloud.values);
        blob_free(&blob);
    }
}

static void a_broken_ply_is_refused_with_words(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
        stk_status status;
    } cases[] = {
        {"ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int a\nend_header\n",
         "list property", STK_UNSUPPORTED},
        {"ply\nformat ascii 1.0\nelement face 1\nproperty list uchar int a\nelement vertex 1\n"
         "property float x\nend_header\n",
         "before vertex", STK_UNSUPPORTED},
        {"ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nend_header\n1\n",
         "2 points, 1 lines", STK_CORRUPT},
        {"ply\nformat binary_little_endian 1.0\nelement vertex 2\nproperty float x\nend_header\n"
         "1234",
         "2 points of 4 bytes, but 4", STK_CORRUPT},
        {"ply\nformat binary_little_endian 1.0\nelement vertex 99999999999999999999\n", "number",
         STK_CORRUPT},
        {"ply\nformat binary_little_endian 1.0\nelement vertex 9999999999\nproperty float x\n"
         "end_header\n",
         "9999999999 points", STK_CORRUPT},
        {"ply\nformat binary_little_endian 1.0\nelement a 18446744073709551615\nproperty float x\n"
         "element vertex 0\nproperty float x\nend_header\n",
         "no file", STK_CORRUPT},
        {"ply\nformat ascii 1.0\nelement a 18446744073709551615\nelement vertex 1\n"
         "property float x\nend_header\n1\n",
         "lines before", STK_CORRUPT},
        {"ply\nformat ascii 1.0\nelement face 0\nend_header\n", "no element vertex", STK_CORRUPT},
        {"ply\nformat ascii 1.0\nelement vertex 0\nend_header\n", "no property", STK_CORRUPT},
        {"ply\nelement vertex 0\n", "no format", STK_CORRUPT},
        {"ply\nformat zip 1.0\n", "unknown format", STK_CORRUPT},
        {"ply\nformat ascii 1.0\nproperty float x\n", "without element", STK_CORRUPT},
        {"ply\nformat ascii 1.0\nelement vertex 0\nproperty quad x\n", "unknown type", STK_CORRUPT},
        {"ply\nformat ascii 1.0\nelement vertex 0\nproperty float x\nelement vertex 0\n",
         "second element", STK_CORRUPT},
        {"ply\nformat ascii 1.0\nnonsense\n", "unknown line", STK_CORRUPT},
        {"ply\nformat ascii 1.0\n", "end within", STK_TRUNCATED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(text_refused(cases[i].text, cases[i].words), cases[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bin_of_kitti_comes_out_bit_by_bit),
        cmocka_unit_test(a_bin_of_another_width_is_refused_with_a_remedy),
        cmocka_unit_test(an_npy_of_every_float_becomes_float32),
        cmocka_unit_test(a_big_endian_npy_in_fortran_order_is_put_in_order),
        cmocka_unit_test(an_npy_of_other_axes_or_types_is_refused),
        cmocka_unit_test(a_pcd_of_every_kind_gives_x_y_z_then_the_others),
        cmocka_unit_test(chosen_rows_and_columns_alone_are_read),
        cmocka_unit_test(a_pcd_without_points_is_empty),
        cmocka_unit_test(nan_and_packed_colours_pass_through),
        cmocka_unit_test(a_pcd_whose_count_lies_is_refused),
        cmocka_unit_test(a_broken_pcd_header_is_refused_with_words),
        cmocka_unit_test(a_header_over_64_kib_is_refused),
        cmocka_unit_test(packed_points_that_lie_are_refused),
        cmocka_unit_test(what_lzf_packs_is_unpacked),
        cmocka_unit_test(a_ply_of_every_kind_gives_x_y_z_then_the_others),
        cmocka_unit_test(a_broken_ply_is_refused_with_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
