/* spool_folder.h -- a folder of this machine's for what is on its way to a site.
 * Owns: the folder; nothing of it is left after spool_folder_close.   Threads: one.   Errors:
 * status; words say which variable chooses another place.   Not here: what lies in it. */
#ifndef PACK_SPOOL_FOLDER_H
#define PACK_SPOOL_FOLDER_H

#include <limits.h>

#include "stoker/error.h"

struct spool_folder {
    char path[PATH_MAX]; /* "" : not made */
    int fd;              /* locked: somebody is at work in it */
};

/* Under $TMPDIR, else /var/tmp: /tmp may be memory. What processes that were killed left there of
 * this kind is removed. */
STK_CHECK stk_status spool_folder_open(struct spool_folder *folder, struct stk_error *err);
/* Removes it and what lies in it, two levels deep. A zeroed one is fine. */
void spool_folder_close(struct spool_folder *folder);

#endif
