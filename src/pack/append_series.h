/* append_series.h -- adds entities and newer rows to a series that is there.
 * Owns: nothing after return.   Threads: one caller.   Errors: STK_USAGE for options that say
 * otherwise than the series; STK_CORRUPT for rows that are not newer, with entity and both times; a
 * failed call leaves the series as it was.   Not here: a new series (pack_series.c).
 *
 * Rows go behind the last one of the array. An entity's rows lie in one piece: one that gets newer
 * rows is copied behind, and its old rows are unused, unless it is the last one. When more rows
 * would be unused than used, the whole array is written anew. How a crash leaves the series whole
 * is told in series_folder.h. */
#ifndef PACK_APPEND_SERIES_H
#define PACK_APPEND_SERIES_H

#include "pack/series_pack.h"

/* pack: context, options, tables and memory are set. */
STK_CHECK stk_status append_series_run(struct series_pack *pack, struct stk_series_result *result,
                                       struct stk_error *err);

#endif
