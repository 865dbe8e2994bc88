/* upload.h -- writes one object to a site, in parts: it is there whole, or not at all.
 * Owns: the parts on their way.   Threads: one at a time for one upload.   Errors: status; words
 * name the object.   Not here: what is written (pack/). */
#ifndef STORE_UPLOAD_H
#define STORE_UPLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

struct upload;

struct upload_options {
    uint64_t size;   /* if it is known; 0: not. Parts are sized so that the site's most suffice */
    uint64_t memory; /* most bytes of parts in flight; 0: 64 MiB */
    int only_new;    /* not 0: STK_MISMATCH where the object is there already */
    int resume;      /* not 0: parts of an upload that was broken off are used again where their
                        bytes are equal (by their tags) */
};
STK_CHECK stk_status upload_open(struct upload **out, const char *uri,
                                 const struct upload_options *options, struct stk_error *err);
/* In order. Waits while too much is in flight. */
STK_CHECK stk_status upload_write(struct upload *upload, const void *data, size_t length,
                                  struct stk_error *err);
/* Makes the object. On return it is there for all, or *err says why not. Frees the upload. */
STK_CHECK stk_status upload_finish(struct upload *upload, struct stk_error *err);
/* keep not 0: parts stay for a resume. Frees the upload; NULL is fine. */
void upload_abort(struct upload *upload, int keep);
/* A whole file. */
STK_CHECK stk_status upload_file(const char *uri, const char *path,
                                 const struct upload_options *options, struct stk_error *err);

#endif
