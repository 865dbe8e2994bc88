/* report.h -- run files (watch.h) and benchmark results as a page, as Markdown or as pictures.
 * Owns: nothing.   Threads: one caller.   Errors: STK_UNSUPPORTED where nothing here can draw;
 * STK_NOT_FOUND, STK_CORRUPT and STK_TRUNCATED for a file that is no run file; STK_DENIED and
 * STK_IO for the output. Not here: the drawing itself, which is the context's make_report hook. */
#ifndef STOKER_REPORT_H
#define STOKER_REPORT_H

#include "stoker/context.h"
#include "stoker/error.h"

/* Whether a report could be written to `out`: for those who would not start a long run in vain. */
STK_API STK_CHECK stk_status stk_report_ready(struct stk_context *context, const char *out,
                                              struct stk_error *err);
/* Writes the report of `runs` (paths, the first one first) to `out`: R.html, R.md with pictures
 * beside it, R.png, or a folder of pictures. The file appears whole or not at all. */
STK_API STK_CHECK stk_status stk_report_make(struct stk_context *context, const char *const *runs,
                                             uint32_t run_count, const char *out,
                                             struct stk_error *err);

#endif
