/* device_function.h -- the module's functions about GPUs: stoker/device.h.
 * Owns: nothing.   Threads: under Python's lock, which waits let go of.   Errors: Python's own.
 * Not here: which of them a loader takes (stoker/_device.py). */
#ifndef PYTHON_DEVICE_FUNCTION_H
#define PYTHON_DEVICE_FUNCTION_H

#include "core.h"

PyObject *device_function_count(PyObject *module, PyObject *none);
PyObject *device_function_info(PyObject *module, PyObject *number);
PyObject *device_function_sample(PyObject *module, PyObject *number);
PyObject *device_function_folders(PyObject *module, PyObject *folders);

#endif
