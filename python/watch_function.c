#include "watch_function.h"

#include <string.h>
#include <unistd.h>

#include "stoker/watch.h"
#include "context_type.h"
#include "convert.h"

static const char capsule_name[] = "stoker.watch";
static const char capsule_over[] = "stoker.watch.over"; /* it was closed */

struct handle {
    struct stk_watch *watch;
    PyObject *context; /* outlives the watch */
    pid_t pid; /* a forked child has neither the thread nor the right to remove the folder */
};

static struct handle *handle_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, capsule_name);
}

static void capsule_free(PyObject *capsule)
{
    int open = PyCapsule_IsValid(capsule, capsule_name);
    struct handle *handle = PyCapsule_GetPointer(capsule, open ? capsule_name : capsule_over);
    if (open && handle->pid == getpid())
        stk_watch_close(handle->watch);
    Py_DECREF(handle->context);
    PyMem_Free(handle);
}

PyObject *watch_function_open(PyObject *module, PyObject *args)
{
    struct core_state *state = PyModule_GetState(module);
    struct stk_watch_options options = {0};
    PyObject *context, *trace;
    if (!PyArg_ParseTuple(args, "O!OO&O&:watch_open", state->context, &context, &trace, convert_u64,
                          &options.trace_bytes, convert_u32, &options.stack_hz))
        return NULL;
    if (trace != Py_None && !(options.trace_path = PyBytes_AsString(trace)))
        return NULL;
    struct handle *handle = PyMem_Calloc(1, sizeof *handle);
    if (!handle)
        return PyErr_NoMemory();
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_watch_open(&handle->watch, context_of(context), &options, &err);
    Py_END_ALLOW_THREADS;
    handle->pid = getpid();
    handle->context = context;
    PyObject *capsule = status ? NULL : PyCapsule_New(handle, capsule_name, capsule_free);
    if (capsule) {
        Py_INCREF(context);
        return capsule;
    }
    stk_watch_close(handle->watch);
    PyMem_Free(handle);
    return status ? context_raise(context, &err) : NULL;
}

PyObject *watch_function_folder(PyObject *Py_UNUSED(module), PyObject *watch)
{
    struct handle *handle = handle_of(watch);
    return handle ? convert_path(stk_watch_folder(handle->watch)) : NULL;
}

PyObject *watch_function_finish(PyObject *Py_UNUSED(module), PyObject *watch)
{
    struct handle *handle = handle_of(watch);
    if (!handle)
        return NULL;
    const char *run, *words;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_watch_finish(handle->watch, NULL, &run, &words, &err);
    Py_END_ALLOW_THREADS;
    if (status)
        return convert_raise(&err);
    PyObject *json = PyUnicode_FromString(run);
    PyObject *text =
        json ? PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace") : NULL;
    PyObject *both = text ? PyTuple_Pack(2, json, text) : NULL;
    Py_XDECREF(json);
    Py_XDECREF(text);
    return both;
}

PyObject *watch_function_close(PyObject *Py_UNUSED(module), PyObject *watch)
{
    if (PyCapsule_IsValid(watch, capsule_name)) {
        struct handle *handle = handle_of(watch);
        if (PyCapsule_SetName(watch, capsule_over))
            return NULL;
        Py_BEGIN_ALLOW_THREADS;
        if (handle->pid == getpid())
            stk_watch_close(handle->watch);
        Py_END_ALLOW_THREADS;
    }
    Py_RETURN_NONE;
}
