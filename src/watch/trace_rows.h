/* trace_rows.h -- the rows of a trace and the names in it: a number for each thread of the picture,
 * and the text of each kernel, escaped once.
 * Owns: its tables.   Threads: one.   Errors: NULL when memory ran out, or there are too many.
 * Not here: events (trace_out.h). */
#ifndef WATCH_TRACE_ROWS_H
#define WATCH_TRACE_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "watch/causes.h"
#include "watch/event.h"

enum trace_row_kind {
    ROW_PROCESS, /* not a thread: the process itself */
    ROW_THREAD,  /* of the host; a: its Linux tid */
    ROW_STEPS,
    ROW_PHASES, /* validation, compiling, the script's profiler: they nest with nothing */
    ROW_STREAM, /* a: device, b: stream */
    ROW_COPIES, /* a: device, b: stream */
    ROW_SYNC,
    ROW_IDLE,
    ROW_COST,
    ROW_STAGE /* of a Stoker loader; a: which, b: its thread */
};

struct trace_row {
    uint32_t pid;
    enum trace_row_kind kind;
    uint32_t a, b;
    uint32_t tid;    /* in the trace */
    char label[160]; /* of the row, or of the process; not escaped */
    int order;       /* among its like */
    /* of ROW_IDLE: the piece that may still grow; of ROW_STEPS: the last step's end */
    uint64_t start, end, count;
    enum cause cause;
    /* of ROW_PROCESS: what is not told yet, and since when */
    struct watch_use use;
    uint64_t use_from;
};

struct trace_rows {
    struct trace_row **slots; /* open addressing */
    size_t count;
    struct trace_name **names;
    size_t name_count, name_room;
};

/* The row; made when there is none, then *made is 1. */
struct trace_row *trace_rows_get(struct trace_rows *rows, uint32_t pid, enum trace_row_kind kind,
                                 uint32_t a, uint32_t b, int *made);
/* The rows one after the other; *at is 0 at first. NULL: that was the last. */
struct trace_row *trace_rows_each(const struct trace_rows *rows, size_t *at);
void trace_rows_name(struct trace_rows *rows, uint32_t pid, uint32_t id, const char *text,
                     size_t len);
/* Quoted and escaped; "\"kernel\"" where it is not known. */
const char *trace_rows_name_of(const struct trace_rows *rows, uint32_t pid, uint32_t id);
void trace_rows_reset(struct trace_rows *rows);

#endif
