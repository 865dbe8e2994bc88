/* check.h -- what this machine and this build can do.
 * Owns: nothing.   Threads: any.   Errors: none; what cannot be found out is a row that says so.
 * Not here: the state of one dataset (dataset.h). */
#ifndef STOKER_CHECK_H
#define STOKER_CHECK_H

#include "stoker/context.h"

enum stk_check_state { STK_CHECK_GOOD, STK_CHECK_ABSENT, STK_CHECK_WARN };

struct stk_check_row {
    const char *group; /* "machine", "limits", "io", "gpu", "libraries", "formats", "codecs" */
    const char *name;  /* "io_uring" */
    enum stk_check_state state;
    const char *value;  /* "kernel 6.1, 64 entries" */
    const char *remedy; /* "" when there is nothing to do */
};

/* Calls row for each finding, groups together. What row is given lives until it returns. */
STK_API void stk_check(struct stk_context *context,
                       void (*row)(void *user, const struct stk_check_row *row), void *user);

#endif
