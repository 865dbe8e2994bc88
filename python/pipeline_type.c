#include "pipeline_type.h"

#include "context_type.h"
#include "convert.h"
#include "tensor_type.h"

struct pipeline_object {
    PyObject_HEAD struct stk_pipeline *pipeline;
    PyObject *context;
    int running; /* under Python's lock */
};

static struct pipeline_object *pipeline_self(PyObject *object)
{
    return (struct pipeline_object *)object;
}

static int pipeline_media(const char *name)
{
    const char *names[STK_MEDIA_COUNT];
    for (int i = 0; i < STK_MEDIA_COUNT; i++)
        names[i] = stk_media_name((enum stk_media)i);
    return convert_choice("media", name, names, STK_MEDIA_COUNT);
}

static PyObject *pipeline_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"context", "chain", "media", NULL};
    struct core_state *state = PyType_GetModuleState(type);
    PyObject *context;
    const char *chain, *media_name = "tensor";
    if (!PyArg_ParseTupleAndKeywords(args, named, "O!y|s:Pipeline", names, state->context, &context,
                                     &chain, &media_name))
        return NULL;
    int media = pipeline_media(media_name);
    if (media < 0)
        return NULL;
    struct pipeline_object *self = (struct pipeline_object *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->context = Py_NewRef(context);
    struct stk_error err;
    if (stk_pipeline_new(context_of(context), &self->pipeline, chain, (enum stk_media)media,
                         &err)) {
        context_raise(context, &err);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static void pipeline_dealloc(PyObject *object)
{
    struct pipeline_object *self = pipeline_self(object);
    PyTypeObject *type = Py_TYPE(object);
    stk_pipeline_free(self->pipeline);
    Py_XDECREF(self->context);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* The pipeline's memory is used again by its next run: the result is a copy. */
static PyObject *pipeline_result(PyObject *object, const struct stk_flow *flow)
{
    struct stk_tensor tensor = flow->tensor;
    struct holder *holder =
        holder_of_copy(flow->tensor.data, stk_tensor_size(&flow->tensor), &tensor.data);
    if (!holder)
        return NULL;
    PyObject *value = tensor_new(core_state_of(object), holder, &tensor);
    holder_drop(holder);
    if (!value)
        return NULL;
    PyObject *result = Py_BuildValue("(OsdL)", value, stk_media_name(flow->media), flow->rate,
                                     (long long)flow->real);
    Py_DECREF(value);
    return result;
}

static PyObject *pipeline_run_on(PyObject *object, const struct stk_pipeline_input *input)
{
    struct pipeline_object *self = pipeline_self(object);
    if (self->running)
        return convert_raise_status(STK_BUSY, "another thread is in this pipeline");
    struct stk_flow flow = {0};
    struct stk_error err;
    stk_status status;
    self->running = 1;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_pipeline_run(self->pipeline, input, &flow, &err);
    Py_END_ALLOW_THREADS;
    PyObject *result = status ? convert_raise(&err) : pipeline_result(object, &flow);
    self->running = 0;
    return result;
}

/* The buffer as a tensor of this type and shape; 0 with an exception. */
static int pipeline_array(struct stk_tensor *tensor, const Py_buffer *view, const char *dtype,
                          PyObject *shape)
{
    *tensor = (struct stk_tensor){.data = view->buf, .dtype = stk_dtype_parse(dtype)};
    if (tensor->dtype == STK_DTYPE_COUNT) {
        PyErr_Format(PyExc_TypeError, "arrays of %s cannot be run through a pipeline", dtype);
        return 0;
    }
    if (!convert_shape(shape, tensor->shape, &tensor->rank))
        return 0;
    if (stk_tensor_size(tensor) == (uint64_t)view->len)
        return 1;
    PyErr_SetString(PyExc_ValueError, "the array's bytes do not fit its shape");
    return 0;
}

/* dtype None: data is encoded bytes. */
static PyObject *pipeline_run(PyObject *object, PyObject *args)
{
    Py_buffer view;
    const char *dtype;
    PyObject *shape;
    struct stk_pipeline_input input = {0};
    if (!PyArg_ParseTuple(args, "y*zOO&O&O&:run", &view, &dtype, &shape, convert_u64, &input.seed,
                          convert_u64, &input.epoch, convert_u64, &input.sample))
        return NULL;
    struct stk_bytes bytes = {view.buf, (size_t)view.len};
    struct stk_tensor array;
    PyObject *result = NULL;
    if (!dtype)
        input.bytes = &bytes;
    else if (pipeline_array(&array, &view, dtype, shape))
        input.array = &array;
    if (input.bytes || input.array)
        result = pipeline_run_on(object, &input);
    PyBuffer_Release(&view);
    return result;
}

static PyObject *pipeline_text(PyObject *object, PyObject *Py_UNUSED(none))
{
    return PyUnicode_FromString(stk_pipeline_text(pipeline_self(object)->pipeline));
}

static PyObject *transform_arguments(const struct stk_transform_info *info)
{
    PyObject *list = PyList_New(info->argument_count);
    for (uint32_t i = 0; list && i < info->argument_count; i++) {
        const struct stk_transform_argument *one = &info->arguments[i];
        PyObject *tuple = Py_BuildValue("(sszz)", one->name, one->type, one->preset, one->choices);
        if (!tuple || PyList_SetItem(list, i, tuple) < 0)
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *transform_media(uint32_t bits)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < STK_MEDIA_COUNT; i++) {
        if (!(bits & STK_MEDIA_BIT(i)))
            continue;
        PyObject *name = PyUnicode_FromString(stk_media_name((enum stk_media)i));
        if (!name || PyList_Append(list, name) < 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *transform_tuple(const struct stk_transform_info *info)
{
    PyObject *media = transform_media(info->media);
    PyObject *arguments = media ? transform_arguments(info) : NULL;
    PyObject *tuple = NULL;
    if (arguments)
        tuple = Py_BuildValue("(ssOOO)", info->name, info->help, media,
                              info->of_batch ? Py_True : Py_False, arguments);
    Py_XDECREF(media);
    Py_XDECREF(arguments);
    return tuple;
}

PyObject *pipeline_transforms(PyObject *module, PyObject *context)
{
    struct core_state *state = PyModule_GetState(module);
    if (!PyObject_TypeCheck(context, state->context)) {
        PyErr_SetString(PyExc_TypeError, "transforms takes a Context");
        return NULL;
    }
    struct stk_transform_info info;
    PyObject *list = PyList_New(0);
    for (uint32_t row = 0; list && stk_transform_at(context_of(context), row, &info); row++) {
        PyObject *tuple = transform_tuple(&info);
        if (!tuple || PyList_Append(list, tuple) < 0)
            Py_CLEAR(list);
        Py_XDECREF(tuple);
    }
    return list;
}

static PyMethodDef pipeline_methods[] = {
    {"run", pipeline_run, METH_VARARGS,
     "(data, dtype or None, shape, seed, epoch, sample) -> (Tensor, media, rate, real)."},
    {"text", pipeline_text, METH_NOARGS, "The chain's canonical text."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot pipeline_slots[] = {
    {Py_tp_doc, "A chain of transforms, run on one value."},
    {Py_tp_new, pipeline_new},
    {Py_tp_dealloc, pipeline_dealloc},
    {Py_tp_methods, pipeline_methods},
    {0, NULL},
};

static PyType_Spec pipeline_spec = {
    .name = "stoker._core.Pipeline",
    .basicsize = sizeof(struct pipeline_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = pipeline_slots,
};

PyTypeObject *pipeline_type_add(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &pipeline_spec, NULL);
    if (type && PyModule_AddObjectRef(module, "Pipeline", type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
