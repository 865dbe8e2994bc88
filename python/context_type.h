/* context_type.h -- stoker._core.Context: the library's context, whose hooks call Python.
 * Owns: the context and the callables.   Threads: hooks take Python's lock themselves, so
 * whoever calls into the library lets go of it first.   Errors: what a hook raises is kept, the job
 * is cancelled, and context_raise tells it.   Not here: what the hooks do (stoker/_context.py). */
#ifndef PYTHON_CONTEXT_TYPE_H
#define PYTHON_CONTEXT_TYPE_H

#include "core.h"

struct stk_context *context_of(PyObject *context);
/* Raises what a hook raised, else err; always NULL. */
PyObject *context_raise(PyObject *context, const struct stk_error *err);
/* Forgets what a hook raised: something else is told. */
void context_forget(PyObject *context);

#endif
