/* limit_jpeg.c -- libjpeg-turbo's own full decode: JPEGs from RAM to RGB in a reused buffer, with
 * its defaults (accurate DCT, fancy upsampling), a thread a core. No crop, no resize.
 *
 *     limit_jpeg EXTENTS THREADS SECONDS
 *
 * EXTENTS is a text file with a line "offset length path" for each image. Prints one JSON object.
 */
#include "limit_crew.h"

#include <jpeglib.h>

struct decoder {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    uint8_t *pixels;
    size_t room;
};

static void *decoder_open(const void *about)
{
    (void)about;
    struct decoder *decoder = calloc(1, sizeof(*decoder));
    if (!decoder)
        limit_fail("memory");
    decoder->info.err = jpeg_std_error(&decoder->errors);
    jpeg_create_decompress(&decoder->info);
    return decoder;
}

static void decoder_grow(struct decoder *decoder, size_t size)
{
    if (size <= decoder->room)
        return;
    free(decoder->pixels);
    decoder->pixels = malloc(size);
    decoder->room = size;
    if (!decoder->pixels)
        limit_fail("memory");
}

static uint64_t jpeg_decode(void *state, const struct sample *sample)
{
    struct decoder *decoder = state;
    struct jpeg_decompress_struct *info = &decoder->info;
    jpeg_mem_src(info, sample->data, (unsigned long)sample->len);
    jpeg_read_header(info, TRUE);
    info->out_color_space = JCS_RGB;
    jpeg_start_decompress(info);
    size_t stride = (size_t)info->output_width * 3, size = stride * info->output_height;
    decoder_grow(decoder, size);
    while (info->output_scanline < info->output_height) {
        JSAMPROW rows[16];
        JDIMENSION first = info->output_scanline, wanted = info->output_height - first;
        for (JDIMENSION i = 0; i < 16; i++)
            rows[i] = decoder->pixels + stride * (first + (i < wanted ? i : 0));
        jpeg_read_scanlines(info, rows, wanted < 16 ? wanted : 16);
    }
    jpeg_finish_decompress(info);
    return size;
}

int main(int argc, char **argv)
{
    return crew_main(argc, argv, &(struct limit_job){decoder_open, jpeg_decode, NULL});
}
