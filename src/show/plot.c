#include "show/plot.h"

#include <math.h>

#include "show/color_map.h"

#define WAVE_INK 0x2d6fb0
#define AXIS_INK 0xd5d9de
#define QUIET 0.1         /* waves below it are enlarged */
#define MANY_POINTS 20000 /* then each is one pixel */

struct range {
    double least, most;
};

static void range_add(struct range *range, double value)
{
    if (isfinite(value)) {
        range->least = value < range->least ? value : range->least;
        range->most = value > range->most ? value : range->most;
    }
}

/* Where a value lies in it: 0 to 1; the middle of a range of one value. */
static double range_share(const struct range *range, double value)
{
    double width = range->most - range->least;
    return width > 0 ? (value - range->least) / width : 0.5;
}

static struct range range_of_lines(const struct plot_lines *lines)
{
    struct range range = {INFINITY, -INFINITY};
    for (int64_t line = 0; line < lines->lines; line++)
        for (int64_t i = 0; i < lines->count; i++)
            range_add(&range, lines->values[line * lines->line_step + i * lines->step]);
    return range;
}

/* --- lines ------------------------------------------------------------------------------------ */

static struct box shrink(struct box box, int32_t by)
{
    return (struct box){box.x + by, box.y + by, box.width - 2 * by, box.height - 2 * by};
}

/* The least and the most of the values behind each column of pixels: nothing of a long line is
 * lost. */
static void draw_envelope(struct canvas *canvas, struct box box, const struct plot_lines *lines,
                          int64_t line, const struct range *range, color color)
{
    const float *values = lines->values + line * lines->line_step;
    for (int32_t x = 0; x < box.width; x++) {
        int64_t first = lines->count * x / box.width, end = lines->count * (x + 1) / box.width;
        struct range here = {INFINITY, -INFINITY};
        for (int64_t i = first; i < end || i == first; i++)
            range_add(&here, values[i * lines->step]);
        if (here.least > here.most)
            continue;
        double top = box.y + (1 - range_share(range, here.most)) * (box.height - 1);
        double bottom = box.y + (1 - range_share(range, here.least)) * (box.height - 1);
        canvas_line(canvas, box, (struct point){box.x + x, top},
                    (struct point){box.x + x, bottom + 0.5}, color);
    }
}

static void draw_line(struct canvas *canvas, struct box box, const struct plot_lines *lines,
                      int64_t line, const struct range *range, color color)
{
    const float *values = lines->values + line * lines->line_step;
    struct point before = {NAN, NAN};
    for (int64_t i = 0; i < lines->count; i++) {
        double value = values[i * lines->step];
        double across = lines->count > 1 ? (double)i / (double)(lines->count - 1) : 0.5;
        struct point now = {box.x + across * (box.width - 1),
                            box.y + (1 - range_share(range, value)) * (box.height - 1)};
        if (!isfinite(value))
            now = (struct point){NAN, NAN};
        else if (isfinite(before.x))
            canvas_line(canvas, box, before, now, color);
        if (isfinite(now.x) && lines->count <= 64)
            canvas_disc(canvas, box, now, 1.5, color);
        before = now;
    }
}

static void draw_axis(struct canvas *canvas, struct box box, const struct range *range)
{
    double share = range_share(range, 0);
    if (share >= 0 && share <= 1)
        canvas_fill(canvas,
                    (struct box){box.x, box.y + (int32_t)lrint((1 - share) * (box.height - 1)),
                                 box.width, 1},
                    AXIS_INK);
}

void plot_lines(struct canvas *canvas, struct box box, const struct plot_lines *lines)
{
    struct range range = range_of_lines(lines);
    canvas_fill(canvas, box, PLOT_PAPER);
    if (range.least > range.most)
        return;
    struct box inner = shrink(box, box.width / 16 + 1);
    draw_axis(canvas, inner, &range);
    for (int64_t line = 0; line < lines->lines; line++)
        if (lines->count > 2 * inner.width)
            draw_envelope(canvas, inner, lines, line, &range, color_of_class((uint64_t)line));
        else
            draw_line(canvas, inner, lines, line, &range, color_of_class((uint64_t)line));
}

