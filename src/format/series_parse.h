/* series_parse.h -- the text of metadata.json into a struct series_meta.
 * Owns: nothing.   Threads: any.   Errors: see series_meta.h.   Not here: files (series_meta.h). */
#ifndef FORMAT_SERIES_PARSE_H
#define FORMAT_SERIES_PARSE_H

#include <stddef.h>

#include "format/series_meta.h"

#define SERIES_FORMAT "stoker series"
#define SERIES_VERSION 1
#define SERIES_MOST (UINT64_C(1) << 62) /* rows: sums of two such numbers fit */

struct series_text {
    const char *data;
    size_t len;
    const char *path;     /* for messages */
    uint64_t array_bytes; /* of the array: its rows where the text does not say; STK_NOWHERE: not
                             known, then up to the last entity's end */
};

STK_CHECK stk_status series_parse(struct series_meta *meta, const struct series_text *from,
                                  struct stk_error *err);

#endif
