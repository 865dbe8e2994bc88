/* jpeg_tail.h -- a JPEG that begins further down: what is put before the rest of a scan, so that a
 * decoder may begin there.
 * Owns: nothing.   Threads: any.   Errors: 0 where it cannot be made; then the JPEG is to be read
 * as it is.   Not here: finding the place (jpeg_skim.h). */
#ifndef CODEC_JPEG_TAIL_H
#define CODEC_JPEG_TAIL_H

#include "codec/jpeg_skim.h"

#define JPEG_TAIL_ROOM 8192

struct jpeg_tail {
    size_t rest; /* where the scan's bytes go on behind those made here */
    size_t len;
    uint8_t bytes[JPEG_TAIL_ROOM];
};

/* Makes a row of MCUs in the scan's own codes. It is no picture, and to be skipped: it leaves the
 * decoder's sums of DC, and its place in a byte, as the rows above the place would have. For scans
 * without restart markers. */
STK_CHECK int jpeg_tail_make(struct jpeg_tail *tail, const struct jpeg_skim *skim,
                             const struct jpeg_scan *scan, const struct jpeg_place *place);

/* Where in the header the image's height is, as two bytes. scan_at: where the scan begins, as a
 * decoder found it. 0: there is more between the segments than segments. */
STK_CHECK int jpeg_height_find(const struct stk_bytes *bytes, size_t scan_at, size_t *at);

#endif
