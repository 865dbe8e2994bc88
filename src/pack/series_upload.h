/* series_upload.h -- a series that is packed on this machine and then sent to a site: the files
 * first, metadata.json last, so that there is a whole series or none.
 * Owns: the folder that it is packed in.   Threads: one.   Errors: STK_USAGE: there is a series
 * already.   Not here: packing (pack_series.c). */
#ifndef PACK_SERIES_UPLOAD_H
#define PACK_SERIES_UPLOAD_H

#include "stoker/context.h"
#include "stoker/error.h"

struct series_upload;

/* force not 0: a series that is there is replaced; between its end and the new one's beginning
 * there is none. */
STK_CHECK stk_status series_upload_open(struct series_upload **out, struct stk_context *context,
                                        const char *uri, int force, struct stk_error *err);
/* Where it is to be packed; not there yet. */
const char *series_upload_path(const struct series_upload *upload);
STK_CHECK stk_status series_upload_send(struct series_upload *upload, struct stk_error *err);
void series_upload_close(struct series_upload *upload); /* NULL is fine */

#endif
