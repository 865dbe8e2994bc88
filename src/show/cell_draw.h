/* cell_draw.h -- one value of a sample drawn into its cell, as what it is.
 * Owns: nothing.   Threads: one scratch a thread.   Errors: STK_MEMORY, and STK_UNSUPPORTED or
 * STK_SHAPE for what cannot be drawn.   Not here: where cells lie (sheet_draw.c).
 *
 * Images as they are; of a video some frames; audio as waves, or as a map of its spectrum; points
 * from above; other tensors as an image where they look like one, as lines, or as a map. */
#ifndef SHOW_CELL_DRAW_H
#define SHOW_CELL_DRAW_H

#include "stoker/media.h"
#include "show/picture.h"

/* levels: what makes 0-255 of the values of images and videos. */
STK_CHECK stk_status cell_draw(struct canvas *canvas, struct box box, const struct stk_flow *flow,
                               const struct pixel_levels *levels, struct scratch *scratch,
                               struct stk_error *err);
/* "1x16000 float32, 16 kHz" */
void cell_describe(const struct stk_flow *flow, char *text, size_t cap);

#endif
