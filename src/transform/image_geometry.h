/* image_geometry.h -- crops, one resize and flips of an image, folded into one description.
 * Owns: nothing.   Threads: any.   Errors: 0 where something cannot be folded; then nothing is
 * changed.   Not here: doing it (image_resample.h).
 *
 * The image of width x height is cut to the box (x, y, box_width, box_height); the box is resized
 * to to_width x to_height; of that the window (out_x, out_y, out_width, out_height) is kept; then
 * it is flipped. Boxes are whole pixels, are never empty and lie inside; so do windows, but for
 * those of geometry_cover: what of them lies outside is filled. */
#ifndef TRANSFORM_IMAGE_GEOMETRY_H
#define TRANSFORM_IMAGE_GEOMETRY_H

#include <stdint.h>

enum image_filter { IMAGE_BILINEAR, IMAGE_BICUBIC, IMAGE_AREA, IMAGE_NEAREST, IMAGE_LANCZOS };
/* The last two are torchvision's words for area and nearest: see image_filter_of. */
#define IMAGE_FILTER_CHOICES "bilinear|bicubic|area|nearest|lanczos|box|nearest-exact"

struct image_geometry {
    int32_t width, height;
    int32_t x, y, box_width, box_height;
    int resized;
    enum image_filter filter;
    int antialias; /* 0: bilinear and bicubic take 2x2 or 4x4 pixels however much is scaled down */
    int32_t to_width, to_height;
    int32_t out_x, out_y, out_width, out_height;
    int flip_x, flip_y;
    uint8_t fill[4]; /* of what lies outside, one a channel */
};

/* Of the number of a word of IMAGE_FILTER_CHOICES. */
enum image_filter image_filter_of(int choice);
/* The image as it is. */
void geometry_init(struct image_geometry *geometry, int32_t width, int32_t height);
/* A box of the image as it is now (out_width x out_height, flipped). Always folds. */
void geometry_crop(struct image_geometry *geometry, int32_t x, int32_t y, int32_t width,
                   int32_t height);
/* As geometry_crop, of a box that may reach outside: there it is filled. 0: what lies
 * beyond the window is not all fill (it was resized and then cut), or other fill. */
int geometry_cover(struct image_geometry *geometry, int32_t x, int32_t y, int32_t width,
                   int32_t height, const uint8_t fill[4]);
/* 0: it is resized already or reaches outside, and this is not its present size. */
int geometry_resize(struct image_geometry *geometry, int32_t width, int32_t height,
                    enum image_filter filter, int antialias);
void geometry_flip_x(struct image_geometry *geometry);
void geometry_flip_y(struct image_geometry *geometry);
/* Nothing is cut, resized or flipped. */
int geometry_is_identity(const struct image_geometry *geometry);
/* Something of the window lies outside. */
int geometry_is_filled(const struct image_geometry *geometry);

#endif
