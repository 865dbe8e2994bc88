/* image_turn.h -- between an image as it is stored and as it is to be seen, by Exif orientation.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: finding the orientation (exif.h). */
#ifndef CODEC_IMAGE_TURN_H
#define CODEC_IMAGE_TURN_H

#include "base/image_view.h"

/* A stored pixel (x, y) is the upright pixel (u, v): first mirrored, then axes swapped. */
struct image_turn {
    int mirror_x, mirror_y; /* of the stored image */
    int swap;               /* width and height change places */
};

/* orientation: 1 to 8; any other counts as 1. */
struct image_turn image_turn_of(int orientation);
int image_turn_is_none(const struct image_turn *turn);

/* A box [x, x + width) of the upright image becomes the box of the stored image, which is
 * stored_width x stored_height. In place. */
struct image_turn_box {
    int32_t x, y, width, height;
};
void image_turn_box(const struct image_turn *turn, int32_t stored_width, int32_t stored_height,
                    struct image_turn_box *box);

/* Writes the stored pixels of `from` upright to `to`, whose rows are to_stride bytes apart, and
 * makes *upright the view of them. */
void image_turn_pixels(const struct image_turn *turn, const struct image_view *from, uint8_t *to,
                       int64_t to_stride, struct image_view *upright);

#endif
