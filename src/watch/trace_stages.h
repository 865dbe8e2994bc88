/* trace_stages.h -- reads what Stoker's own loaders traced of themselves (trace/trace.h), event by
 * event, so that it can be joined to the trace of the run.
 * Owns: nothing.   Threads: any.   Errors: none; a file or a line that does not fit is left out.
 * Not here: how such files come about (trace/trace.c). */
#ifndef WATCH_TRACE_STAGES_H
#define WATCH_TRACE_STAGES_H

#include <stdint.h>

#include "base/json.h"

struct stage_event {
    uint32_t pid, number;     /* of the process, and of the loader in it */
    uint64_t begun;           /* the moment that its times count from */
    const struct json *event; /* one of the format's; lives until the call returns */
};

/* Of the files "stages.PID.NUMBER.json" in the folder. */
void trace_stages_read(int folder, void (*take)(void *user, const struct stage_event *event),
                       void *user);

#endif
