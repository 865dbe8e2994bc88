#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

#include "base/fail.h"
#include "base/memory.h"

#include "codec/exif.h"
#include "codec/image_format.h"
#include "codec/jpeg_cut.h"

#define ROWS 16 /* handed to the library at a time */
/* Where the first row begins in the buffer. The library writes rows that are aligned to its vectors
 * past the caches; but whoever asked for the pixels reads them next. So none is aligned. */
#define OFFSET 8
#define LATE_EVERY 16 /* calls of the monitor between two looks at the clock */

struct jpeg_state {
    struct jpeg_decompress_struct info; /* made once, used for every image */
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    struct jpeg_cut *cut;
    uint32_t piece; /* of the cut, that follows the source's bytes; JPEG_PIECES: nothing does */
    jmp_buf jump;   /* where the library's errors land: set by whoever called the library */
    const struct image_task *task;
    struct stk_error *err;
    stk_status status; /* of the jump */
    uint32_t ticks;    /* of the monitor */
    int orientation;
};

/* ---- errors of the library ----------------------------------------------------------------- */

static void jpeg_leave(struct jpeg_state *state, stk_status status) __attribute__((noreturn));

static void jpeg_leave(struct jpeg_state *state, stk_status status)
{
    state->status = status;
    longjmp(state->jump, 1);
}

static stk_status jpeg_status_of(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return STK_MEMORY;
    case JERR_IMAGE_TOO_BIG:
        return STK_LIMIT;
    case JERR_INPUT_EOF:
    case JERR_INPUT_EMPTY:
    case JWRN_JPEG_EOF:
        return STK_TRUNCATED;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_CCIR601_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
        return STK_UNSUPPORTED;
    default:
        return STK_CORRUPT;
    }
}

static void jpeg_say(struct jpeg_state *state, stk_status status)
{
    char words[JMSG_LENGTH_MAX];
    state->errors.format_message((j_common_ptr)&state->info, words);
    switch (status) {
    case STK_MEMORY:
        fail_memory(state->err, 0);
        return;
    case STK_UNSUPPORTED:
        fail(state->err, status, "the JPEG cannot be decoded: %s", words);
        fail_remedy(state->err, "store it as a baseline or progressive JPEG of 8 bits");
        return;
    case STK_LIMIT:
        fail(state->err, status, "the JPEG is too large: %s", words);
        return;
    case STK_TRUNCATED:
        image_fail(state->err, status, "the JPEG ends too early: %s", words);
        return;
    default:
        image_fail(state->err, status, "the JPEG is damaged: %s", words);
    }
}

static void jpeg_on_error(j_common_ptr info)
{
    struct jpeg_state *state = info->client_data;
    stk_status status = jpeg_status_of(info->err->msg_code);
    jpeg_say(state, status);
    jpeg_leave(state, status);
}

/* A warning after which every pixel is still what the encoder meant:
 * - parameters of a sequential scan, the JFIF version, Adobe's transform code and the ICC profile
 *   are not used, or have one sensible reading;
 * - bytes between segments (cameras pad with them) are skipped. Not before a restart marker: there
 *   they are what is left of a scan that was read wrongly. */
static int jpeg_warning_is_harmless(const struct jpeg_error_mgr *errors)
{
    switch (errors->msg_code) {
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_JFIF_MAJOR:
    case JWRN_ADOBE_XFORM:
    case JWRN_BOGUS_ICC:
        return 1;
    case JWRN_EXTRANEOUS_DATA:
        return errors->msg_parm.i[1] < JPEG_RST0 || errors->msg_parm.i[1] > JPEG_RST0 + 7;
    default:
        return 0;
    }
}

static void jpeg_on_message(j_common_ptr info, int level)
{
    struct jpeg_state *state = info->client_data;
    if (level >= 0 || state->task->limits.relaxed || jpeg_warning_is_harmless(info->err))
        return;
    stk_status status = jpeg_status_of(info->err->msg_code);
    /* The scan's data end at the marker that ends the image: rows are missing, not garbled. */
    if (info->err->msg_code == JWRN_HIT_MARKER && state->info.unread_marker == JPEG_EOI)
        status = STK_TRUNCATED;
    jpeg_say(state, status);
    jpeg_leave(state, status);
}

