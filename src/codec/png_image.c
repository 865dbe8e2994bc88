#include <inttypes.h>
#include <setjmp.h>
#include <string.h>

#include <png.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/scratch.h"

#include "codec/exif.h"
#include "codec/image_format.h"

#define CHUNK_LIMIT (1 << 20) /* bytes of a chunk that is kept: palette, transparency, Exif */
#define RELAXED_STEP 256      /* bytes unpacked at a time */
#define LATE_EVERY 16         /* rows between two looks at the clock */
#define GRAY 128              /* what a relaxed decode puts where the data are missing */

struct png_state {
    png_structp png; /* made for every image: the library cannot use one twice */
    png_infop info;
    struct scratch scratch; /* all that the library allocates; given back at once */
    const struct image_task *task;
    size_t at; /* in the task's bytes */
    struct stk_error *err;
    stk_status status; /* of the jump */
    int32_t width, height;
    uint32_t ticks;
};

/* ---- what the library calls ---------------------------------------------------------------- */

static png_voidp png_on_malloc(png_structp png, png_alloc_size_t size)
{
    struct png_state *state = png_get_mem_ptr(png);
    void *block = scratch_take(&state->scratch, size);
    if (!block)
        state->status = STK_MEMORY;
    return block;
}

static void png_on_free(png_structp png, png_voidp block)
{
    (void)png;
    (void)block;
}

static void png_on_error(png_structp png, png_const_charp words)
{
    struct png_state *state = png_get_error_ptr(png);
    switch (state->status) {
    case STK_MEMORY:
        fail_memory(state->err, 0);
        break;
    case STK_LIMIT: /* has its words */
        break;
    case STK_TRUNCATED:
        image_fail(state->err, STK_TRUNCATED, "the PNG ends too early");
        break;
    default:
        state->status = STK_CORRUPT;
        image_fail(state->err, STK_CORRUPT, "the PNG is damaged: %s", words);
    }
    png_longjmp(png, 1);
}

/* Warnings are about chunks that are not used, and about profiles. */
static void png_on_warning(png_structp png, png_const_charp words)
{
    (void)png;
    (void)words;
}

static void png_on_read(png_structp png, png_bytep to, size_t len)
{
    struct png_state *state = png_get_io_ptr(png);
    const struct stk_bytes *bytes = &state->task->bytes;
    if (len > bytes->len - state->at) {
        state->status = STK_TRUNCATED;
        png_error(png, "end of data");
    }
    memcpy(to, bytes->data + state->at, len);
    state->at += len;
}

/* ---- state --------------------------------------------------------------------------------- */

static void png_end(struct png_state *state)
{
    png_destroy_read_struct(&state->png, &state->info, NULL);
    scratch_reset(&state->scratch);
}

static stk_status png_open(void **out, struct stk_error *err)
{
    *out = memory_zero(1, sizeof(struct png_state));
    return *out ? STK_OK : fail_memory(err, sizeof(struct png_state));
}

static void png_close(void *own)
{
    struct png_state *state = own;
    if (!state)
        return;
    png_end(state);
    scratch_free(&state->scratch);
    memory_free(state);
}

static uint64_t png_held(const void *own)
{
    const struct png_state *state = own;
    return sizeof *state + scratch_size(&state->scratch);
}

/* ---- header -------------------------------------------------------------------------------- */

/* Names of chunks that change no pixel here; none of them is unpacked. */
static const png_byte png_unused[] = "bKGD\0cHRM\0cICP\0gAMA\0hIST\0iCCP\0iTXt\0oFFs\0pCAL\0pHYs\0"
                                     "sBIT\0sCAL\0sPLT\0sRGB\0tEXt\0tIME\0zTXt";

static void png_set_limits(struct png_state *state)
{
    png_set_user_limits(state->png, INT32_MAX, INT32_MAX); /* pixels are counted by the task */
    png_set_chunk_malloc_max(state->png, CHUNK_LIMIT);
    png_set_chunk_cache_max(state->png, 16);
    png_set_keep_unknown_chunks(state->png, PNG_HANDLE_CHUNK_NEVER, NULL, 0);
    png_set_keep_unknown_chunks(state->png, PNG_HANDLE_CHUNK_NEVER, png_unused,
                                (int)(sizeof png_unused / 5));
    if (state->task->limits.relaxed) /* read in small steps, up to the end of what is there */
        png_set_compression_buffer_size(state->png, RELAXED_STEP);
    else /* transparency changes pixels: its checksum counts too */
        png_set_crc_action(state->png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
}

static int png_has_transparency(const struct png_state *state)
{
    return (png_get_color_type(state->png, state->info) & PNG_COLOR_MASK_ALPHA) ||
           png_get_valid(state->png, state->info, PNG_INFO_tRNS);
}

static int png_is_gray(const struct png_state *state)
{
    return !(png_get_color_type(state->png, state->info) & PNG_COLOR_MASK_COLOR);
}

static void png_describe(struct png_state *state, struct image_stored *stored)
{
    png_bytep exif = NULL;
    png_uint_32 exif_len = 0;
    stored->width = state->width;
    stored->height = state->height;
    stored->channels = png_has_transparency(state) ? 4 : png_is_gray(state) ? 1 : 3;
    stored->bits = png_get_bit_depth(state->png, state->info) == 16 ? 16 : 8;
    if (png_get_eXIf_1(state->png, state->info, &exif_len, &exif) && exif) {
        struct stk_bytes bytes = {exif, exif_len};
        stored->orientation = exif_orientation(&bytes);
    }
}

static stk_status png_begin(void *own, const struct image_task *task, struct image_stored *stored,
                            struct stk_error *err)
{
    struct png_state *state = own;
    png_end(state);
    state->task = task;
    state->err = err;
    state->status = STK_OK;
    state->at = 0;
    state->ticks = 0;
    state->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, state, png_on_error,
                                          png_on_warning, state, png_on_malloc, png_on_free);
    state->info = state->png ? png_create_info_struct(state->png) : NULL;
    if (!state->info)
        return fail_memory(err, 0);
    if (setjmp(png_jmpbuf(state->png)))
        return state->status;
    png_set_read_fn(state->png, state, png_on_read);
    png_set_limits(state);
    png_read_info(state->png, state->info);
    state->width = (int32_t)png_get_image_width(state->png, state->info);
    state->height = (int32_t)png_get_image_height(state->png, state->info);
    png_describe(state, stored);
    return STK_OK;
}

