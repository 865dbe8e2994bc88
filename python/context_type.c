#include "context_type.h"

#include <string.h>

#include "../cli/stoker_main.h"
#include "convert.h"

struct context_object {
    PyObject_HEAD struct stk_context *context;
    PyObject *progress, *notice, *write_table; /* callables or None */
    PyObject *type, *value, *trace;            /* what a hook raised; under Python's lock */
};

struct stk_context *context_of(PyObject *context)
{
    return ((struct context_object *)context)->context;
}

PyObject *context_raise(PyObject *context, const struct stk_error *err)
{
    struct context_object *self = (struct context_object *)context;
    if (!self->type)
        return convert_raise(err);
    PyErr_Restore(self->type, self->value, self->trace);
    self->type = self->value = self->trace = NULL;
    return NULL;
}

/* Keeps the exception that is set for the thread that waits for the job. */
static void context_keep(struct context_object *self)
{
    Py_CLEAR(self->type);
    Py_CLEAR(self->value);
    Py_CLEAR(self->trace);
    PyErr_Fetch(&self->type, &self->value, &self->trace);
}

/* Hooks may run inside a close that runs inside the handling of an exception: that one is set
 * aside. */
struct context_call {
    PyGILState_STATE lock;
    PyObject *type, *value, *trace;
};

static void context_enter(struct context_call *call)
{
    call->lock = PyGILState_Ensure();
    PyErr_Fetch(&call->type, &call->value, &call->trace);
}

static void context_leave(struct context_call *call)
{
    PyErr_Restore(call->type, call->value, call->trace);
    PyGILState_Release(call->lock);
}

static int context_progress(void *user, const struct stk_progress *progress)
{
    struct context_object *self = user;
    struct context_call call;
    context_enter(&call);
    int bad = PyErr_CheckSignals();
    if (!bad && self->progress != Py_None) {
        PyObject *result = PyObject_CallFunction(self->progress, "ssKKK", progress->what,
                                                 progress->unit, (unsigned long long)progress->done,
                                                 (unsigned long long)progress->total,
                                                 (unsigned long long)progress->bytes);
        bad = !result;
        Py_XDECREF(result);
    }
    if (bad)
        context_keep(self);
    context_leave(&call);
    return bad ? 1 : 0;
}

static void context_notice(void *user, const char *text)
{
    struct context_object *self = user;
    struct context_call call;
    context_enter(&call);
    if (self->notice != Py_None) {
        PyObject *words = convert_name(text, strlen(text));
        PyObject *result = words ? PyObject_CallFunction(self->notice, "O", words) : NULL;
        if (!result)
            PyErr_WriteUnraisable(self->notice);
        Py_XDECREF(result);
        Py_XDECREF(words);
    }
    context_leave(&call);
}

/* One column: a list of str, or the bytes of int64 values. */
static PyObject *context_column(const struct stk_column *column, uint64_t rows)
{
    if (!column->is_text)
        return PyBytes_FromStringAndSize(column->values, (Py_ssize_t)(rows * sizeof(int64_t)));
    PyObject *list = PyList_New((Py_ssize_t)rows);
    const char *const *texts = column->values;
    for (uint64_t i = 0; list && i < rows; i++) {
        PyObject *text = convert_name(texts[i], strlen(texts[i]));
        if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* The exception that is set, in the words of the library. */
static void context_explain(const char *path, struct stk_error *err)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = PyObject_Str(value ? value : type);
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    if (err) {
        *err = (struct stk_error){.status = STK_IO, .offset = STK_NOWHERE, .sample = STK_NOWHERE};
        strncpy(err->what, bytes ? PyBytes_AsString(bytes) : "no words", sizeof err->what - 1);
        strncpy(err->object, path, sizeof err->object - 1);
    }
    PyErr_Clear();
    Py_XDECREF(bytes);
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
}

static stk_status context_write_table(void *user, const char *path,
                                      const struct stk_column *columns, uint32_t column_count,
                                      uint64_t rows, struct stk_error *err)
{
    struct context_object *self = user;
    struct context_call call;
    context_enter(&call);
    PyObject *table = PyDict_New();
    int good = table != NULL;
    for (uint32_t i = 0; good && i < column_count; i++)
        good = convert_put(table, columns[i].name, context_column(&columns[i], rows));
    PyObject *name = good ? convert_path(path) : NULL;
    PyObject *result = name ? PyObject_CallFunction(self->write_table, "OO", name, table) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(table);
    if (!result)
        context_explain(path, err);
    stk_status status = result ? STK_OK : STK_IO;
    Py_XDECREF(result);
    context_leave(&call);
    return status;
}

static void context_dealloc(PyObject *object)
{
    struct context_object *self = (struct context_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    stk_context_free(self->context);
    Py_XDECREF(self->progress);
    Py_XDECREF(self->notice);
    Py_XDECREF(self->write_table);
    Py_XDECREF(self->type);
    Py_XDECREF(self->value);
    Py_XDECREF(self->trace);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"progress", "notice", "write_table", "command", NULL};
    PyObject *progress = Py_None, *notice = Py_None, *write_table = Py_None;
    int command = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OOOp:Context", names, &progress, &notice,
                                     &write_table, &command))
        return NULL;
    struct context_object *self = (struct context_object *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->progress = Py_NewRef(progress);
    self->notice = Py_NewRef(notice);
    self->write_table = Py_NewRef(write_table);
    struct stk_hooks hooks = {
        .user = self, /* lives longer than the context it owns */
        .progress = context_progress,
        .notice = context_notice,
        .write_table = write_table == Py_None ? NULL : context_write_table,
    };
    if (command)
        stoker_hooks(&hooks);
    struct stk_error err;
    if (stk_context_new(&self->context, &hooks, &err)) {
        convert_raise(&err);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyType_Slot context_slots[] = {
    {Py_tp_doc, "What the library calls back: progress, notices, tables."},
    {Py_tp_new, context_new},
    {Py_tp_dealloc, context_dealloc},
    {0, NULL},
};

static PyType_Spec context_spec = {
    .name = "stoker._core.Context",
    .basicsize = sizeof(struct context_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = context_slots,
};

PyTypeObject *context_type_add(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &context_spec, NULL);
    if (type && PyModule_AddObjectRef(module, "Context", type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
