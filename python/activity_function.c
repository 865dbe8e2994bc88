#include "activity_function.h"

#include "stoker/activity.h"
#include "convert.h"

static const char capsule_name[] = "stoker.activity";
static const char capsule_over[] = "stoker.activity.over"; /* it was stopped */

static void capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, capsule_name))
        stk_activity_stop(PyCapsule_GetPointer(capsule, capsule_name));
}

PyObject *activity_function_start(PyObject *Py_UNUSED(module), PyObject *args)
{
    struct stk_activity_options options = {0};
    if (!PyArg_ParseTuple(args, "O&O&:activity_start", convert_u32, &options.device, convert_u64,
                          &options.bin_ns))
        return NULL;
    struct stk_activity *activity;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_activity_start(&activity, &options, &err);
    Py_END_ALLOW_THREADS;
    if (status)
        return convert_raise(&err);
    PyObject *capsule = PyCapsule_New(activity, capsule_name, capsule_free);
    if (!capsule)
        stk_activity_stop(activity);
    return capsule;
}

static int sums_put(PyObject *dict, const struct stk_activity_sums *sums)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"wall_ns", sums->wall_ns}, {"kernel_ns", sums->kernel_ns},
        {"copy_ns", sums->copy_ns}, {"kernels", sums->kernels},
        {"copies", sums->copies},   {"copied_bytes", sums->copied_bytes},
        {"lost", sums->lost},       {"bin_ns", sums->bin_ns},
    };
    int fine = 1;
    for (size_t i = 0; fine && i < sizeof numbers / sizeof numbers[0]; i++)
        fine = convert_put(dict, numbers[i].key, PyLong_FromUnsignedLongLong(numbers[i].value));
    return fine;
}

static int bins_put(PyObject *dict, struct stk_activity *activity, uint64_t count)
{
    Py_ssize_t size = (Py_ssize_t)(count * sizeof(uint64_t));
    PyObject *kernels = PyBytes_FromStringAndSize(NULL, size);
    PyObject *copies = PyBytes_FromStringAndSize(NULL, size);
    if (kernels && copies) {
        uint64_t *kernel_ns = (uint64_t *)(void *)PyBytes_AsString(kernels);
        uint64_t *copy_ns = (uint64_t *)(void *)PyBytes_AsString(copies);
        stk_activity_bins(activity, kernel_ns, copy_ns, count);
    }
    int fine = convert_put(dict, "kernel_bins", kernels);
    return convert_put(dict, "copy_bins", copies) && fine;
}

PyObject *activity_function_read(PyObject *Py_UNUSED(module), PyObject *recording)
{
    struct stk_activity *activity = PyCapsule_GetPointer(recording, capsule_name);
    if (!activity)
        return NULL;
    struct stk_activity_sums sums;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_activity_read(activity, &sums, &err);
    Py_END_ALLOW_THREADS;
    if (status)
        return convert_raise(&err);
    PyObject *dict = PyDict_New();
    if (dict && sums_put(dict, &sums) && bins_put(dict, activity, sums.bins))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *activity_function_stop(PyObject *Py_UNUSED(module), PyObject *recording)
{
    if (PyCapsule_IsValid(recording, capsule_name)) {
        struct stk_activity *activity = PyCapsule_GetPointer(recording, capsule_name);
        if (PyCapsule_SetName(recording, capsule_over))
            return NULL;
        Py_BEGIN_ALLOW_THREADS;
        stk_activity_stop(activity);
        Py_END_ALLOW_THREADS;
    }
    Py_RETURN_NONE;
}
