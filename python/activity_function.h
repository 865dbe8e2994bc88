/* activity_function.h -- functions of the module that tell how busy a GPU is.
 * Owns: a recording belongs to the capsule that stands for it.   Threads: Python's lock is let go
 * while the library works.   Errors: Python's own.   Not here: shares and timelines
 * (stoker/gpu.py). */
#ifndef PYTHON_ACTIVITY_FUNCTION_H
#define PYTHON_ACTIVITY_FUNCTION_H

#include "core.h"

/* activity_start(device, bin_ns) -> recording */
PyObject *activity_function_start(PyObject *module, PyObject *args);
/* activity_read(recording) -> sums, as a dict; "kernel_bins" and "copy_bins" are bytes of uint64 */
PyObject *activity_function_read(PyObject *module, PyObject *recording);
/* activity_stop(recording): a second time nothing happens */
PyObject *activity_function_stop(PyObject *module, PyObject *recording);

#endif
