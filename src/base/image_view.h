/* image_view.h -- pixels in memory: what a decoder hands to the resampler.
 * Owns: nothing; the pixels belong to whoever decoded them.   Threads: any.   Errors: none.
 * Not here: how they are decoded (codec/image_codec.h), or resized (transform/image_resample.h). */
#ifndef BASE_IMAGE_VIEW_H
#define BASE_IMAGE_VIEW_H

#include <stdint.h>

/* uint8, channels interleaved. Row y begins at pixels + y * stride. At least 16 bytes behind the
 * last pixel may be read. */
struct image_view {
    const uint8_t *pixels;
    int64_t stride; /* bytes from row to row */
    int32_t width, height;
    int32_t channels; /* 1 to 4 */
    /* The part that was asked for, in pixels of this view: (0, 0, width, height), or a part with
     * fractions when the decoder scaled the image down by itself. */
    double x0, y0, x1, y1;
};

#endif
