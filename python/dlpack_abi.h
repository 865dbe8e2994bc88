/* dlpack_abi.h -- DLPack's structs as its specification lays them out (both exchanges, with a
 * version and without).
 * Owns: nothing.   Threads: any.   Errors: none; a wrong layout does not compile.
 * Not here: who fills them (tensor_type.c). */
#ifndef PYTHON_DLPACK_ABI_H
#define PYTHON_DLPACK_ABI_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* A consumer renames the capsule when it takes the tensor. */
#define DLPACK_NAME "dltensor"
#define DLPACK_VERSIONED_NAME "dltensor_versioned"
#define DLPACK_MAJOR 1
#define DLPACK_MINOR 0

enum dlpack_device_type { DLPACK_CPU = 1, DLPACK_CUDA = 2 };

/* What a consumer gives as its stream; anything above is a CUstream. 1 and 2 are also what the
 * driver itself calls these streams. */
enum dlpack_stream {
    DLPACK_NO_WAIT = -1,
    DLPACK_AMBIGUOUS = 0, /* refused by the standard */
    DLPACK_LEGACY = 1,
    DLPACK_PER_THREAD = 2
};

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

struct dlpack_managed_versioned {
    uint32_t major, minor;
    void *owner;
    void (*deleter)(struct dlpack_managed_versioned *self); /* as above */
    uint64_t flags;
    struct dlpack_tensor tensor;
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
static_assert(sizeof(struct dlpack_managed_versioned) == 80, "DLManagedTensorVersioned");
static_assert(offsetof(struct dlpack_managed_versioned, owner) == 8, "manager_ctx");
static_assert(offsetof(struct dlpack_managed_versioned, deleter) == 16, "deleter");
static_assert(offsetof(struct dlpack_managed_versioned, flags) == 24, "flags");
static_assert(offsetof(struct dlpack_managed_versioned, tensor) == 32, "dl_tensor");

#endif
