/* watch_function.h -- functions of the module that watch this process itself.
 * Owns: a watch belongs to the capsule that stands for it.   Threads: Python's lock is let go while
 * the library works.   Errors: Python's own.   Not here: the hook of the interpreter, and what is
 * done with the outcome (stoker/profile.py). */
#ifndef PYTHON_WATCH_FUNCTION_H
#define PYTHON_WATCH_FUNCTION_H

#include "core.h"

/* watch_open(context, trace, trace_bytes, stack_hz) -> watch */
PyObject *watch_function_open(PyObject *module, PyObject *args);
/* watch_folder(watch) -> where the hook and the injected library lie */
PyObject *watch_function_folder(PyObject *module, PyObject *watch);
/* watch_finish(watch) -> (run file as JSON, words for a terminal) */
PyObject *watch_function_finish(PyObject *module, PyObject *watch);
/* watch_close(watch): the folder is removed; a second time nothing happens */
PyObject *watch_function_close(PyObject *module, PyObject *watch);

#endif
