/* staging.h -- a hidden folder inside the target, where files are written before they get their
 * names: they appear in the target only when all of them are whole.
 * Owns: the folder .NAME.part, locked against other processes.   Threads: open, publish and close
 * from one; staging_fd may be used by any.   Errors: status, words in nullable *err.
 * Not here: what the files hold. */
#ifndef PACK_STAGING_H
#define PACK_STAGING_H

#include "stoker/error.h"

struct staging;

/* Makes `target` where it is missing, and the folder in it. What a killed run left there is
 * removed. STK_BUSY: another process writes there under the same name. */
STK_CHECK stk_status staging_open(struct staging **out, const char *target, const char *name,
                                  struct stk_error *err);
int staging_fd(const struct staging *staging); /* of the hidden folder, for openat */
int staging_target_fd(const struct staging *staging);
const char *staging_target(const struct staging *staging); /* its path, without slashes behind */
/* The hidden folder's path, for those who cannot use openat. */
const char *staging_path(const struct staging *staging);
/* Gives a finished file its name in the target, replacing what is there. */
STK_CHECK stk_status staging_publish(struct staging *staging, const char *from, const char *to,
                                     struct stk_error *err);
/* Gives the hidden folder itself a name in the target: all of its files appear at once, or none. A
 * folder that has the name becomes the hidden one, and goes with staging_close; staging_fd is no
 * longer of use. What must be on disk before is the caller's to sync. */
STK_CHECK stk_status staging_become(struct staging *staging, const char *name,
                                    struct stk_error *err);
/* Removes what was not published; and the target, when staging_open made it and it is empty. NULL
 * is fine. */
void staging_close(struct staging *staging);

#endif
