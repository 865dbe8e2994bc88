#include "pack/png_write.h"

#include <setjmp.h>
#include <stdlib.h>

#include <png.h>

#include "base/fail.h"
#include "base/memory.h"

struct png_output {
    struct text *to;
    struct stk_error *err;
    stk_status status;
    int memory_short; /* the library's words do not tell it reliably */
};

static void on_error(png_structp png, png_const_charp words)
{
    struct png_output *output = png_get_error_ptr(png);

    output->status = output->memory_short ? fail_memory(output->err, 0)
                                          : fail(output->err, STK_UNSUPPORTED,
                                                 "the PNG cannot be written: %s", words);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp words)
{
    (void)png, (void)words; /* the library never prints */
}

static void on_write(png_structp png, png_bytep data, size_t len)
{
    struct png_output *output = png_get_io_ptr(png);

    text_add(output->to, (const char *)data, len);
}

static void on_flush(png_structp png)
{
    (void)png;
}

static png_voidp on_alloc(png_structp png, png_alloc_size_t size)
{
    struct png_output *output = png_get_mem_ptr(png);
    void *block = memory_alloc(size);

    output->memory_short |= !block;
    return block;
}

static void on_free(png_structp png, png_voidp block)
{
    (void)png;
    memory_free(block);
}

static int color_of(uint32_t channels)
{
    return channels == 1   ? PNG_COLOR_TYPE_GRAY
           : channels == 3 ? PNG_COLOR_TYPE_RGB
                           : PNG_COLOR_TYPE_RGB_ALPHA;
}

static void write_rows(png_structp png, png_infop info, const struct png_picture *picture,
                       int level)
{
    png_set_IHDR(png, info, picture->width, picture->height, 8, color_of(picture->channels),
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_compression_level(png, level);
    png_write_info(png, info);
    for (uint32_t y = 0; y < picture->height; y++)
        png_write_row(png, picture->pixels + (size_t)y * picture->width * picture->channels);
    png_write_end(png, info);
}

stk_status png_write(const struct png_picture *picture, int level, struct text *to,
                     struct stk_error *err)
{
    struct png_output output = {to, err, STK_OK, 0};
    png_structp png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &output, on_error,
                                                on_warning, &output, on_alloc, on_free);
    png_infop info = png ? png_create_info_struct(png) : NULL;

    if (!info) {
        png_destroy_write_struct(&png, NULL);
        return fail_memory(err, 0);
    }
    if (!setjmp(png_jmpbuf(png))) {
        png_set_write_fn(png, &output, on_write, on_flush);
        write_rows(png, info, picture, level);
    }
    png_destroy_write_struct(&png, &info);
    return output.status;
}

stk_status png_write_check(struct stk_error *err)
{
    (void)err;
    return STK_OK;
}
