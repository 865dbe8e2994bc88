/* convert.h -- between Python's values and the library's.
 * Owns: nothing.   Threads: under Python's lock.   Errors: a Python exception is set and NULL or 0
 * comes back.   Not here: tensors (tensor_type.h). */
#ifndef PYTHON_CONVERT_H
#define PYTHON_CONVERT_H

#include "core.h"

/* Raises the exception of stoker.errors that fits; always NULL. */
PyObject *convert_raise(const struct stk_error *err);
/* As convert_raise, for a status that came without words. */
PyObject *convert_raise_status(stk_status status, const char *what);

/* The other way: an exception in the library's words. One of stoker.errors keeps its status, file
 * and remedy; of any other the file is `object`. Ctrl-C is STK_CANCELLED. Returns the status. */
stk_status convert_explain(PyObject *exception, const char *object, struct stk_error *err);

/* A call from the library into Python, by a thread that may have no lock. It may come out of the
 * handling of an exception: that one is set aside until the call is left. */
struct convert_call {
    PyGILState_STATE lock;
    PyObject *type, *value, *trace;
};
void convert_enter(struct convert_call *call);
void convert_leave(struct convert_call *call);

/* For the "O&" of PyArg_Parse: whole numbers that must fit; None leaves the default. */
int convert_u64(PyObject *object, void *to);
int convert_u32(PyObject *object, void *to);

/* A list of bytes as C strings. The array is to be given to PyMem_Free; the strings live as long as
 * the list. An empty list or None gives *count 0. Not 0 when it worked. */
int convert_strings(PyObject *list, const char ***out, uint32_t *count);
/* None or a tuple of whole numbers as dimensions. */
int convert_shape(PyObject *tuple, int64_t shape[STK_MAX_RANK], int32_t *rank);

/* Text that is UTF-8 by rule, but comes from a file: what is not is kept as lone surrogates. */
PyObject *convert_name(const char *text, size_t len);
PyObject *convert_path(const char *text);
/* STK_NOWHERE is None. */
PyObject *convert_place(uint64_t number);
PyObject *convert_dimensions(const struct stk_tensor *tensor);
const char *convert_kind(enum stk_kind kind);

/* Looks text up in names; its number, or -1 with a ValueError that lists them. */
int convert_choice(const char *argument, const char *text, const char *const *names, int count);

/* Adds to a dict and gives up the reference; 0 with an error set when value is NULL. */
int convert_put(PyObject *dict, const char *key, PyObject *value);

#endif
