/* _moments.c -- the Python module stoker_watch._moments: times what a loop does at each step.
 *
 * In a loop that trains nothing of the hook is in the processor's caches, and each Python function
 * costs 2 us there. So next(), collate, backward() and the optimizer's two hooks are wrapped in a
 * Moment. `careful` is the hook's own function in Python and does all there is to do. When it has
 * seen that the loop goes on as before it arms the moment, and calls that follow are timed here, as
 * long as nothing else happens: the same iterator gives a batch without a long wait, the same
 * optimizer steps. What is otherwise goes to Python.
 *
 * Owns: records, until they are given to `receive`, before whatever Python tells next.
 * Threads: any of Python's; its lock is held but for the call that is timed.   Errors: Python's; a
 * fault of ours is the hook's to see, never the script's.   Not here: what a moment means, and when
 * it may be armed (moments.py, torch_loader.py, torch_steps.py). Any Python from 3.11 on can load
 * it: stable ABI. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <structmember.h>

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "watch/record.h"

enum moment_kind {
    MOMENT_NEXT,
    MOMENT_COLLATE,
    MOMENT_BACKWARD,
    MOMENT_BEFORE_STEP,
    MOMENT_AFTER_STEP
};

/* Objects are compared only: they are the script's, and may be gone. */
#define OPTIMIZERS 4
#define PARTS 3 /* of a next(): the whole, its fetch, its collate */
#define TAKEN 1 /* of one that was not a common one: a batch, an end, a fault */
#define ENDED 2
#define BROKE 3

static struct {
    const PyObject *iterator; /* NULL: not armed */
    uint64_t until;           /* then Python looks again */
    uint64_t longest;         /* ns of a next() in which nothing happens */
    uint64_t loader, number, samples;
    uint32_t left, taken; /* calls */
    uint16_t flags[PARTS];
    uint64_t begun;      /* a next() is under way since; 0: none is */
    uint64_t read, done; /* in it: when collate began and ended; 0: it did not */
    uint64_t handed;     /* when the last one ended */
} next;

static struct {
    const PyObject *optimizers[OPTIMIZERS];
    uint64_t numbers[OPTIMIZERS];
    uint64_t begun[OPTIMIZERS]; /* since when each steps; 0: it does not */
    uint32_t count;             /* 0: not armed */
    uint64_t backward;          /* when the last one ended */
} steps;

static pthread_t loop_thread; /* moments of others are Python's */
static uint32_t loop_number;  /* its number in Linux */

static _Alignas(8) uint8_t records[128 << 10];
static size_t used;
static PyObject *receive; /* takes (write_them, records), and what Python tells; NULL: nobody */
static PyObject *write_them;

#define MOST_OF_ONE_CALL (3 * sizeof(struct record_span) + sizeof(struct record_mark))

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* --- records ---------------------------------------------------------------------------------- */

static int has_room(void)
{
    return used + MOST_OF_ONE_CALL <= sizeof records;
}

static void put_span(enum span_what what, uint64_t start, uint64_t end, uint64_t a, uint64_t b,
                     uint16_t flags)
{
    struct record_span record = {
        {RECORD_SPAN, flags, sizeof record}, start, end, loop_number, what, a, b};
    memcpy(records + used, &record, sizeof record);
    used += sizeof record;
}

static void put_mark(enum mark_what what, uint64_t time, uint64_t a, uint64_t b)
{
    struct record_mark record = {{RECORD_MARK, 0, sizeof record}, time, loop_number, what, a, b};
    memcpy(records + used, &record, sizeof record);
    used += sizeof record;
}

static void put_next(uint64_t start, uint64_t end)
{
    uint64_t number = next.number + next.taken;
    put_span(SPAN_NEXT, start, end, next.loader, number, next.flags[0]);
    if (next.done) {
        put_span(SPAN_FETCH, start, next.read, next.loader, number, next.flags[1]);
        put_span(SPAN_COLLATE, next.read, next.done, next.loader, number, next.flags[2]);
    }
    put_mark(MARK_BATCH, end, next.loader, next.samples);
}

/* Gives away what was recorded. Where Python makes a tuple it may run the script's finalizers,
 * which may come here again, or let another thread say who receives: by then nothing is left, and
 * what is recorded meanwhile follows. */
static int give(void)
{
    if (!used || !receive)
        return 0;
    PyObject *given = PyBytes_FromStringAndSize((const char *)records, (Py_ssize_t)used);
    if (!given)
        return -1;
    used = 0;
    PyObject *const to = receive, *const with = write_them;
    Py_INCREF(to);
    Py_INCREF(with);
    PyObject *taken = PyObject_CallFunction(to, "((ON))", with, given);
    Py_DECREF(to);
    Py_DECREF(with);
    Py_XDECREF(taken);
    return taken ? 0 : -1;
}

