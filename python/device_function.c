#include "device_function.h"

#include "convert.h"

PyObject *device_function_count(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    struct stk_error err;
    uint32_t count;
    Py_BEGIN_ALLOW_THREADS;
    count = stk_device_count(&err);
    Py_END_ALLOW_THREADS;
    return PyLong_FromUnsignedLong(count);
}

PyObject *device_function_info(PyObject *Py_UNUSED(module), PyObject *number)
{
    uint32_t device = 0;
    if (!convert_u32(number, &device))
        return NULL;
    struct stk_device_info info;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_device_info(device, &info, &err);
    Py_END_ALLOW_THREADS;
    if (status)
        return convert_raise(&err);
    return Py_BuildValue("{ss ss s(ii) si si sK}", "name", info.name, "bus", info.bus, "capability",
                         (int)info.major, (int)info.minor, "multiprocessors",
                         (int)info.multiprocessors, "driver", (int)info.driver, "memory",
                         (unsigned long long)info.memory);
}

/* A share of 1. */
static PyObject *sample_share(uint64_t percent)
{
    if (percent == STK_DEVICE_UNKNOWN)
        Py_RETURN_NONE;
    return PyFloat_FromDouble((double)percent / 100);
}

static PyObject *sample_number(uint64_t value)
{
    if (value == STK_DEVICE_UNKNOWN)
        Py_RETURN_NONE;
    return PyLong_FromUnsignedLongLong(value);
}

PyObject *device_function_sample(PyObject *Py_UNUSED(module), PyObject *number)
{
    uint32_t device = 0;
    if (!convert_u32(number, &device))
        return NULL;
    struct stk_device_sample sample;
    struct stk_error err;
    stk_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = stk_device_sample(device, &sample, &err);
    Py_END_ALLOW_THREADS;
    if (status)
        return convert_raise(&err);
    PyObject *dict = PyDict_New();
    if (dict && convert_put(dict, "utilization", sample_share(sample.busy)) &&
        convert_put(dict, "memory_utilization", sample_share(sample.memory_busy)) &&
        convert_put(dict, "memory_used", sample_number(sample.memory_used)) &&
        convert_put(dict, "memory_total", sample_number(sample.memory_total)) &&
        convert_put(dict, "power", sample_number(sample.power)) &&
        convert_put(dict, "clock", sample_number(sample.clock)) &&
        convert_put(dict, "memory_clock", sample_number(sample.memory_clock)) &&
        convert_put(dict, "temperature", sample_number(sample.temperature)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}

PyObject *device_function_folders(PyObject *Py_UNUSED(module), PyObject *folders)
{
    char *text = NULL;
    if (PyBytes_AsStringAndSize(folders, &text, NULL) < 0)
        return NULL;
    struct stk_error err;
    if (stk_device_folders(text, &err))
        return convert_raise(&err);
    Py_RETURN_NONE;
}
