#include "base/testing.h"

#include "stoker/tensor.h"

#include "base/transpose.h"

static void dtypes_are_read_by_all_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum stk_dtype dtype;
    } cases[] = {
        {"float16", STK_F16},
        {"f16", STK_F16},
        {"half", STK_F16},
        {"<f2", STK_F16},
        {"torch.float16", STK_F16},
        {"torch.bfloat16", STK_BF16},
        {"bf16", STK_BF16},
        {"u8", STK_U8},
        {"<u8", STK_U64},
        {"|u1", STK_U8},
        {"<f4", STK_F32},
        {"=f8", STK_F64},
        {"|b1", STK_BOOL},
        {"|?", STK_BOOL},
        {"bool", STK_BOOL},
        {"Float32", STK_F32},
        {"torch.long", STK_I64},
        {"i8", STK_I8},
        {"<i8", STK_I64},
        {"numpy.int16", STK_I16},
        {"complex64", STK_C64},
        {"<c16", STK_C128},
        {">u1", STK_U8},
        {">f4", STK_DTYPE_COUNT},
        {"", STK_DTYPE_COUNT},
        {"f8", STK_DTYPE_COUNT},
        {"f4x", STK_DTYPE_COUNT},
        {"<", STK_DTYPE_COUNT},
        {"object", STK_DTYPE_COUNT},
        {"torch.", STK_DTYPE_COUNT},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(stk_dtype_parse(cases[i].text), cases[i].dtype);
    assert_int_equal(stk_dtype_parse(NULL), STK_DTYPE_COUNT);
    for (int i = 0; i < STK_DTYPE_COUNT; i++) {
        assert_int_equal(stk_dtype_parse(stk_dtype_name(i)), i);
        assert_true(stk_dtype_size(i) > 0);
    }
    assert_int_equal(stk_dtype_size(STK_DTYPE_COUNT), 0);
}

static void sizes_are_checked(void **state)
{
    (void)state;
    struct stk_tensor tensor = {.dtype = STK_F32, .rank = 2, .shape = {3, 5}};
    assert_int_equal(stk_tensor_size(&tensor), 60);
    tensor.rank = 0;
    assert_int_equal(stk_tensor_size(&tensor), 4);
    tensor = (struct stk_tensor){.dtype = STK_F32, .rank = 2, .shape = {3, -1}};
    assert_true(stk_tensor_size(&tensor) == UINT64_MAX);
    tensor = (struct stk_tensor){.dtype = STK_U8, .rank = 2, .shape = {INT64_MAX, 3}};
    assert_true(stk_tensor_size(&tensor) == UINT64_MAX);
    tensor = (struct stk_tensor){.dtype = STK_U8, .rank = 3, .shape = {INT64_MAX, 3, 0}};
    assert_true(stk_tensor_size(&tensor) == UINT64_MAX);
    tensor.shape[1] = 1;
    assert_int_equal(stk_tensor_size(&tensor), 0);
    tensor.rank = STK_MAX_RANK + 1;
    assert_true(stk_tensor_size(&tensor) == UINT64_MAX);
    tensor.rank = -1;
    assert_true(stk_tensor_size(&tensor) == UINT64_MAX);
}

/* Element by element, from the definition. */
static void check_transpose(const struct stk_tensor *shape)
{
    size_t size = stk_dtype_size(shape->dtype), total = stk_tensor_size(shape);
    uint8_t *from = malloc(total + 1), *to = malloc(total + 1);
    for (size_t i = 0; i < total; i++)
        from[i] = (uint8_t)(i * 31 + i / 251);
    to[total] = 0x5a;
    transpose_fortran(to, from, shape);
    for (size_t i = 0; i < total / size; i++) {
        size_t rest = i, at = 0, stride = total / size;
        for (int32_t d = shape->rank - 1; d >= 0; d--) {
            stride /= (size_t)shape->shape[d];
            at += rest % (size_t)shape->shape[d] * stride;
            rest /= (size_t)shape->shape[d];
        }
        assert_memory_equal(to + i * size, from + at * size, size);
    }
    assert_int_equal(to[total], 0x5a);
    free(from);
    free(to);
}

static void fortran_order_becomes_c_order(void **state)
{
    (void)state;
    static const struct stk_tensor shapes[] = {
        {.dtype = STK_U8, .rank = 2, .shape = {3, 2}},
        {.dtype = STK_F32, .rank = 2, .shape = {100, 33}},
        {.dtype = STK_F16, .rank = 3, .shape = {5, 7, 11}},
        {.dtype = STK_F64, .rank = 4, .shape = {3, 1, 4, 65}},
        {.dtype = STK_C128, .rank = 3, .shape = {2, 40, 3}},
        {.dtype = STK_I32, .rank = 8, .shape = {2, 3, 1, 2, 2, 1, 3, 2}},
        {.dtype = STK_I64, .rank = 1, .shape = {9}},
        {.dtype = STK_I64, .rank = 0},
        {.dtype = STK_U16, .rank = 5, .shape = {1, 1, 6, 1, 1}},
        {.dtype = STK_U8, .rank = 3, .shape = {4, 0, 4}},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_transpose(&shapes[i]);
}

static void bytes_are_swapped_and_complex_numbers_by_halves(void **state)
{
    (void)state;
    uint8_t data[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    transpose_swap(data, 8, STK_F16);
    assert_memory_equal(data, "\1\0\3\2\5\4", 6);
    transpose_swap(data, 8, STK_BF16);
    transpose_swap(data, 2, STK_F64);
    assert_memory_equal(data, "\7\6\5\4\3\2\1\0\17\16", 10);
    transpose_swap(data, 2, STK_F64);
    transpose_swap(data, 2, STK_C64);
    assert_memory_equal(data, "\3\2\1\0\7\6\5\4", 8);
    transpose_swap(data, 2, STK_C64);
    transpose_swap(data, 1, STK_C128);
    assert_memory_equal(data, "\7\6\5\4\3\2\1\0\17\16", 10);
    transpose_swap(data, 1, STK_C128);
    transpose_swap(data, 16, STK_U8);
    assert_memory_equal(data, "\0\1\2\3", 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_are_read_by_all_their_names),
        cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(fortran_order_becomes_c_order),
        cmocka_unit_test(bytes_are_swapped_and_complex_numbers_by_halves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
