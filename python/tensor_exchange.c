#include "tensor_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "convert.h"
#include "dlpack_abi.h"

/* What travels in a capsule. Plain memory: its deleter runs where there is no Python. */
struct tensor_export {
    union {
        struct dlpack_managed plain;
        struct dlpack_managed_versioned versioned;
    } managed;
    struct holder *holder;
    int64_t shape[STK_MAX_RANK], strides[STK_MAX_RANK];
};

static struct tensor_object *tensor_self(PyObject *object)
{
    return (struct tensor_object *)object;
}

/* --- DLPack ----------------------------------------------------------------------------------- */

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

static struct dlpack_device tensor_place(const struct tensor_object *self)
{
    int32_t device = holder_device(self->holder);
    if (device < 0)
        return (struct dlpack_device){DLPACK_CPU, 0};
    return (struct dlpack_device){DLPACK_CUDA, device};
}

static void export_free(struct tensor_export *export)
{
    holder_drop(export->holder);
    free(export);
}

static void export_delete(struct dlpack_managed *managed)
{
    export_free(managed->owner);
}

static void export_delete_versioned(struct dlpack_managed_versioned *managed)
{
    export_free(managed->owner);
}

/* A consumer renames the capsule it takes; one that nobody took still bears the name. */
static void capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, DLPACK_NAME)) {
        struct dlpack_managed *managed = PyCapsule_GetPointer(capsule, DLPACK_NAME);
        managed->deleter(managed);
    } else if (PyCapsule_IsValid(capsule, DLPACK_VERSIONED_NAME)) {
        struct dlpack_managed_versioned *managed =
            PyCapsule_GetPointer(capsule, DLPACK_VERSIONED_NAME);
        managed->deleter(managed);
    }
}

static struct tensor_export *export_new(struct tensor_object *self, struct dlpack_tensor *out)
{
    struct tensor_export *export = calloc(1, sizeof *export);
    if (!export) {
        PyErr_NoMemory();
        return NULL;
    }
    const struct stk_tensor *tensor = &self->tensor;
    int64_t item = (int64_t)stk_dtype_size(tensor->dtype);
    for (int32_t i = 0; i < tensor->rank; i++) {
        export->shape[i] = tensor->shape[i];
        export->strides[i] = self->strides[i] / item;
    }
    *out = (struct dlpack_tensor){
        .data = tensor->data,
        .device = tensor_place(self),
        .rank = tensor->rank,
        .dtype = tensor_dlpack_dtype(tensor->dtype),
        .shape = export->shape,
        .strides = export->strides,
    };
    export->holder = holder_keep(self->holder);
    return export;
}

static PyObject *capsule_new(struct tensor_object *self, int versioned)
{
    struct dlpack_tensor tensor;
    struct tensor_export *export = export_new(self, &tensor);
    if (!export)
        return NULL;
    PyObject *capsule;
    if (versioned) {
        export->managed.versioned = (struct dlpack_managed_versioned){
            .major = DLPACK_MAJOR,
            .minor = DLPACK_MINOR,
            .owner = export,
            .deleter = export_delete_versioned,
            .tensor = tensor,
        };
        capsule = PyCapsule_New(&export->managed.versioned, DLPACK_VERSIONED_NAME, capsule_free);
    } else {
        export->managed.plain = (struct dlpack_managed){tensor, export, export_delete};
        capsule = PyCapsule_New(&export->managed.plain, DLPACK_NAME, capsule_free);
    }
    if (!capsule)
        export_free(export);
    return capsule;
}

static int refuse(const char *words)
{
    PyErr_SetString(PyExc_BufferError, words);
    return 0;
}

/* The consumer's stream, as the array API standard numbers them. Not 0: it may go on. */
static int tensor_await(struct tensor_object *self, PyObject *stream)
{
    if (holder_device(self->holder) < 0)
        return stream == Py_None ? 1 : refuse("this tensor is in the memory of the CPU");
    long long number = DLPACK_LEGACY;
    if (stream != Py_None) {
        number = PyLong_AsLongLong(stream);
        if (number == -1 && PyErr_Occurred())
            return 0;
    }
    if (number == DLPACK_NO_WAIT)
        return 1;
    if (number == DLPACK_AMBIGUOUS)
        return refuse("stream 0 may mean two streams: give 1 (the legacy default stream) or 2 (the "
                      "default stream of the thread)");
    if (number < 0)
        return refuse("stream is below -1, and no stream of CUDA");
    return holder_use(self->holder, (void *)(uintptr_t)number) == 0; /* NOLINT: a handle */
}

/* A device's type and number, or a version's two parts. */
static int parse_pair(PyObject *object, const char *name, int *first, int *second)
{
    if (PyTuple_Check(object))
        return PyArg_ParseTuple(object, "ii", first, second);
    PyErr_Format(PyExc_TypeError, "%s is a tuple of two numbers", name);
    return 0;
}

