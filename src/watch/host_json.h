/* host_json.h -- the part of the run file that tells what the host did: processes,
 * threads, disks and network, GPUs.
 * Owns: nothing.   Threads: any.   Errors: those of the pen.   Not here: the rest of the run file
 * (summary_json.h). */
#ifndef WATCH_HOST_JSON_H
#define WATCH_HOST_JSON_H

#include "watch/json_pen.h"
#include "watch/summary.h"

/* Members of the object that is open. What was not told is null. */
void host_json_put(struct json_pen *pen, const struct summary *summary);

#endif
