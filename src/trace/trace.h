/* trace.h -- spans and counters of one loader, written as Perfetto (Chrome) JSON.
 * Owns: one ring a thread, bounded; the newest spans win.   Threads: each thread writes its own
 * ring with no lock; trace_write runs after the threads are joined.   Errors: a full ring drops its
 * oldest and counts it.   Not here: statistics (loader/stats). A NULL trace costs one test of a
 * pointer. */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <stdint.h>

#include "stoker/error.h"

struct trace;
struct trace_ring;

STK_CHECK stk_status trace_new(struct trace **out, uint32_t threads, struct stk_error *err);
void trace_free(struct trace *trace); /* NULL is fine */

/* The ring of thread number `thread`, named for the viewer. NULL trace: NULL ring. */
struct trace_ring *trace_ring(struct trace *trace, uint32_t thread, const char *name);

/* name must be a literal: only the pointer is kept. NULL ring: nothing happens; begin returns 0. */
int64_t trace_begin(struct trace_ring *ring);
void trace_end(struct trace_ring *ring, int64_t begin, const char *name, uint64_t step,
               uint64_t bytes);
void trace_count(struct trace_ring *ring, const char *name, uint64_t value);

STK_CHECK stk_status trace_write(struct trace *trace, const char *path, struct stk_error *err);

#endif
