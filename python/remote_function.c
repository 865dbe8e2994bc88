#include "remote_function.h"

#include "context_type.h"
#include "convert.h"

/* Takes Python's lock for a moment. */
static void take(void *user, struct stk_bytes bytes)
{
    PyGILState_STATE lock = PyGILState_Ensure();
    *(PyObject **)user = PyBytes_FromStringAndSize((const char *)bytes.data, (Py_ssize_t)bytes.len);
    PyGILState_Release(lock);
}

PyObject *remote_function_get(PyObject *module, PyObject *args)
{
    struct core_state *state = PyModule_GetState(module);
    PyObject *context, *uri, *bytes = NULL;
    uint64_t most;
    struct stk_error err;
    stk_status status;
    if (!PyArg_ParseTuple(args, "O!O!O&:remote_get", state->context, &context, &PyBytes_Type, &uri,
                          convert_u64, &most))
        return NULL;
    const char *text = PyBytes_AsString(uri);
    Py_BEGIN_ALLOW_THREADS;
    status = stk_remote_get(context_of(context), text, most, take, &bytes, &err);
    Py_END_ALLOW_THREADS;
    return status ? context_raise(context, &err) : bytes;
}

/* --- files ------------------------------------------------------------------------------------ */

static const char files_name[] = "stoker.remote_files"; /* its context: the Python object */

static struct stk_remote_files *files_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, files_name);
}

static void files_free(PyObject *capsule)
{
    struct stk_remote_files *files = files_of(capsule);
    PyObject *context = PyCapsule_GetContext(capsule);
    Py_BEGIN_ALLOW_THREADS;
    stk_remote_files_close(files);
    Py_END_ALLOW_THREADS;
    Py_XDECREF(context);
}

PyObject *remote_function_open(PyObject *module, PyObject *args)
{
    struct core_state *state = PyModule_GetState(module);
    PyObject *context, *list;
    const char **uris;
    uint32_t count;
    struct stk_remote_files *files;
    struct stk_error err;
    stk_status status;
    if (!PyArg_ParseTuple(args, "O!O!:remote_open", state->context, &context, &PyList_Type,
                          &list) ||
        !convert_strings(list, &uris, &count))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_remote_files_open(&files, context_of(context), uris, count, &err);
    Py_END_ALLOW_THREADS;
    PyMem_Free(uris);
    if (status)
        return context_raise(context, &err);
    PyObject *capsule = PyCapsule_New(files, files_name, files_free);
    if (!capsule) {
        stk_remote_files_close(files);
        return NULL;
    }
    PyCapsule_SetContext(capsule, Py_NewRef(context));
    return capsule;
}

static void list_add(void *user, const struct stk_remote_file *file)
{
    PyObject **list = user;
    if (!*list)
        return;
    PyObject *uri = convert_path(file->uri);
    PyObject *folder = file->folder
                           ? PyUnicode_DecodeFSDefaultAndSize(file->uri, (Py_ssize_t)file->folder)
                           : Py_NewRef(Py_None);
    PyObject *item =
        uri && folder ? Py_BuildValue("(OKO)", uri, (unsigned long long)file->size, folder) : NULL;
    if (!item || PyList_Append(*list, item) < 0)
        Py_CLEAR(*list);
    Py_XDECREF(item);
    Py_XDECREF(folder);
    Py_XDECREF(uri);
}

PyObject *remote_function_list(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    struct stk_remote_files *files = files_of(capsule);
    PyObject *list = files ? PyList_New(0) : NULL;
    if (list)
        stk_remote_files_each(files, list_add, &list);
    return list;
}

PyObject *remote_function_read(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *capsule;
    uint32_t number = 0;
    uint64_t offset = 0, length = 0;
    struct stk_error err;
    stk_status status;
    if (!PyArg_ParseTuple(args, "OO&O&O&:remote_read", &capsule, convert_u32, &number, convert_u64,
                          &offset, convert_u64, &length))
        return NULL;
    struct stk_remote_files *files = files_of(capsule);
    if (!files)
        return NULL;
    if (length > PY_SSIZE_T_MAX)
        return PyErr_NoMemory();
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
    if (!bytes)
        return NULL;
    char *to = PyBytes_AsString(bytes);
    Py_BEGIN_ALLOW_THREADS;
    status = stk_remote_files_read(files, number, offset, length, to, &err);
    Py_END_ALLOW_THREADS;
    if (!status)
        return bytes;
    Py_DECREF(bytes);
    return context_raise(PyCapsule_GetContext(capsule), &err);
}

PyObject *remote_function_stop(PyObject *Py_UNUSED(module), PyObject *capsule)
{
    struct stk_remote_files *files = files_of(capsule);
    if (!files)
        return NULL;
    stk_remote_files_stop(files);
    Py_RETURN_NONE;
}
