/* core.h -- what the files of the module stoker._core share: its state and its types.
 * Owns: the module's types.   Threads: all of it under Python's lock.   Errors: Python's own.
 * Not here: conversions (convert.h), the types' methods (*_type.c). */
#ifndef PYTHON_CORE_H
#define PYTHON_CORE_H

#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "stoker/stoker.h"

struct core_state {
    PyTypeObject *tensor, *context, *dataset, *loader, *pipeline;
};

/* The module's state, from any object of one of its types. */
struct core_state *core_state_of(PyObject *object);

/* Each makes one type and puts it into the module; NULL with a Python error. */
PyTypeObject *tensor_type_add(PyObject *module);
PyTypeObject *context_type_add(PyObject *module);
PyTypeObject *dataset_type_add(PyObject *module);
PyTypeObject *loader_type_add(PyObject *module);
PyTypeObject *pipeline_type_add(PyObject *module);

#endif
