/* plot.h -- numbers drawn as lines, waves, maps of colours and clouds of points.
 * Owns: nothing.   Threads: any.   Errors: none; values that are not finite are left out.
 * Not here: pixels (picture.h), which values get which plot (cell_draw.c). */
#ifndef SHOW_PLOT_H
#define SHOW_PLOT_H

#include "show/canvas.h"

#define PLOT_PAPER 0xffffff
#define PLOT_NIGHT 0x11151d /* behind points */

/* Values of `lines` lines of `count` each: values[line * line_step + i * step]. */
struct plot_lines {
    const float *values;
    int64_t count, lines;
    int64_t step, line_step;
};
/* Lines over one common range, each of its own colour. */
void plot_lines(struct canvas *canvas, struct box box, const struct plot_lines *lines);
/* A wave a line, one under the other, all on one scale around 0: -1 to 1, or wider where values
 * are; quiet ones are enlarged. */
void plot_waves(struct canvas *canvas, struct box box, const struct plot_lines *lines);

/* Row 0 at the top, or at the bottom (frequencies); stretched over the whole box. */
enum plot_rows { PLOT_ROWS_DOWN, PLOT_ROWS_UP };
void plot_map(struct canvas *canvas, struct box box, const float *values, int64_t rows,
              int64_t columns, enum plot_rows order);

/* (count, columns): x to the right, y up, seen from above; colour by z, the third column. */
void plot_points(struct canvas *canvas, struct box box, const float *values, int64_t count,
                 int64_t columns);

#endif
