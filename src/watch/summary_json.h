/* summary_json.h -- the run file: a summary and its verdict as JSON (docs/run-file.md).
 * Owns: nothing.   Threads: any.   Errors: STK_MEMORY; STK_CORRUPT for a file that is cut short or
 * of another version, with words.   Not here: pictures of it. */
#ifndef WATCH_SUMMARY_JSON_H
#define WATCH_SUMMARY_JSON_H

#include "stoker/error.h"
#include "watch/verdict.h"

/* *out: NUL-terminated, to give to memory_free. */
STK_CHECK stk_status summary_json_write(const struct summary *summary,
                                        const struct verdict *verdict, char **out,
                                        struct stk_error *err);
/* What a second run needs of the run file of a replay: steps, times, samples, busy. */
STK_CHECK stk_status summary_json_read_what_if(const char *json, const struct summary *first,
                                               struct summary_what_if *out, struct stk_error *err);

#endif
