/* trace_out.h -- a watched run as a trace for Perfetto and chrome://tracing: GPU streams, copies,
 * the main thread's steps and waits, workers, counters, and gaps named by their cause. Bounded:
 * when the file is full, what came first and what came last is kept (see .c). Owns: its file and
 * buffers.   Threads: one.   Errors: STK_IO (disk full) is told once; what was written stays a
 * whole, readable file.   Not here: traces of one loader (trace/trace.h). */
#ifndef WATCH_TRACE_OUT_H
#define WATCH_TRACE_OUT_H

#include "stoker/error.h"
#include "watch/causes.h"
#include "watch/event.h"

struct trace_out;

STK_CHECK stk_status trace_out_open(struct trace_out **out, const char *path, uint64_t most_bytes,
                                    uint64_t begun, struct stk_error *err);
void trace_out_take(struct trace_out *trace, const struct watch_event *event);
void trace_out_idle(struct trace_out *trace, uint32_t pid, uint64_t start, uint64_t end,
                    enum cause cause);
/* Joins what Stoker's own loaders traced: files "stages.PID.NUMBER.json" in a folder. What cannot
 * be read is left out. */
void trace_out_stages(struct trace_out *trace, int folder);
/* Writes what is left. The first fault since it was opened, if there was one. */
STK_CHECK stk_status trace_out_finish(struct trace_out *trace, struct stk_error *err);
void trace_out_close(struct trace_out *trace); /* NULL is fine */

#endif
