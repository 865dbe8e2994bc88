/* stoker._core.Loader: the library's loader. Waiting lets go of Python's lock and looks for signals
 * in between. A close while another thread waits is done by that thread on its way out. */
#include <stdlib.h>
#include <unistd.h>

#include "batch_convert.h"
#include "context_type.h"
#include "convert.h"
#include "dataset_type.h"
#include "stats_convert.h"

#define WAIT_SLICE_NS 100000000 /* how long Ctrl-C may go unseen */

struct loader_object {
    PyObject_HEAD struct stk_loader *loader;
    PyObject *dataset;
    uint32_t users;  /* threads inside a method; under Python's lock */
    int closing;     /* no method may begin; the last user closes */
    int interrupted; /* next does not wait */
    int drawing;     /* a thread is in next */
    pid_t process;
};

static struct loader_object *loader_self(PyObject *object)
{
    return (struct loader_object *)object;
}

static void loader_close_now(struct loader_object *self)
{
    struct stk_loader *loader = self->loader;
    self->loader = NULL;
    if (!loader || self->process != getpid())
        return; /* a forked child has none of its threads */
    Py_BEGIN_ALLOW_THREADS;
    stk_loader_close(loader);
    Py_END_ALLOW_THREADS;
}

static struct stk_loader *loader_enter(struct loader_object *self)
{
    if (self->process != getpid()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "this loader was opened by another process, before a fork; open a Loader "
                        "in the process that uses it");
        return NULL;
    }
    if (!self->loader || self->closing) {
        PyErr_SetString(PyExc_RuntimeError, "the loader is closed");
        return NULL;
    }
    self->users++;
    return self->loader;
}

/* For what a thread in next would change under our feet. */
static struct stk_loader *loader_enter_alone(struct loader_object *self)
{
    if (!self->drawing)
        return loader_enter(self);
    convert_raise_status(STK_BUSY, "another thread is waiting for the next batch");
    return NULL;
}

static void loader_leave(struct loader_object *self)
{
    if (--self->users == 0 && self->closing)
        loader_close_now(self);
}

static PyObject *loader_raise(struct loader_object *self, const struct stk_error *err)
{
    return context_raise(dataset_context(self->dataset), err);
}

/* What the caller wrote for options that are one of a few words. */
struct loader_words {
    const char *order, *last, *bad, *ragged, *io, *device, *resident, *decode;
};

static int loader_choices(struct stk_loader_options *options, const struct loader_words *words)
{
    static const char *const orders[] = {"auto", "sequential", "global", "local", "time"};
    static const char *const lasts[] = {"auto", "short", "mask", "drop"};
    static const char *const policies[] = {"raise", "replace"};
    static const char *const layouts[] = {"error", "pad", "list", "flat"};
    static const char *const ways[] = {"auto", "pread", "io_uring"};
    static const char *const devices[] = {"cpu", "cuda", "auto"};
    static const char *const residents[] = {"no", "auto", "yes"};
    static const char *const decoders[] = {"auto", "cpu", "gpu"};
    int chosen[] = {
        convert_choice("order", words->order, orders, 5),
        convert_choice("last", words->last, lasts, 4),
        convert_choice("bad", words->bad, policies, 2),
        convert_choice("ragged", words->ragged, layouts, 4),
        convert_choice("io", words->io, ways, 3),
        convert_choice("device", words->device, devices, 3),
        convert_choice("resident", words->resident, residents, 3),
        convert_choice("decode", words->decode, decoders, 3),
    };
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        if (chosen[i] < 0)
            return 0;
    options->order = (enum stk_order)chosen[0];
    options->last = (enum stk_last)chosen[1];
    options->bad = (enum stk_bad_policy)chosen[2];
    options->ragged = (enum stk_ragged)chosen[3];
    options->io = (enum stk_io)chosen[4];
    options->device = (enum stk_device)chosen[5];
    options->resident = (enum stk_resident)chosen[6];
    options->decode = (enum stk_decode)chosen[7];
    return 1;
}

