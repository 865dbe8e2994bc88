#include "tensor_type.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert.h"
#include "dlpack_abi.h"

#define HOLDER_ALIGN 64

struct holder {
    _Atomic uint32_t count; /* add: relaxed; drop: acquire-release, so that the last one sees all */
    struct stk_batch *batch;
    void *copy;
    pid_t process; /* a forked child sees the memory, but its loader's locks are not its own */
};

struct tensor_object {
    PyObject_HEAD struct holder *holder;
    struct stk_tensor tensor;
    int64_t strides[STK_MAX_RANK]; /* in bytes */
};

/* What travels in a capsule. Plain memory: its deleter runs where there is no Python. */
struct tensor_export {
    struct dlpack_managed managed;
    int64_t shape[STK_MAX_RANK], strides[STK_MAX_RANK];
};

static struct holder *holder_new(void)
{
    struct holder *holder = calloc(1, sizeof *holder);
    if (!holder) {
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&holder->count, 1);
    holder->process = getpid();
    return holder;
}

struct holder *holder_of_batch(struct stk_batch *batch)
{
    struct holder *holder = holder_new();
    if (holder)
        holder->batch = batch;
    else
        stk_batch_release(batch);
    return holder;
}

struct holder *holder_of_copy(const void *data, size_t len, void **copy)
{
    struct holder *holder = holder_new();
    if (!holder)
        return NULL;
    size_t room = (len + HOLDER_ALIGN) / HOLDER_ALIGN * HOLDER_ALIGN;
    holder->copy = room > len ? aligned_alloc(HOLDER_ALIGN, room) : NULL;
    if (!holder->copy) {
        holder_drop(holder);
        PyErr_NoMemory();
        return NULL;
    }
    if (len)
        memcpy(holder->copy, data, len);
    *copy = holder->copy;
    return holder;
}

static struct holder *holder_keep(struct holder *holder)
{
    atomic_fetch_add_explicit(&holder->count, 1, memory_order_relaxed);
    return holder;
}

void holder_drop(struct holder *holder)
{
    if (!holder || atomic_fetch_sub_explicit(&holder->count, 1, memory_order_acq_rel) != 1)
        return;
    if (holder->batch && holder->process == getpid())
        stk_batch_release(holder->batch);
    free(holder->copy);
    free(holder);
}

PyObject *tensor_new(const struct core_state *state, struct holder *holder,
                     const struct stk_tensor *tensor)
{
    struct tensor_object *self = (struct tensor_object *)PyType_GenericAlloc(state->tensor, 0);
    if (!self)
        return NULL;
    self->tensor = *tensor;
    self->holder = holder_keep(holder);
    int64_t stride = (int64_t)stk_dtype_size(tensor->dtype);
    for (int32_t i = tensor->rank - 1; i >= 0; i--) {
        self->strides[i] = stride;
        stride *= tensor->shape[i] > 0 ? tensor->shape[i] : 1;
    }
    return (PyObject *)self;
}

static void tensor_dealloc(PyObject *object)
{
    struct tensor_object *self = (struct tensor_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    holder_drop(self->holder);
    PyObject_Free(object);
    Py_DECREF(type);
}

static struct dlpack_dtype tensor_dlpack_dtype(enum stk_dtype dtype)
{
    static const uint8_t codes[] = {
        [STK_BOOL] = DLPACK_BOOL, [STK_U8] = DLPACK_UINT,     [STK_I8] = DLPACK_INT,
        [STK_U16] = DLPACK_UINT,  [STK_I16] = DLPACK_INT,     [STK_U32] = DLPACK_UINT,
        [STK_I32] = DLPACK_INT,   [STK_U64] = DLPACK_UINT,    [STK_I64] = DLPACK_INT,
        [STK_F16] = DLPACK_FLOAT, [STK_BF16] = DLPACK_BFLOAT, [STK_F32] = DLPACK_FLOAT,
        [STK_F64] = DLPACK_FLOAT, [STK_C64] = DLPACK_COMPLEX, [STK_C128] = DLPACK_COMPLEX,
    };
    static_assert(sizeof codes == STK_DTYPE_COUNT, "a code for each dtype");
    return (struct dlpack_dtype){codes[dtype], (uint8_t)(8 * stk_dtype_size(dtype)), 1};
}

static void tensor_export_delete(struct dlpack_managed *managed)
{
    struct tensor_export *export = (struct tensor_export *)managed;
    holder_drop(managed->owner);
    free(export);
}

/* A consumer renames the capsule it takes; one that nobody took still bears the name. */
static void tensor_capsule_free(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, DLPACK_NAME))
        return;
    struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, DLPACK_NAME);
    managed->deleter(managed);
}

