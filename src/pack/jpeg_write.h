/* jpeg_write.h -- pixels -> a JPEG file in memory. The same pixels give the same bytes.
 * Owns: the library's state; the file is the caller's.   Threads: one at a time for one writer.
 * Errors: status, words in nullable *err.   Not here: decoding (codec/jpeg_image.c). */
#ifndef PACK_JPEG_WRITE_H
#define PACK_JPEG_WRITE_H

#include <stdint.h>

#include "stoker/error.h"

#include "base/text.h"

#define JPEG_SIDE_LIMIT 65500 /* of a JPEG, by the library */

struct jpeg_writer;

struct jpeg_image {
    const uint8_t *pixels;  /* three bytes a pixel, rows one behind the other */
    uint32_t width, height; /* 1 .. JPEG_SIDE_LIMIT */
    int is_ycc;             /* not 0: Y, Cb, Cr of JFIF, stored as they are; else R, G, B */
};

struct jpeg_write_options {
    int quality;     /* 1 .. 100 */
    int subsampling; /* 420 or 444 */
    int progressive;
};

STK_CHECK stk_status jpeg_writer_new(struct jpeg_writer **out, struct stk_error *err);
void jpeg_writer_free(struct jpeg_writer *writer); /* NULL is fine */
/* Adds the file to `to`, whose `failed` tells when memory ran out. */
STK_CHECK stk_status jpeg_writer_add(struct jpeg_writer *writer, const struct jpeg_image *image,
                                     const struct jpeg_write_options *options, struct text *to,
                                     struct stk_error *err);

#endif
