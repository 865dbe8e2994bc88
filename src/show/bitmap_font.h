/* bitmap_font.h -- a small font of fixed width: 5 x 7 pixels a letter, and 2 rows for descenders.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: drawing (canvas.h). */
#ifndef SHOW_BITMAP_FONT_H
#define SHOW_BITMAP_FONT_H

#include <stdint.h>

#define FONT_WIDTH 5
#define FONT_HEIGHT 9

/* FONT_HEIGHT rows from the top, the leftmost pixel in bit 4. What is no printable ASCII is '?'. */
const uint8_t *font_glyph(char letter);

#endif
