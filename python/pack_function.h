/* pack_function.h -- functions of the module that write series.
 * Owns: nothing.   Threads: Python's lock is let go while the library works.   Errors: Python's
 * own; what a source raised comes back as it is.   Not here: reading series (dataset_type.h). */
#ifndef PYTHON_PACK_FUNCTION_H
#define PYTHON_PACK_FUNCTION_H

#include "core.h"

/* pack_series(context, tables, rows, own_names, out, **options) -> counts, as a dict */
PyObject *pack_function_series(PyObject *module, PyObject *args, PyObject *named);
/* rescale_series(context, folder, scaler, fit_on) */
PyObject *pack_function_rescale(PyObject *module, PyObject *args);

#endif