/* The library calls it for every row of blocks of every scan, and every few rows of pixels. */
static void jpeg_on_progress(j_common_ptr info)
{
    struct jpeg_state *state = info->client_data;
    const struct image_limits *limits = &state->task->limits;
    int scan = state->info.input_scan_number;
    if (scan > 0 && (uint32_t)scan > limits->max_scans) {
        fail(state->err, STK_LIMIT, "the JPEG has more than %" PRIu32 " scans", limits->max_scans);
        fail_remedy(state->err, "store it anew: ordinary progressive JPEGs have about ten");
        jpeg_leave(state, STK_LIMIT);
    }
    if (state->ticks++ % LATE_EVERY == 0 && image_task_is_late(state->task))
        jpeg_leave(state, image_task_fail_late(state->task, state->err));
}

/* ---- the bytes ----------------------------------------------------------------------------- */

static void jpeg_source_begin(j_decompress_ptr info)
{
    (void)info;
}

/* All bytes were there from the beginning: behind the last piece there are no more. An end marker
 * is made up, so that a relaxed decode gets what came so far. */
static boolean jpeg_source_fill(j_decompress_ptr info)
{
    static const JOCTET end[2] = {0xff, JPEG_EOI};
    struct jpeg_state *state = info->client_data;
    while (state->piece < JPEG_PIECES) {
        const struct stk_bytes *piece = &jpeg_cut_pieces(state->cut)[state->piece++];
        info->src->next_input_byte = piece->data;
        info->src->bytes_in_buffer = piece->len;
        if (piece->len > 0)
            return TRUE;
    }
    WARNMS(info, JWRN_JPEG_EOF);
    info->src->next_input_byte = end;
    info->src->bytes_in_buffer = sizeof end;
    return TRUE;
}

static void jpeg_source_skip(j_decompress_ptr info, long count)
{
    struct jpeg_source_mgr *source = info->src;
    if (count <= 0)
        return;
    size_t step = (size_t)count < source->bytes_in_buffer ? (size_t)count : source->bytes_in_buffer;
    source->next_input_byte += step;
    source->bytes_in_buffer -= step;
}

static void jpeg_source_end(j_decompress_ptr info)
{
    (void)info;
}

/* APP1 is read where it lies. A length beyond the end is left to the next marker's error. */
static boolean jpeg_on_app1(j_decompress_ptr info)
{
    struct jpeg_state *state = info->client_data;
    const JOCTET *at = info->src->next_input_byte;
    size_t left = info->src->bytes_in_buffer;
    size_t len = left >= 2 ? (size_t)(at[0] << 8 | at[1]) : 0;
    if (left >= 2 && len < 2)
        ERREXIT(info, JERR_BAD_LENGTH);
    if (len >= 2 && len <= left && !state->orientation) {
        struct stk_bytes segment = {at + 2, len - 2};
        if (segment.len >= 4 && memcmp(segment.data, "Exif", 4) == 0)
            state->orientation = exif_orientation(&segment);
    }
    jpeg_source_skip(info, len ? (long)len : (long)left);
    return TRUE;
}

/* ---- state --------------------------------------------------------------------------------- */

/* Tables outlive an image in the library, for streams that send them once. Here every image stands
 * for itself: one without tables must not be decoded by those of the image before. */
static void jpeg_forget_tables(struct jpeg_state *state)
{
    struct jpeg_decompress_struct *info = &state->info;
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        memset(info->quant_tbl_ptrs[i]->quantval, 0, sizeof info->quant_tbl_ptrs[i]->quantval);
    for (int i = 0; i < NUM_HUFF_TBLS; i++) {
        memset(info->dc_huff_tbl_ptrs[i]->bits, 0, sizeof info->dc_huff_tbl_ptrs[i]->bits);
        memset(info->ac_huff_tbl_ptrs[i]->bits, 0, sizeof info->ac_huff_tbl_ptrs[i]->bits);
    }
}

