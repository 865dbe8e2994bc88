#include "table_source.h"

#include <string.h>

#include "convert.h"

#define STREAM_CAPSULE "arrow_array_stream"

struct table_source {
    PyObject *iterator;
    PyObject *name; /* of the table handed out last: bytes */
    struct table_failure *failure;
};

int table_failure_raise(struct table_failure *failure)
{
    if (!failure->type)
        return 0;
    PyErr_Restore(failure->type, failure->value, failure->trace);
    *failure = (struct table_failure){0};
    return 1;
}

void table_failure_clear(struct table_failure *failure)
{
    Py_CLEAR(failure->type);
    Py_CLEAR(failure->value);
    Py_CLEAR(failure->trace);
}

/* Takes the exception that is set: into words, and into the failure where there is one. */
static stk_status table_source_failed(struct table_source *self, struct stk_error *err)
{
    const char *name = self->name ? PyBytes_AsString(self->name) : "";
    struct table_failure raised;
    PyErr_Fetch(&raised.type, &raised.value, &raised.trace);
    PyErr_NormalizeException(&raised.type, &raised.value, &raised.trace);
    stk_status status = convert_explain(raised.value, name, err);
    if (self->failure && !self->failure->type)
        *self->failure = raised;
    else
        table_failure_clear(&raised);
    return status;
}

/* The capsule of an object that streams; a capsule is its own. A new reference. */
static PyObject *table_capsule(PyObject *object)
{
    if (PyCapsule_IsValid(object, STREAM_CAPSULE))
        return Py_NewRef(object);
    return PyObject_CallMethod(object, "__arrow_c_stream__", NULL);
}

/* Moves the stream out of its capsule: what is left there is released already. */
static int table_take(PyObject *object, struct ArrowArrayStream *stream)
{
    PyObject *capsule = table_capsule(object);
    struct ArrowArrayStream *from = capsule ? PyCapsule_GetPointer(capsule, STREAM_CAPSULE) : NULL;
    if (from && from->release) {
        *stream = *from;
        from->release = NULL;
    } else if (from) {
        PyErr_SetString(PyExc_ValueError, "its Arrow stream was used up before");
        from = NULL;
    }
    Py_XDECREF(capsule);
    return from != NULL;
}

static stk_status table_source_pull(struct table_source *self, struct ArrowArrayStream *stream,
                                    struct stk_error *err)
{
    PyObject *pair = PyIter_Next(self->iterator);
    if (!pair)
        return PyErr_Occurred() ? table_source_failed(self, err) : STK_END;
    PyObject *name, *object;
    char *words;
    int taken = PyArg_ParseTuple(pair, "SO", &name, &object) &&
                PyBytes_AsStringAndSize(name, &words, NULL) == 0; /* no NUL in it */
    if (taken) {
        Py_XDECREF(self->name);
        self->name = Py_NewRef(name);
        taken = table_take(object, stream);
    }
    Py_DECREF(pair);
    return taken ? STK_OK : table_source_failed(self, err);
}

static stk_status table_source_next(void *user, struct ArrowArrayStream *stream, const char **name,
                                    struct stk_error *err)
{
    struct table_source *self = user;
    struct convert_call call;
    *name = NULL;
    convert_enter(&call);
    stk_status status = table_source_pull(self, stream, err);
    if (!status)
        *name = PyBytes_AsString(self->name);
    convert_leave(&call);
    return status;
}

static void table_source_close(void *user)
{
    struct table_source *self = user;
    struct convert_call call;
    convert_enter(&call);
    PyObject *closed = PyObject_CallMethod(self->iterator, "close", NULL);
    if (!closed) /* not every iterator can be closed, and nobody waits for one that fails */
        PyErr_Clear();
    Py_XDECREF(closed);
    Py_XDECREF(self->iterator);
    Py_XDECREF(self->name);
    PyMem_Free(self);
    convert_leave(&call);
}

int table_source_open(PyObject *iterable, struct table_failure *failure, struct stk_tables *tables)
{
    struct table_source *self = PyMem_Calloc(1, sizeof *self);
    if (!self) {
        PyErr_NoMemory();
        return 0;
    }
    self->failure = failure;
    self->iterator = PyObject_GetIter(iterable);
    if (!self->iterator) {
        PyMem_Free(self);
        return 0;
    }
    *tables =
        (struct stk_tables){.user = self, .next = table_source_next, .close = table_source_close};
    return 1;
}
