/* series_open.h -- opens the folder of a series: metadata, sizes, fields, windows.
 * Owns: nothing; what is made is the source's.   Threads: one.   Errors: STK_TRUNCATED and
 * STK_CORRUPT when a file's size is not what the metadata says, STK_USAGE and STK_NOT_FOUND for
 * options that do not fit; all name the file or the option.   Not here: what metadata.json may say
 * (format/series_meta.h), which sample is where (index/windows_index.h). */
#ifndef DATASET_SERIES_OPEN_H
#define DATASET_SERIES_OPEN_H

#include "dataset/dataset_state.h"

/* Fills root, index, series and fields of source; the store is opened over the index after. */
STK_CHECK stk_status series_open(struct dataset_source *source, const char *folder,
                                 const struct stk_dataset_options *options, struct stk_error *err);

#endif
