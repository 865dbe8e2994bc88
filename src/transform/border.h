/* border.h -- a window of an image that may reach outside it: there it shows one colour, or the
 * image's own pixels, repeated or mirrored, as numpy.pad has them.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: crops that are folded into the
 * decoding of an image (image_geometry.h). */
#ifndef TRANSFORM_BORDER_H
#define TRANSFORM_BORDER_H

#include "transform/pixels.h"

enum border_mode { BORDER_CONSTANT, BORDER_EDGE, BORDER_REFLECT, BORDER_SYMMETRIC };
#define BORDER_CHOICES "constant|edge|reflect|symmetric"

struct border {
    enum border_mode mode;
    int64_t x, y;    /* pixel (0, 0) of the window, in pixels of the image */
    uint8_t fill[4]; /* CONSTANT: one a channel */
};
/* from: at least one pixel, unless CONSTANT. to: of the window's size, and from's channels. */
void border_run(const struct border *border, struct pixels from, struct pixels to);

#endif
