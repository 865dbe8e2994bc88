/* stats_convert.h -- a loader's counters as a dict.
 * Owns: nothing.   Threads: under Python's lock.   Errors: Python's own.   Not here: rates, which
 * are made of them (stoker/loader.py). */
#ifndef PYTHON_STATS_CONVERT_H
#define PYTHON_STATS_CONVERT_H

#include "core.h"

/* "device" is None where batches stay on the CPU. */
PyObject *stats_convert(const struct stk_loader_stats *stats);

#endif
