/* transform_options.h -- chains of transforms on the command line, and their list.
 * Owns: nothing; words point into argv.   Threads: one.   Errors: exit statuses; words on standard
 * error.   Not here: what a chain means (stoker/pipeline.h). */
#ifndef CLI_TRANSFORM_OPTIONS_H
#define CLI_TRANSFORM_OPTIONS_H

#include "stoker/loader.h"
#include "options.h"

#define TRANSFORM_CHAINS_MOST 64
#define TRANSFORM_HELP                                                                             \
    "what is done with a field: 'jpg: RandomResizedCrop(224) | Normalize(imagenet)'; see `stoker " \
    "help transforms`"

struct transform_arguments {
    struct option_list each; /* "FIELD: CHAIN" */
    struct option_list plugins;
    const char *batch;
};

/* Loads the plugins and takes "FIELD: CHAIN" apart, in place. 0, or an exit status. */
int transforms_read(const char *command, struct stk_context *context,
                    const struct transform_arguments *arguments,
                    struct stk_field_chain chains[TRANSFORM_CHAINS_MOST]);
/* The table of transforms on standard output. */
void transforms_print(struct stk_context *context, int json);

#endif
