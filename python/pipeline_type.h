/* pipeline_type.h -- stoker._core.Pipeline: a chain of transforms run on one value; and the list of
 * the transforms there are.
 * Owns: the pipeline, its context.   Threads: a run lets go of Python's lock; one at a time, a
 * second is refused.   Errors: the exceptions of stoker.errors.   Not here: what a user sees
 * (stoker/pipeline.py), the transforms' classes (stoker/transforms.py). */
#ifndef PYTHON_PIPELINE_TYPE_H
#define PYTHON_PIPELINE_TYPE_H

#include "core.h"

/* transforms(context) -> a list of (name, help, media, is of a batch, arguments); an argument is
 * (name, type, default or None, choices or None). */
PyObject *pipeline_transforms(PyObject *module, PyObject *context);

#endif
