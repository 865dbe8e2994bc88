#include "show/cell_draw.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/fail.h"
#include "show/plot.h"
#include "transform/cast.h"

#define FRAMES 6       /* of a video at most */
#define FRAME_GAP 2    /* pixels between them */
#define WAVES 8        /* channels of a recording at most */
#define LINES 12       /* columns of a table that are lines; more become a map */
#define NIGHT 0x1b1f27 /* behind images that do not fill their cell */

/* --- images and videos ------------------------------------------------------------------------ */

/* The last three axes as an image: (H, W, C), or (C, H, W). */
static struct pixels pixels_of(const struct stk_flow *flow)
{
    const struct stk_tensor *tensor = &flow->tensor;
    const int64_t *shape = tensor->shape + tensor->rank - 3;
    struct pixels pixels = {.data = tensor->data, .dtype = tensor->dtype};
    if (flow->channels_first) {
        pixels.channels = shape[0], pixels.height = shape[1], pixels.width = shape[2];
        pixels.pixel = 1;
        pixels.row = pixels.width;
        pixels.channel = pixels.height * pixels.width;
    } else {
        pixels.height = shape[0], pixels.width = shape[1], pixels.channels = shape[2];
        pixels.channel = 1;
        pixels.pixel = pixels.channels;
        pixels.row = pixels.width * pixels.channels;
    }
    return pixels;
}

static stk_status draw_image(struct canvas *canvas, struct box box, const struct stk_flow *flow,
                             const struct pixel_levels *levels, struct scratch *scratch,
                             struct stk_error *err)
{
    struct pixels pixels = pixels_of(flow);
    canvas_fill(canvas, box, NIGHT);
    return picture_draw(canvas, box, &pixels, levels, scratch, err);
}

/* Frames of a video in their cell, in the order of reading. */
struct strip {
    int32_t count, columns, rows;
};

/* So many frames, in so many columns, that they cover most of the cell. */
static struct strip strip_of(struct box box, int32_t most, int64_t width, int64_t height)
{
    struct strip best = {1, 1, 1};
    double covered = 0;
    for (int32_t count = 1; count <= most; count++)
        for (int32_t columns = 1; columns <= count; columns++) {
            int32_t rows = (count + columns - 1) / columns;
            double wide = (double)box.width / columns / (double)width;
            double high = (double)box.height / rows / (double)height;
            double scale = wide < high ? wide : high;
            double covers = count * scale * scale;
            if (covers >= covered) { /* of equal ones the one of most frames */
                covered = covers;
                best = (struct strip){count, columns, rows};
            }
        }
    return best;
}

/* (T, H, W, C) or (C, T, H, W); of several clips the first. */
static stk_status draw_video(struct canvas *canvas, struct box box, const struct stk_flow *flow,
                             const struct pixel_levels *levels, struct scratch *scratch,
                             struct stk_error *err)
{
    struct pixels frame = pixels_of(flow);
    const int64_t *shape = flow->tensor.shape + flow->tensor.rank - 4;
    int64_t all = shape[flow->channels_first ? 1 : 0], step = frame.row * frame.height;
    if (flow->channels_first) {
        frame.channels = shape[0];
        frame.channel = all * frame.height * frame.width;
    }
    canvas_fill(canvas, box, NIGHT);
    if (all < 1 || frame.width < 1 || frame.height < 1)
        return fail(err, STK_SHAPE, "the video has no frames that can be drawn");
    struct strip strip =
        strip_of(box, all < FRAMES ? (int32_t)all : FRAMES, frame.width, frame.height);
    const uint8_t *first = frame.data;
    stk_status status = STK_OK;
    for (int32_t i = 0; i < strip.count && !status; i++) {
        int64_t number = strip.count > 1 ? (all - 1) * i / (strip.count - 1) : 0;
        int32_t wide = box.width / strip.columns, high = box.height / strip.rows;
        struct box part = {box.x + i % strip.columns * wide + FRAME_GAP / 2,
                           box.y + i / strip.columns * high + FRAME_GAP / 2, wide - FRAME_GAP,
                           high - FRAME_GAP};
        frame.data = first + (uint64_t)(number * step) * stk_dtype_size(frame.dtype);
        status = picture_draw(canvas, part, &frame, levels, scratch, err);
    }
    return status;
}

/* --- numbers ---------------------------------------------------------------------------------- */

/* The tensor's first `count` elements as floats. NULL: no memory. */
static const float *floats_of(const struct stk_tensor *tensor, uint64_t count,
                              struct scratch *scratch)
{
    if (tensor->dtype == STK_F32)
        return tensor->data;
    float *values = scratch_take(scratch, count * sizeof *values);
    if (values)
        cast_elements(tensor->data, tensor->dtype, values, STK_F32, CAST_VALUES, count);
    return values;
}

/* Shape without axes of length 1, and of the axes in front of the last two only their first. */
struct table {
    int64_t rows, columns;
};

static struct table table_of(const struct stk_tensor *tensor)
{
    struct table table = {1, 1};
    for (int32_t axis = 0; axis < tensor->rank; axis++)
        if (tensor->shape[axis] != 1) {
            table.rows = table.columns;
            table.columns = tensor->shape[axis];
        }
    return table;
}

