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
        convert_put(words, "what", convert_name(err->what, strlen(err->what))) &&
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

/* Copies obj.name, where it is text, up to the end of its first line. */
static void convert_words(PyObject *object, const char *name, char *to, size_t cap)
{
    PyObject *text = name ? PyObject_GetAttrString(object, name) : PyObject_Str(object);
    PyObject *bytes = text && PyUnicode_Check(text)
                          ? PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape")
                          : NULL;
    if (bytes) {
        strncpy(to, PyBytes_AsString(bytes), cap - 1);
        to[cap - 1] = 0;
        to[strcspn(to, "\n")] = 0;
    }
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(text);
}

static stk_status convert_status(PyObject *exception)
{
    char name[32] = "";
    convert_words(exception, "status", name, sizeof name);
    for (int i = STK_END + 1; i < STK_STATUS_COUNT; i++)
        if (strcmp(name, stk_status_name((stk_status)i)) == 0)
            return (stk_status)i;
    return STK_OK;
}

stk_status convert_explain(PyObject *exception, const char *object, struct stk_error *err)
{
    stk_status status = convert_status(exception); /* OK: it is none of ours */
    struct stk_error words = {.offset = STK_NOWHERE, .sample = STK_NOWHERE};
    convert_words(exception, NULL, words.what, sizeof words.what);
    if (!words.what[0])
        convert_words((PyObject *)Py_TYPE(exception), "__name__", words.what, sizeof words.what);
    strncpy(words.object, object, sizeof words.object - 1);
    if (status) {
        convert_words(exception, "what", words.what, sizeof words.what); /* without the place */
        convert_words(exception, "object", words.object, sizeof words.object);
        convert_words(exception, "remedy", words.remedy, sizeof words.remedy);
    } else {
        status = PyErr_GivenExceptionMatches(exception, PyExc_KeyboardInterrupt) ? STK_CANCELLED
                                                                                 : STK_IO;
    }
    words.status = status;
    if (err)
        *err = words;
    return status;
}

void convert_enter(struct convert_call *call)
{
    call->lock = PyGILState_Ensure();
    PyErr_Fetch(&call->type, &call->value, &call->trace);
}

void convert_leave(struct convert_call *call)
{
    PyErr_Restore(call->type, call->value, call->trace);
    PyGILState_Release(call->lock);
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
