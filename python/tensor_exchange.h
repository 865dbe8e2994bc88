/* tensor_exchange.h -- how others take a tensor without a copy: DLPack, CUDA's array interface, the
 * buffer protocol.
 * Owns: nothing; what is handed out counts the tensor's memory.   Threads: under Python's lock;
 * what was handed out may be given back by any thread.   Errors: Python's own; BufferError for what
 * the memory cannot do.   Not here: the tensor itself (tensor_type.h). */
#ifndef PYTHON_TENSOR_EXCHANGE_H
#define PYTHON_TENSOR_EXCHANGE_H

#include "tensor_type.h"

/* __dlpack__(stream, max_version, dl_device, copy): the tensor in a capsule. */
PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *named);
/* The plain way in: torch.utils.dlpack.from_dlpack takes capsules. No stream waits for anything. */
PyObject *tensor_capsule(PyObject *object, PyObject *none);
PyObject *tensor_dlpack_device(PyObject *object, PyObject *none);
PyObject *tensor_cuda_interface(PyObject *object, void *closure);
/* __array__, which numpy asks for what shows no buffer: always an error. Without it numpy would
 * make an array of one Python object. */
PyObject *tensor_array(PyObject *object, PyObject *args, PyObject *named);
int tensor_buffer(PyObject *object, Py_buffer *view, int flags);

#endif
