/* windows_convert.h -- a series between Python and the library: how it is cut, what it is made of.
 * Owns: nothing but what a struct below says.   Threads: under Python's lock.   Errors: a Python
 * exception is set and NULL or 0 comes back.   Not here: packing one (pack_function.c). */
#ifndef PYTHON_WINDOWS_CONVERT_H
#define PYTHON_WINDOWS_CONVERT_H

#include "core.h"

/* Window options and the lists they point to. */
struct series_windows {
    struct stk_window_options options;
    const char **features, **labels;
    int is_given;
};

/* From a dict with window, horizon, stride, gap, min_history (None: the default), pad, split,
 * features and labels (lists of bytes), or None. Its strings live as long as the dict. */
int series_windows_init(struct series_windows *windows, PyObject *dict);
void series_windows_reset(struct series_windows *windows);

/* What the dataset knows of its series, as a dict; None where it is none. */
PyObject *series_about(const struct stk_dataset *dataset);

#endif
