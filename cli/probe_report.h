/* probe_report.h -- `stoker check URI` of data on the network: each step of the look, and a curve
 * of speeds by the number of requests at a time. Owns: nothing.   Threads: any.   Errors: in words
 * on standard output, and the exit status.   Not here: the looking (stoker/remote.h). */
#ifndef CLI_PROBE_REPORT_H
#define CLI_PROBE_REPORT_H

#include "stoker/remote.h"

#include "options.h"

/* Looks at every word of the arguments; returns the exit status. */
int probe_report(struct stk_context *context, const struct arguments *arguments);

#endif
