/* tensor_type.h -- stoker._core.Tensor: memory of a batch or a sample, on the CPU or on a device.
 * Owns: a count of the memory it shows.   Threads: making one needs Python's lock; a
 * count may be dropped by any thread, with or without it.   Errors: Python's own.   Not here: how
 * others take it (tensor_exchange.h), torch and numpy (stoker/_arrays.py). */
#ifndef PYTHON_TENSOR_TYPE_H
#define PYTHON_TENSOR_TYPE_H

#include "core.h"

/* The memory behind some tensors: a batch of the loader, or a copy. Counted; the last one frees it.
 */
struct holder;

/* Takes the batch over, also when it fails: NULL, and a MemoryError is set. */
struct holder *holder_of_batch(struct stk_batch *batch);
/* A copy of len bytes, at *copy; data NULL: room for them. */
struct holder *holder_of_copy(const void *data, size_t len, void **copy);
struct holder *holder_keep(struct holder *holder);
void holder_drop(struct holder *holder);
/* The number of the CUDA device its memory is on; -1: the CPU's. */
int32_t holder_device(const struct holder *holder);
/* What the stream does from now on may use the memory. Lets go of Python's lock. -1 with an error
 * set. */
int holder_use(struct holder *holder, void *stream);

struct tensor_object {
    PyObject_HEAD struct holder *holder;
    struct stk_tensor tensor;
    int64_t strides[STK_MAX_RANK]; /* in bytes */
};

/* A tensor over tensor->data, which lies in holder; takes a count of its own. */
PyObject *tensor_new(const struct core_state *state, struct holder *holder,
                     const struct stk_tensor *tensor);

#endif
