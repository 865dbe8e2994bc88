/* picture.h -- pixels of any type and layout, drawn into a box.
 * Owns: nothing.   Threads: one scratch a thread.   Errors: STK_MEMORY.
 * Not here: which values are pixels (cell_draw.c), plots of other values (plot.h). */
#ifndef SHOW_PICTURE_H
#define SHOW_PICTURE_H

#include "stoker/tensor.h"
#include "base/scratch.h"
#include "show/canvas.h"

/* One image inside a tensor; strides in elements. */
struct pixels {
    const void *data;
    enum stk_dtype dtype; /* not complex */
    int64_t width, height;
    int64_t channels; /* 1: grey; 3: RGB; 4: RGB and alpha; of others the first is drawn as grey */
    int64_t row, pixel, channel;
};

/* What makes levels of 0-255 of a channel's values: value * multiply + add. */
#define PICTURE_CHANNELS 8
struct pixel_levels {
    uint32_t count; /* 0: not known; then the values say it: uint8 as it is, 0-1 and 0-255 by their
                       range, all else stretched from its least to its most */
    double multiply[PICTURE_CHANNELS], add[PICTURE_CHANNELS];
};

/* In the middle of the box: as large as it has room, smaller ones by bilinear filtering, larger
 * ones by whole pixels. drawn: the part of the box that it took. */
STK_CHECK stk_status picture_draw(struct canvas *canvas, struct box box,
                                  const struct pixels *pixels, const struct pixel_levels *levels,
                                  struct scratch *scratch, struct stk_error *err);
/* The size that picture_draw would take. */
struct box picture_fit(struct box box, int64_t width, int64_t height);

#endif
