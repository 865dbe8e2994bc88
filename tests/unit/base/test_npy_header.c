#include "base/testing.h"

#include "base/npy_header.h"

/* A version 1.0 file's first bytes around this dict. Returns their length. */
static size_t wrap(char *out, const char *dict)
{
    size_t len = strlen(dict);
    memcpy(out, "\x93NUMPY\x01\x00", 8);
    out[8] = (char)(len & 0xff);
    out[9] = (char)(len >> 8);
    memcpy(out + 10, dict, len);
    return len + 10;
}

static stk_status parse(const char *dict, uint64_t payload, struct npy_header *out,
                        struct stk_error *err)
{
    char buf[4096];
    size_t len = wrap(buf, dict);
    struct stk_bytes head = {(uint8_t *)buf, len};
    return npy_header_parse(out, &head, len + payload, err);
}

static void what_is_written_is_read_back_for_every_dtype(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < STK_DTYPE_COUNT; dtype++) {
        for (int32_t rank = 0; rank <= STK_MAX_RANK; rank++) {
            struct stk_tensor shape = {.dtype = (enum stk_dtype)dtype, .rank = rank};
            for (int32_t i = 0; i < rank; i++)
                shape.shape[i] = i + 1;
            char buf[512];
            size_t len;
            struct npy_header header;
            npy_header_write(&shape, buf, sizeof buf, &len);
            assert_int_equal(len % 64, 0);
            assert_int_equal(buf[len - 1], '\n');
            struct stk_bytes head = {(uint8_t *)buf, len};
            uint64_t total = len + stk_tensor_size(&shape);
            assert_int_equal(npy_header_parse(&header, &head, total, NULL), STK_OK);
            assert_int_equal(header.length, len);
            assert_int_equal(header.fortran + header.byteswap, 0);
            assert_int_equal(header.shape.dtype, dtype);
            assert_int_equal(header.shape.rank, rank);
            assert_memory_equal(header.shape.shape, shape.shape, sizeof shape.shape);
        }
    }
}

/* What numpy.save writes for a float16 array of this shape, byte for byte. */
static void a_header_is_numpys_own(void **state)
{
    (void)state;
    struct stk_tensor shape = {.dtype = STK_F16, .rank = 4, .shape = {16, 112, 112, 3}};
    char buf[512], expected[129];
    size_t len;
    memset(expected, ' ', 128);
    memcpy(expected, "\x93NUMPY\x01\x00\x76\x00", 10);
    static const char dict[] =
        "{'descr': '<f2', 'fortran_order': False, 'shape': (16, 112, 112, 3), }";
    memcpy(expected + 10, dict, sizeof dict - 1);
    expected[127] = '\n';
    npy_header_write(&shape, buf, sizeof buf, &len);
    assert_int_equal(len, 128);
    assert_memory_equal(buf, expected, 128);
    /* The largest that can be written: room is made by growing in steps of 64. */
    shape = (struct stk_tensor){.dtype = STK_C128, .rank = 8};
    for (int i = 0; i < 8; i++)
        shape.shape[i] = INT64_MAX;
    npy_header_write(&shape, buf, sizeof buf, &len);
    assert_true(len <= 512);
}

static void spelling_is_free_where_python_is(void **state)
{
    (void)state;
    static const char *const good[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
        "{\"shape\":(2,3),\"descr\":\"<f4\",\"fortran_order\":False}",
        "{ 'fortran_order' :False , 'shape': ( 2 , 3 , ) , 'descr' : u'<f4' }\n",
        "{'descr': '=f4', 'fortran_order': False, 'shape': (2L, 3L)}",
        "{'descr': 'f4', 'fortran_order': False, 'shape': (2, 3)}",
    };
    struct npy_header header;
    struct stk_error err;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(parse(good[i], 24, &header, &err), STK_OK);
        assert_int_equal(header.shape.dtype, STK_F32);
        assert_int_equal(header.shape.rank, 2);
        assert_int_equal(header.shape.shape[1], 3);
        assert_int_equal(header.byteswap, 0);
    }
    assert_int_equal(
        parse("{'descr': '<V2', 'fortran_order': True, 'shape': (3,)}", 6, &header, &err), STK_OK);
    assert_int_equal(header.shape.dtype, STK_BF16);
    assert_int_equal(header.fortran, 1);
    assert_int_equal(
        parse("{'descr': 'bfloat16', 'fortran_order': False, 'shape': ()}", 2, &header, &err),
        STK_OK);
    assert_int_equal(header.shape.dtype, STK_BF16);
    assert_int_equal(header.shape.rank, 0);
}

