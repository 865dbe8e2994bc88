#include "batch_convert.h"

#include "convert.h"
#include "tensor_type.h"

struct batch_view {
    const struct core_state *state;
    const struct stk_batch *batch;
    struct holder *holder;
};

/* Numbers beside a field; None where there are none. */
static PyObject *batch_numbers(const struct batch_view *view, const void *data,
                               enum stk_dtype dtype, uint32_t count)
{
    if (!data)
        Py_RETURN_NONE;
    struct stk_tensor numbers = {.data = (void *)data, .dtype = dtype, .rank = 1, .shape = {count}};
    return tensor_new(view->state, view->holder, &numbers);
}

/* A column of the batch: one number a place. */
static PyObject *batch_column(const struct batch_view *view, const void *data, enum stk_dtype dtype)
{
    return batch_numbers(view, data, dtype, view->batch->count);
}

/* What `present` says is on the device with the rest: a missing value has no address either. */
static int batch_has(const struct stk_batch *batch, const struct stk_batch_field *field, uint32_t i)
{
    if (i >= batch->real || !field->present)
        return i < batch->real;
    if (batch->device < 0)
        return field->present[i];
    return field->bytes ? field->bytes[i].data != NULL : field->items[i].data != NULL;
}

static PyObject *batch_item(const struct batch_view *view, const struct stk_batch_field *field,
                            uint32_t i)
{
    if (!batch_has(view->batch, field, i))
        Py_RETURN_NONE;
    if (field->layout == STK_RAGGED_LIST && field->items)
        return tensor_new(view->state, view->holder, &field->items[i]);
    const struct stk_bytes *bytes = &field->bytes[i];
    if (field->field->kind == STK_KIND_TEXT) /* the library has checked that it is UTF-8 */
        return PyUnicode_DecodeUTF8((const char *)bytes->data, (Py_ssize_t)bytes->len, NULL);
    return PyBytes_FromStringAndSize((const char *)bytes->data, (Py_ssize_t)bytes->len);
}

static PyObject *batch_items(const struct batch_view *view, const struct stk_batch_field *field)
{
    PyObject *list = PyList_New(view->batch->count);
    for (uint32_t i = 0; list && i < view->batch->count; i++) {
        PyObject *item = batch_item(view, field, i);
        if (!item || PyList_SetItem(list, i, item) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *batch_field(const struct batch_view *view, const struct stk_batch_field *field)
{
    int is_list = field->bytes || (field->layout == STK_RAGGED_LIST && field->items);
    PyObject *value =
        is_list ? batch_items(view, field) : tensor_new(view->state, view->holder, &field->tensor);
    PyObject *lengths = batch_column(view, field->lengths, STK_I64);
    PyObject *present = batch_column(view, is_list ? NULL : field->present, STK_BOOL);
    int is_flat = field->layout == STK_RAGGED_FLAT;
    PyObject *offsets =
        batch_numbers(view, is_flat ? field->offsets : NULL, STK_I64, view->batch->count + 1);
    PyObject *padded = field->layout == STK_RAGGED_ERROR && field->lengths ? Py_True : Py_False;
    PyObject *tuple = NULL;
    if (value && lengths && present && offsets)
        tuple = PyTuple_Pack(5, value, lengths, present, offsets, padded);
    Py_XDECREF(value);
    Py_XDECREF(lengths);
    Py_XDECREF(present);
    Py_XDECREF(offsets);
    return tuple;
}

static PyObject *batch_fields(const struct batch_view *view)
{
    PyObject *list = PyList_New(view->batch->field_count);
    for (uint32_t i = 0; list && i < view->batch->field_count; i++) {
        PyObject *tuple = batch_field(view, &view->batch->fields[i]);
        if (!tuple || PyList_SetItem(list, i, tuple) < 0)
            Py_CLEAR(list);
    }
    return list;
}

PyObject *batch_convert(const struct core_state *state, struct stk_batch *batch)
{
    struct batch_view view = {state, batch, holder_of_batch(batch)};
    if (!view.holder)
        return NULL;
    /* STK_NOWHERE of a masked place reads as -1. */
    PyObject *samples = PyBytes_FromStringAndSize((const char *)batch->samples,
                                                  (Py_ssize_t)(batch->count * sizeof(uint64_t)));
    PyObject *mask = batch_column(&view, batch->mask, STK_BOOL);
    PyObject *fields = batch_fields(&view);
    PyObject *tuple = NULL;
    if (samples && mask && fields)
        tuple = Py_BuildValue("(KKKIIOOO)", (unsigned long long)batch->epoch,
                              (unsigned long long)batch->step, (unsigned long long)batch->end,
                              (unsigned)batch->count, (unsigned)batch->real, samples, mask, fields);
    Py_XDECREF(samples);
    Py_XDECREF(mask);
    Py_XDECREF(fields);
    holder_drop(view.holder); /* the tensors keep it now */
    return tuple;
}
