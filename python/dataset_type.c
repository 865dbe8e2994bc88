#include "dataset_type.h"

#include <string.h>

#include "context_type.h"
#include "convert.h"
#include "tensor_type.h"
#include "windows_convert.h"

#define IDLE_READERS 8

struct dataset_object {
    PyObject_HEAD struct stk_dataset *dataset;
    PyObject *context;
    struct stk_reader *idle[IDLE_READERS]; /* under Python's lock */
    uint32_t idle_count;
};

static struct dataset_object *dataset_self(PyObject *object)
{
    return (struct dataset_object *)object;
}

struct stk_dataset *dataset_of(PyObject *dataset)
{
    return dataset_self(dataset)->dataset;
}

PyObject *dataset_context(PyObject *dataset)
{
    return dataset_self(dataset)->context;
}

/* Takes the dataset over, also when it fails. */
static PyObject *dataset_wrap(PyTypeObject *type, struct stk_dataset *dataset, PyObject *context)
{
    struct dataset_object *self = (struct dataset_object *)PyType_GenericAlloc(type, 0);
    if (!self) {
        stk_dataset_close(dataset);
        return NULL;
    }
    self->dataset = dataset;
    self->context = Py_NewRef(context);
    return (PyObject *)self;
}

static void dataset_dealloc(PyObject *object)
{
    struct dataset_object *self = dataset_self(object);
    PyTypeObject *type = Py_TYPE(object);
    for (uint32_t i = 0; i < self->idle_count; i++)
        stk_reader_free(self->idle[i]);
    stk_dataset_close(self->dataset);
    Py_XDECREF(self->context);
    PyObject_Free(object);
    Py_DECREF(type);
}

static PyObject *dataset_open(PyTypeObject *type, PyObject *context, PyObject *sources,
                              struct stk_dataset_options *options)
{
    const char **names;
    uint32_t count;
    if (!convert_strings(sources, &names, &count))
        return NULL;
    struct stk_dataset *dataset = NULL;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_dataset_open(context_of(context), &dataset, names, count, options, &err);
    Py_END_ALLOW_THREADS;
    PyMem_Free(names);
    return status ? context_raise(context, &err) : dataset_wrap(type, dataset, context);
}

static PyObject *dataset_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"context", "sources",     "fields", "format",  "dtype",
                            "shape",   "chunk_limit", "index",  "reindex", "windows",
                            "cache",   "cache_size",  NULL};
    struct core_state *state = PyType_GetModuleState(type);
    struct stk_dataset_options options = {0};
    PyObject *context, *sources, *fields = Py_None, *shape = Py_None, *cut = Py_None;
    int64_t dimensions[STK_MAX_RANK];
    if (!PyArg_ParseTupleAndKeywords(args, named, "O!O!|OzzOO&zpOzO&:Dataset", names,
                                     state->context, &context, &PyList_Type, &sources, &fields,
                                     &options.format, &options.dtype, &shape, convert_u64,
                                     &options.chunk_limit, &options.index, &options.reindex, &cut,
                                     &options.cache, convert_u64, &options.cache_size))
        return NULL;
    const char **field_names;
    struct series_windows windows;
    if (!convert_shape(shape, dimensions, &options.rank) || !series_windows_init(&windows, cut))
        return NULL;
    options.window = windows.is_given ? &windows.options : NULL;
    PyObject *self = NULL;
    if (convert_strings(fields, &field_names, &options.field_count)) {
        options.shape = shape == Py_None ? NULL : dimensions;
        options.fields = field_names;
        self = dataset_open(type, context, sources, &options);
        PyMem_Free(field_names);
    }
    series_windows_reset(&windows);
    return self;
}

static Py_ssize_t dataset_len(PyObject *object)
{
    return (Py_ssize_t)stk_dataset_samples(dataset_of(object));
}

/* NULL: it is not decoded from media. */
static const char *dataset_media(const struct stk_field *field)
{
    int is_media = field->kind == STK_KIND_TENSOR && field->media != STK_MEDIA_TENSOR;
    return is_media ? stk_media_name(field->media) : NULL;
}

