/* media_sniff.h -- what encoded bytes are, by how they begin.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: decoding. */
#ifndef CODEC_MEDIA_SNIFF_H
#define CODEC_MEDIA_SNIFF_H

#include "stoker/bytes.h"
#include "stoker/media.h"

/* TENSOR: an .npy array, or nothing that is known. */
enum stk_media media_sniff(const struct stk_bytes *bytes);
/* Words for a user who gave bytes of the wrong kind: "a PNG image", "an HTML page", "0 bytes". */
const char *media_looks_like(const struct stk_bytes *bytes);

#endif