/* ---- pixels -------------------------------------------------------------------------------- */

/* Asks the library for 8 bits and the channels wanted; says how many those are. */
static int32_t png_choose_colors(struct png_state *state, enum image_channels channels)
{
    int alpha = png_has_transparency(state), gray = png_is_gray(state);
    int want_alpha = channels == IMAGE_CHANNELS_RGBA || (channels == IMAGE_CHANNELS_KEEP && alpha);
    int want_gray =
        gray && (channels == IMAGE_CHANNELS_GRAY || (channels == IMAGE_CHANNELS_KEEP && !alpha));
    png_set_expand(state->png); /* palettes and few bits to 8, transparency to alpha */
    if (png_get_bit_depth(state->png, state->info) == 16)
        png_set_strip_16(state->png);
    if (gray && !want_gray)
        png_set_gray_to_rgb(state->png);
    if (alpha && !want_alpha)
        png_set_strip_alpha(state->png);
    if (!alpha && want_alpha)
        png_set_add_alpha(state->png, 0xff, PNG_FILLER_AFTER);
    return want_alpha ? 4 : want_gray ? 1 : 3;
}

/* Rows outside the box are unpacked and dropped: each depends on the one above it. */
static void png_rows(struct png_state *state, const struct image_want *box, uint8_t *to,
                     int64_t stride, int passes, volatile int32_t *done)
{
    int32_t end = box->y + box->height;
    for (int pass = 0; pass < passes; pass++) {
        int32_t rows = pass < passes - 1 ? state->height : end; /* nothing follows the last */
        for (int32_t y = 0; y < rows; y++) {
            int inside = y >= box->y && y < end;
            png_read_row(state->png, inside ? to + (y - box->y) * stride : NULL, NULL);
            *done = inside && passes == 1 ? y - box->y + 1 : *done;
            if (state->ticks++ % LATE_EVERY || !image_task_is_late(state->task))
                continue;
            state->status = image_task_fail_late(state->task, state->err);
            png_error(state->png, "late");
        }
    }
}

static int png_is_forgiven(const struct png_state *state)
{
    return state->task->limits.relaxed &&
           (state->status == STK_TRUNCATED || state->status == STK_CORRUPT);
}

/* Decodes, with the library's errors caught. The buffer is there. */
static stk_status png_fill(struct png_state *state, const struct image_want *box, uint8_t *to,
                           int64_t stride, int passes)
{
    volatile int32_t done = 0;
    if (setjmp(png_jmpbuf(state->png))) {
        if (!png_is_forgiven(state))
            return state->status;
        if (passes == 1) /* else it was filled before, and a part of the passes lies over it */
            memset(to + done * stride, GRAY, (size_t)((box->height - done) * stride));
        return STK_OK;
    }
    if (passes > 1 && state->task->limits.relaxed)
        memset(to, GRAY, (size_t)(box->height * stride));
    png_rows(state, box, to, stride, passes, &done);
    return STK_OK;
}

static stk_status png_read(void *own, const struct image_want *box, struct image_buffer *buffer,
                           struct image_view *view, struct stk_error *err)
{
    struct png_state *state = own;
    state->err = err;
    if (setjmp(png_jmpbuf(state->png)))
        return state->status;
    view->channels = png_choose_colors(state, box->channels);
    int passes = png_set_interlace_handling(state->png);
    png_read_update_info(state->png, state->info);
    if (png_get_rowbytes(state->png, state->info) != (size_t)state->width * view->channels)
        return fail(err, STK_UNSUPPORTED, "the PNG has an unknown layout of pixels");
    stk_status status =
        image_buffer_room(buffer, state->width, box->height, view->channels, &view->stride, err);
    if (!status)
        status = png_fill(state, box, buffer->data, view->stride, passes);
    if (status)
        return status;
    view->pixels = buffer->data + (int64_t)box->x * view->channels;
    view->width = box->width;
    view->height = box->height;
    view->x1 = box->width;
    view->y1 = box->height;
    return STK_OK;
}

const struct image_format png_image_format = {
    .name = "png",
    .open = png_open,
    .close = png_close,
    .held = png_held,
    .begin = png_begin,
    .read = png_read,
};
