#include "stoker/tensor.h"

#include <string.h>
#include <strings.h>

#include "base/checked.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
#define X(name, text, size) {text, size},
    STK_DTYPE_LIST(X)
#undef X
};

/* Short names count bits, as in torch and Rust: "u8" is uint8. */
static const struct {
    const char *name;
    enum stk_dtype dtype;
} aliases[] = {
    {"b8", STK_BOOL},   {"boolean", STK_BOOL}, {"u8", STK_U8},     {"byte", STK_U8},
    {"i8", STK_I8},     {"u16", STK_U16},      {"i16", STK_I16},   {"short", STK_I16},
    {"u32", STK_U32},   {"i32", STK_I32},      {"int", STK_I32},   {"u64", STK_U64},
    {"i64", STK_I64},   {"long", STK_I64},     {"f16", STK_F16},   {"half", STK_F16},
    {"bf16", STK_BF16}, {"f32", STK_F32},      {"float", STK_F32}, {"single", STK_F32},
    {"f64", STK_F64},   {"double", STK_F64},   {"c64", STK_C64},   {"cfloat", STK_C64},
    {"c128", STK_C128}, {"cdouble", STK_C128},
};

/* What follows numpy's byte-order mark: these count bytes. */
static const struct {
    const char *name;
    enum stk_dtype dtype;
} numpy_codes[] = {
    {"b1", STK_BOOL}, {"?", STK_BOOL}, {"u1", STK_U8},    {"i1", STK_I8},
    {"u2", STK_U16},  {"i2", STK_I16}, {"u4", STK_U32},   {"i4", STK_I32},
    {"u8", STK_U64},  {"i8", STK_I64}, {"f2", STK_F16},   {"f4", STK_F32},
    {"f8", STK_F64},  {"c8", STK_C64}, {"c16", STK_C128}, {"V2", STK_BF16},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

const char *stk_dtype_name(enum stk_dtype dtype)
{
    return (unsigned)dtype < STK_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

size_t stk_dtype_size(enum stk_dtype dtype)
{
    return (unsigned)dtype < STK_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

/* The other byte order is refused for wide types: a dtype says nothing about swapping. */
static enum stk_dtype parse_numpy(const char *text)
{
    char other = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
    for (size_t i = 0; i < COUNT(numpy_codes); i++) {
        if (strcmp(text + 1, numpy_codes[i].name) == 0 &&
            (text[0] != other || stk_dtype_size(numpy_codes[i].dtype) == 1))
            return numpy_codes[i].dtype;
    }
    return STK_DTYPE_COUNT;
}

enum stk_dtype stk_dtype_parse(const char *text)
{
    static const char *const prefixes[] = {"torch.", "numpy.", "np."};
    if (!text || !text[0])
        return STK_DTYPE_COUNT;
    if (strchr("<>=|", text[0]))
        return parse_numpy(text);
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0) {
            text += strlen(prefixes[i]);
            break;
        }
    }
    for (size_t i = 0; i < COUNT(dtypes); i++) {
        if (strcasecmp(text, dtypes[i].name) == 0)
            return (enum stk_dtype)i;
    }
    for (size_t i = 0; i < COUNT(aliases); i++) {
        if (strcasecmp(text, aliases[i].name) == 0)
            return aliases[i].dtype;
    }
    return STK_DTYPE_COUNT;
}

/* Overflow is judged without the zeros, so that the answer does not hang on their place. */
uint64_t stk_tensor_size(const struct stk_tensor *tensor)
{
    uint64_t size = stk_dtype_size(tensor->dtype);
    int empty = 0;
    if (!size || tensor->rank < 0 || tensor->rank > STK_MAX_RANK)
        return UINT64_MAX;
    for (int32_t i = 0; i < tensor->rank; i++) {
        if (tensor->shape[i] < 0)
            return UINT64_MAX;
        if (tensor->shape[i] == 0)
            empty = 1;
        else if (!checked_mul(size, (uint64_t)tensor->shape[i], &size))
            return UINT64_MAX;
    }
    return empty ? 0 : size;
}
