/* png_write.h -- pixels -> a PNG file in memory. The same pixels give the same bytes.
 * Owns: nothing.   Threads: any.   Errors: status, words in nullable *err.   Not here: decoding
 * (codec/png_image.c). */
#ifndef PACK_PNG_WRITE_H
#define PACK_PNG_WRITE_H

#include <stdint.h>

#include "stoker/error.h"

#include "base/text.h"

struct png_picture {
    const uint8_t *pixels; /* rows one behind the other, channels interleaved */
    uint32_t width, height;
    uint32_t channels; /* 1: grey, 3: R, G, B, 4: with alpha */
};

/* level: of zlib, 0 .. 9. Adds the file to `to`, whose `failed` tells when memory ran out. */
STK_CHECK stk_status png_write(const struct png_picture *picture, int level, struct text *to,
                               struct stk_error *err);
/* STK_UNSUPPORTED where this build cannot write PNG. */
STK_CHECK stk_status png_write_check(struct stk_error *err);

#endif
