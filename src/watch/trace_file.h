/* trace_file.h -- a file of trace events that never grows past a bound: the first quarter stays as
 * it came, of the rest the newest is kept in segments beside it, which are joined at the end. Owns:
 * its files and its buffer; segments are removed with it.   Threads: one.   Errors: the first fault
 * is kept and told by trace_file_finish; what was written before stays readable. Until it is
 * finished the file is an unclosed JSON array, which Perfetto and chrome://tracing read, so that a
 * kill leaves a trace.   Not here: what events say (trace_out.h). */
#ifndef WATCH_TRACE_FILE_H
#define WATCH_TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

struct trace_file;

/* `first` is the first event, an object. most: bytes in all. */
STK_CHECK stk_status trace_file_open(struct trace_file **out, const char *path, uint64_t most,
                                     const char *first, struct stk_error *err);
/* One event, an object. `time` is that of the run, for telling what was left out. */
void trace_file_add(struct trace_file *file, const char *event, size_t len, uint64_t time);
/* Passes on what is buffered. Once a second, so that a kill costs no more. */
void trace_file_flush(struct trace_file *file);

struct trace_file_kept {
    uint64_t events, dropped;
    uint64_t dropped_from, dropped_to; /* times; between them something is missing */
};
void trace_file_kept(const struct trace_file *file, struct trace_file_kept *out);

/* Joins the segments and closes the JSON: `events` go in before the end (",{...},{...}", or ""),
 * `data` is what stands under "otherData". The first fault since it was opened. */
STK_CHECK stk_status trace_file_finish(struct trace_file *file, const char *events,
                                       const char *data, struct stk_error *err);
void trace_file_close(struct trace_file *file); /* NULL is fine */

#endif
