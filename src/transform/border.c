#include "transform/border.h"

#include <string.h>

/* The pixel of len that stands at place `at`, which may lie outside; -1: fill. */
static int64_t border_source(enum border_mode mode, int64_t at, int64_t len)
{
    if (at >= 0 && at < len)
        return at;
    if (mode == BORDER_CONSTANT)
        return -1;
    if (mode == BORDER_EDGE)
        return at < 0 ? 0 : len - 1;
    int64_t period = mode == BORDER_REFLECT ? 2 * (len - 1) : 2 * len;
    if (!period)
        return 0;
    at = (at % period + period) % period;
    return at < len ? at : period - at - (mode == BORDER_SYMMETRIC);
}

static int64_t within(int64_t at, int64_t least, int64_t most)
{
    return at < least ? least : at > most ? most : at;
}

/* Columns [first, stop) of a row of the window, beside the image. from NULL: all of it is fill. */
static void border_side(const struct border *border, struct pixels image, const uint8_t *from,
                        uint8_t *to, int64_t first, int64_t stop)
{
    int64_t channels = image.channels;
    for (int64_t x = first; x < stop; x++) {
        int64_t source = from ? border_source(border->mode, border->x + x, image.width) : -1;
        memcpy(to + x * channels, source < 0 ? border->fill : from + source * channels,
               (size_t)channels);
    }
}

void border_run(const struct border *border, struct pixels from, struct pixels to)
{
    int64_t channels = from.channels;
    int64_t first = within(-border->x, 0, to.width);
    int64_t stop = within(from.width - border->x, first, to.width);
    for (int64_t y = 0; y < to.height; y++) {
        uint8_t *row = to.data + y * to.width * channels;
        int64_t source = border_source(border->mode, border->y + y, from.height);
        if (source < 0) {
            border_side(border, from, NULL, row, 0, to.width);
            continue;
        }
        const uint8_t *line = from.data + source * from.width * channels;
        border_side(border, from, line, row, 0, first);
        if (first < stop)
            memcpy(row + first * channels, line + (border->x + first) * channels,
                   (size_t)((stop - first) * channels));
        border_side(border, from, line, row, stop, to.width);
    }
}
