/* table_source.h -- tables that Python hands out one by one, as the library's struct stk_tables.
 * Owns: the iterator, until the tables are closed.   Threads: whoever pulls takes Python's lock.
 * Errors: what Python raised comes back in words, and as it is in the failure.   Not here: files
 * (stoker/_tables.py), what becomes of the tables (the library). */
#ifndef PYTHON_TABLE_SOURCE_H
#define PYTHON_TABLE_SOURCE_H

#include "core.h"

/* An exception that was raised while the library waited; zeroed is none. Under Python's lock. */
struct table_failure {
    PyObject *type, *value, *trace;
};

/* tables->rows and own_names are left to the caller. iterable: gives pairs of a name (bytes) and a
 * stream: a capsule "arrow_array_stream" or an object with __arrow_c_stream__. failure may be NULL;
 * it outlives the tables. 0 with a Python error. */
int table_source_open(PyObject *iterable, struct table_failure *failure, struct stk_tables *tables);

/* Raises what was kept. 0: there was nothing. */
int table_failure_raise(struct table_failure *failure);
void table_failure_clear(struct table_failure *failure);

#endif