static void jpeg_make_tables(struct jpeg_state *state)
{
    j_common_ptr common = (j_common_ptr)&state->info;
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        state->info.quant_tbl_ptrs[i] = jpeg_alloc_quant_table(common);
    for (int i = 0; i < NUM_HUFF_TBLS; i++) {
        state->info.dc_huff_tbl_ptrs[i] = jpeg_alloc_huff_table(common);
        state->info.ac_huff_tbl_ptrs[i] = jpeg_alloc_huff_table(common);
    }
}

static void jpeg_close(void *own)
{
    struct jpeg_state *state = own;
    if (!state)
        return;
    jpeg_destroy_decompress(&state->info);
    jpeg_cut_free(state->cut);
    memory_free(state);
}

static stk_status jpeg_open(void **out, struct stk_error *err)
{
    struct jpeg_state *state = memory_zero(1, sizeof *state);
    *out = NULL;
    if (!state)
        return fail_memory(err, sizeof *state);
    state->err = err;
    if (jpeg_cut_new(&state->cut, err)) {
        jpeg_close(state);
        return STK_MEMORY;
    }
    state->info.err = jpeg_std_error(&state->errors);
    state->errors.error_exit = jpeg_on_error;
    state->errors.emit_message = jpeg_on_message;
    state->info.client_data = state;
    if (setjmp(state->jump)) {
        stk_status status = state->status;
        jpeg_close(state);
        return status;
    }
    jpeg_create_decompress(&state->info);
    state->source = (struct jpeg_source_mgr){.init_source = jpeg_source_begin,
                                             .fill_input_buffer = jpeg_source_fill,
                                             .skip_input_data = jpeg_source_skip,
                                             .resync_to_restart = jpeg_resync_to_restart,
                                             .term_source = jpeg_source_end};
    state->info.src = &state->source;
    state->progress.progress_monitor = jpeg_on_progress;
    state->info.progress = &state->progress;
    jpeg_set_marker_processor(&state->info, JPEG_APP0 + 1, jpeg_on_app1);
    jpeg_make_tables(state);
    *out = state;
    return STK_OK;
}

static uint64_t jpeg_held(const void *own)
{
    const struct jpeg_state *state = own;
    return sizeof *state + jpeg_cut_bytes(state->cut);
}

/* ---- header -------------------------------------------------------------------------------- */

static int32_t jpeg_channels(const struct jpeg_decompress_struct *info)
{
    return info->jpeg_color_space == JCS_GRAYSCALE ? 1 : 3;
}

static stk_status jpeg_begin(void *own, const struct image_task *task, struct image_stored *stored,
                             struct stk_error *err)
{
    struct jpeg_state *state = own;
    struct jpeg_decompress_struct *info = &state->info;
    state->task = task;
    state->err = err;
    state->orientation = 0;
    state->ticks = 0;
    if (setjmp(state->jump))
        return state->status;
    jpeg_abort_decompress(info); /* the image before, wherever it stopped */
    jpeg_forget_tables(state);
    state->source.next_input_byte = task->bytes.data;
    state->source.bytes_in_buffer = task->bytes.len;
    state->piece = JPEG_PIECES;
    jpeg_read_header(info, TRUE);
    if (info->data_precision != 8)
        ERREXIT1(info, JERR_BAD_PRECISION, info->data_precision);
    if (info->jpeg_color_space == JCS_UNKNOWN)
        ERREXIT(info, JERR_CONVERSION_NOTIMPL);
    stored->width = (int32_t)info->image_width;
    stored->height = (int32_t)info->image_height;
    stored->channels = jpeg_channels(info);
    stored->bits = 8;
    stored->orientation = state->orientation;
    return STK_OK;
}

/* ---- pixels -------------------------------------------------------------------------------- */

/* What is decoded, in pixels of the scaled image. */
struct jpeg_part {
    JDIMENSION x, y, width, height; /* the box, rounded outwards */
    JDIMENSION from, columns;       /* what the library hands out: more, to both sides */
    int32_t channels;               /* of what the library hands out */
};