static void broken_dicts_are_refused_with_the_place(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "{}",
        "{'descr': '<f4', 'fortran_order': False}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x",
        "{'descr': '<f4' 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': [2]}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2 3)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2.5,)}",
        "{'descr': '<\\x664', 'fortran_order': False, 'shape': (2,)}",
        "{'descr': 4, 'fortran_order': False, 'shape': (2,)}",
        "[('descr', '<f4')]",
        "{'descr': '<f4', 'fortran_order': False, 'shape': __import__('os').getpid()}",
    };
    struct npy_header header;
    struct stk_error err;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(parse(bad[i], 1000, &header, &err), STK_CORRUPT);
        assert_true(err.offset >= 10 && err.offset <= 10 + strlen(bad[i]));
    }
}

static void every_prefix_and_every_changed_byte_is_survived(void **state)
{
    (void)state;
    char buf[256];
    struct npy_header header;
    size_t len = wrap(buf, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n");
    for (size_t cut = 0; cut < len; cut++) {
        char *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees a byte too much */
        memcpy(exact, buf, cut);
        struct stk_bytes head = {(uint8_t *)exact, cut};
        stk_status status = npy_header_parse(&header, &head, len + 24, NULL);
        assert_int_equal(status, cut == 0 ? STK_CORRUPT : STK_TRUNCATED);
        free(exact);
    }
    for (size_t at = 0; at < len; at++) {
        for (int value = 0; value < 256; value += 5) {
            char *exact = malloc(len);
            memcpy(exact, buf, len);
            exact[at] = (char)value;
            struct stk_bytes head = {(uint8_t *)exact, len};
            stk_status status = npy_header_parse(&header, &head, len + 24, NULL);
            assert_true(status == STK_OK ? stk_tensor_size(&header.shape) <= 24
                                         : header.length <= 65548);
            free(exact);
        }
    }
}

static void a_head_that_is_too_short_says_how_much_it_needs(void **state)
{
    (void)state;
    char buf[256];
    struct npy_header header;
    size_t len = wrap(buf, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n");
    struct stk_bytes head = {(uint8_t *)buf, 20};
    assert_int_equal(npy_header_parse(&header, &head, 1000, NULL), STK_TRUNCATED);
    assert_int_equal(header.length, len);
}

static void fault_28_objects_are_never_unpickled(void **state)
{
    (void)state;
    struct npy_header header;
    struct stk_error err;
    assert_int_equal(
        parse("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", 99, &header, &err),
        STK_UNSUPPORTED);
    assert_non_null(strstr(err.what, "object"));
}

static void fault_29_a_header_length_of_4_gib_is_refused_before_it_is_read(void **state)
{
    (void)state;
    static const uint8_t data[] = "\x93NUMPY\x02\x00\xff\xff\xff\xff{'descr'";
    struct stk_bytes head = {data, sizeof data - 1};
    struct npy_header header;
    assert_int_equal(npy_header_parse(&header, &head, UINT64_MAX, NULL), STK_LIMIT);
    static const uint8_t future[] = "\x93NUMPY\x04\x00\x01\x00\x00\x00{";
    head = (struct stk_bytes){future, sizeof future - 1};
    assert_int_equal(npy_header_parse(&header, &head, 100, NULL), STK_UNSUPPORTED);
    static const uint8_t page[] = "<html><body>404</body></html>";
    head = (struct stk_bytes){page, sizeof page - 1};
    assert_int_equal(npy_header_parse(&header, &head, 100, NULL), STK_CORRUPT);
}

static void versions_2_and_3_have_a_long_length(void **state)
{
    (void)state;
    static const char dict[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
    for (char version = 2; version <= 3; version++) {
        char buf[256] = "\x93NUMPY";
        struct npy_header header;
        buf[6] = version;
        buf[8] = sizeof dict - 1;
        memcpy(buf + 12, dict, sizeof dict - 1);
        struct stk_bytes head = {(uint8_t *)buf, 12 + sizeof dict - 1};
        assert_int_equal(npy_header_parse(&header, &head, head.len + 24, NULL), STK_OK);
        assert_int_equal(header.length, head.len);
    }
}

static void fault_30_shapes_that_overflow_or_are_negative_are_refused(void **state)
{
    (void)state;
    static const char *const shapes[] = {
        "(4294967296, 4294967296)",      "(-1, 4)",
        "(9223372036854775807, 2)",      "(9223372036854775808,)",
        "(99999999999999999999999999,)", "(4294967296, 4294967296, 0)",
        "(4611686018427387904,)"};
    char dict[256];
    struct npy_header header;
    struct stk_error err;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        snprintf(dict, sizeof dict, "{'descr': '<f8', 'fortran_order': False, 'shape': %s}",
                 shapes[i]);
        assert_int_equal(parse(dict, 1000, &header, &err), STK_CORRUPT);
    }
    assert_int_equal(parse("{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}",
                           8, &header, &err),
                     STK_UNSUPPORTED);
    assert_int_equal(
        parse("{'descr': '<f8', 'fortran_order': False, 'shape': (3, -2)}", 48, &header, &err),
        STK_CORRUPT);
    assert_non_null(strstr(err.what, "negative"));
}

static void fault_31_data_shorter_than_the_shape_is_truncated(void **state)
{
    (void)state;
    static const char dict[] = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}";
    struct npy_header header;
    struct stk_error err;
    assert_int_equal(parse(dict, 47, &header, &err), STK_TRUNCATED);
    assert_non_null(strstr(err.what, "48"));
    assert_int_equal(parse(dict, 48, &header, &err), STK_OK);
    assert_int_equal(parse(dict, 49, &header, &err), STK_OK); /* numpy lets trailing bytes be */
}

static void fault_32_order_and_structure_are_told(void **state)
{
    (void)state;
    struct npy_header header;
    struct stk_error err;
    assert_int_equal(
        parse("{'descr': '>f8', 'fortran_order': True, 'shape': (2, 3)}", 48, &header, &err),
        STK_OK);
    assert_true(header.byteswap && header.fortran);
    assert_int_equal(
        parse("{'descr': '>u1', 'fortran_order': False, 'shape': (2,)}", 2, &header, &err), STK_OK);
    assert_false(header.byteswap);
    assert_int_equal(parse("{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, "
                           "'shape': (2,)}",
                           99, &header, &err),
                     STK_UNSUPPORTED);
    assert_non_null(strstr(err.what, "structured"));
    static const char *const strange[] = {"<U5", "|S3", "<M8[ns]", "<f16", "<c32", "|V3", ""};
    for (size_t i = 0; i < sizeof strange / sizeof strange[0]; i++) {
        char dict[128];
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (2,)}",
                 strange[i]);
        assert_int_equal(parse(dict, 99, &header, &err), STK_UNSUPPORTED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_back_for_every_dtype),
        cmocka_unit_test(a_header_is_numpys_own),
        cmocka_unit_test(spelling_is_free_where_python_is),
        cmocka_unit_test(broken_dicts_are_refused_with_the_place),
        cmocka_unit_test(every_prefix_and_every_changed_byte_is_survived),
        cmocka_unit_test(a_head_that_is_too_short_says_how_much_it_needs),
        cmocka_unit_test(fault_28_objects_are_never_unpickled),
        cmocka_unit_test(fault_29_a_header_length_of_4_gib_is_refused_before_it_is_read),
        cmocka_unit_test(versions_2_and_3_have_a_long_length),
        cmocka_unit_test(fault_30_shapes_that_overflow_or_are_negative_are_refused),
        cmocka_unit_test(fault_31_data_shorter_than_the_shape_is_truncated),
        cmocka_unit_test(fault_32_order_and_structure_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