void plot_waves(struct canvas *canvas, struct box box, const struct plot_lines *lines)
{
    struct range found = range_of_lines(lines);
    double peak = fabs(found.least) > fabs(found.most) ? fabs(found.least) : fabs(found.most);
    canvas_fill(canvas, box, PLOT_PAPER);
    if (found.least > found.most)
        return;
    double scale = peak > 1 || (peak < QUIET && peak > 0) ? peak : 1;
    struct range range = {-scale, scale};
    for (int64_t line = 0; line < lines->lines; line++) {
        int32_t top = (int32_t)(box.height * line / lines->lines);
        int32_t bottom = (int32_t)(box.height * (line + 1) / lines->lines);
        struct box lane = {box.x + 4, box.y + top + 3, box.width - 8, bottom - top - 6};
        if (lane.height < 3 || lane.width < 3)
            continue;
        if (line)
            canvas_fill(canvas, (struct box){box.x, box.y + top, box.width, 1}, AXIS_INK);
        draw_axis(canvas, lane, &range);
        draw_envelope(canvas, lane, lines, line, &range, WAVE_INK);
    }
}

/* --- maps ------------------------------------------------------------------------------------- */

/* The values behind one pixel of `size` pixels. */
static void span(int64_t count, int32_t at, int32_t size, int64_t *first, int64_t *end)
{
    *first = count * at / size;
    *end = count * (at + 1) / size;
    if (*end <= *first)
        *end = *first + 1;
}

void plot_map(struct canvas *canvas, struct box box, const float *values, int64_t rows,
              int64_t columns, enum plot_rows order)
{
    struct range range = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < rows * columns; i++)
        range_add(&range, values[i]);
    for (int32_t y = 0; y < box.height; y++)
        for (int32_t x = 0; x < box.width; x++) {
            int64_t top, bottom, left, right, n = 0;
            double sum = 0;
            span(rows, order == PLOT_ROWS_UP ? box.height - 1 - y : y, box.height, &top, &bottom);
            span(columns, x, box.width, &left, &right);
            for (int64_t row = top; row < bottom; row++)
                for (int64_t column = left; column < right; column++)
                    if (isfinite(values[row * columns + column])) {
                        sum += values[row * columns + column];
                        n++;
                    }
            double share = n ? range_share(&range, sum / (double)n) : NAN;
            canvas_fill(canvas, (struct box){box.x + x, box.y + y, 1, 1}, color_of_share(share));
        }
}

/* --- points ----------------------------------------------------------------------------------- */

void plot_points(struct canvas *canvas, struct box box, const float *values, int64_t count,
                 int64_t columns)
{
    struct range ranges[3] = {{INFINITY, -INFINITY}, {INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
    canvas_fill(canvas, box, PLOT_NIGHT);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < 3 && c < columns; c++)
            range_add(&ranges[c], values[i * columns + c]);
    if (columns < 2 || ranges[0].least > ranges[0].most || ranges[1].least > ranges[1].most)
        return;
    struct box inner = shrink(box, box.width / 20 + 1);
    double wide = ranges[0].most - ranges[0].least, high = ranges[1].most - ranges[1].least;
    double widest = wide > high ? wide : high; /* one scale for both: shapes stay what they are */
    double scale = widest > 0 ? (inner.width - 1) / widest : 1;
    double left = inner.x + (inner.width - 1 - wide * scale) / 2;
    double bottom = inner.y + (inner.height - 1 + high * scale) / 2;
    for (int64_t i = 0; i < count; i++) {
        const float *point = values + i * columns;
        struct point at = {left + (point[0] - ranges[0].least) * scale,
                           bottom - (point[1] - ranges[1].least) * scale};
        if (!isfinite(at.x) || !isfinite(at.y))
            continue;
        double share = columns > 2 ? range_share(&ranges[2], point[2]) : 1;
        color ink = color_of_share(0.15 + 0.85 * share); /* the darkest would be lost at night */
        if (count > MANY_POINTS)
            canvas_blend(canvas, (int32_t)lrint(at.x), (int32_t)lrint(at.y), ink, 0.8);
        else
            canvas_disc(canvas, inner, at, 0.8, ink);
    }
}
