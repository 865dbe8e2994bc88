/* jpeg_plain.h -- rows of a JPEG by libjpeg alone, in the way the codec reads them: the oracle for
 * whatever the codec does before it calls the library.
 * Owns: the pixels that plain_read returns are the caller's, to free().   Threads: any.   Errors: a
 * code of libjpeg's.   Not here: comparing (its users). */
#ifndef TESTS_UNIT_CODEC_JPEG_PLAIN_H
#define TESTS_UNIT_CODEC_JPEG_PLAIN_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include <jerror.h>

#include "stoker/bytes.h"

struct plain {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    jmp_buf jump;
    int is_strict;
    int code; /* what ended the reading; 0: nothing did */
    uint8_t *pixels;
    int width, height;
};

static inline void plain_leave(j_common_ptr info)
{
    struct plain *plain = info->client_data;
    plain->code = info->err->msg_code;
    longjmp(plain->jump, 1);
}

/* The warnings that the codec takes for errors. */
static inline void plain_warn(j_common_ptr info, int level)
{
    const struct plain *plain = info->client_data;
    const struct jpeg_error_mgr *errors = info->err;
    int is_before_restart =
        errors->msg_parm.i[1] >= JPEG_RST0 && errors->msg_parm.i[1] <= JPEG_RST0 + 7;
    switch (level < 0 && plain->is_strict ? errors->msg_code : 0) {
    case 0:
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
        return;
    case JWRN_EXTRANEOUS_DATA:
        if (!is_before_restart)
            return;
    }
    plain_leave(info);
}

static inline void plain_rows(struct plain *plain, unsigned scale, int y, int height)
{
    struct jpeg_decompress_struct *info = &plain->info;
    info->out_color_space = JCS_EXT_RGB;
    info->scale_num = scale;
    info->scale_denom = 8;
    jpeg_start_decompress(info);
    size_t stride = 3 * (size_t)info->output_width;
    plain->width = (int)info->output_width;
    plain->height = height;
    plain->pixels = malloc(stride * (size_t)height);
    if (!plain->pixels)
        abort();
    if (y > 0)
        jpeg_skip_scanlines(info, (JDIMENSION)y);
    for (int done = 0; done < height; done++) {
        JSAMPROW row = plain->pixels + stride * (size_t)done;
        if (jpeg_read_scanlines(info, &row, 1) != 1)
            abort();
    }
}

/* Lines y.. of the image at scale/8, in RGB, all columns. pixels is NULL when code is not 0. */
static inline void plain_read(struct plain *plain, const struct stk_bytes *bytes, int is_strict,
                              unsigned scale, int y, int height)
{
    *plain = (struct plain){.is_strict = is_strict};
    plain->info.err = jpeg_std_error(&plain->errors);
    plain->errors.error_exit = plain_leave;
    plain->errors.emit_message = plain_warn;
    plain->info.client_data = plain;
    if (setjmp(plain->jump)) {
        free(plain->pixels);
        plain->pixels = NULL;
    } else {
        jpeg_create_decompress(&plain->info);
        plain->info.client_data = plain;
        jpeg_mem_src(&plain->info, bytes->data, bytes->len);
        jpeg_read_header(&plain->info, TRUE);
        plain_rows(plain, scale, y, height);
    }
    jpeg_destroy_decompress(&plain->info);
}

#endif
