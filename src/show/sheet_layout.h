/* sheet_layout.h -- where everything on a contact sheet lies.
 * Owns: nothing.   Threads: any.   Errors: STK_USAGE for a sheet that would be too large.
 * Not here: drawing (sheet_draw.c). */
#ifndef SHOW_SHEET_LAYOUT_H
#define SHOW_SHEET_LAYOUT_H

#include "stoker/show.h"
#include "show/canvas.h"

struct sheet_layout {
    int32_t width, height, cell, columns;
    int32_t margin, gap; /* around samples; between a stored one and a transformed one */
    int32_t tile_width, tile_height, head_height;
    int32_t caption;            /* where it begins, from the top of its sample on */
    int32_t large, small, info; /* scales of text: of keys, of what is long, of shapes */
};

/* Sizes and columns; height is not known yet. */
void sheet_layout_tiles(struct sheet_layout *layout, const struct stk_show_options *options);
/* head: how high the lines above the samples are, at the width that is known now. */
STK_CHECK stk_status sheet_layout_finish(struct sheet_layout *layout, int32_t head, uint32_t count,
                                         struct stk_error *err);
struct box sheet_layout_before(const struct sheet_layout *layout, uint32_t number);
struct box sheet_layout_after(const struct sheet_layout *layout, uint32_t number);

#endif
