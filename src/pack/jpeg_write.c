#include "pack/jpeg_write.h"

#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/fail.h"
#include "base/memory.h"

#define BLOCK (32 * 1024)
#define ROWS 16 /* handed to the library at a time */

struct jpeg_writer {
    struct jpeg_compress_struct info; /* of one file: what it has learned of a progressive one's
                                       * codes would stay for the next */
    struct jpeg_error_mgr errors;
    struct jpeg_destination_mgr destination;
    jmp_buf jump; /* where the library's errors land */
    struct text *to;
    struct stk_error *err;
    stk_status status; /* of the jump */
    uint8_t block[BLOCK];
};

/* --- what the library calls ------------------------------------------------------------------ */

static void error_exit(j_common_ptr info)
{
    struct jpeg_writer *writer = info->client_data;
    char words[JMSG_LENGTH_MAX];

    info->err->format_message(info, words);
    if (info->err->msg_code == JERR_OUT_OF_MEMORY)
        writer->status = fail_memory(writer->err, 0);
    else
        writer->status =
            fail(writer->err, STK_UNSUPPORTED, "the JPEG cannot be written: %s", words);
    longjmp(writer->jump, 1);
}

static void output_message(j_common_ptr info)
{
    (void)info; /* the library never prints */
}

static void rewind_block(struct jpeg_writer *writer)
{
    writer->destination.next_output_byte = writer->block;
    writer->destination.free_in_buffer = BLOCK;
}

static void destination_begin(j_compress_ptr info)
{
    rewind_block(info->client_data);
}

static boolean destination_full(j_compress_ptr info)
{
    struct jpeg_writer *writer = info->client_data;

    text_add(writer->to, (const char *)writer->block, BLOCK);
    rewind_block(writer);
    return TRUE;
}

static void destination_end(j_compress_ptr info)
{
    struct jpeg_writer *writer = info->client_data;

    text_add(writer->to, (const char *)writer->block, BLOCK - writer->destination.free_in_buffer);
}

/* --- the calls ------------------------------------------------------------------------------- */

stk_status jpeg_writer_new(struct jpeg_writer **out, struct stk_error *err)
{
    struct jpeg_writer *writer = memory_zero(1, sizeof(*writer));

    *out = writer;
    return writer ? STK_OK : fail_memory(err, sizeof(*writer));
}

void jpeg_writer_free(struct jpeg_writer *writer)
{
    memory_free(writer);
}

static void create(struct jpeg_writer *writer)
{
    writer->info.err = jpeg_std_error(&writer->errors);
    writer->errors.error_exit = error_exit;
    writer->errors.output_message = output_message;
    writer->info.client_data = writer;
    jpeg_create_compress(&writer->info);
    writer->destination = (struct jpeg_destination_mgr){.init_destination = destination_begin,
                                                        .empty_output_buffer = destination_full,
                                                        .term_destination = destination_end};
    writer->info.dest = &writer->destination;
}

static void set_options(struct jpeg_compress_struct *info, const struct jpeg_image *image,
                        const struct jpeg_write_options *options)
{
    info->image_width = image->width;
    info->image_height = image->height;
    info->input_components = 3;
    info->in_color_space = image->is_ycc ? JCS_YCbCr : JCS_RGB;
    jpeg_set_defaults(info);
    jpeg_set_quality(info, options->quality, TRUE);
    info->comp_info[0].h_samp_factor = options->subsampling == 444 ? 1 : 2;
    info->comp_info[0].v_samp_factor = options->subsampling == 444 ? 1 : 2;
    if (options->progressive)
        jpeg_simple_progression(info);
}

stk_status jpeg_writer_add(struct jpeg_writer *writer, const struct jpeg_image *image,
                           const struct jpeg_write_options *options, struct text *to,
                           struct stk_error *err)
{
    struct jpeg_compress_struct *info = &writer->info;
    size_t stride = (size_t)image->width * 3;

    writer->to = to;
    writer->err = err;
    writer->status = STK_OK;
    memset(info, 0, sizeof(*info)); /* it can be destroyed wherever creating it ends */
    if (setjmp(writer->jump))
        goto done;
    create(writer);
    set_options(info, image, options);
    jpeg_start_compress(info, TRUE);
    while (info->next_scanline < info->image_height) {
        JSAMPROW rows[ROWS];
        JDIMENSION left = info->image_height - info->next_scanline;
        JDIMENSION count = left < ROWS ? left : ROWS;
        for (JDIMENSION i = 0; i < count; i++) /* the library takes no const; it does not write */
            rows[i] = (JSAMPROW)(uintptr_t)(image->pixels + (info->next_scanline + i) * stride);
        (void)jpeg_write_scanlines(info, rows, count);
    }
    jpeg_finish_compress(info);
done:
    jpeg_destroy_compress(info);
    return writer->status;
}
