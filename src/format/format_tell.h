/* format_tell.h -- tells the user how far a build is, at most ten times a second.
 * Owns: nothing.   Threads: the one that builds.   Errors: STK_CANCELLED when the user said stop.
 * Not here: the bar (cli). */
#ifndef FORMAT_FORMAT_TELL_H
#define FORMAT_FORMAT_TELL_H

#include <stdio.h>

#include "base/clock.h"
#include "base/fail.h"
#include "format/format.h"

struct format_tell {
    const struct format_input *input;
    const char *unit; /* "shards", "files" */
    int64_t last;     /* when it was told last */
};

static inline stk_status format_tell(struct format_tell *tell, uint64_t done, uint64_t bytes,
                                     struct stk_error *err)
{
    const struct stk_hooks *hooks = tell->input->hooks;
    uint64_t total = tell->input->object_count;
    if (!hooks->progress)
        return STK_OK;
    int64_t now = clock_now();
    if (now - tell->last < 100000000 && done < total)
        return STK_OK;
    tell->last = now;
    struct stk_progress progress = {"indexing", tell->unit, done, total, bytes};
    if (hooks->progress(hooks->user, &progress))
        return fail(err, STK_CANCELLED, "indexing was stopped");
    return STK_OK;
}

/* An object's whole path, for messages; cut when it does not fit. */
static inline const char *format_path(const struct format_input *input,
                                      const struct format_object *object, char *buf, size_t cap)
{
    if (!input->root[0] || object->name[0] == '/')
        return object->name;
    int len = snprintf(buf, cap, "%s/%s", input->root, object->name);
    return len < 0 ? object->name : buf;
}

#endif
