/* pack_upload.h -- shards on their way to a site: each is written to a file of this machine, and
 * uploaded by a thread of its own while the next one is written. A shard is there whole or not at
 * all; what was noted of a run that was broken off is not sent again.
 * Owns: its threads, the files, the notes (upload_notes.h).   Threads: one caller.   Errors: the
 * first upload's that failed, told by the next call.   Not here: what a shard holds (pack_tar.c).
 */
#ifndef PACK_PACK_UPLOAD_H
#define PACK_PACK_UPLOAD_H

#include <stdint.h>

#include "stoker/context.h"
#include "stoker/error.h"

#define PACK_UPLOADS 4 /* at a time; so many shards and one more lie on the disk */

struct pack_upload;

struct pack_upload_options {
    struct stk_context *context;
    const char *uri;
    const char *prefix; /* shards are PREFIX-0000.tar ... */
    uint32_t shards;    /* that will come */
    uint8_t source[16]; /* what they are made of, and how: another run's are not gone on with */
    int force;          /* not 0: shards that are there already are replaced */
};
/* STK_USAGE: there are shards already, or a run writes there, that is not like this one. From here
 * on the place is this run's: its notes say so. */
STK_CHECK stk_status pack_upload_open(struct pack_upload **out,
                                      const struct pack_upload_options *options,
                                      struct stk_error *err);
int pack_upload_folder(const struct pack_upload *upload);       /* for openat: files on their way */
const char *pack_upload_path(const struct pack_upload *upload); /* the same, for messages */
/* The URI that a shard will have, for messages; it lives as long as the upload. */
const char *pack_upload_label(struct pack_upload *upload, uint32_t number);
/* The file `name` in the folder is whole, and becomes shard `number`. Waits while too many are on
 * their way. */
STK_CHECK stk_status pack_upload_add(struct pack_upload *upload, uint32_t number, const char *name,
                                     struct stk_error *err);
/* Waits for all; removes shards of the prefix that are not of this run. */
STK_CHECK stk_status pack_upload_finish(struct pack_upload *upload, struct stk_error *err);
/* What is on its way is broken off, and noted. NULL is fine. */
void pack_upload_close(struct pack_upload *upload);

#endif