static PyObject *loader_open(PyTypeObject *type, PyObject *dataset,
                             const struct stk_loader_options *options)
{
    struct loader_object *self = (struct loader_object *)PyType_GenericAlloc(type, 0);
    if (!self)
        return NULL;
    self->dataset = Py_NewRef(dataset);
    self->process = getpid();
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_loader_open(context_of(dataset_context(dataset)), dataset_of(dataset),
                             &self->loader, options, &err);
    Py_END_ALLOW_THREADS;
    if (status) {
        loader_raise(self, &err);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* weights: a buffer with one double a sample, or None. */
static PyObject *loader_open_weighted(PyTypeObject *type, PyObject *dataset, PyObject *weights,
                                      struct stk_loader_options *options)
{
    if (weights == Py_None)
        return loader_open(type, dataset, options);
    Py_buffer view;
    if (PyObject_GetBuffer(weights, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *self = NULL;
    uint64_t count = (uint64_t)view.len / sizeof(double);
    uint64_t samples = stk_dataset_samples(dataset_of(dataset));
    options->weights = view.buf;
    if (count == samples)
        self = loader_open(type, dataset, options);
    else
        PyErr_Format(PyExc_ValueError, "weights has %llu numbers and the dataset %llu samples",
                     (unsigned long long)count, (unsigned long long)samples);
    PyBuffer_Release(&view);
    return self;
}

/* transforms: None or a list of bytes: a field, its chain, the next field ... */
static PyObject *loader_open_chains(PyTypeObject *type, PyObject *dataset, PyObject *transforms,
                                    PyObject *weights, struct stk_loader_options *options)
{
    const char **texts;
    uint32_t count;
    if (!convert_strings(transforms, &texts, &count))
        return NULL;
    struct stk_field_chain *chains = PyMem_Calloc(count / 2 + 1, sizeof *chains);
    PyObject *self = NULL;
    if (chains) {
        for (uint32_t i = 0; i < count / 2; i++)
            chains[i] = (struct stk_field_chain){texts[2 * i], texts[2 * i + 1]};
        options->transforms = chains;
        options->transform_count = count / 2;
        self = loader_open_weighted(type, dataset, weights, options);
    } else {
        PyErr_NoMemory();
    }
    PyMem_Free(chains);
    PyMem_Free(texts);
    return self;
}

static PyObject *loader_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"dataset",
                            "batch_size",
                            "global_batch_size",
                            "shuffle",
                            "order",
                            "reach",
                            "seed",
                            "rank",
                            "world_size",
                            "last",
                            "bad",
                            "ragged",
                            "memory",
                            "threads",
                            "local_rank",
                            "local_world_size",
                            "depth",
                            "io",
                            "weights",
                            "pin",
                            "stall_seconds",
                            "trace",
                            "transforms",
                            "batch_transforms",
                            "device",
                            "device_number",
                            "device_memory",
                            "resident",
                            "decode",
                            NULL};
    struct core_state *state = PyType_GetModuleState(type);
    struct stk_loader_options options = {0};
    struct loader_words words = {"auto", "auto", "raise", "error", "auto", "cpu", "no", "auto"};
    PyObject *dataset, *weights = Py_None, *transforms = Py_None;
    int pin = 1;
    if (!PyArg_ParseTupleAndKeywords(
            args, named, "O!|$O&O&psO&O&O&O&sssO&O&O&O&O&sOpdzOzsO&O&ss:Loader", names,
            state->dataset, &dataset, convert_u32, &options.batch_size, convert_u32,
            &options.global_batch_size, &options.shuffle, &words.order, convert_u32, &options.reach,
            convert_u64, &options.seed, convert_u32, &options.rank, convert_u32,
            &options.world_size, &words.last, &words.bad, &words.ragged, convert_u64,
            &options.memory, convert_u32, &options.threads, convert_u32, &options.local_rank,
            convert_u32, &options.local_world_size, convert_u32, &options.depth, &words.io,
            &weights, &pin, &options.stall_seconds, &options.trace, &transforms,
            &options.batch_transforms, &words.device, convert_u32, &options.device_number,
            convert_u64, &options.device_memory, &words.resident, &words.decode))
        return NULL;
    options.no_pin = !pin;
    if (!loader_choices(&options, &words))
        return NULL;
    return loader_open_chains(type, dataset, transforms, weights, &options);
}

static void loader_dealloc(PyObject *object)
{
    struct loader_object *self = loader_self(object);
    PyTypeObject *type = Py_TYPE(object);
    loader_close_now(self);
    Py_XDECREF(self->dataset);
    PyObject_Free(object);
    Py_DECREF(type);
}

/* Waits in slices; STK_CANCELLED only when a signal's handler raised or the loader is being closed.
 */
static stk_status loader_wait(struct loader_object *self, struct stk_loader *loader,
                              struct stk_batch **batch, struct stk_error *err)
{
    for (;;) {
        stk_status status;
        if (self->interrupted)
            return STK_CANCELLED;
        Py_BEGIN_ALLOW_THREADS;
        status = stk_loader_next_within(loader, WAIT_SLICE_NS, batch, err);
        Py_END_ALLOW_THREADS;
        if (status != STK_CANCELLED || self->closing || PyErr_CheckSignals() < 0)
            return status;
    }
}

static PyObject *loader_draw(struct loader_object *self, struct stk_loader *loader)
{
    struct stk_batch *batch = NULL;
    struct stk_error err;
    stk_status status = loader_wait(self, loader, &batch, &err);
    if (status == STK_OK)
        return batch_convert(core_state_of((PyObject *)self), batch);
    if (status == STK_END)
        Py_RETURN_NONE;
    if (status != STK_CANCELLED)
        return loader_raise(self, &err);
    if (PyErr_Occurred()) /* Ctrl-C */
        return NULL;
    return convert_raise_status(STK_CANCELLED,
                                "the iteration was ended while its next batch was awaited");
}

/* The library goes on to the next epoch by itself. A caller that has not yet heard of the end,
 * because another thread has, names the epoch it is in and so does not run into the next. */
static PyObject *loader_next(PyObject *object, PyObject *arg)
{
    struct loader_object *self = loader_self(object);
    uint64_t wanted = 0, epoch, position;
    if (!convert_u64(arg, &wanted))
        return NULL;
    struct stk_loader *loader = loader_enter_alone(self);
    if (!loader)
        return NULL;
    stk_loader_position(loader, &epoch, &position);
    PyObject *result = NULL;
    self->drawing = 1;
    if (epoch == wanted)
        result = loader_draw(self, loader);
    else
        result = Py_NewRef(Py_None);
    self->drawing = 0;
    loader_leave(self);
    return result;
}

static PyObject *loader_seek(PyObject *object, PyObject *args)
{
    uint64_t epoch = 0, position = 0;
    if (!PyArg_ParseTuple(args, "O&O&:seek", convert_u64, &epoch, convert_u64, &position))
        return NULL;
    struct stk_loader *loader = loader_enter_alone(loader_self(object));
    if (!loader)
        return NULL;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_loader_seek(loader, epoch, position, &err);
    Py_END_ALLOW_THREADS;
    PyObject *result = status ? loader_raise(loader_self(object), &err) : Py_NewRef(Py_None);
    loader_leave(loader_self(object));
    return result;
}

static PyObject *loader_position(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct stk_loader *loader = loader_enter_alone(loader_self(object));
    if (!loader)
        return NULL;
    uint64_t epoch, position;
    stk_loader_position(loader, &epoch, &position);
    loader_leave(loader_self(object));
    return Py_BuildValue("(KK)", (unsigned long long)epoch, (unsigned long long)position);
}

static PyObject *loader_steps(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct stk_loader *loader = loader_enter(loader_self(object));
    if (!loader)
        return NULL;
    unsigned long long steps = stk_loader_steps(loader);
    loader_leave(loader_self(object));
    return PyLong_FromUnsignedLongLong(steps);
}

static PyObject *loader_steps_left(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct stk_loader *loader = loader_enter_alone(loader_self(object));
    if (!loader)
        return NULL;
    unsigned long long steps = stk_loader_steps_left(loader);
    loader_leave(loader_self(object));
    return PyLong_FromUnsignedLongLong(steps);
}

static PyObject *loader_save(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct stk_loader *loader = loader_enter_alone(loader_self(object));
    if (!loader)
        return NULL;
    char text[STK_STATE_CAP];
    size_t len = 0;
    struct stk_error err;
    stk_status status = stk_loader_save(loader, text, sizeof text, &len, &err);
    PyObject *result = status ? loader_raise(loader_self(object), &err) : convert_name(text, len);
    loader_leave(loader_self(object));
    return result;
}

static PyObject *loader_load(PyObject *object, PyObject *arg)
{
    PyObject *bytes = PyUnicode_AsUTF8String(arg);
    char *text = NULL;
    if (!bytes || PyBytes_AsStringAndSize(bytes, &text, NULL) < 0) {
        Py_XDECREF(bytes);
        return NULL;
    }
    PyObject *result = NULL;
    struct stk_loader *loader = loader_enter_alone(loader_self(object));
    if (loader) {
        struct stk_error err;
        stk_status status;
        Py_BEGIN_ALLOW_THREADS;
        status = stk_loader_load(loader, text, &err);
        Py_END_ALLOW_THREADS;
        result = status ? loader_raise(loader_self(object), &err) : Py_NewRef(Py_None);
        loader_leave(loader_self(object));
    }
    Py_DECREF(bytes);
    return result;
}

static PyObject *loader_stats(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct stk_loader *loader = loader_enter(loader_self(object));
    if (!loader)
        return NULL;
    struct stk_loader_stats stats;
    Py_BEGIN_ALLOW_THREADS;
    stk_loader_stats(loader, &stats);
    Py_END_ALLOW_THREADS;
    loader_leave(loader_self(object));
    return stats_convert(&stats);
}

static PyObject *loader_quarantined(const struct stk_quarantined *bad)
{
    PyObject *dict = PyDict_New();
    char text[1536];
    stk_error_format(&bad->error, text, sizeof text);
    if (dict && convert_put(dict, "sample", PyLong_FromUnsignedLongLong(bad->sample)) &&
        convert_put(dict, "epoch", PyLong_FromUnsignedLongLong(bad->epoch)) &&
        convert_put(dict, "substitute", convert_place(bad->substitute)) &&
        convert_put(dict, "status", PyUnicode_FromString(stk_status_name(bad->error.status))) &&
        convert_put(dict, "key", convert_path(bad->error.key)) &&
        convert_put(dict, "field", convert_path(bad->error.field)) &&
        convert_put(dict, "object", convert_path(bad->error.object)) &&
        convert_put(dict, "offset", convert_place(bad->error.offset)) &&
        convert_put(dict, "reason", convert_path(text)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

static PyObject *loader_quarantine(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct stk_loader *loader = loader_enter(loader_self(object));
    if (!loader)
        return NULL;
    /* The list may grow between the two calls: what came later is for the next one. */
    uint64_t room, count = 0;
    struct stk_quarantined *bad;
    Py_BEGIN_ALLOW_THREADS;
    room = stk_loader_quarantine(loader, NULL, 0);
    bad = calloc((size_t)room + 1, sizeof *bad);
    if (bad)
        count = stk_loader_quarantine(loader, bad, room);
    Py_END_ALLOW_THREADS;
    loader_leave(loader_self(object));
    if (!bad)
        return PyErr_NoMemory();
    if (count > room)
        count = room;
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (uint64_t i = 0; list && i < count; i++) {
        PyObject *dict = loader_quarantined(&bad[i]);
        if (!dict || PyList_SetItem(list, (Py_ssize_t)i, dict) < 0)
            Py_CLEAR(list);
    }
    free(bad);
    return list;
}

/* use(address, stream): the batch that holds the address is worked on in the stream too. */
static PyObject *loader_use(PyObject *object, PyObject *args)
{
    uint64_t address = 0, stream = 0;
    if (!PyArg_ParseTuple(args, "O&O&:use", convert_u64, &address, convert_u64, &stream))
        return NULL;
    struct stk_loader *loader = loader_enter(loader_self(object));
    if (!loader)
        return NULL;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status =
        stk_loader_use(loader, (const void *)(uintptr_t)address, (void *)(uintptr_t)stream, &err);
    Py_END_ALLOW_THREADS;
    PyObject *result = NULL;
    if (!status || status == STK_NOT_FOUND)
        result = PyBool_FromLong(!status);
    else
        loader_raise(loader_self(object), &err);
    loader_leave(loader_self(object));
    return result;
}

static void loader_wake(struct loader_object *self)
{
    struct stk_loader *loader = self->loader;
    if (!loader || self->process != getpid())
        return;
    self->users++; /* it is not closed as long as we are in here */
    Py_BEGIN_ALLOW_THREADS;
    stk_loader_cancel(loader); /* takes a lock that a thread in a hook may hold */
    Py_END_ALLOW_THREADS;
    loader_leave(self);
}

static PyObject *loader_interrupt(PyObject *object, PyObject *arg)
{
    int on = PyObject_IsTrue(arg);
    if (on < 0)
        return NULL;
    loader_self(object)->interrupted = on;
    if (on && loader_self(object)->users)
        loader_wake(loader_self(object));
    Py_RETURN_NONE;
}

static PyObject *loader_close(PyObject *object, PyObject *Py_UNUSED(none))
{
    struct loader_object *self = loader_self(object);
    self->closing = 1;
    if (self->users)
        loader_wake(self);
    else
        loader_close_now(self);
    Py_RETURN_NONE;
}

static PyMethodDef loader_methods[] = {
    {"next", loader_next, METH_O, "The next batch of this epoch, or None when it is over."},
    {"seek", loader_seek, METH_VARARGS, "Start at (epoch, position)."},
    {"position", loader_position, METH_NOARGS, "(epoch, position) after the last batch."},
    {"steps", loader_steps, METH_NOARGS, "Steps of a whole epoch."},
    {"steps_left", loader_steps_left, METH_NOARGS, "Steps from here to the end of the epoch."},
    {"save", loader_save, METH_NOARGS, "The state, as JSON."},
    {"load", loader_load, METH_O, "Take a state, as JSON."},
    {"stats", loader_stats, METH_NOARGS, "Counts, waits and memory, as a dict."},
    {"quarantine", loader_quarantine, METH_NOARGS, "The samples that were replaced, as dicts."},
    {"use", loader_use, METH_VARARGS,
     "(address, stream): the stream works on the batch that holds the address. Whether one does."},
    {"interrupt", loader_interrupt, METH_O, "Whether next gives up instead of waiting."},
    {"close", loader_close, METH_NOARGS, "Stop; batches stay valid."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot loader_slots[] = {
    {Py_tp_doc, "Draws batches from a dataset."},
    {Py_tp_new, loader_new},
    {Py_tp_dealloc, loader_dealloc},
    {Py_tp_methods, loader_methods},
    {0, NULL},
};

static PyType_Spec loader_spec = {
    .name = "stoker._core.Loader",
    .basicsize = sizeof(struct loader_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = loader_slots,
};

PyTypeObject *loader_type_add(PyObject *module)
{
    PyObject *type = PyType_FromModuleAndSpec(module, &loader_spec, NULL);
    if (type && PyModule_AddObjectRef(module, "Loader", type) < 0)
        Py_CLEAR(type);
    return (PyTypeObject *)type;
}
