/* remote_function.h -- functions of the module about data on the network.
 * Owns: nothing.   Threads: Python's lock is let go while the library works.   Errors: Python's
 * own. Not here: datasets (dataset_type.h). */
#ifndef PYTHON_REMOTE_FUNCTION_H
#define PYTHON_REMOTE_FUNCTION_H

#include "core.h"

/* remote_get(context, uri, most) -> bytes of a whole object */
PyObject *remote_function_get(PyObject *module, PyObject *args);

/* remote_open(context, uris) -> files: a capsule */
PyObject *remote_function_open(PyObject *module, PyObject *args);
/* remote_list(files) -> [(uri, size, folder that it was found in or None)] */
PyObject *remote_function_list(PyObject *module, PyObject *files);
/* remote_read(files, number, offset, length) -> bytes; any number of threads */
PyObject *remote_function_read(PyObject *module, PyObject *args);
/* remote_stop(files): reads end with CancelledError */
PyObject *remote_function_stop(PyObject *module, PyObject *files);

#endif
