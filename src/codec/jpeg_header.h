/* jpeg_header.h -- looks at a JPEG's header without a decoder: is it one of the plain kind that a
 * device's decoder takes?
 * Owns: nothing.   Threads: any.   Errors: STK_UNSUPPORTED, with the reason, for everything else:
 * it is for the CPU's decoder, which may still find it broken.   Not here: decoding
 * (image_codec.h). */
#ifndef CODEC_JPEG_HEADER_H
#define CODEC_JPEG_HEADER_H

#include "stoker/bytes.h"
#include "stoker/error.h"

struct jpeg_header {
    int32_t width, height;
    int32_t components;   /* 1: grey, 3: YCbCr */
    int32_t across, down; /* luma samples for one of chroma: 1x1, 2x1 or 2x2; grey: 1x1 */
};

/* Plain: baseline, sequential, Huffman, 8 bits, one scan; grey, or YCbCr of 4:4:4, 4:2:2 or 4:2:0;
 * upright; with its tables; and its end is there. */
STK_CHECK stk_status jpeg_header_read(const struct stk_bytes *bytes, struct jpeg_header *header,
                                      struct stk_error *err);

#endif
