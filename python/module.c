/* The module stoker._core: the library's nouns as Python types, and the command. */
#include <stdio.h>

#include "../cli/stoker_main.h"
#include "activity_function.h"
#include "context_type.h"
#include "convert.h"
#include "device_function.h"
#include "pack_function.h"
#include "pipeline_type.h"
#include "remote_function.h"
#include "watch_function.h"

struct core_state *core_state_of(PyObject *object)
{
    return PyType_GetModuleState(Py_TYPE(object));
}

static PyObject *core_version(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromString(stk_version());
}

static PyObject *core_parse_dtype(PyObject *Py_UNUSED(module), PyObject *arg)
{
    PyObject *bytes = PyUnicode_AsUTF8String(arg);
    if (!bytes)
        return NULL;
    enum stk_dtype dtype = stk_dtype_parse(PyBytes_AsString(bytes));
    Py_DECREF(bytes);
    if (dtype == STK_DTYPE_COUNT)
        Py_RETURN_NONE;
    return PyUnicode_FromString(stk_dtype_name(dtype));
}

/* main(context, [b"stoker", b"ls", ...]) -> exit status */
static PyObject *core_main(PyObject *module, PyObject *args)
{
    struct core_state *state = PyModule_GetState(module);
    PyObject *context, *list;
    if (!PyArg_ParseTuple(args, "O!O!:main", state->context, &context, &PyList_Type, &list))
        return NULL;
    const char **arguments;
    uint32_t count;
    if (!convert_strings(list, &arguments, &count))
        return NULL;
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = stoker_main((int)count, (char **)arguments, context_of(context));
    fflush(NULL);
    Py_END_ALLOW_THREADS;
    PyMem_Free(arguments);
    return PyLong_FromLong(status);
}

static PyMethodDef core_functions[] = {
    {"version", core_version, METH_NOARGS, "Which Stoker this is."},
    {"parse_dtype", core_parse_dtype, METH_O, "The full name of a dtype, or None."},
    {"main", core_main, METH_VARARGS, "The command: (context, arguments) -> exit status."},
    {"pack_series", (PyCFunction)(void (*)(void))pack_function_series, METH_VARARGS | METH_KEYWORDS,
     "Packs tables into a series: (context, tables, rows, own_names, out, **options) -> counts."},
    {"rescale_series", pack_function_rescale, METH_VARARGS,
     "Fits another scaler: (context, folder, scaler, fit_on)."},
    {"device_count", device_function_count, METH_NOARGS, "GPUs that this process may use."},
    {"device_info", device_function_info, METH_O, "What the GPU of a number is, as a dict."},
    {"device_sample", device_function_sample, METH_O,
     "What it does at the moment, as a dict; None for what it does not tell."},
    {"device_folders", device_function_folders, METH_O,
     "Where else CUDA's libraries may lie: b'a:b'."},
    {"activity_start", activity_function_start, METH_VARARGS,
     "Records what a GPU does: (device, nanoseconds a bin) -> a recording."},
    {"activity_read", activity_function_read, METH_O, "What a recording holds so far, as a dict."},
    {"activity_stop", activity_function_stop, METH_O, "Ends a recording."},
    {"remote_get", remote_function_get, METH_VARARGS,
     "A whole small object of a store on the network."},
    {"remote_open", remote_function_open, METH_VARARGS,
     "What URIs name in stores on the network: (context, uris) -> files."},
    {"remote_list", remote_function_list, METH_O,
     "The URI, the size and the folder, or None, of each file."},
    {"remote_read", remote_function_read, METH_VARARGS,
     "A part of a file: (files, number, offset, length) -> bytes."},
    {"remote_stop", remote_function_stop, METH_O, "Ends all reads of files."},
    {"watch_open", watch_function_open, METH_VARARGS,
     "Watches this process: (context, trace or None, bytes of it, stacks a second) -> a watch."},
    {"watch_folder", watch_function_folder, METH_O, "Where the hook of a watch lies."},
    {"watch_finish", watch_function_finish, METH_O,
     "Ends watching: (run file as JSON, words for a terminal)."},
    {"watch_close", watch_function_close, METH_O, "Removes the folder of a watch."},
    {"transforms", pipeline_transforms, METH_O, "The transforms that a context knows, as tuples."},
    {NULL, NULL, 0, NULL},
};

static int core_fill(PyObject *module)
{
    struct core_state *state = PyModule_GetState(module);
    state->tensor = tensor_type_add(module);
    state->context = state->tensor ? context_type_add(module) : NULL;
    state->dataset = state->context ? dataset_type_add(module) : NULL;
    state->loader = state->dataset ? loader_type_add(module) : NULL;
    state->pipeline = state->loader ? pipeline_type_add(module) : NULL;
    return state->pipeline ? 0 : -1;
}

static int core_clear(PyObject *module)
{
    struct core_state *state = PyModule_GetState(module);
    Py_CLEAR(state->tensor);
    Py_CLEAR(state->context);
    Py_CLEAR(state->dataset);
    Py_CLEAR(state->loader);
    Py_CLEAR(state->pipeline);
    return 0;
}

static int core_traverse(PyObject *module, visitproc visit, void *arg)
{
    struct core_state *state = PyModule_GetState(module);
    Py_VISIT(state->tensor);
    Py_VISIT(state->context);
    Py_VISIT(state->dataset);
    Py_VISIT(state->loader);
    Py_VISIT(state->pipeline);
    return 0;
}

static PyModuleDef_Slot core_slots[] = {
    {Py_mod_exec, core_fill},
    {0, NULL},
};

static struct PyModuleDef core_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_core",
    .m_doc = "The C library of Stoker, as the package uses it.",
    .m_size = sizeof(struct core_state),
    .m_methods = core_functions,
    .m_slots = core_slots,
    .m_traverse = core_traverse,
    .m_clear = core_clear,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&core_definition);
}