/* Whether the tensor may be handed over to where it is wanted. */
static int tensor_fits(struct tensor_object *self, PyObject *device, PyObject *copy)
{
    struct dlpack_device own = tensor_place(self);
    int type = own.type, id = own.id;
    if (device != Py_None && !parse_pair(device, "dl_device", &type, &id))
        return 0;
    if (type != own.type || id != own.id) {
        PyErr_Format(PyExc_BufferError,
                     "this tensor is in the memory of %s%d: it is handed over there alone, without "
                     "a copy",
                     own.type == DLPACK_CPU ? "the CPU, device " : "CUDA device ", own.id);
        return 0;
    }
    return copy == Py_True ? refuse("Stoker hands tensors over without a copy") : 1;
}

/* Not 0: the consumer knows capsules with a version; -1: an error. */
static int wants_version(PyObject *version)
{
    int major = 0, minor = 0;
    if (version == Py_None)
        return 0;
    if (!parse_pair(version, "max_version", &major, &minor))
        return -1;
    return major >= DLPACK_MAJOR;
}

PyObject *tensor_dlpack(PyObject *object, PyObject *args, PyObject *named)
{
    static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|$OOOO:__dlpack__", names, &stream, &version,
                                     &device, &copy))
        return NULL;
    int versioned = wants_version(version);
    if (versioned < 0 || !tensor_fits(tensor_self(object), device, copy) ||
        !tensor_await(tensor_self(object), stream))
        return NULL;
    return capsule_new(tensor_self(object), versioned);
}

PyObject *tensor_capsule(PyObject *object, PyObject *Py_UNUSED(none))
{
    return capsule_new(tensor_self(object), 0);
}

PyObject *tensor_dlpack_device(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct dlpack_device place = tensor_place(tensor_self(object));
    return Py_BuildValue("(ii)", (int)place.type, (int)place.id);
}

/* --- CUDA's array interface, the buffer protocol ---------------------------------------------- */

/* Both have no bfloat16: they show the bits. */
static const char *tensor_typestr(enum stk_dtype dtype)
{
    static const char *const types[] = {
        [STK_BOOL] = "|b1", [STK_U8] = "|u1",  [STK_I8] = "|i1",    [STK_U16] = "<u2",
        [STK_I16] = "<i2",  [STK_U32] = "<u4", [STK_I32] = "<i4",   [STK_U64] = "<u8",
        [STK_I64] = "<i8",  [STK_F16] = "<f2", [STK_BF16] = "<u2",  [STK_F32] = "<f4",
        [STK_F64] = "<f8",  [STK_C64] = "<c8", [STK_C128] = "<c16",
    };
    return types[dtype];
}

/* Version 3. The consumer orders its work behind the stream named here: the legacy default one,
 * which waits for the batch, and which waits for every blocking stream when the batch is released.
 */
PyObject *tensor_cuda_interface(PyObject *object, void *Py_UNUSED(closure))
{
    struct tensor_object *self = tensor_self(object);
    if (holder_device(self->holder) < 0) {
        PyErr_SetString(PyExc_AttributeError, "this tensor is in the memory of the CPU");
        return NULL;
    }
    if (holder_use(self->holder, (void *)(uintptr_t)DLPACK_LEGACY) < 0)
        return NULL;
    PyObject *shape = convert_dimensions(&self->tensor);
    if (!shape)
        return NULL;
    return Py_BuildValue("{sN ss s(KO) sO si si}", "shape", shape, "typestr",
                         tensor_typestr(self->tensor.dtype), "data",
                         (unsigned long long)(uintptr_t)self->tensor.data, Py_False, "strides",
                         Py_None, "version", 3, "stream", DLPACK_LEGACY);
}

static const char *tensor_format(enum stk_dtype dtype)
{
    static const char *const formats[] = {
        [STK_BOOL] = "?", [STK_U8] = "B",  [STK_I8] = "b",  [STK_U16] = "H",  [STK_I16] = "h",
        [STK_U32] = "I",  [STK_I32] = "i", [STK_U64] = "Q", [STK_I64] = "q",  [STK_F16] = "e",
        [STK_BF16] = "H", [STK_F32] = "f", [STK_F64] = "d", [STK_C64] = "Zf", [STK_C128] = "Zd",
    };
    return formats[dtype];
}

static void refuse_host(void)
{
    PyErr_SetString(PyExc_BufferError, "this tensor is in the memory of a GPU, which the CPU "
                                       "cannot read: its to_host() is a copy that it can");
}

PyObject *tensor_array(PyObject *object, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(named))
{
    if (holder_device(tensor_self(object)->holder) >= 0)
        refuse_host();
    else
        PyErr_SetString(PyExc_TypeError, "numpy reads this tensor by the buffer protocol");
    return NULL;
}

int tensor_buffer(PyObject *object, Py_buffer *view, int flags)
{
    struct tensor_object *self = tensor_self(object);
    memset(view, 0, sizeof *view);
    if (holder_device(self->holder) >= 0) {
        refuse_host();
        return -1;
    }
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