static PyObject *tensor_to_capsule(struct tensor_object *self)
{
    struct tensor_export *export = calloc(1, sizeof *export);
    if (!export)
        return PyErr_NoMemory();
    const struct stk_tensor *tensor = &self->tensor;
    int64_t item = (int64_t)stk_dtype_size(tensor->dtype);
    for (int32_t i = 0; i < tensor->rank; i++) {
        export->shape[i] = tensor->shape[i];
        export->strides[i] = self->strides[i] / item;
    }
    export->managed.tensor = (struct dlpack_tensor){
        .data = tensor->data,
        .device = {DLPACK_CPU, 0},
        .rank = tensor->rank,
        .dtype = tensor_dlpack_dtype(tensor->dtype),
        .shape = export->shape,
        .strides = export->strides,
    };
    export->managed.owner = holder_keep(self->holder);
    export->managed.deleter = tensor_export_delete;
    PyObject *capsule = PyCapsule_New(&export->managed, DLPACK_NAME, tensor_capsule_free);
    if (!capsule)
        tensor_export_delete(&export->managed);
    return capsule;
}

static PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *named)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy))
        return NULL;
    int type = DLPACK_CPU, id = 0;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii", &type, &id))
        return NULL;
    if (stream != Py_None || type != DLPACK_CPU) {
        PyErr_SetString(PyExc_BufferError, "this tensor is in the memory of the CPU");
        return NULL;
    }
    if (copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "Stoker hands tensors over without a copy");
        return NULL;
    }
    return tensor_to_capsule((struct tensor_object *)object);
}

/* The plain way in: torch.utils.dlpack.from_dlpack takes capsules. */
static PyObject *tensor_capsule(PyObject *object, PyObject *Py_UNUSED(none))
{
    return tensor_to_capsule((struct tensor_object *)object);
}

static PyObject *tensor_dlpack_device(PyObject *Py_UNUSED(object), PyObject *Py_UNUSED(none))
{
    return Py_BuildValue("(ii)", DLPACK_CPU, 0);
}

/* The buffer protocol has no bfloat16: it shows the bits. */
static const char *tensor_format(enum stk_dtype dtype)
{
    static const char *const formats[] = {
        [STK_BOOL] = "?", [STK_U8] = "B",  [STK_I8] = "b",  [STK_U16] = "H",  [STK_I16] = "h",
        [STK_U32] = "I",  [STK_I32] = "i", [STK_U64] = "Q", [STK_I64] = "q",  [STK_F16] = "e",
        [STK_BF16] = "H", [STK_F32] = "f", [STK_F64] = "d", [STK_C64] = "Zf", [STK_C128] = "Zd",
    };
    return formats[dtype];
}

static int tensor_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct tensor_object *self = (struct tensor_object *)object;
    memset(view, 0, sizeof *view);
    view->obj = Py_NewRef(object);
    view->buf = self->tensor.data ? self->tensor.data : self; /* any address will do for no bytes */
    view->len = (Py_ssize_t)stk_tensor_size(&self->tensor);
    view->itemsize = (Py_ssize_t)stk_dtype_size(self->tensor.dtype);
    view->ndim = self->tensor.rank;
    static_assert(sizeof(Py_ssize_t) == sizeof(int64_t),
                  "shapes are shared with the buffer protocol");
    if (flags & PyBUF_FORMAT)
        view->format = (char *)tensor_format(self->tensor.dtype);
    if ((flags & PyBUF_ND) && view->ndim)
        view->shape = (Py_ssize_t *)self->tensor.shape;
    if ((flags & PyBUF_STRIDES) == PyBUF_STRIDES && view->ndim)
        view->strides = (Py_ssize_t *)self->strides;
    if (!(flags & PyBUF_ND))
        view->ndim = 1;
    return 0;
}

static PyObject *tensor_shape(PyObject *object, void *Py_UNUSED(closure))
{
    return convert_dimensions(&((struct tensor_object *)object)->tensor);
}

static PyObject *tensor_dtype(PyObject *object, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(stk_dtype_name(((struct tensor_object *)object)->tensor.dtype));
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "Hand the tensor over, without a copy."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS, "The CPU: (1, 0)."},
    {"capsule", tensor_capsule, METH_NOARGS, "A DLPack capsule of the tensor."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_attributes[] = {
    {"shape", tensor_shape, NULL, "Its dimensions, as a tuple.", NULL},
    {"dtype", tensor_dtype, NULL, "The name of its type: 'float16'.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, "Memory of a batch or a sample, shown through DLPack and the buffer protocol."},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_attributes},
    {Py_bf_getbuffer, tensor_buffer},
    {0, NULL},
};

static PyType_Spec tensor_spec = {
    .name = "stoker._core.Tensor",
    .basicsize = sizeof(struct tensor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = tensor_slots,
};

PyTypeObject *tensor_type_add(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &tensor_spec, NULL);
    if (type && PyModule_AddObjectRef(module, "Tensor", type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
