/* image_pattern.h -- the pixels of synthetic pictures: a background whose spectrum falls as that of
 * photographs does, shaded shapes with edges over it, noise as a sensor's. A pure function of the
 * tables' seed and a scene.
 * Owns: its tables.   Threads: immutable once made; scenes belong to their callers.
 * Errors: STK_MEMORY.   Not here: files (gen_images.c, gen_video.c), what a class looks like to
 * those who choose otherwise (image_scene_draw's callers may move and recolour shapes). */
#ifndef PACK_IMAGE_PATTERN_H
#define PACK_IMAGE_PATTERN_H

#include <stdint.h>

#include "stoker/error.h"

#define IMAGE_SHAPES 16

struct image_pattern;

/* One thing in a scene. Lengths are in pixels, levels in those of 8 bits. */
struct image_shape {
    uint32_t sides; /* 0: an ellipse; 3 .. 6: a regular polygon, stretched */
    float x, y;     /* centre */
    float width, height, turn;
    float level[3]; /* Y, Cb, Cr */
    float slope[2]; /* of Y, by pixel */
    float texture;  /* share of the background's roughness */
    float grating;  /* amplitude of stripes; 0: none */
    float wave[2];  /* turns by pixel along x and y */
};

struct image_scene {
    uint32_t width, height;
    uint32_t luma[2], chroma[2][2]; /* where the background lies in the tables */
    float level[3], slope[2];       /* of the background */
    float contrast, noise;          /* standard deviations: of the background, of the sensor */
    uint64_t noise_key;
    uint32_t count;
    struct image_shape shapes[IMAGE_SHAPES]; /* the last one lies in front */
};

/* longest: the longest side that scenes will have. */
STK_CHECK stk_status image_pattern_new(struct image_pattern **out, uint32_t longest, uint64_t seed,
                                       struct stk_error *err);
void image_pattern_free(struct image_pattern *pattern);

/* Background and shapes that say nothing about a class; room for one more shape is left. */
void image_scene_init(struct image_scene *scene, uint32_t width, uint32_t height, uint64_t key);
/* Adds the shape that tells the class: its hue, stripes and outline; place, size and turn are the
 * key's. */
void image_scene_mark(struct image_scene *scene, uint32_t label, uint32_t classes, uint64_t key);
/* Bytes that image_scene_draw needs to work in. */
uint64_t image_pattern_room(uint32_t width);
/* Y, Cb, Cr interleaved; 3 * width * height bytes. */
void image_scene_draw(const struct image_pattern *pattern, const struct image_scene *scene,
                      uint8_t *to, void *room);
/* The same pixels as R, G, B; in place. */
void image_to_rgb(uint8_t *pixels, uint64_t count);

#endif
