/* exif.h -- finds the orientation that a camera wrote beside an image.
 * Owns: nothing.   Threads: any.   Errors: none: what is malformed counts as absent.
 * Not here: turning the pixels (image_turn.h). */
#ifndef CODEC_EXIF_H
#define CODEC_EXIF_H

#include "stoker/bytes.h"

/* 1 to 8 as in the Exif standard; 0 when there is none. bytes begin with the TIFF header, or with
 * "Exif" and two NULs before it. */
int exif_orientation(const struct stk_bytes *bytes);

#endif
