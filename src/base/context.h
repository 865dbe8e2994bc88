/* context.h -- the inside of struct stk_context, and how its hooks are called.
 * Owns: nothing; see stoker/context.h.   Threads: read-only and shared by all; one job's
 * context_timer belongs to the thread that reports.   Errors: none.   Not here: making one
 * (dataset/context.c). */
#ifndef BASE_CONTEXT_H
#define BASE_CONTEXT_H

#include <stdarg.h>
#include <stdio.h>

#include "stoker/context.h"

#include "base/clock.h"

struct transform_registry; /* transform/plugin_transform.h */

struct stk_context {
    struct stk_hooks hooks;
    struct transform_registry *plugins; /* of plugins; NULL: none */
};

/* When a job last reported; all zero at first. */
struct context_timer {
    int64_t last;
};

/* Calls the progress hook, at most ten times a second but always when done == total > 0. Not 0: the
 * user wants the job to stop. A NULL context has no hooks. */
static inline int context_progress(const struct stk_context *context, struct context_timer *timer,
                                   const struct stk_progress *progress)
{
    if (!context || !context->hooks.progress)
        return 0;
    int64_t now = clock_now();
    int finished = progress->total && progress->done == progress->total;
    if (!finished && timer->last && now - timer->last < 100000000)
        return 0;
    timer->last = now;
    return context->hooks.progress(context->hooks.user, progress);
}

static inline void context_notice(const struct stk_context *context, const char *format, ...)
    STK_PRINTF(2, 3);
static inline void context_notice(const struct stk_context *context, const char *format, ...)
{
    char text[1024];
    va_list list;
    if (!context || !context->hooks.notice)
        return;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    context->hooks.notice(context->hooks.user, text);
}

#endif
