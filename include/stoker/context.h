/* context.h -- what a process sets up once: hooks, folders, progress.
 * Owns: copies of the strings it is given.   Threads: fill it before use; then read-only and shared
 * by all.   Errors: STK_MEMORY.   Not here: options of one dataset or loader. */
#ifndef STOKER_CONTEXT_H
#define STOKER_CONTEXT_H

#include <stdint.h>

#include "stoker/error.h"

struct stk_context;

/* Where one long job stands. total is 0 while it is unknown. what lives until the call returns. */
struct stk_progress {
    const char *what; /* "indexing", "packing", "verifying" */
    const char *unit; /* "shards", "samples" */
    uint64_t done, total, bytes;
};

/* One column of a table handed out through write_table. */
enum stk_column_type {
    STK_COLUMN_I64,   /* int64_t[rows] */
    STK_COLUMN_TEXT,  /* const char *[rows] */
    STK_COLUMN_F32,   /* float[rows] */
    STK_COLUMN_TIME_S /* int64_t[rows]: seconds since 1970, a timestamp */
};
struct stk_column {
    const char *name;
    enum stk_column_type type;
    const void *values;
};

struct stk_tables; /* series.h */
/* What is wanted of tables that are to be opened. */
struct stk_tables_options {
    const char *const *columns; /* NULL: all; else only these need be read */
    uint32_t column_count;
    const char *const *keys; /* columns that are named for what they are (entity, time, statics,
                                labels): they are read whatever their type; with columns NULL, of
                                the others only numbers are wanted. NULL: not known */
    uint32_t key_count;
    /* The column that names entities. Formats that do not say what a column is (CSV) give it as
     * text: 007 and 7 are two names. NULL: none, or that of append_to. */
    const char *entity;
    const char *append_to; /* folder of the series that rows are added to; NULL: a new one */
    uint64_t memory;       /* bytes that reading ahead may take; 0: the opener's choice */
};

struct stk_hooks {
    void *user; /* passed back to every hook */
    /* Called at most ten times a second from the thread that does the job; not 0 cancels it. */
    int (*progress)(void *user, const struct stk_progress *progress);
    /* A sentence for the user that is no error ("the index was rebuilt"). Any thread. */
    void (*notice)(void *user, const char *text);
    /* Asked at most ten times a second by a thread that waits for a store on the network; not 0:
     * give up. NULL: it waits until the time limit. */
    int (*waiting)(void *user);
    /* Writes a Parquet file. NULL in the plain binary; the Python package fills it (pyarrow). */
    stk_status (*write_table)(void *user, const char *path, const struct stk_column *columns,
                              uint32_t column_count, uint64_t rows, struct stk_error *err);
    /* Opens Parquet, CSV, ORC and Arrow files and folders as tables. NULL in the plain binary; the
     * Python package fills it (pyarrow). */
    stk_status (*open_tables)(void *user, const char *const *sources, uint32_t source_count,
                              const struct stk_tables_options *options, struct stk_tables *tables,
                              struct stk_error *err);
    /* Draws a report (R.html, R.md) of run files (watch.h), the first one first. NULL in the plain
     * binary; the Python package fills it. */
    stk_status (*make_report)(void *user, const char *const *runs, uint32_t run_count,
                              const char *out, struct stk_error *err);
};

/* hooks may be NULL; it is copied. */
STK_API STK_CHECK stk_status stk_context_new(struct stk_context **out,
                                             const struct stk_hooks *hooks, struct stk_error *err);
STK_API void stk_context_free(struct stk_context *context);

/* Loads a plugin (plugin.h) from a shared library; its transforms can be named in chains from then
 * on. Before datasets and loaders are opened, on one thread. It stays until the context is freed.
 */
STK_API STK_CHECK stk_status stk_context_load_plugin(struct stk_context *context, const char *path,
                                                     struct stk_error *err);

#endif