/* (name, kind, optional, dtype or None, shape or None, longest value in bytes, media or None) */
static PyObject *dataset_field_tuple(const struct stk_field *field)
{
    PyObject *name = convert_name(field->name, strlen(field->name));
    PyObject *shape = NULL, *dtype = NULL;
    if (field->kind == STK_KIND_TENSOR) {
        shape = convert_dimensions(&field->shape);
        dtype = PyUnicode_FromString(stk_dtype_name(field->shape.dtype));
    } else {
        shape = Py_NewRef(Py_None);
        dtype = Py_NewRef(Py_None);
    }
    PyObject *tuple = NULL;
    if (name && shape && dtype)
        tuple = Py_BuildValue("(OsOOOKz)", name, convert_kind(field->kind),
                              field->optional ? Py_True : Py_False, dtype, shape,
                              (unsigned long long)field->max_length, dataset_media(field));
    Py_XDECREF(name);
    Py_XDECREF(shape);
    Py_XDECREF(dtype);
    return tuple;
}

static PyObject *dataset_fields(PyObject *object, PyObject *Py_UNUSED(none))
{
    const struct stk_dataset *dataset = dataset_of(object);
    uint32_t count = stk_dataset_field_count(dataset);
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *tuple = dataset_field_tuple(stk_dataset_field(dataset, i));
        if (!tuple || PyList_SetItem(list, i, tuple) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dataset_classes(PyObject *object, PyObject *Py_UNUSED(none))
{
    const struct stk_dataset *dataset = dataset_of(object);
    uint32_t count = stk_dataset_class_count(dataset);
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *name = convert_path(stk_dataset_class(dataset, i));
        if (!name || PyList_SetItem(list, i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *dataset_fingerprint(PyObject *object, PyObject *Py_UNUSED(none))
{
    uint8_t bytes[16];
    stk_dataset_fingerprint(dataset_of(object), bytes);
    return PyBytes_FromStringAndSize((const char *)bytes, sizeof bytes);
}

static PyObject *dataset_about(PyObject *object, PyObject *Py_UNUSED(none))
{
    const struct stk_dataset *dataset = dataset_of(object);
    PyObject *dict = PyDict_New();
    if (dict &&
        convert_put(dict, "objects", PyLong_FromUnsignedLong(stk_dataset_object_count(dataset))) &&
        convert_put(dict, "skipped", PyLong_FromUnsignedLongLong(stk_dataset_skipped(dataset))) &&
        convert_put(dict, "index", convert_path(stk_dataset_index_path(dataset))))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *dataset_series(PyObject *object, PyObject *Py_UNUSED(none))
{
    return series_about(dataset_of(object));
}

/* (name, first row, end) */
static PyObject *dataset_entity(PyObject *object, PyObject *arg)
{
    uint64_t number = 0, start, end;
    const char *name;
    struct stk_error err;
    if (!convert_u64(arg, &number))
        return NULL;
    if (stk_dataset_entity(dataset_of(object), number, &name, &start, &end, &err))
        return convert_raise(&err);
    PyObject *text = convert_name(name, strlen(name));
    PyObject *tuple =
        text ? Py_BuildValue("(OKK)", text, (unsigned long long)start, (unsigned long long)end)
             : NULL;
    Py_XDECREF(text);
    return tuple;
}

static PyObject *dataset_numbers(PyObject *object, PyObject *Py_UNUSED(none))
{
    const struct stk_dataset *dataset = dataset_of(object);
    uint64_t count = stk_dataset_samples(dataset);
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint64_t)));
    if (!bytes)
        return NULL;
    struct stk_error err;
    uint64_t number;
    char *to = PyBytes_AsString(bytes);
    for (uint64_t i = 0; i < count; i++, to += sizeof number) {
        if (stk_dataset_sample(dataset, i, &number, &err)) {
            Py_DECREF(bytes);
            return convert_raise(&err);
        }
        memcpy(to, &number, sizeof number);
    }
    return bytes;
}

static PyObject *dataset_key(PyObject *object, PyObject *arg)
{
    uint64_t position = 0;
    struct stk_bytes key;
    struct stk_error err;
    if (!convert_u64(arg, &position))
        return NULL;
    if (stk_dataset_key(dataset_of(object), position, &key, &err))
        return convert_raise(&err);
    return convert_name((const char *)key.data, key.len);
}

static PyObject *dataset_find(PyObject *object, PyObject *arg)
{
    uint64_t position;
    struct stk_error err;
    stk_status status;
    char *key;
    if (PyBytes_AsStringAndSize(arg, &key, NULL) < 0)
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_dataset_find(dataset_of(object), key, &position, &err);
    Py_END_ALLOW_THREADS;
    return status ? convert_raise(&err) : PyLong_FromUnsignedLongLong(position);
}

static PyObject *dataset_place(PyObject *object, PyObject *args)
{
    uint64_t position = 0;
    uint32_t field = 0;
    if (!PyArg_ParseTuple(args, "O&O&:place", convert_u64, &position, convert_u32, &field))
        return NULL;
    struct stk_place place;
    struct stk_error err;
    stk_status status = stk_dataset_place(dataset_of(object), position, field, &place, &err);
    if (status == STK_NOT_FOUND)
        Py_RETURN_NONE;
    if (status)
        return convert_raise(&err);
    PyObject *path = convert_path(place.object);
    PyObject *offset = convert_place(place.offset);
    PyObject *length = convert_place(place.length);
    PyObject *tuple = path && offset && length ? PyTuple_Pack(3, path, offset, length) : NULL;
    Py_XDECREF(path);
    Py_XDECREF(offset);
    Py_XDECREF(length);
    return tuple;
}

static PyObject *dataset_value(const struct core_state *state, const struct stk_value *value)
{
    if (!value->present)
        Py_RETURN_NONE;
    const char *data = (const char *)value->bytes.data;
    switch (value->kind) {
    case STK_KIND_INT:
        return PyLong_FromLongLong(*(const int64_t *)value->tensor.data);
    case STK_KIND_TEXT: /* the library has checked that it is UTF-8 */
        return PyUnicode_DecodeUTF8(data, (Py_ssize_t)value->bytes.len, NULL);
    case STK_KIND_TENSOR:
        break;
    default:
        return PyBytes_FromStringAndSize(data, (Py_ssize_t)value->bytes.len);
    }
    struct stk_tensor tensor = value->tensor;
    struct holder *holder =
        holder_of_copy(value->tensor.data, stk_tensor_size(&value->tensor), &tensor.data);
    if (!holder)
        return NULL;
    PyObject *made = tensor_new(state, holder, &tensor);
    holder_drop(holder);
    return made;
}

/* The reader's memory lives until its next read: values are copied out before it is idle again. */
static PyObject *dataset_read_with(PyObject *object, struct stk_reader *reader, uint64_t position)
{
    uint32_t count = stk_dataset_field_count(dataset_of(object));
    struct stk_value *values = PyMem_Calloc(count + 1, sizeof *values);
    if (!values)
        return PyErr_NoMemory();
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_reader_read(reader, position, values, &err);
    Py_END_ALLOW_THREADS;
    PyObject *list = status ? convert_raise(&err) : PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *value = dataset_value(core_state_of(object), &values[i]);
        if (!value || PyList_SetItem(list, i, value) < 0)
            Py_CLEAR(list);
    }
    PyMem_Free(values);
    return list;
}

static struct stk_reader *dataset_take_reader(struct dataset_object *self)
{
    if (self->idle_count)
        return self->idle[--self->idle_count];
    struct stk_reader *reader = NULL;
    struct stk_error err;
    if (stk_reader_new(self->dataset, &reader, &err))
        convert_raise(&err);
    return reader;
}

static void dataset_return_reader(struct dataset_object *self, struct stk_reader *reader)
{
    if (self->idle_count < IDLE_READERS)
        self->idle[self->idle_count++] = reader;
    else
        stk_reader_free(reader);
}

static PyObject *dataset_read(PyObject *object, PyObject *arg)
{
    uint64_t position = 0;
    if (!convert_u64(arg, &position))
        return NULL;
    struct stk_reader *reader = dataset_take_reader(dataset_self(object));
    if (!reader)
        return NULL;
    PyObject *list = dataset_read_with(object, reader, position);
    dataset_return_reader(dataset_self(object), reader);
    return list;
}

static PyObject *dataset_bytes(PyObject *object, PyObject *args)
{
    uint64_t position = 0;
    uint32_t field = 0;
    if (!PyArg_ParseTuple(args, "O&O&:bytes", convert_u64, &position, convert_u32, &field))
        return NULL;
    struct stk_reader *reader = dataset_take_reader(dataset_self(object));
    if (!reader)
        return NULL;
    struct stk_bytes bytes;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_reader_bytes(reader, position, field, &bytes, &err);
    Py_END_ALLOW_THREADS;
    PyObject *made =
        status ? convert_raise(&err)
               : PyBytes_FromStringAndSize((const char *)bytes.data, (Py_ssize_t)bytes.len);
    dataset_return_reader(dataset_self(object), reader);
    return made;
}

/* The subset, as a dataset of its own. */
static PyObject *dataset_result(PyObject *object, stk_status status, struct stk_dataset *subset,
                                const struct stk_error *err)
{
    if (status)
        return convert_raise(err);
    return dataset_wrap(Py_TYPE(object), subset, dataset_context(object));
}

static PyObject *dataset_split(PyObject *object, PyObject *args)
{
    PyObject *list;
    uint32_t part = 0;
    uint64_t seed = 0;
    if (!PyArg_ParseTuple(args, "O!O&O&:split", &PyList_Type, &list, convert_u32, &part,
                          convert_u64, &seed))
        return NULL;
    Py_ssize_t count = PyList_Size(list);
    double *shares = PyMem_Calloc((size_t)count + 1, sizeof *shares);
    if (!shares)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++)
        shares[i] = PyFloat_AsDouble(PyList_GetItem(list, i));
    struct stk_dataset *subset = NULL;
    struct stk_error err;
    PyObject *result = NULL;
    if (!PyErr_Occurred()) {
        stk_status status = stk_dataset_split(dataset_of(object), &subset, shares, (uint32_t)count,
                                              part, seed, &err);
        result = dataset_result(object, status, subset, &err);
    }
    PyMem_Free(shares);
    return result;
}

static PyObject *dataset_select(PyObject *object, PyObject *arg)
{
    Py_buffer view;
    if (PyObject_GetBuffer(arg, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    struct stk_dataset *subset = NULL;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_dataset_select(dataset_of(object), &subset, view.buf,
                                (uint64_t)view.len / sizeof(uint64_t), &err);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&view);
    return dataset_result(object, status, subset, &err);
}

static PyObject *dataset_range(PyObject *object, PyObject *args)
{
    unsigned long long first, count;
    if (!PyArg_ParseTuple(args, "KK:range", &first, &count))
        return NULL;
    struct stk_dataset *subset = NULL;
    struct stk_error err;
    stk_status status = stk_dataset_range(dataset_of(object), &subset, first, count, &err);
    return dataset_result(object, status, subset, &err);
}

static PyMethodDef dataset_methods[] = {
    {"fields", dataset_fields, METH_NOARGS,
     "A list of (name, kind, optional, dtype, shape, longest value, media)."},
    {"classes", dataset_classes, METH_NOARGS, "The names of the class folders."},
    {"fingerprint", dataset_fingerprint, METH_NOARGS, "16 bytes that tell datasets apart."},
    {"about", dataset_about, METH_NOARGS, "objects, skipped and index, as a dict."},
    {"series", dataset_series, METH_NOARGS, "What a series is made of, as a dict, or None."},
    {"entity", dataset_entity, METH_O, "(name, first row, end) of one entity of a series."},
    {"numbers", dataset_numbers, METH_NOARGS,
     "The samples' numbers in the index, as uint64 bytes."},
    {"key", dataset_key, METH_O, "The key at a position."},
    {"find", dataset_find, METH_O, "The first position that has this key (bytes)."},
    {"place", dataset_place, METH_VARARGS,
     "(object, offset, length) of (position, field), or None."},
    {"read", dataset_read, METH_O, "The values at a position, one a field."},
    {"bytes", dataset_bytes, METH_VARARGS, "The stored bytes of (position, field)."},
    {"split", dataset_split, METH_VARARGS, "Part of a random split: (shares, part, seed)."},
    {"range", dataset_range, METH_VARARGS, "So many positions, from one on."},
    {"select", dataset_select, METH_O, "These positions (a buffer of uint64)."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot dataset_slots[] = {
    {Py_tp_doc, "An opened dataset."}, {Py_tp_new, dataset_new},
    {Py_tp_dealloc, dataset_dealloc},  {Py_tp_methods, dataset_methods},
    {Py_sq_length, dataset_len},       {0, NULL},
};

static PyType_Spec dataset_spec = {
    .name = "stoker._core.Dataset",
    .basicsize = sizeof(struct dataset_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = dataset_slots,
};

PyTypeObject *dataset_type_add(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &dataset_spec, NULL);
    if (type && PyModule_AddObjectRef(module, "Dataset", type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