/* The least of 8/8, 4/8, 2/8 and 1/8 that leaves the box large enough. Other eighths have no vector
 * code in the library: they cost more than they save. Where a
 * colour has a quarter of the columns or rows (4:1:1, 4:1:0), cutting a part of a scaled image goes
 * wrong in the library: no scaling then. */
static unsigned jpeg_scale(const struct jpeg_decompress_struct *info, const struct image_want *box)
{
    unsigned scale = 8;
    if (box->least_width <= 0 || box->least_height <= 0)
        return scale;
    for (int i = 0; i < info->num_components; i++)
        if (info->comp_info[i].h_samp_factor > 2 || info->comp_info[i].v_samp_factor > 2)
            return scale;
    while (scale > 1 && (uint64_t)box->width * (scale / 2) >= (uint64_t)box->least_width * 8 &&
           (uint64_t)box->height * (scale / 2) >= (uint64_t)box->least_height * 8)
        scale /= 2;
    return scale;
}

static void jpeg_choose_colors(struct jpeg_decompress_struct *info, enum image_channels channels,
                               struct jpeg_part *part)
{
    int gray = info->jpeg_color_space == JCS_GRAYSCALE;
    if (info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK)
        info->out_color_space = JCS_CMYK;
    else if (gray && (channels == IMAGE_CHANNELS_GRAY || channels == IMAGE_CHANNELS_KEEP))
        info->out_color_space = JCS_GRAYSCALE;
    else if (channels == IMAGE_CHANNELS_RGBA)
        info->out_color_space = JCS_EXT_RGBA;
    else
        info->out_color_space = JCS_EXT_RGB;
    part->channels = info->out_color_space == JCS_GRAYSCALE ? 1
                     : info->out_color_space == JCS_EXT_RGB ? 3
                                                            : 4;
}

/* Between two columns of chroma colours are interpolated. At the edge of what is decoded there is
 * nothing to interpolate with, so two more columns are asked for where the image goes on. With less
 * than three columns of chroma the library would not interpolate at all. */
static void jpeg_choose_columns(struct jpeg_decompress_struct *info, struct jpeg_part *part)
{
    JDIMENSION factor = (JDIMENSION)info->max_h_samp_factor;
    JDIMENSION margin = factor > 1 ? 2 : 0, least = factor > 1 ? 3 * factor : 1;
    JDIMENSION total = info->output_width;
    JDIMENSION from = part->x > margin ? part->x - margin : 0;
    JDIMENSION end = part->x + part->width;
    end = total - end > margin ? end + margin : total;
    if (end - from < least) {
        end = total - from > least ? from + least : total;
        from = end > least ? end - least : 0;
    }
    part->from = from;
    part->columns = end - from;
    jpeg_crop_scanline(info, &part->from, &part->columns);
}

static int jpeg_is_empty(const JHUFF_TBL *table)
{
    for (int i = 1; i <= 16; i++)
        if (table->bits[i])
            return 0;
    return 1;
}

/* What never came the library does not miss: it decodes to grey. A component that no scan has has
 * no table of its own, and a table that was not sent is still empty. */
static void jpeg_check_tables(struct jpeg_state *state)
{
    const struct jpeg_decompress_struct *info = &state->info;
    int plain =
        !info->progressive_mode && !info->arith_code; /* else codes are checked one by one */
    for (int i = 0; i < info->num_components; i++) {
        const jpeg_component_info *component = &info->comp_info[i];
        const char *what = NULL;
        if (!component->quant_table)
            what = state->task->limits.relaxed ? NULL : "scan";
        else if (!component->quant_table->quantval[0])
            what = "quantization table";
        else if (plain && (jpeg_is_empty(info->dc_huff_tbl_ptrs[component->dc_tbl_no]) ||
                           jpeg_is_empty(info->ac_huff_tbl_ptrs[component->ac_tbl_no])))
            what = "Huffman table";
        if (!what)
            continue;
        image_fail(state->err, STK_CORRUPT, "the JPEG is damaged: it has no %s for colour %d", what,
                   i);
        jpeg_leave(state, STK_CORRUPT);
    }
}