/* --- moments ---------------------------------------------------------------------------------- */

struct moment {
    PyObject_HEAD PyObject *original; /* what is timed */
    PyObject *careful;                /* what times it in Python */
    PyObject *late; /* of a next() that turned out to be no common one; else None */
    PyObject *weak_references;
    enum moment_kind kind;
};

static int is_loop_thread(void)
{
    return pthread_equal(pthread_self(), loop_thread);
}

/* late(iterator, how it ended, begun, read, done, batch) */
static PyObject *next_late(const struct moment *moment, PyObject *iterator, uint64_t begun,
                           PyObject *batch)
{
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    int how = batch ? TAKEN : PyErr_ExceptionMatches(PyExc_StopIteration) ? ENDED : BROKE;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *told = PyObject_CallFunction(moment->late, "OiKKKO", iterator, how,
                                           (unsigned long long)begun, (unsigned long long)next.read,
                                           (unsigned long long)next.done, batch ? batch : Py_None);
    if (!told) { /* Ctrl-C came meanwhile: that is what the script is to see */
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        Py_XDECREF(batch);
        return NULL;
    }
    Py_DECREF(told);
    PyErr_Restore(type, value, trace);
    return batch;
}

static PyObject *next_call(const struct moment *moment, PyObject *arguments, PyObject *options)
{
    PyObject *iterator = PyTuple_Size(arguments) == 1 ? PyTuple_GetItem(arguments, 0) : NULL;
    if (!iterator || iterator != next.iterator || !is_loop_thread())
        return PyObject_Call(moment->careful, arguments, options);
    if (next.begun) /* a class over a class, both wrapped */
        return PyObject_Call(moment->original, arguments, options);
    uint64_t start = now();
    if (!next.left || start > next.until || !has_room()) {
        next.iterator = NULL;
        return PyObject_Call(moment->careful, arguments, options);
    }
    next.begun = start;
    next.read = next.done = 0;
    PyObject *batch = PyObject_Call(moment->original, arguments, options);
    uint64_t end = now();
    next.begun = 0;
    if (!batch || iterator != next.iterator || end - start > next.longest || !has_room())
        return next_late(moment, iterator, start, batch);
    put_next(start, end);
    next.handed = end;
    next.taken++;
    next.left--;
    return batch;
}

static PyObject *collate_call(const struct moment *moment, PyObject *arguments, PyObject *options)
{
    if (!next.begun || !next.iterator || !is_loop_thread()) /* or that of a loader in a data set */
        return PyObject_Call(moment->careful, arguments, options);
    uint64_t start = now();
    PyObject *batch = PyObject_Call(moment->original, arguments, options);
    next.read = start;
    next.done = now();
    return batch;
}

static PyObject *backward_call(const struct moment *moment, PyObject *arguments, PyObject *options)
{
    if (!steps.count || !is_loop_thread() || !has_room())
        return PyObject_Call(moment->careful, arguments, options);
    uint64_t start = now();
    PyObject *answer = PyObject_Call(moment->original, arguments, options);
    steps.backward = now();
    if (has_room())
        put_span(SPAN_BACKWARD, start, steps.backward, 0, 0, 0);
    return answer;
}

/* The place of the optimizer that a hook is called with; OPTIMIZERS: it is not armed. */
static uint32_t find_optimizer(PyObject *arguments)
{
    const PyObject *optimizer =
        steps.count && PyTuple_Size(arguments) > 0 ? PyTuple_GetItem(arguments, 0) : NULL;
    for (uint32_t i = 0; optimizer && i < steps.count; i++)
        if (steps.optimizers[i] == optimizer)
            return i;
    return OPTIMIZERS;
}

static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *before_step_call(const struct moment *moment, PyObject *arguments,
                                  PyObject *options)
{
    uint32_t place = find_optimizer(arguments);
    if (place == OPTIMIZERS || !is_loop_thread())
        return PyObject_Call(moment->careful, arguments, options);
    steps.begun[place] = now();
    return none();
}

static PyObject *after_step_call(const struct moment *moment, PyObject *arguments,
                                 PyObject *options)
{
    uint32_t place = find_optimizer(arguments);
    if (place == OPTIMIZERS || !steps.begun[place] || !is_loop_thread() || !has_room())
        return PyObject_Call(moment->careful, arguments, options);
    uint64_t end = now(), start = steps.begun[place];
    if (steps.backward > start) /* a closure ran it in step() */
        start = steps.backward;
    steps.begun[place] = 0;
    put_span(SPAN_OPTIMIZER, start, end, steps.numbers[place], 0, 0);
    put_mark(MARK_STEP, end, steps.numbers[place], 0);
    return none();
}

