/* image_codec.h -- encoded images -> pixels: JPEG, PNG, WebP, told apart by content.
 * Owns: a decoder owns its libraries' handles and its pixel memory.   Threads: one a decoder.
 * Errors: status, words; the caller adds object and sample.   Not here: resizing (transform/). */
#ifndef CODEC_IMAGE_CODEC_H
#define CODEC_IMAGE_CODEC_H

#include <stdatomic.h>

#include "stoker/bytes.h"
#include "stoker/error.h"
#include "base/image_view.h"

enum image_channels {
    IMAGE_CHANNELS_RGB,
    IMAGE_CHANNELS_GRAY,
    IMAGE_CHANNELS_RGBA,
    IMAGE_CHANNELS_KEEP
};

struct image_limits {
    uint64_t max_pixels; /* of the whole image; 0: 179 million */
    uint32_t max_scans;  /* of a progressive JPEG; 0: 500 */
    int64_t max_ns;      /* time for one image; 0: 10 seconds */
    int relaxed;         /* a damaged end is filled with grey and not an error */
    /* Not 0 there: nobody wants the image any more, and decoding ends as if its time were up. NULL:
     * that never happens. */
    const _Atomic int *stop;
};

struct image_header {
    const char *format;    /* "jpeg", "png", "webp" */
    int32_t width, height; /* upright: after the EXIF orientation */
    int32_t channels; /* as stored: 1, 3 or 4 (a palette: 3 or 4; grey with alpha: 4; CMYK: 3) */
    int bits;         /* 8 or 16 */
};

/* What is wanted of the image that begin has looked at. */
struct image_want {
    enum image_channels channels;
    int32_t x, y, width, height; /* box of the upright image */
    /* Not 0: the box may come smaller, by whatever the format scales at little cost, but not below
     * this size. */
    int32_t least_width, least_height;
};

struct image_decoder;
STK_CHECK stk_status image_decoder_new(struct image_decoder **out, struct stk_error *err);
void image_decoder_free(struct image_decoder *decoder);            /* NULL is fine */
uint64_t image_decoder_bytes(const struct image_decoder *decoder); /* memory it holds */

/* Looks at the header. bytes must stay as they are until read, or until the next begin. */
STK_CHECK stk_status image_begin(struct image_decoder *decoder, const struct stk_bytes *bytes,
                                 const struct image_limits *limits, struct image_header *header,
                                 struct stk_error *err);
/* Decodes what is wanted, once for each begin. The view lives until the next begin. With an exact
 * box view->x0.. is (0, 0, width, height); its pixels are those of a full decode, to one level.
 * 16 bits become 8 by their high byte; alpha over nothing is dropped for RGB. What follows the box
 * in the bytes is not looked at: damage there is not seen. */
STK_CHECK stk_status image_read(struct image_decoder *decoder, const struct image_want *want,
                                struct image_view *view, struct stk_error *err);

/* The formats by row: "jpeg", "png", "webp", then NULL. *remedy: NULL when this build decodes it,
 * else what to install. */
const char *image_format_at(uint32_t row, const char **remedy);

#endif
