/* color_map.h -- numbers as colours.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: which numbers (plot.h). */
#ifndef SHOW_COLOR_MAP_H
#define SHOW_COLOR_MAP_H

#include "show/canvas.h"

/* 0 is dark violet, then blue, green, 1 yellow: evenly brighter, and readable without red and
 * green. What is outside is cut; not-a-number is grey. */
color color_of_share(double share);
/* One of 12 colours that are easily told apart; the 13th is the first again. */
color color_of_class(uint64_t number);

#endif
