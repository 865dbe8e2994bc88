/* tensor_type.h -- stoker._core.Tensor: memory of a batch or a sample, for DLPack and the buffer
 * protocol. Owns: a count of the memory it shows.   Threads: making one needs Python's lock; a
 * count may be dropped by any thread, with or without it.   Errors: Python's own.   Not here: torch
 * and numpy (stoker/_arrays.py). */
#ifndef PYTHON_TENSOR_TYPE_H
#define PYTHON_TENSOR_TYPE_H

#include "core.h"

/* The memory behind some tensors: a batch of the loader, or a copy. Counted; the last one frees it.
 */
struct holder;

/* Takes the batch over, also when it fails: NULL, and a MemoryError is set. */
struct holder *holder_of_batch(struct stk_batch *batch);
/* A copy of len bytes, at *copy. */
struct holder *holder_of_copy(const void *data, size_t len, void **copy);
void holder_drop(struct holder *holder);

/* A tensor over tensor->data, which lies in holder; takes a count of its own. */
PyObject *tensor_new(const struct core_state *state, struct holder *holder,
                     const struct stk_tensor *tensor);

#endif
