#include "codec/image_turn.h"

#include <string.h>

#define TILE 32 /* rows and columns turned at a time: both sides stay in the first cache */

struct image_turn image_turn_of(int orientation)
{
    static const struct image_turn turns[9] = {
        [2] = {.mirror_x = 1},
        [3] = {.mirror_x = 1, .mirror_y = 1},
        [4] = {.mirror_y = 1},
        [5] = {.swap = 1},
        [6] = {.mirror_y = 1, .swap = 1},
        [7] = {.mirror_x = 1, .mirror_y = 1, .swap = 1},
        [8] = {.mirror_x = 1, .swap = 1},
    };
    return turns[orientation >= 1 && orientation <= 8 ? orientation : 1];
}

int image_turn_is_none(const struct image_turn *turn)
{
    return !turn->mirror_x && !turn->mirror_y && !turn->swap;
}

void image_turn_box(const struct image_turn *turn, int32_t stored_width, int32_t stored_height,
                    struct image_turn_box *box)
{
    if (turn->swap)
        *box = (struct image_turn_box){box->y, box->x, box->height, box->width};
    if (turn->mirror_x)
        box->x = stored_width - box->x - box->width;
    if (turn->mirror_y)
        box->y = stored_height - box->y - box->height;
}

/* One row's worth of a tile: pixels of `size` bytes, from_step bytes apart at the source. */
static void turn_run(uint8_t *to, const uint8_t *from, int64_t from_step, int32_t count, int size)
{
    switch (size) {
    case 1:
        for (int32_t i = 0; i < count; i++)
            to[i] = from[i * from_step];
        return;
    case 3:
        for (int32_t i = 0; i < count; i++)
            memcpy(to + i * 3, from + i * from_step, 3);
        return;
    default:
        for (int32_t i = 0; i < count; i++)
            memcpy(to + i * 4, from + i * from_step, 4);
    }
}

void image_turn_pixels(const struct image_turn *turn, const struct image_view *from, uint8_t *to,
                       int64_t to_stride, struct image_view *upright)
{
    double x0 = turn->mirror_x ? from->width - from->x1 : from->x0;
    double x1 = turn->mirror_x ? from->width - from->x0 : from->x1;
    double y0 = turn->mirror_y ? from->height - from->y1 : from->y0;
    double y1 = turn->mirror_y ? from->height - from->y0 : from->y1;
    int32_t channels = from->channels;
    int64_t step_x = turn->mirror_x ? -channels : channels;
    int64_t step_y = turn->mirror_y ? -from->stride : from->stride;
    const uint8_t *first = from->pixels +
                           (turn->mirror_x ? (int64_t)(from->width - 1) * channels : 0) +
                           (turn->mirror_y ? (int64_t)(from->height - 1) * from->stride : 0);
    *upright = (struct image_view){.pixels = to,
                                   .stride = to_stride,
                                   .width = turn->swap ? from->height : from->width,
                                   .height = turn->swap ? from->width : from->height,
                                   .channels = channels,
                                   .x0 = turn->swap ? y0 : x0,
                                   .y0 = turn->swap ? x0 : y0,
                                   .x1 = turn->swap ? y1 : x1,
                                   .y1 = turn->swap ? x1 : y1};
    int64_t along = turn->swap ? step_y : step_x, down = turn->swap ? step_x : step_y;
    for (int32_t v = 0; v < upright->height; v += TILE)
        for (int32_t u = 0; u < upright->width; u += TILE) {
            int32_t rows = upright->height - v < TILE ? upright->height - v : TILE;
            int32_t columns = upright->width - u < TILE ? upright->width - u : TILE;
            for (int32_t i = v; i < v + rows; i++)
                turn_run(to + i * to_stride + (int64_t)u * channels, first + i * down + u * along,
                         along, columns, channels);
        }
}