static void jpeg_take_table(struct jpeg_scan *scan, enum jpeg_kind kind, int component, int number,
                            JHUFF_TBL *const *tables)
{
    struct jpeg_codes *codes = &scan->codes[kind][number];
    memcpy(codes->counts, tables[number]->bits, sizeof codes->counts);
    memcpy(codes->symbols, tables[number]->huffval, sizeof codes->symbols);
    scan->tables[kind][component] = (uint8_t)number;
}

/* 0: the image is not one sequential scan, or strange. */
static int jpeg_describe(struct jpeg_state *state, struct jpeg_scan *scan)
{
    const struct jpeg_decompress_struct *info = &state->info;
    uint32_t across = (uint32_t)info->max_h_samp_factor * DCTSIZE;
    if (info->progressive_mode || info->arith_code || info->num_components > JPEG_COMPONENTS ||
        info->comps_in_scan != info->num_components)
        return 0;
    scan->bytes = (struct stk_bytes){state->source.next_input_byte, state->source.bytes_in_buffer};
    scan->restart = info->restart_interval;
    scan->mcus = (info->image_width + across - 1) / across;
    scan->blocks = 0;
    for (int i = 0; i < info->comps_in_scan; i++) {
        const jpeg_component_info *component = info->cur_comp_info[i];
        int dc = component->dc_tbl_no, ac = component->ac_tbl_no;
        uint32_t blocks = (uint32_t)(component->h_samp_factor * component->v_samp_factor);
        if (info->comps_in_scan == 1) { /* then an MCU is a block, whatever the sampling */
            scan->mcus = component->width_in_blocks * (uint32_t)component->v_samp_factor;
            blocks = 1;
        }
        if (dc >= JPEG_TABLES || ac >= JPEG_TABLES || scan->blocks + blocks > JPEG_MCU_MOST)
            return 0;
        jpeg_take_table(scan, JPEG_DC, i, dc, info->dc_huff_tbl_ptrs);
        jpeg_take_table(scan, JPEG_AC, i, ac, info->ac_huff_tbl_ptrs);
        while (blocks-- > 0)
            scan->components[scan->blocks++] = (uint8_t)i;
    }
    return 1;
}

/* The library reads every block down to the box's last one. Of those far above the box it needs no
 * more than the place where they end, and that is found in half the time. What is left then is read
 * as a JPEG of less height, by a header read anew. Below the cut the library decodes the same rows
 * as it would have: its first is that of line y - 1, from which colours are interpolated. The lines
 * that are gone. */
static JDIMENSION jpeg_cut_off(struct jpeg_state *state, unsigned scale, JDIMENSION y)
{
    uint32_t samples = (uint32_t)state->info.max_v_samp_factor, lines = scale * samples;
    uint32_t rows = y > 0 ? (y - 1) / lines : 0;
    if (rows == 0 || !jpeg_describe(state, jpeg_cut_scan(state->cut)))
        return 0;
    rows = jpeg_cut_above(state->cut, state->task, rows, samples * DCTSIZE);
    if (rows == 0)
        return 0;
    const struct stk_bytes *pieces = jpeg_cut_pieces(state->cut);
    state->source.next_input_byte = pieces[0].data;
    state->source.bytes_in_buffer = pieces[0].len;
    state->piece = 1;
    jpeg_abort_decompress(&state->info);
    jpeg_forget_tables(state);
    jpeg_read_header(&state->info, TRUE);
    return rows * lines;
}

/* Starts the decoder and leaves it before the first row of the box. */
static void jpeg_seek(struct jpeg_state *state, const struct image_want *box,
                      struct jpeg_part *part)
{
    struct jpeg_decompress_struct *info = &state->info;
    uint64_t scale = jpeg_scale(info, box);
    part->y = (JDIMENSION)((uint64_t)box->y * scale / 8);
    JDIMENSION above = part->y - jpeg_cut_off(state, (unsigned)scale, part->y);
    info->scale_num = (unsigned)scale;
    info->scale_denom = 8;
    jpeg_choose_colors(info, box->channels, part);
    jpeg_start_decompress(info);
    jpeg_check_tables(state);
    part->x = (JDIMENSION)((uint64_t)box->x * scale / 8);
    part->width = (JDIMENSION)((((uint64_t)box->x + box->width) * scale + 7) / 8) - part->x;
    part->height = (JDIMENSION)((((uint64_t)box->y + box->height) * scale + 7) / 8) - part->y;
    jpeg_choose_columns(info, part);
    if (above > 0 && jpeg_skip_scanlines(info, above) != above)
        ERREXIT(info, JERR_INPUT_EOF);
}

