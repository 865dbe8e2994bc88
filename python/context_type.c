#include "context_type.h"

#include <string.h>

#include "../cli/stoker_main.h"
#include "convert.h"
#include "table_source.h"

struct context_object {
    PyObject_HEAD struct stk_context *context;
    PyObject *progress, *notice, *write_table, *open_tables, *make_report; /* callables or None */
    PyObject *type, *value, *trace; /* what a hook raised; under Python's lock */
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

void context_forget(PyObject *context)
{
    struct context_object *self = (struct context_object *)context;
    Py_CLEAR(self->type);
    Py_CLEAR(self->value);
    Py_CLEAR(self->trace);
}

/* Keeps the exception that is set for the thread that waits for the job. */
static void context_keep(struct context_object *self)
{
    context_forget((PyObject *)self);
    PyErr_Fetch(&self->type, &self->value, &self->trace);
}

static int context_progress(void *user, const struct stk_progress *progress)
{
    struct context_object *self = user;
    struct convert_call call;
    convert_enter(&call);
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
    convert_leave(&call);
    return bad ? 1 : 0;
}

/* A thread waits for the network: Ctrl-C ends that. */
static int context_waiting(void *user)
{
    struct context_object *self = user;
    struct convert_call call;
    convert_enter(&call);
    int bad = PyErr_CheckSignals();
    if (bad)
        context_keep(self);
    convert_leave(&call);
    return bad ? 1 : 0;
}

static void context_notice(void *user, const char *text)
{
    struct context_object *self = user;
    struct convert_call call;
    convert_enter(&call);
    if (self->notice != Py_None) {
        PyObject *words = convert_name(text, strlen(text));
        PyObject *result = words ? PyObject_CallFunction(self->notice, "O", words) : NULL;
        if (!result)
            PyErr_WriteUnraisable(self->notice);
        Py_XDECREF(result);
        Py_XDECREF(words);
    }
    convert_leave(&call);
}

/* Numbers: (what they are, their bytes). */
static PyObject *context_numbers(const struct stk_column *column, uint64_t rows)
{
    static const struct {
        const char *name;
        size_t size;
    } kinds[] = {
        [STK_COLUMN_I64] = {"int64", sizeof(int64_t)},
        [STK_COLUMN_F32] = {"float32", sizeof(float)},
        [STK_COLUMN_TIME_S] = {"timestamp", sizeof(int64_t)},
    };
    return Py_BuildValue("(sy#)", kinds[column->type].name, (const char *)column->values,
                         (Py_ssize_t)(rows * kinds[column->type].size));
}

/* One column: a list of str, or numbers. */
static PyObject *context_column(const struct stk_column *column, uint64_t rows)
{
    if (column->type != STK_COLUMN_TEXT)
        return context_numbers(column, rows);
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
static stk_status context_explain(const char *path, struct stk_error *err)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    stk_status status = convert_explain(value, path, err);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return status;
}

static stk_status context_write_table(void *user, const char *path,
                                      const struct stk_column *columns, uint32_t column_count,
                                      uint64_t rows, struct stk_error *err)
{
    struct context_object *self = user;
    struct convert_call call;
    convert_enter(&call);
    PyObject *table = PyDict_New();
    int good = table != NULL;
    for (uint32_t i = 0; good && i < column_count; i++)
        good = convert_put(table, columns[i].name, context_column(&columns[i], rows));
    PyObject *name = good ? convert_path(path) : NULL;
    PyObject *result = name ? PyObject_CallFunction(self->write_table, "OO", name, table) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(table);
    stk_status status = result ? STK_OK : context_explain(path, err);
    Py_XDECREF(result);
    convert_leave(&call);
    return status;
}

/* Names as a list of str; None where there are none. */
static PyObject *context_names(const char *const *names, uint32_t count)
{
    if (!names)
        Py_RETURN_NONE;
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *name = convert_path(names[i]);
        if (!name || PyList_SetItem(list, i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* open_tables(sources, columns, keys, memory, entity) -> (tables, rows) */
static stk_status context_open_tables(void *user, const char *const *sources, uint32_t source_count,
                                      const struct stk_tables_options *options,
                                      struct stk_tables *tables, struct stk_error *err)
{
    struct context_object *self = user;
    struct convert_call call;
    convert_enter(&call);
    PyObject *paths = context_names(sources, source_count);
    PyObject *columns = context_names(options->columns, options->column_count);
    PyObject *keys = context_names(options->keys, options->key_count);
    PyObject *entity = options->entity ? convert_path(options->entity) : Py_NewRef(Py_None);
    PyObject *pair = NULL, *found;
    unsigned long long rows = 0;
    if (paths && columns && keys && entity)
        pair = PyObject_CallFunction(self->open_tables, "OOOKO", paths, columns, keys,
                                     (unsigned long long)options->memory, entity);
    int opened = pair && PyArg_ParseTuple(pair, "OK", &found, &rows) &&
                 table_source_open(found, NULL, tables);
    if (opened)
        tables->rows = rows;
    stk_status status = opened ? STK_OK : context_explain(source_count == 1 ? sources[0] : "", err);
    Py_XDECREF(pair);
    Py_XDECREF(entity);
    Py_XDECREF(keys);
    Py_XDECREF(columns);
    Py_XDECREF(paths);
    convert_leave(&call);
    return status;
}

/* make_report(runs, out); no runs: says whether it could. */
static stk_status context_make_report(void *user, const char *const *runs, uint32_t run_count,
                                      const char *out, struct stk_error *err)
{
    static const char *const none[1] = {NULL};
    struct context_object *self = user;
    struct convert_call call;
    convert_enter(&call);
    PyObject *paths = context_names(runs ? runs : none, run_count);
    PyObject *name = convert_path(out), *result = NULL;
    if (paths && name)
        result = PyObject_CallFunction(self->make_report, "OO", paths, name);
    stk_status status = result ? STK_OK : context_explain(out, err);
    Py_XDECREF(result);
    Py_XDECREF(name);
    Py_XDECREF(paths);
    convert_leave(&call);
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
    Py_XDECREF(self->open_tables);
    Py_XDECREF(self->make_report);
    Py_XDECREF(self->type);
    Py_XDECREF(self->value);
    Py_XDECREF(self->trace);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"progress",    "notice",  "write_table", "open_tables",
                            "make_report", "command", NULL};
    PyObject *progress = Py_None, *notice = Py_None, *write_table = Py_None, *open_tables = Py_None;
    PyObject *make_report = Py_None;
    int command = 0;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|OOOOOp:Context", names, &progress, &notice,
                                     &write_table, &open_tables, &make_report, &command))
        return NULL;
    struct context_object *self = (struct context_object *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->progress = Py_NewRef(progress);
    self->notice = Py_NewRef(notice);
    self->write_table = Py_NewRef(write_table);
    self->open_tables = Py_NewRef(open_tables);
    self->make_report = Py_NewRef(make_report);
    struct stk_hooks hooks = {
        .user = self, /* lives longer than the context it owns */
        .progress = context_progress,
        .waiting = context_waiting,
        .notice = context_notice,
        .write_table = write_table == Py_None ? NULL : context_write_table,
        .open_tables = open_tables == Py_None ? NULL : context_open_tables,
        .make_report = make_report == Py_None ? NULL : context_make_report,
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

/* load_plugin(path: bytes) */
static PyObject *context_load_plugin(PyObject *object, PyObject *arg)
{
    struct context_object *self = (struct context_object *)object;
    char *path;
    if (PyBytes_AsStringAndSize(arg, &path, NULL) < 0)
        return NULL;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_context_load_plugin(self->context, path, &err);
    Py_END_ALLOW_THREADS;
    return status ? context_raise(object, &err) : Py_NewRef(Py_None);
}

static PyMethodDef context_methods[] = {
    {"load_plugin", context_load_plugin, METH_O, "Loads a plugin from a shared library."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot context_slots[] = {
    {Py_tp_doc, "What the library calls back: progress, notices, tables, reports."},
    {Py_tp_new, context_new},
    {Py_tp_dealloc, context_dealloc},
    {Py_tp_methods, context_methods},
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
