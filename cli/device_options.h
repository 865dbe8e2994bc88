/* device_options.h -- --device and what goes with it.
 * Owns: nothing.   Threads: any.   Errors: words on standard error and EXIT_USAGE.
 * Not here: what they mean (stoker/loader.h). */
#ifndef CLI_DEVICE_OPTIONS_H
#define CLI_DEVICE_OPTIONS_H

#include "stoker/loader.h"

struct device_arguments {
    const char *name; /* "cpu", "cuda", "cuda:1", "auto"; NULL: cpu */
    uint64_t memory;
    int resident, decode; /* enum stk_resident, enum stk_decode */
};

/* Whether they go together. Returns an exit status. */
int device_options_check(const char *command, const struct device_arguments *arguments);
/* Only after the check. */
void device_options_put(const struct device_arguments *arguments,
                        struct stk_loader_options *options);

#endif
