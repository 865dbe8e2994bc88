#include "transform/image_geometry.h"

#include <assert.h>
#include <string.h>

enum image_filter image_filter_of(int choice)
{
    static const enum image_filter alike[] = {IMAGE_AREA, IMAGE_NEAREST};
    return choice > IMAGE_LANCZOS ? alike[choice - IMAGE_LANCZOS - 1] : (enum image_filter)choice;
}

void geometry_init(struct image_geometry *geometry, int32_t width, int32_t height)
{
    assert(width > 0 && height > 0);
    *geometry = (struct image_geometry){.width = width,
                                        .height = height,
                                        .box_width = width,
                                        .box_height = height,
                                        .antialias = 1,
                                        .to_width = width,
                                        .to_height = height,
                                        .out_width = width,
                                        .out_height = height};
}

/* One axis of a window that is not resized: the box shrinks to what the window shows of it, so that
 * no more is decoded. A window wholly outside keeps one pixel, which it does not show. */
static void shrink_axis(int32_t *box, int32_t *box_len, int32_t *out, int32_t out_len)
{
    int64_t first = *out > 0 ? *out : 0;
    int64_t last = (int64_t)*out + out_len;
    if (last > *box_len)
        last = *box_len;
    if (first >= *box_len)
        first = *box_len - 1;
    if (last <= first)
        last = first + 1;
    *box += (int32_t)first;
    *box_len = (int32_t)(last - first);
    *out -= (int32_t)first;
}

static void geometry_window(struct image_geometry *geometry, int32_t x, int32_t y, int32_t width,
                            int32_t height)
{
    geometry->out_x += geometry->flip_x ? geometry->out_width - x - width : x;
    geometry->out_y += geometry->flip_y ? geometry->out_height - y - height : y;
    geometry->out_width = width;
    geometry->out_height = height;
    if (geometry->resized)
        return;
    shrink_axis(&geometry->x, &geometry->box_width, &geometry->out_x, width);
    shrink_axis(&geometry->y, &geometry->box_height, &geometry->out_y, height);
    geometry->to_width = geometry->box_width;
    geometry->to_height = geometry->box_height;
}

void geometry_crop(struct image_geometry *geometry, int32_t x, int32_t y, int32_t width,
                   int32_t height)
{
    assert(x >= 0 && width > 0 && width <= geometry->out_width - x);
    assert(y >= 0 && height > 0 && height <= geometry->out_height - y);
    geometry_window(geometry, x, y, width, height);
}

int geometry_is_filled(const struct image_geometry *geometry)
{
    return geometry->out_x < 0 || geometry->out_y < 0 ||
           geometry->out_width > geometry->to_width - geometry->out_x ||
           geometry->out_height > geometry->to_height - geometry->out_y;
}

/* The window shows all that there is, so that nothing but fill lies beyond it. */
static int shows_all(const struct image_geometry *geometry)
{
    return geometry->out_x <= 0 && geometry->out_y <= 0 &&
           geometry->out_width >= geometry->to_width - geometry->out_x &&
           geometry->out_height >= geometry->to_height - geometry->out_y;
}

int geometry_cover(struct image_geometry *geometry, int32_t x, int32_t y, int32_t width,
                   int32_t height, const uint8_t fill[4])
{
    assert(width > 0 && height > 0);
    if (x >= 0 && y >= 0 && width <= geometry->out_width - x &&
        height <= geometry->out_height - y) {
        geometry_window(geometry, x, y, width, height);
        return 1;
    }
    if (!shows_all(geometry))
        return 0;
    if (geometry_is_filled(geometry) && memcmp(geometry->fill, fill, sizeof geometry->fill))
        return 0;
    memcpy(geometry->fill, fill, sizeof geometry->fill);
    geometry_window(geometry, x, y, width, height);
    return 1;
}

int geometry_resize(struct image_geometry *geometry, int32_t width, int32_t height,
                    enum image_filter filter, int antialias)
{
    assert(width > 0 && height > 0);
    if (geometry->out_width == width && geometry->out_height == height)
        return 1;
    /* These take one side of a tie: what they take of a mirrored image is another pixel. */
    int sided = filter == IMAGE_NEAREST || filter == IMAGE_AREA;
    int mirrored = sided && (geometry->flip_x || geometry->flip_y);
    if (geometry->resized || mirrored || geometry_is_filled(geometry))
        return 0;
    geometry->resized = 1;
    geometry->filter = filter;
    geometry->antialias = antialias;
    geometry->to_width = geometry->out_width = width;
    geometry->to_height = geometry->out_height = height;
    return 1;
}

void geometry_flip_x(struct image_geometry *geometry)
{
    geometry->flip_x = !geometry->flip_x;
}

void geometry_flip_y(struct image_geometry *geometry)
{
    geometry->flip_y = !geometry->flip_y;
}

int geometry_is_identity(const struct image_geometry *geometry)
{
    return !geometry->resized && !geometry->flip_x && !geometry->flip_y && geometry->x == 0 &&
           geometry->y == 0 && geometry->box_width == geometry->width &&
           geometry->box_height == geometry->height && geometry->out_x == 0 &&
           geometry->out_y == 0 && geometry->out_width == geometry->width &&
           geometry->out_height == geometry->height;
}
