#include "sim_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

struct reader {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    jmp_buf failed;
    uint8_t *row;
};

static void reader_fail(j_common_ptr common)
{
    struct reader *reader = common->client_data;
    longjmp(reader->failed, 1);
}

static void reader_be_quiet(j_common_ptr common, int level)
{
    (void)common;
    (void)level;
}

static void reader_init(struct reader *reader)
{
    memset(reader, 0, sizeof *reader);
    reader->jpeg.err = jpeg_std_error(&reader->errors);
    reader->errors.error_exit = reader_fail;
    reader->errors.emit_message = reader_be_quiet;
    reader->jpeg.client_data = reader;
}

static int ends_well(const uint8_t *data, size_t len)
{
    while (len > 2 && !data[len - 1])
        len--; /* padding is common */
    return len > 2 && data[len - 2] == 0xff && data[len - 1] == JPEG_EOI;
}

int sim_jpeg_read_header(const uint8_t *data, size_t len, struct sim_jpeg_header *out)
{
    struct reader reader;
    reader_init(&reader);
    volatile int failed = 1;
    memset(out, 0, sizeof *out);
    if (!setjmp(reader.failed)) {
        jpeg_create_decompress(&reader.jpeg);
        jpeg_mem_src(&reader.jpeg, data, (unsigned long)len);
        jpeg_read_header(&reader.jpeg, TRUE);
        J_COLOR_SPACE colours = reader.jpeg.jpeg_color_space;
        out->width = (int)reader.jpeg.image_width;
        out->height = (int)reader.jpeg.image_height;
        out->components = reader.jpeg.num_components;
        out->plain = !reader.jpeg.progressive_mode && !reader.jpeg.arith_code &&
                     reader.jpeg.data_precision == 8 &&
                     reader.jpeg.comps_in_scan == reader.jpeg.num_components &&
                     (colours == JCS_GRAYSCALE || colours == JCS_YCbCr);
        out->whole = ends_well(data, len);
        failed = 0;
    }
    jpeg_destroy_decompress(&reader.jpeg);
    return failed;
}

/* Another transform than the engine's own decoder takes, as nvJPEG's is another: the pixels differ
 * by a level here and there. */
static void reader_decode(struct reader *reader, const struct sim_jpeg_task *task, int interpolates)
{
    struct jpeg_decompress_struct *jpeg = &reader->jpeg;
    jpeg_create_decompress(jpeg);
    jpeg_mem_src(jpeg, task->data, (unsigned long)task->len);
    jpeg_read_header(jpeg, TRUE);
    jpeg->out_color_space = task->channels == 3 ? JCS_RGB : JCS_GRAYSCALE;
    jpeg->dct_method = JDCT_FLOAT;
    jpeg->do_fancy_upsampling = interpolates ? TRUE : FALSE;
    jpeg_start_decompress(jpeg);
    size_t channels = (size_t)task->channels;
    reader->row = malloc(jpeg->output_width * channels);
    if (!reader->row)
        return;
    for (int y = 0; y < task->y + task->height; y++) {
        jpeg_read_scanlines(jpeg, &reader->row, 1);
        if (y >= task->y)
            memcpy(task->out + (size_t)(y - task->y) * task->pitch,
                   reader->row + (size_t)task->x * channels, (size_t)task->width * channels);
    }
}

void sim_jpeg_decode(const struct sim_jpeg_task *task, int interpolates)
{
    struct reader reader;
    reader_init(&reader);
    if (!setjmp(reader.failed))
        reader_decode(&reader, task, interpolates);
    jpeg_destroy_decompress(&reader.jpeg);
    free(reader.row);
}
