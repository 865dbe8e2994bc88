/* batch_convert.h -- a batch of the library as Python objects that share its memory.
 * Owns: nothing; the objects count the batch's memory.   Threads: under Python's lock.   Errors:
 * Python's own.   Not here: torch and numpy (stoker/_arrays.py), dicts and tuples
 * (stoker/_batches.py). */
#ifndef PYTHON_BATCH_CONVERT_H
#define PYTHON_BATCH_CONVERT_H

#include "core.h"

/* (epoch, step, end, count, real, samples as int64 bytes, mask or None, fields), where fields is a
 * list of (value, lengths or None, present or None, offsets or None, whether a chain pads): see
 * _core.pyi. Takes the batch over, also when it fails. */
PyObject *batch_convert(const struct core_state *state, struct stk_batch *batch);

#endif
