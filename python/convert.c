#include "convert.h"

#include <string.h>

int convert_put(PyObject *dict, const char *key, PyObject *value)
{
    int put = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return put;
}

PyObject *convert_place(uint64_t number)
{
    if (number == STK_NOWHERE)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(number);
}

PyObject *convert_name(const char *text, size_t len)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)len, "surrogateescape");
}

PyObject *convert_path(const char *text)
{
    return PyUnicode_DecodeFSDefault(text);
}

PyObject *convert_raise(const struct stk_error *err)
{
    char text[1536];
    stk_error_format(err, text, sizeof text);
    PyObject *errors = PyImport_ImportModule("stoker.errors");
    PyObject *words = PyDict_New();
    PyObject *made = NULL;
    if (errors && words && convert_put(words, "message", convert_name(text, strlen(text))) &&
        convert_put(words, "status", PyUnicode_FromString(stk_status_name(err->status))) &&
        convert_put(words, "object", convert_path(err->object)) &&
        convert_put(words, "offset", convert_place(err->offset)) &&
        convert_put(words, "sample", convert_place(err->sample)) &&
        convert_put(words, "key", convert_name(err->key, strlen(err->key))) &&
        convert_put(words, "field", convert_name(err->field, strlen(err->field))) &&
        convert_put(words, "remedy", convert_name(err->remedy, strlen(err->remedy))))
        made = PyObject_CallMethod(errors, "make_error", "O", words);
    if (made)
        PyErr_SetObject((PyObject *)Py_TYPE(made), made);
    Py_XDECREF(made);
    Py_XDECREF(words);
    Py_XDECREF(errors);
    return NULL;
}

PyObject *convert_raise_status(stk_status status, const char *what)
{
    struct stk_error err = {.status = status, .offset = STK_NOWHERE, .sample = STK_NOWHERE};
    strncpy(err.what, what, sizeof err.what - 1);
    return convert_raise(&err);
}

int convert_u64(PyObject *object, void *to)
{
    if (object == Py_None)
        return 1;
    PyObject *whole = PyNumber_Index(object);
    if (!whole)
        return 0;
    unsigned long long number = PyLong_AsUnsignedLongLong(whole);
    Py_DECREF(whole);
    if (number == (unsigned long long)-1 && PyErr_Occurred())
        return 0;
    *(uint64_t *)to = number;
    return 1;
}

int convert_u32(PyObject *object, void *to)
{
    uint64_t number = *(uint32_t *)to;
    if (!convert_u64(object, &number))
        return 0;
    if (number > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "the number is too large");
        return 0;
    }
    *(uint32_t *)to = (uint32_t)number;
    return 1;
}

int convert_strings(PyObject *list, const char ***out, uint32_t *count)
{
    *out = NULL;
    *count = 0;
    if (list == Py_None)
        return 1;
    Py_ssize_t len = PyList_Size(list);
    if (len < 0)
        return 0;
    const char **strings = PyMem_Calloc((size_t)len + 1, sizeof *strings);
    if (!strings) {
        PyErr_NoMemory();
        return 0;
    }
    for (Py_ssize_t i = 0; i < len; i++) {
        char *text;
        if (PyBytes_AsStringAndSize(PyList_GetItem(list, i), &text, NULL) < 0) {
            PyMem_Free(strings);
            return 0;
        }
        strings[i] = text;
    }
    *out = strings;
    *count = (uint32_t)len;
    return 1;
}

int convert_shape(PyObject *tuple, int64_t shape[STK_MAX_RANK], int32_t *rank)
{
    *rank = 0;
    if (tuple == Py_None)
        return 1;
    Py_ssize_t len = PyTuple_Size(tuple);
    if (len < 0)
        return 0;
    if (len > STK_MAX_RANK) {
        PyErr_Format(PyExc_ValueError, "a shape has at most %d dimensions", STK_MAX_RANK);
        return 0;
    }
    for (Py_ssize_t i = 0; i < len; i++) {
        shape[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        if (shape[i] == -1 && PyErr_Occurred())
            return 0;
    }
    *rank = (int32_t)len;
    return 1;
}

PyObject *convert_dimensions(const struct stk_tensor *tensor)
{
    PyObject *tuple = PyTuple_New(tensor->rank);
    for (int32_t i = 0; tuple && i < tensor->rank; i++) {
        PyObject *number = PyLong_FromLongLong(tensor->shape[i]);
        if (!number || PyTuple_SetItem(tuple, i, number) < 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

const char *convert_kind(enum stk_kind kind)
{
    static const char *const names[] = {"auto", "tensor", "int", "text", "json", "bytes"};
    return names[kind];
}

int convert_choice(const char *argument, const char *text, const char *const *names, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(text, names[i]) == 0)
            return i;
    char list[160] = "";
    for (int i = 0; i < count; i++) {
        strncat(list, i ? ", " : "", sizeof list - strlen(list) - 1);
        strncat(list, names[i], sizeof list - strlen(list) - 1);
    }
    PyErr_Format(PyExc_ValueError, "%s is '%s'; it may be %s", argument, text, list);
    return -1;
}
