#include "tensor_type.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert.h"
#include "tensor_exchange.h"

#define HOLDER_ALIGN 64

struct holder {
    _Atomic uint32_t count; /* add: relaxed; drop: acquire-release, so that the last one sees all */
    struct stk_batch *batch;
    void *copy;
    pid_t process; /* a forked child sees the memory, but its loader's locks are not its own */
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
    if (data && len)
        memcpy(holder->copy, data, len);
    *copy = holder->copy;
    return holder;
}

struct holder *holder_keep(struct holder *holder)
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

int32_t holder_device(const struct holder *holder)
{
    return holder->batch ? holder->batch->device : -1;
}

/* A forked child has the addresses of the device's memory, and no device. */
static int holder_is_ours(const struct holder *holder)
{
    if (holder->process == getpid())
        return 1;
    PyErr_SetString(PyExc_RuntimeError,
                    "this batch is on a GPU and was made by another process, before a fork: CUDA "
                    "does not work there; open a Loader in the process that uses it");
    return 0;
}

int holder_use(struct holder *holder, void *stream)
{
    if (holder_device(holder) < 0)
        return 0;
    if (!holder_is_ours(holder))
        return -1;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_batch_use(holder->batch, stream, &err);
    Py_END_ALLOW_THREADS;
    if (!status)
        return 0;
    convert_raise(&err);
    return -1;
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

/* Waits until the values are there. */
static stk_status tensor_copy(struct tensor_object *self, void *to, struct stk_error *err)
{
    size_t size = stk_tensor_size(&self->tensor);
    if (holder_device(self->holder) < 0) {
        if (size)
            memcpy(to, self->tensor.data, size);
        return STK_OK;
    }
    return stk_batch_copy_out(self->holder->batch, to, self->tensor.data, size, err);
}

static PyObject *tensor_to_host(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct tensor_object *self = (struct tensor_object *)object;
    if (holder_device(self->holder) >= 0 && !holder_is_ours(self->holder))
        return NULL;
    struct stk_tensor copied = self->tensor;
    struct holder *holder = holder_of_copy(NULL, stk_tensor_size(&copied), &copied.data);
    if (!holder)
        return NULL;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = tensor_copy(self, copied.data, &err);
    Py_END_ALLOW_THREADS;
    PyObject *made =
        status ? convert_raise(&err) : tensor_new(core_state_of(object), holder, &copied);
    holder_drop(holder);
    return made;
}

static PyObject *tensor_shape(PyObject *object, void *Py_UNUSED(closure))
{
    return convert_dimensions(&((struct tensor_object *)object)->tensor);
}

static PyObject *tensor_dtype(PyObject *object, void *Py_UNUSED(closure))
{
    return PyUnicode_FromString(stk_dtype_name(((struct tensor_object *)object)->tensor.dtype));
}

static PyObject *tensor_device(PyObject *object, void *Py_UNUSED(closure))
{
    int32_t device = holder_device(((struct tensor_object *)object)->holder);
    if (device < 0)
        return PyUnicode_FromString("cpu");
    return PyUnicode_FromFormat("cuda:%d", (int)device);
}

static PyObject *tensor_address(PyObject *object, void *Py_UNUSED(closure))
{
    return PyLong_FromVoidPtr(((struct tensor_object *)object)->tensor.data);
}

static PyMethodDef tensor_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))tensor_dlpack, METH_VARARGS | METH_KEYWORDS,
     "Hand the tensor over, without a copy; the stream given waits until it is there."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "The CPU: (1, 0). A CUDA device: (2, its number)."},
    {"capsule", tensor_capsule, METH_NOARGS,
     "A DLPack capsule of the tensor; no stream waits for it."},
    {"__array__", (PyCFunction)(void (*)(void))tensor_array, METH_VARARGS | METH_KEYWORDS,
     "On a GPU: an error that says to_host."},
    {"to_host", tensor_to_host, METH_NOARGS, "A copy in the memory of the CPU."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_attributes[] = {
    {"shape", tensor_shape, NULL, "Its dimensions, as a tuple.", NULL},
    {"dtype", tensor_dtype, NULL, "The name of its type: 'float16'.", NULL},
    {"device", tensor_device, NULL, "Where it is: 'cpu' or 'cuda:0'.", NULL},
    {"address", tensor_address, NULL, "Of its first value, as a number.", NULL},
    {"__cuda_array_interface__", tensor_cuda_interface, NULL,
     "For CuPy and Numba; the legacy default stream waits until the tensor is there.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, "Memory of a batch or a sample, shown through DLPack, the buffer protocol (on the "
                "CPU) and CUDA's array interface (on a GPU)."},
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
