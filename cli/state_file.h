/* state_file.h -- where `stoker stream` stopped: the loader's state, and the run's first epoch.
 * The file has two lines: "stoker-state 1 first_epoch N" (and " digest A B N" where a digest ran
 * along), then the loader's state as it gave it.
 * Owns: nothing.   Threads: any.   Errors: words on standard error and EXIT_FAILED.
 * Not here: what the second line means (stoker/loader.h). */
#ifndef CLI_STATE_FILE_H
#define CLI_STATE_FILE_H

#include "stoker/digest.h"
#include "stoker/loader.h"

struct state_file {
    uint64_t first_epoch;
    int has_digest; /* not 0: digest is of all that the run delivered so far */
    struct stk_digest digest;
    char text[STK_STATE_CAP];
};

int state_file_read(const char *path, struct state_file *state);
int state_file_write(const char *path, const struct state_file *state);

#endif
