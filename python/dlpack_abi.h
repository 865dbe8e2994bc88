/* dlpack_abi.h -- DLPack's structs as its specification lays them out (the unversioned exchange).
 * Owns: nothing.   Threads: any.   Errors: none; a wrong layout does not compile.
 * Not here: who fills them (tensor_type.c). */
#ifndef PYTHON_DLPACK_ABI_H
#define PYTHON_DLPACK_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define DLPACK_NAME "dltensor" /* a consumer renames the capsule when it takes the tensor */

enum dlpack_device_type { DLPACK_CPU = 1 };

enum dlpack_code {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6
};

struct dlpack_device {
    int32_t type;
    int32_t id;
};

struct dlpack_dtype {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    struct dlpack_device device;
    int32_t rank;
    struct dlpack_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements */
    uint64_t byte_offset;
};

struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *owner;
    /* Called once, by any thread, with or without Python's lock. */
    void (*deleter)(struct dlpack_managed *self);
};

static_assert(sizeof(struct dlpack_device) == 8, "DLDevice");
static_assert(sizeof(struct dlpack_dtype) == 4, "DLDataType");
static_assert(sizeof(struct dlpack_tensor) == 48, "DLTensor");
static_assert(offsetof(struct dlpack_tensor, device) == 8, "DLTensor.device");
static_assert(offsetof(struct dlpack_tensor, rank) == 16, "DLTensor.ndim");
static_assert(offsetof(struct dlpack_tensor, dtype) == 20, "DLTensor.dtype");
static_assert(offsetof(struct dlpack_tensor, shape) == 24, "DLTensor.shape");
static_assert(offsetof(struct dlpack_tensor, strides) == 32, "DLTensor.strides");
static_assert(offsetof(struct dlpack_tensor, byte_offset) == 40, "DLTensor.byte_offset");
static_assert(sizeof(struct dlpack_managed) == 64, "DLManagedTensor");
static_assert(offsetof(struct dlpack_managed, owner) == 48, "DLManagedTensor.manager_ctx");
static_assert(offsetof(struct dlpack_managed, deleter) == 56, "DLManagedTensor.deleter");

#endif