static PyObject *moment_call(PyObject *self, PyObject *arguments, PyObject *options)
{
    const struct moment *moment = (const struct moment *)self;
    switch (moment->kind) {
    case MOMENT_NEXT:
        return next_call(moment, arguments, options);
    case MOMENT_COLLATE:
        return collate_call(moment, arguments, options);
    case MOMENT_BACKWARD:
        return backward_call(moment, arguments, options);
    case MOMENT_BEFORE_STEP:
        return before_step_call(moment, arguments, options);
    case MOMENT_AFTER_STEP:
        return after_step_call(moment, arguments, options);
    }
    return PyObject_Call(moment->careful, arguments, options);
}

/* --- the type: as much of a function as a script may look at ---------------------------------- */

static PyObject *method_type; /* types.MethodType */

static PyObject *moment_new(PyTypeObject *type, PyObject *arguments, PyObject *options)
{
    int kind;
    PyObject *original, *careful, *late;
    (void)options;
    if (!PyArg_ParseTuple(arguments, "iOOO", &kind, &original, &careful, &late))
        return NULL;
    struct moment *moment = (struct moment *)PyType_GenericAlloc(type, 0);
    if (!moment)
        return NULL;
    moment->kind = (enum moment_kind)kind;
    moment->original = original;
    moment->careful = careful;
    moment->late = late;
    Py_INCREF(original);
    Py_INCREF(careful);
    Py_INCREF(late);
    return (PyObject *)moment;
}

/* A collate of the script's may hold the loader that holds us. Whoever else is in such a ring can
 * be emptied, so we need not be. */
static int moment_traverse(PyObject *self, visitproc visit, void *arg)
{
    const struct moment *moment = (const struct moment *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(moment->original);
    Py_VISIT(moment->careful);
    Py_VISIT(moment->late);
    return 0;
}

static void moment_free(PyObject *self)
{
    struct moment *moment = (struct moment *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (moment->weak_references)
        PyObject_ClearWeakRefs(self);
    Py_XDECREF(moment->original);
    Py_XDECREF(moment->careful);
    Py_XDECREF(moment->late);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF(type);
}

static PyObject *moment_bind(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    if (object && object != Py_None)
        return PyObject_CallFunctionObjArgs(method_type, self, object, NULL);
    Py_INCREF(self);
    return self;
}

/* __name__, __doc__, __wrapped__ and whatever else a function has. */
static PyObject *moment_attribute(PyObject *self, PyObject *name)
{
    static const char *const own[] = {"__class__", "__reduce__", "__reduce_ex__"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (!PyUnicode_CompareWithASCIIString(name, own[i]))
            return PyObject_GenericGetAttr(self, name);
    return PyObject_GetAttr(((struct moment *)self)->careful, name);
}

static int moment_set_attribute(PyObject *self, PyObject *name, PyObject *value)
{
    return PyObject_SetAttr(((struct moment *)self)->careful, name, value);
}

/* As a function: by its name. */
static PyObject *moment_reduce(PyObject *self, PyObject *protocol)
{
    (void)protocol;
    return PyObject_GetAttrString(((struct moment *)self)->careful, "__qualname__");
}

static PyMethodDef moment_methods[] = {{"__reduce_ex__", moment_reduce, METH_O, NULL},
                                       {NULL, NULL, 0, NULL}};
static PyMemberDef moment_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct moment, weak_references), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};
static PyType_Slot moment_slots[] = {{Py_tp_new, moment_new},
                                     {Py_tp_dealloc, moment_free},
                                     {Py_tp_traverse, moment_traverse},
                                     {Py_tp_members, moment_members},
                                     {Py_tp_call, moment_call},
                                     {Py_tp_descr_get, moment_bind},
                                     {Py_tp_getattro, moment_attribute},
                                     {Py_tp_setattro, moment_set_attribute},
                                     {Py_tp_methods, moment_methods},
                                     {0, NULL}};
static PyType_Spec moment_type = {
    "stoker_watch._moments.Moment", sizeof(struct moment), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR, moment_slots};

/* --- what Python tells ------------------------------------------------------------------------ */

/* begin(thread, number): of this process, whose loop runs in that thread, of that number in Linux;
 * or in none. */
static PyObject *begin(PyObject *module, PyObject *arguments)
{
    unsigned long long thread;
    unsigned int number;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "KI", &thread, &number))
        return NULL;
    loop_thread = (pthread_t)thread; /* threading.get_ident() is that */
    loop_number = number;
    memset(&next, 0, sizeof next);
    memset(&steps, 0, sizeof steps);
    used = 0;
    Py_CLEAR(receive);
    Py_CLEAR(write_them);
    return none();
}

