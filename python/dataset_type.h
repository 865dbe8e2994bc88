/* dataset_type.h -- stoker._core.Dataset: an opened dataset, and readers for single samples.
 * Owns: the dataset, its idle readers, its context.   Threads: any; reading lets go of Python's
 * lock and takes a reader of its own.   Errors: the exceptions of stoker.errors.   Not here: what a
 * user sees (stoker/dataset.py). */
#ifndef PYTHON_DATASET_TYPE_H
#define PYTHON_DATASET_TYPE_H

#include "core.h"

struct stk_dataset *dataset_of(PyObject *dataset);
/* Borrowed; lives as long as the dataset. */
PyObject *dataset_context(PyObject *dataset);

#endif
