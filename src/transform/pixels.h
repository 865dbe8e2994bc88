/* pixels.h -- what transforms of uint8 images share: the check of what goes in, and a plain view.
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE, words with a remedy.
 * Not here: crops and resizes (geometry_transform.c). */
#ifndef TRANSFORM_PIXELS_H
#define TRANSFORM_PIXELS_H

#include "stoker/error.h"
#include "stoker/media.h"

/* Rows of width * channels bytes, one behind the other. */
struct pixels {
    uint8_t *data;
    int64_t width, height;
    int64_t channels; /* 1 to 4 */
    int64_t colors;   /* of them: 1 (grey) or 3; the one behind them is alpha */
};

/* Of what one step makes: a thin line enlarged or turned is a fault of the data. */
#define PIXELS_MOST 179000000

/* uint8 with channels last, or a remedy: the step belongs before Normalize, Cast and Layout. */
STK_CHECK stk_status pixels_check(const char *name, const struct stk_flow *flow,
                                  struct stk_error *err);
/* The argument `fill`: one number, or one a channel. */
struct transform_list;
STK_CHECK stk_status pixels_fill_check(const char *name, const struct transform_list *fill,
                                       const struct stk_flow *flow, struct stk_error *err);
/* Its value for each of four channels. */
void pixels_fill(const struct transform_list *fill, uint8_t out[4]);
/* Of an image's (H, W, C). */
struct pixels pixels_of(const struct stk_flow *flow);
/* Height, width and channels of an image or video, whatever its layout; -1 where not known. */
void pixels_axes(const struct stk_flow *flow, int64_t *height, int64_t *width, int64_t *channels);

#endif