/* give_to(receive, write_them): records go there from now on, as (write_them, bytes). */
static PyObject *give_to(PyObject *module, PyObject *arguments)
{
    PyObject *to, *with;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO", &to, &with))
        return NULL;
    PyObject *const before[] = {receive, write_them};
    Py_INCREF(to);
    Py_INCREF(with);
    receive = to;
    write_them = with;
    Py_XDECREF(before[0]);
    Py_XDECREF(before[1]);
    return none();
}

/* tell(entry): gives away what was recorded before it, then it. */
static PyObject *tell(PyObject *module, PyObject *entry)
{
    (void)module;
    if (!receive) {
        PyErr_SetString(PyExc_RuntimeError, "nobody takes what is told");
        return NULL;
    }
    if (give())
        return NULL;
    PyObject *const to = receive;
    Py_INCREF(to);
    PyObject *taken = PyObject_CallFunctionObjArgs(to, entry, NULL);
    Py_DECREF(to);
    return taken;
}

static PyObject *give_all(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return give() ? NULL : none();
}

static PyObject *arm_next(PyObject *module, PyObject *arguments)
{
    PyObject *iterator;
    unsigned long long until, longest, loader, number, samples;
    unsigned int left;
    unsigned short flags[PARTS];
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OKKIKKKHHH", &iterator, &until, &longest, &left, &loader,
                          &number, &samples, &flags[0], &flags[1], &flags[2]))
        return NULL;
    next.iterator = iterator;
    next.until = until;
    next.longest = longest;
    next.left = left;
    next.loader = loader;
    next.number = number;
    next.samples = samples;
    next.taken = 0;
    memcpy(next.flags, flags, sizeof next.flags);
    return none();
}

/* How many batches were taken, and when the last one was there. */
static PyObject *disarm_next(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    PyObject *told = Py_BuildValue("IK", next.taken, (unsigned long long)next.handed);
    next.iterator = NULL;
    next.taken = next.left = 0;
    return told;
}

static PyObject *arm_step(PyObject *module, PyObject *arguments)
{
    PyObject *optimizer;
    unsigned long long number;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OK", &optimizer, &number))
        return NULL;
    uint32_t place = 0;
    while (place < steps.count && steps.optimizers[place] != optimizer)
        place++;
    if (place == OPTIMIZERS)
        return none();
    steps.optimizers[place] = optimizer;
    steps.numbers[place] = number;
    if (place == steps.count)
        steps.begun[steps.count++] = 0;
    return none();
}

static PyObject *disarm_steps(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    steps.count = 0;
    return none();
}

/* Since when a next() is under way; 0: none is. */
static PyObject *next_begun(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(next.begun);
}

static PyObject *backward_ended(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong(steps.backward);
}

static PyMethodDef functions[] = {{"begin", begin, METH_VARARGS, NULL},
                                  {"give_to", give_to, METH_VARARGS, NULL},
                                  {"tell", tell, METH_O, NULL},
                                  {"give_all", give_all, METH_NOARGS, NULL},
                                  {"arm_next", arm_next, METH_VARARGS, NULL},
                                  {"disarm_next", disarm_next, METH_NOARGS, NULL},
                                  {"arm_step", arm_step, METH_VARARGS, NULL},
                                  {"disarm_steps", disarm_steps, METH_NOARGS, NULL},
                                  {"next_begun", next_begun, METH_NOARGS, NULL},
                                  {"backward_ended", backward_ended, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "_moments", .m_size = -1,
                                        .m_methods = functions};

static int add_types(PyObject *module)
{
    PyObject *types = PyImport_ImportModule("types"), *moment = PyType_FromSpec(&moment_type);
    method_type = types ? PyObject_GetAttrString(types, "MethodType") : NULL;
    int bad = !method_type || !moment || PyModule_AddObjectRef(module, "Moment", moment) ||
              PyModule_AddIntMacro(module, TAKEN) || PyModule_AddIntMacro(module, ENDED) ||
              PyModule_AddIntMacro(module, BROKE) || PyModule_AddIntMacro(module, MOMENT_NEXT) ||
              PyModule_AddIntMacro(module, MOMENT_COLLATE) ||
              PyModule_AddIntMacro(module, MOMENT_BACKWARD) ||
              PyModule_AddIntMacro(module, MOMENT_BEFORE_STEP) ||
              PyModule_AddIntMacro(module, MOMENT_AFTER_STEP);
    Py_XDECREF(types);
    Py_XDECREF(moment);
    return bad;
}

/* One phase: an interpreter with a lock of its own refuses it, and is watched without. */
PyMODINIT_FUNC PyInit__moments(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && add_types(module)) {
        Py_DECREF(module);
        module = NULL;
    }
    return module;
}
