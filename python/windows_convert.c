#include "windows_convert.h"

#include <string.h>

#include "convert.h"

void series_windows_reset(struct series_windows *windows)
{
    PyMem_Free(windows->features);
    PyMem_Free(windows->labels);
    windows->features = windows->labels = NULL;
}

static int series_windows_parse(struct series_windows *windows, PyObject *none, PyObject *dict)
{
    static char *names[] = {"window", "horizon", "stride",   "gap",    "min_history",
                            "pad",    "split",   "features", "labels", NULL};
    struct stk_window_options *options = &windows->options;
    PyObject *features = Py_None, *labels = Py_None;
    if (!PyArg_ParseTupleAndKeywords(
            none, dict, "|$O&O&O&O&O&pzOO:open", names, convert_u64, &options->window, convert_u64,
            &options->horizon, convert_u64, &options->stride, convert_u64, &options->gap,
            convert_u64, &options->min_history, &options->pad, &options->split, &features, &labels))
        return 0;
    if (!convert_strings(features, &windows->features, &options->feature_count) ||
        !convert_strings(labels, &windows->labels, &options->label_count))
        return 0;
    options->features = windows->features;
    options->labels = windows->labels;
    windows->is_given = 1;
    return 1;
}

int series_windows_init(struct series_windows *windows, PyObject *dict)
{
    *windows = (struct series_windows){.options = STK_WINDOW_DEFAULTS};
    if (dict == Py_None)
        return 1;
    PyObject *none = PyTuple_New(0);
    int parsed = none && series_windows_parse(windows, none, dict);
    Py_XDECREF(none);
    if (!parsed)
        series_windows_reset(windows);
    return parsed;
}

static PyObject *series_names(const char *const *names, uint32_t count)
{
    PyObject *list = PyList_New(count);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *name = convert_name(names[i], strlen(names[i]));
        if (!name || PyList_SetItem(list, i, name) < 0)
            Py_CLEAR(list);
    }
    return list;
}

/* (names, centers, scales), the numbers as the bytes of float64. */
static PyObject *series_scaler(const struct stk_scaler *scaler)
{
    Py_ssize_t size = (Py_ssize_t)(scaler->count * sizeof(double));
    PyObject *names = series_names(scaler->columns, scaler->count);
    PyObject *center = PyBytes_FromStringAndSize((const char *)scaler->center, size);
    PyObject *scale = PyBytes_FromStringAndSize((const char *)scaler->scale, size);
    PyObject *tuple = names && center && scale ? PyTuple_Pack(3, names, center, scale) : NULL;
    Py_XDECREF(names);
    Py_XDECREF(center);
    Py_XDECREF(scale);
    return tuple;
}

static PyObject *series_text(const char *text)
{
    if (!text)
        Py_RETURN_NONE;
    return convert_name(text, strlen(text));
}

static int series_put_counts(PyObject *dict, const struct stk_series_info *info)
{
    const struct {
        const char *name;
        uint64_t value;
    } counts[] = {
        {"rows", info->rows},
        {"entity_count", info->entity_count},
        {"short_entities", info->short_entities},
        {"window", info->window},
        {"horizon", info->horizon},
        {"stride", info->stride},
        {"gap", info->gap},
        {"min_history", info->min_history},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (!convert_put(dict, counts[i].name, PyLong_FromUnsignedLongLong(counts[i].value)))
            return 0;
    return 1;
}

PyObject *series_about(const struct stk_dataset *dataset)
{
    const struct stk_series_info *info = stk_dataset_series(dataset);
    if (!info)
        Py_RETURN_NONE;
    PyObject *dict = PyDict_New();
    if (dict && series_put_counts(dict, info) &&
        convert_put(dict, "pad", PyBool_FromLong(info->pad)) &&
        convert_put(dict, "late", PyBool_FromLong(info->late)) &&
        convert_put(dict, "split", series_text(info->split)) &&
        convert_put(dict, "splits", series_names(info->splits, info->split_count)) &&
        convert_put(dict, "time_unit", series_text(info->time_unit)) &&
        convert_put(dict, "statics", series_names(info->statics, info->static_count)) &&
        convert_put(dict, "kind", series_text(info->features.kind)) &&
        convert_put(dict, "features", series_scaler(&info->features)) &&
        convert_put(dict, "labels", series_scaler(&info->labels)))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}
