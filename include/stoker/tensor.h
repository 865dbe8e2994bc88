/* tensor.h -- a dense, C-order array: pointer, type, shape.
 * Owns: nothing; data belongs to whoever made the tensor.   Threads: any.   Errors: none.
 * Not here: strides (tensors here are contiguous), decoding (src/codec). */
#ifndef STOKER_TENSOR_H
#define STOKER_TENSOR_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/export.h"

#define STK_MAX_RANK 8

/* name in C, name in text and in numpy or torch, bytes. What numpy and torch share. */
#define STK_DTYPE_LIST(X)                                                                          \
    X(BOOL, "bool", 1)                                                                             \
    X(U8, "uint8", 1)                                                                              \
    X(I8, "int8", 1)                                                                               \
    X(U16, "uint16", 2)                                                                            \
    X(I16, "int16", 2)                                                                             \
    X(U32, "uint32", 4)                                                                            \
    X(I32, "int32", 4)                                                                             \
    X(U64, "uint64", 8)                                                                            \
    X(I64, "int64", 8)                                                                             \
    X(F16, "float16", 2)                                                                           \
    X(BF16, "bfloat16", 2)                                                                         \
    X(F32, "float32", 4)                                                                           \
    X(F64, "float64", 8)                                                                           \
    X(C64, "complex64", 8)                                                                         \
    X(C128, "complex128", 16)

enum stk_dtype {
#define X(name, text, size) STK_##name,
    STK_DTYPE_LIST(X)
#undef X
        STK_DTYPE_COUNT
};

struct stk_tensor {
    void *data;
    enum stk_dtype dtype;
    int32_t rank;
    int64_t shape[STK_MAX_RANK];
};

STK_API const char *stk_dtype_name(enum stk_dtype dtype);
STK_API size_t stk_dtype_size(enum stk_dtype dtype);
/* Reads "float16", "f16", "half", "torch.float16", "u8", "<f4" ...; else STK_DTYPE_COUNT. */
STK_API enum stk_dtype stk_dtype_parse(const char *text);

/* Bytes of the whole tensor; UINT64_MAX when a dimension is negative or the product overflows. */
STK_API uint64_t stk_tensor_size(const struct stk_tensor *tensor);

#endif
