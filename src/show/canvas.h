/* canvas.h -- RGB pixels in memory, and what can be drawn on them.
 * Owns: its pixels.   Threads: one at a time.   Errors: STK_MEMORY; what lies outside is not drawn.
 * Not here: what is drawn where (sheet_draw.c), letters (bitmap_font.h). */
#ifndef SHOW_CANVAS_H
#define SHOW_CANVAS_H

#include <stdint.h>

#include "stoker/error.h"

struct canvas {
    uint8_t *pixels; /* RGB, rows without gaps */
    int32_t width, height;
};
struct box {
    int32_t x, y, width, height;
};
typedef uint32_t color; /* 0xRRGGBB */

STK_CHECK stk_status canvas_init(struct canvas *canvas, int32_t width, int32_t height,
                                 struct stk_error *err);
void canvas_reset(struct canvas *canvas); /* zeroed is fine */

void canvas_fill(struct canvas *canvas, struct box box, color color);
/* The border of a box, `thick` pixels wide, inside it. */
void canvas_frame(struct canvas *canvas, struct box box, int32_t thick, color color);
/* share: 0 leaves the pixel, 1 paints it over. */
void canvas_blend(struct canvas *canvas, int32_t x, int32_t y, color color, double share);
/* Smooth, one pixel wide; what lies outside `within` is not drawn. */
struct point {
    double x, y;
};
void canvas_line(struct canvas *canvas, struct box within, struct point from, struct point to,
                 color color);
void canvas_disc(struct canvas *canvas, struct box within, struct point at, double radius,
                 color color);
/* RGB pixels, rows without gaps. */
void canvas_copy(struct canvas *canvas, int32_t x, int32_t y, const uint8_t *rgb, int32_t width,
                 int32_t height);

/* Letters of scale * 7 pixels. Bytes that are no printable ASCII are drawn as '?'. */
struct text_style {
    int32_t scale;
    color color;
};
int32_t text_width(const char *text, size_t len, int32_t scale);
int32_t text_height(int32_t scale); /* of a line, with the space under it */
/* How many bytes of text have room; a cut one is drawn with ".." at its end. Returns its width. */
int32_t canvas_text(struct canvas *canvas, int32_t x, int32_t y, int32_t room, const char *text,
                    struct text_style style);
/* Broken into lines at spaces, as many as have room. Returns the height that was used. canvas NULL:
 * only measured. */
int32_t canvas_wrapped(struct canvas *canvas, struct box box, const char *text,
                       struct text_style style);

#endif
