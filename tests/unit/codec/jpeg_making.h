/* jpeg_making.h -- JPEGs for tests, made by libjpeg itself, and its own full decode as the oracle.
 * Owns: what jpeg_made returns is the caller's, to free().   Threads: any.   Errors: cmocka fails.
 * Not here: the tests. */
#ifndef TESTS_UNIT_CODEC_JPEG_MAKING_H
#define TESTS_UNIT_CODEC_JPEG_MAKING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "stoker/bytes.h"

struct jpeg_recipe {
    int width, height;
    int h, v;               /* sampling of the first component; the others have 1 */
    int second_h, second_v; /* of the second component; 0: 1 */
    J_COLOR_SPACE in;       /* 0 is JCS_RGB here */
    J_COLOR_SPACE stored;
    int progressive; /* 2: by made_scans; 3: not, but a scan for each colour */
    int restart, arithmetic, quality, optimize;
    const uint8_t *app1; /* a segment's contents */
    unsigned app1_len;
};

/* A number that depends on i alone. */
static inline uint32_t made_noise(uint32_t i)
{
    i = (i ^ 61) ^ (i >> 16);
    i *= 9;
    i ^= i >> 4;
    i *= 0x27d4eb2d;
    return i ^ (i >> 15);
}

/* Gradients with noise and hard edges: neighbours differ, in colour too. */
static inline void made_row(uint8_t *row, int width, int channels, int y)
{
    for (int x = 0; x < width; x++)
        for (int c = 0; c < channels; c++) {
            uint32_t noise = made_noise((uint32_t)(y * 7919 + x * 13 + c)) % 48;
            uint32_t edge = ((x / 5 + y / 7 + c) % 3) * 60;
            row[x * channels + c] = (uint8_t)(noise + edge + (uint32_t)(x * (c + 1) + y) % 80);
        }
}

/* All bits at once: nothing is refined, so a scan may follow itself. */
static const jpeg_scan_info made_scans[] = {
    {3, {0, 1, 2}, 0, 0, 0, 0},
    {1, {0}, 1, 63, 0, 0},
    {1, {1}, 1, 63, 0, 0},
    {1, {2}, 1, 63, 0, 0},
};

static const jpeg_scan_info made_parts[] = {
    {1, {0}, 0, 63, 0, 0},
    {1, {1}, 0, 63, 0, 0},
    {1, {2}, 0, 63, 0, 0},
};

static inline struct stk_bytes jpeg_made(const struct jpeg_recipe *recipe)
{
    struct jpeg_compress_struct info;
    struct jpeg_error_mgr errors;
    unsigned char *data = NULL;
    unsigned long len = 0;
    info.err = jpeg_std_error(&errors);
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &data, &len);
    info.image_width = (JDIMENSION)recipe->width;
    info.image_height = (JDIMENSION)recipe->height;
    info.in_color_space = recipe->in ? recipe->in : JCS_RGB;
    info.input_components = info.in_color_space == JCS_GRAYSCALE ? 1
                            : info.in_color_space == JCS_CMYK    ? 4
                                                                 : 3;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, recipe->quality ? recipe->quality : 90, TRUE);
    if (recipe->stored)
        jpeg_set_colorspace(&info, recipe->stored);
    if (recipe->h) {
        for (int i = 0; i < info.num_components; i++)
            info.comp_info[i].h_samp_factor = info.comp_info[i].v_samp_factor = 1;
        info.comp_info[0].h_samp_factor = recipe->h;
        info.comp_info[0].v_samp_factor = recipe->v;
    }
    if (recipe->second_h) {
        info.comp_info[1].h_samp_factor = recipe->second_h;
        info.comp_info[1].v_samp_factor = recipe->second_v;
    }
    info.restart_interval = (unsigned)recipe->restart;
    info.arith_code = recipe->arithmetic ? TRUE : FALSE;
    info.optimize_coding = recipe->optimize ? TRUE : FALSE;
    if (recipe->progressive == 1)
        jpeg_simple_progression(&info);
    if (recipe->progressive >= 2) {
        info.scan_info = recipe->progressive == 2 ? made_scans : made_parts;
        info.num_scans = recipe->progressive == 2 ? 4 : 3;
    }
    jpeg_start_compress(&info, TRUE);
    if (recipe->app1)
        jpeg_write_marker(&info, JPEG_APP0 + 1, recipe->app1, recipe->app1_len);
    uint8_t *row = malloc((size_t)recipe->width * 4);
    while (info.next_scanline < info.image_height) {
        made_row(row, recipe->width, info.input_components, (int)info.next_scanline);
        jpeg_write_scanlines(&info, &row, 1);
    }
    free(row);
    jpeg_finish_compress(&info);
    jpeg_destroy_compress(&info);
    return (struct stk_bytes){data, len};
}

/* The whole image as libjpeg decodes it, scaled by scale/8; rows of width * channels. free() it. */
static inline uint8_t *jpeg_oracle(const struct stk_bytes *bytes, J_COLOR_SPACE out, unsigned scale,
                                   int *width, int *height)
{
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    info.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, bytes->data, bytes->len);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = out;
    info.scale_num = scale;
    info.scale_denom = 8;
    jpeg_start_decompress(&info);
    size_t stride = (size_t)info.output_width * (size_t)info.output_components;
    uint8_t *pixels = malloc(stride * info.output_height);
    while (info.output_scanline < info.output_height) {
        JSAMPROW row = pixels + stride * info.output_scanline;
        jpeg_read_scanlines(&info, &row, 1);
    }
    *width = (int)info.output_width;
    *height = (int)info.output_height;
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return pixels;
}

#endif
