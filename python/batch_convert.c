#include "batch_convert.h"

#include "convert.h"
#include "tensor_type.h"

struct batch_view {
    const struct core_state *state;
    const struct stk_batch *batch;
    struct holder *holder;
};

/* A column of the batch: one number a place. None where there is none. */
static PyObject *batch_column(const struct batch_view *view, const void *data, enum stk_dtype dtype)
{
    if (!data)
        Py_RETURN_NONE;
    struct stk_tensor column = {
        .data = (void *)data, .dtype = dtype, .rank = 1, .shape = {view->batch->count}};
    return tensor_new(view->state, view->holder, &column);
}

static int batch_has(const struct stk_batch *batch, const struct stk_batch_field *field, uint32_t i)
{
    return i < batch->real && !(field->present && !field->present[i]);
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
    PyObject *tuple = value && lengths && present ? PyTuple_Pack(3, value, lengths, present) : NULL;
    Py_XDECREF(value);
    Py_XDECREF(lengths);
    Py_XDECREF(present);
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
