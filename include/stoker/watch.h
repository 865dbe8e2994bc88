/* watch.h -- watches a training run: how busy its GPU was, what it waited for, in which function.
 * Owns: a folder for the run, a thread that collects, and the command while it runs.   Threads: one
 * caller.   Errors: STK_NOT_FOUND (no such command), STK_IO (folder, output), STK_MEMORY; a fault
 * in watching never harms the command: it is told in the run file.   Not here: pictures (the Python
 * package draws run files). */
#ifndef STOKER_WATCH_H
#define STOKER_WATCH_H

#include <stdint.h>

#include "stoker/context.h"
#include "stoker/error.h"

struct stk_watch;

/* Where a run stands. */
struct stk_watch_now {
    double seconds;
    double busy;       /* of the last second; < 0: no GPU is seen */
    double samples_s;  /* < 0: not known */
    const char *waits; /* words: what the largest part of the idle time went to; "" for none */
    uint64_t memory_bytes, gpu_memory_bytes;
};

struct stk_watch_options {
    const char *const *command; /* NULL-terminated; NULL: this process itself is watched */
    const char *trace_path;     /* NULL: no trace */
    uint64_t trace_bytes;       /* at most so large; 0: 64 MiB */
    uint64_t seconds;           /* watch so long; the command goes on to its end. 0: to its end */
    uint32_t stack_hz;          /* 0: 100; UINT32_MAX: no stacks */
    int every_kernel;           /* else until that would cost the script too much */
    const char *replay;         /* run file whose loaders are replayed from memory; NULL: none */
    /* Called four times a second from the collector; NULL: none. */
    void (*live)(void *user, const struct stk_watch_now *now);
    void *user;
};

struct stk_watch_exit {
    int status; /* of the command, if it ended by itself */
    int signal; /* else the signal that ended it */
};

STK_API STK_CHECK stk_status stk_watch_open(struct stk_watch **out, struct stk_context *context,
                                            const struct stk_watch_options *options,
                                            struct stk_error *err);
/* Runs the command to its end. SIGINT and SIGQUIT reach it from the terminal as they would without
 * us; SIGTERM and SIGHUP are passed on. */
STK_API STK_CHECK stk_status stk_watch_run(struct stk_watch *watch, struct stk_watch_exit *out,
                                           struct stk_error *err);
/* The folder that STOKER_WATCH names to watched processes. Lives as long as the watch. */
STK_API const char *stk_watch_folder(const struct stk_watch *watch);
/* Ends watching. *run: the run file, JSON; *words: the verdict for a terminal. Both NUL-terminated,
 * the watch's own until it is closed. what_if: the run file of a replay, or NULL. */
STK_API STK_CHECK stk_status stk_watch_finish(struct stk_watch *watch, const char *what_if,
                                              const char **run, const char **words,
                                              struct stk_error *err);
STK_API void stk_watch_close(struct stk_watch *watch); /* NULL is fine; removes the folder */

#endif