static void jpeg_rows(struct jpeg_state *state, uint8_t *to, int64_t stride, JDIMENSION rows)
{
    for (JDIMENSION done = 0; done < rows;) {
        JSAMPROW lines[ROWS];
        JDIMENSION count = rows - done < ROWS ? rows - done : ROWS;
        for (JDIMENSION i = 0; i < count; i++)
            lines[i] = to + (int64_t)(done + i) * stride;
        JDIMENSION got = jpeg_read_scanlines(&state->info, lines, count);
        if (got == 0)
            ERREXIT(&state->info, JERR_INPUT_EOF);
        done += got;
    }
}

static uint8_t jpeg_multiply(unsigned a, unsigned b)
{
    unsigned product = a * b + 128;
    return (uint8_t)((product + (product >> 8)) >> 8); /* a * b / 255, rounded */
}

/* CMYK -> RGB or RGBA, in place: a row does not grow. Ink is stored inverted, as Adobe began and
 * all who write such files do, with Adobe's marker or without. */
static void jpeg_mix_inks(uint8_t *row, JDIMENSION width, int32_t channels)
{
    uint8_t *to = row;
    const uint8_t *from = row;
    for (JDIMENSION x = 0; x < width; x++, from += 4, to += channels) {
        uint8_t white = from[3];
        for (int c = 0; c < 3; c++)
            to[c] = white - jpeg_multiply(255 - from[c], white);
        if (channels == 4)
            to[3] = 255;
    }
}

static void jpeg_set_view(const struct jpeg_part *part, const struct image_want *box,
                          unsigned scale, struct image_view *view)
{
    view->width = (int32_t)part->width;
    view->height = (int32_t)part->height;
    view->channels = part->channels;
    view->x0 = (double)box->x * scale / 8 - part->x;
    view->y0 = (double)box->y * scale / 8 - part->y;
    view->x1 = ((double)box->x + box->width) * scale / 8 - part->x;
    view->y1 = ((double)box->y + box->height) * scale / 8 - part->y;
}

static stk_status jpeg_decode(struct jpeg_state *state, const struct image_want *box,
                              struct image_buffer *buffer, struct image_view *view)
{
    struct jpeg_decompress_struct *info = &state->info;
    struct jpeg_part part;
    if (setjmp(state->jump))
        return state->status;
    jpeg_seek(state, box, &part);
    stk_status status = image_buffer_room(buffer, (int32_t)part.columns, (int32_t)part.height,
                                          part.channels, &view->stride, state->err);
    if (status)
        return status;
    uint8_t *pixels = buffer->data + OFFSET;
    jpeg_rows(state, pixels, view->stride, part.height);
    if (info->out_color_space == JCS_CMYK) {
        part.channels = box->channels == IMAGE_CHANNELS_RGBA ? 4 : 3;
        for (JDIMENSION y = 0; y < part.height; y++)
            jpeg_mix_inks(pixels + y * view->stride, part.columns, part.channels);
    }
    jpeg_set_view(&part, box, info->scale_num, view);
    view->pixels = pixels + (int64_t)(part.x - part.from) * part.channels;
    return STK_OK;
}

static stk_status jpeg_read(void *own, const struct image_want *box, struct image_buffer *buffer,
                            struct image_view *view, struct stk_error *err)
{
    struct jpeg_state *state = own;
    state->err = err;
    stk_status status = jpeg_decode(state, box, buffer, view);
    jpeg_abort_decompress(&state->info); /* what the library holds of a large image goes now */
    return status;
}

const struct image_format jpeg_image_format = {
    .name = "jpeg",
    .open = jpeg_open,
    .close = jpeg_close,
    .held = jpeg_held,
    .begin = jpeg_begin,
    .read = jpeg_read,
};
