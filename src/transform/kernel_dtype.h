/* kernel_dtype.h -- enum stk_dtype for kernels, which include no header of the system.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: names and parsing (stoker/tensor.h);
 * tensor_device.c asserts that the numbers are the same. */
#ifndef TRANSFORM_KERNEL_DTYPE_H
#define TRANSFORM_KERNEL_DTYPE_H

enum kernel_dtype {
    KERNEL_BOOL,
    KERNEL_U8,
    KERNEL_I8,
    KERNEL_U16,
    KERNEL_I16,
    KERNEL_U32,
    KERNEL_I32,
    KERNEL_U64,
    KERNEL_I64,
    KERNEL_F16,
    KERNEL_BF16,
    KERNEL_F32,
    KERNEL_F64
};

#endif