static void draw_number(struct canvas *canvas, struct box box, double value)
{
    char text[32];
    struct text_style style = {box.width >= 128 ? 3 : 1, 0x22262c};
    int len = snprintf(text, sizeof text, "%.6g", value);
    canvas_fill(canvas, box, PLOT_PAPER);
    int32_t wide = text_width(text, (size_t)len, style.scale);
    canvas_text(canvas, box.x + (box.width - wide) / 2,
                box.y + (box.height - text_height(style.scale)) / 2, box.width, text, style);
}

static void draw_table(struct canvas *canvas, struct box box, const float *values,
                       struct table table)
{
    struct plot_lines lines = {.values = values};
    if (table.rows == 1 && table.columns == 1) {
        draw_number(canvas, box, values[0]);
        return;
    }
    if (table.columns <= LINES && table.columns < table.rows) { /* rows are steps of time */
        lines.count = table.rows, lines.lines = table.columns;
        lines.step = table.columns, lines.line_step = 1;
        plot_lines(canvas, box, &lines);
    } else if (table.rows <= LINES) {
        lines.count = table.columns, lines.lines = table.rows;
        lines.step = 1, lines.line_step = table.columns;
        plot_lines(canvas, box, &lines);
    } else {
        plot_map(canvas, box, values, table.rows, table.columns, PLOT_ROWS_DOWN);
    }
}

static stk_status draw_numbers(struct canvas *canvas, struct box box, const struct stk_flow *flow,
                               struct scratch *scratch, struct stk_error *err)
{
    const struct stk_tensor *tensor = &flow->tensor;
    struct table table = table_of(tensor);
    uint64_t count = (uint64_t)(table.rows * table.columns);
    if (cast_is_complex(tensor->dtype))
        return fail(err, STK_UNSUPPORTED, "complex numbers cannot be drawn");
    if (!stk_tensor_size(tensor))
        return fail(err, STK_SHAPE, "the tensor is empty");
    if (flow->media == STK_MEDIA_POINTS || flow->media == STK_MEDIA_AUDIO)
        count = stk_tensor_size(tensor) / stk_dtype_size(tensor->dtype);
    const float *values = floats_of(tensor, count, scratch);
    if (!values)
        return fail_memory(err, count * sizeof(float));
    if (flow->media == STK_MEDIA_POINTS && tensor->rank == 2) {
        int64_t real = flow->real >= 0 ? flow->real : tensor->shape[0];
        plot_points(canvas, box, values, real, tensor->shape[1]);
    } else if (flow->media == STK_MEDIA_AUDIO && tensor->rank == 3) {
        plot_map(canvas, box, values, tensor->shape[1], tensor->shape[2], PLOT_ROWS_UP);
    } else if (flow->media == STK_MEDIA_AUDIO && tensor->rank == 2) {
        struct plot_lines waves = {values, tensor->shape[1],
                                   tensor->shape[0] < WAVES ? tensor->shape[0] : WAVES, 1,
                                   tensor->shape[1]};
        plot_waves(canvas, box, &waves);
    } else {
        draw_table(canvas, box, values, table);
    }
    return STK_OK;
}

/* --- what it is ------------------------------------------------------------------------------- */

/* A plain tensor of bytes whose last axis may be channels. */
static enum stk_media looks_like(const struct stk_flow *flow)
{
    const struct stk_tensor *tensor = &flow->tensor;
    int64_t last = tensor->rank ? tensor->shape[tensor->rank - 1] : 0;
    if (flow->media != STK_MEDIA_TENSOR)
        return flow->media;
    if (tensor->dtype != STK_U8 || (last != 1 && last != 3 && last != 4))
        return STK_MEDIA_TENSOR;
    return tensor->rank == 3   ? STK_MEDIA_IMAGE
           : tensor->rank == 4 ? STK_MEDIA_VIDEO
                               : STK_MEDIA_TENSOR;
}

stk_status cell_draw(struct canvas *canvas, struct box box, const struct stk_flow *flow,
                     const struct pixel_levels *levels, struct scratch *scratch,
                     struct stk_error *err)
{
    switch (looks_like(flow)) {
    case STK_MEDIA_IMAGE:
        if (flow->tensor.rank == 3)
            return draw_image(canvas, box, flow, levels, scratch, err);
        break;
    case STK_MEDIA_VIDEO:
        if (flow->tensor.rank >= 4)
            return draw_video(canvas, box, flow, levels, scratch, err);
        break;
    default:
        break;
    }
    return draw_numbers(canvas, box, flow, scratch, err);
}

void cell_describe(const struct stk_flow *flow, char *text, size_t cap)
{
    const struct stk_tensor *tensor = &flow->tensor;
    size_t len = 0;
    text[0] = 0;
    for (int32_t axis = 0; axis < tensor->rank && len < cap; axis++)
        len += (size_t)snprintf(text + len, cap - len, "%s%" PRId64, axis ? "x" : "",
                                tensor->shape[axis]);
    if (len < cap)
        len += (size_t)snprintf(text + len, cap - len, "%s%s", len ? " " : "",
                                stk_dtype_name(tensor->dtype));
    if (flow->media == STK_MEDIA_AUDIO && flow->rate > 0 && len < cap)
        len += (size_t)snprintf(text + len, cap - len, ", %g kHz", flow->rate / 1000);
    if (flow->media == STK_MEDIA_VIDEO && flow->rate > 0 && len < cap)
        len += (size_t)snprintf(text + len, cap - len, ", %.4g fps", flow->rate);
    if (flow->real >= 0 && len < cap) /* the rest is padding */
        snprintf(text + len, cap - len, ", %" PRId64 " real", flow->real);
}
