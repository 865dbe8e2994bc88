/* series_find.h -- whether a path means a series.
 * Owns: nothing; the folder's name is the caller's.   Threads: any.   Errors: none; what is wrong
 * with a series shows when it is opened.   Not here: opening (series_open.h). */
#ifndef DATASET_SERIES_FIND_H
#define DATASET_SERIES_FIND_H

#include <stddef.h>

/* The length of the folder in path: path is the folder of a series, or its metadata.json. 0: it is
 * neither. A folder is one when it holds the array, or a metadata.json that says so: what is
 * missing is told when it is opened. */
size_t series_find(const char *path);
/* As series_find for a path that must mean a series, whatever lies in it: a folder, or a
 * metadata.json. */
size_t series_find_folder(const char *path);

#endif
