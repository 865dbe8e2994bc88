#include "transform/image_resample.h"

#include <assert.h>
#include <string.h>

#include "base/fail.h"
#include "transform/image_coefficients.h"
#include "transform/image_passes.h"
#include "transform/image_write.h"

/* How an axis is gone through. */
enum axis_way {
    AXIS_DIRECT, /* pixels lie as they are wanted */
    AXIS_PICKED, /* each is one of the source's: nearest, or mirrored */
    AXIS_WEIGHED /* a weighed sum */
};

struct axis_plan {
    struct axis axis;
    enum axis_way way;
    int32_t base;    /* DIRECT and PICKED: the source's pixel that counts as 0 */
    int32_t *picked; /* PICKED: one an output */
    struct coefficients table;
    int32_t place; /* of the output: before it, and behind place + axis.count, is only fill */
};

/* One call's work. Rows come from the view, or from the pass across; the pass down makes a row of
 * them (or made them all before the pass across); that is picked from, surrounded with fill and
 * written. Most of these steps do nothing. */
struct work {
    const struct image_geometry *geometry;
    const struct image_writer *writer;
    const struct image_passes *passes;
    const struct image_write_loops *loops;
    struct axis_plan across, down;
    int32_t channels;
    const uint8_t *rows; /* what the pass down reads */
    int64_t stride;
    int32_t row_count;
    uint8_t *made, *chosen, *framed; /* a row after each step */
    float *line;
};

/* --- planning ------------------------------------------------------------------------------- */

static void axis_clip(struct axis_plan *plan, int32_t out, int32_t out_len, int mirrored)
{
    int32_t before = out < 0 ? -out : 0;
    int32_t stop = out_len < plan->axis.to - out ? out_len : plan->axis.to - out;
    before = before < out_len ? before : out_len;
    int32_t count = stop > before ? stop - before : 0;
    plan->axis.first = out + before;
    plan->axis.count = count;
    plan->axis.mirrored = mirrored;
    plan->place = mirrored ? out_len - before - count : before;
}

static stk_status axis_prepare(struct axis_plan *plan, int picks, struct scratch *scratch,
                               struct stk_error *err)
{
    struct axis *axis = &plan->axis;
    int32_t offset;
    if (axis_is_copy(axis, &offset)) {
        plan->way = picks || axis->mirrored ? AXIS_PICKED : AXIS_DIRECT;
        plan->base = offset + axis->first;
        if (plan->way == AXIS_DIRECT)
            return STK_OK;
        struct axis copy = {.from = axis->count,
                            .stop = axis->count,
                            .to = axis->count,
                            .count = axis->count,
                            .mirrored = axis->mirrored};
        return nearest_make(&plan->picked, &copy, scratch, err);
    }
    plan->way = axis->filter == IMAGE_NEAREST ? AXIS_PICKED : AXIS_WEIGHED;
    if (plan->way == AXIS_PICKED)
        return nearest_make(&plan->picked, axis, scratch, err);
    return coefficients_make(&plan->table, axis, scratch, err);
}

static stk_status work_plan(struct work *work, const struct image_view *view,
                            struct scratch *scratch, struct stk_error *err)
{
    const struct image_geometry *geometry = work->geometry;
    struct axis common = {.filter = geometry->filter, .antialias = geometry->antialias};
    work->across.axis = work->down.axis = common;
    work->across.axis.from = view->width;
    work->across.axis.start = view->x0;
    work->across.axis.stop = view->x1;
    work->across.axis.to = geometry->to_width;
    work->down.axis.from = view->height;
    work->down.axis.start = view->y0;
    work->down.axis.stop = view->y1;
    work->down.axis.to = geometry->to_height;
    axis_clip(&work->across, geometry->out_x, geometry->out_width, geometry->flip_x);
    axis_clip(&work->down, geometry->out_y, geometry->out_height, geometry->flip_y);
    if (!work->across.axis.count || !work->down.axis.count) { /* nothing but fill is seen */
        work->across.axis.count = work->down.axis.count = 0;
        return STK_OK;
    }
    stk_status status = axis_prepare(&work->across, 0, scratch, err);
    if (!status) /* rows are always picked or weighed: a copy is a pick of each */
        status = axis_prepare(&work->down, 1, scratch, err);
    return status;
}

/* --- the passes over the whole picture ------------------------------------------------------ */

struct range {
    int32_t first, stop;
};

/* Pixels of the source that the axis looks at. Their order is that of the outputs, or its reverse:
 * the ends tell. */
static struct range axis_needs(const struct axis_plan *plan)
{
    int weighed = plan->way == AXIS_WEIGHED;
    const int32_t *from = weighed ? plan->table.from : plan->picked;
    int32_t low = from[0], high = from[plan->axis.count - 1], base = weighed ? 0 : plan->base;
    int32_t first = low < high ? low : high, last = low < high ? high : low;
    int32_t stop = base + last + (weighed ? plan->table.taps : 1);
    return (struct range){base + first, stop < plan->axis.from ? stop : plan->axis.from};
}

/* The source is now what lies from pixel `first` on. */
static void axis_rebase(struct axis_plan *plan, int32_t first)
{
    if (plan->way != AXIS_WEIGHED) {
        plan->base -= first;
        return;
    }
    for (int32_t i = 0; i < plan->axis.count; i++)
        plan->table.from[i] -= first;
}

/* Room for rows, which become what the next pass reads. */
static uint8_t *rows_room(struct work *work, int32_t width, int32_t count, struct scratch *scratch,
                          struct stk_error *err)
{
    int64_t stride = (int64_t)width * work->channels + PASS_SLACK;
    stride = (stride + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    uint64_t bytes = (uint64_t)stride * (uint64_t)count;
    uint8_t *room = scratch_take(scratch, bytes);
    if (!room)
        (void)fail_memory(err, bytes);
    work->rows = room;
    work->stride = stride;
    work->row_count = count;
    return room;
}

static stk_status pass_across(struct work *work, int32_t width, struct scratch *scratch,
                              struct stk_error *err)
{
    struct range range = axis_needs(&work->down);
    struct pass_rows rows = {.from = work->rows + range.first * work->stride,
                             .from_stride = work->stride,
                             .count = range.stop - range.first,
                             .width = width,
                             .channels = work->channels};
    rows.to = rows_room(work, work->across.axis.count, rows.count, scratch, err);
    if (!rows.to)
        return STK_MEMORY;
    rows.to_stride = work->stride;
    work->passes->across(&rows, &work->across.table);
    axis_rebase(&work->down, range.first);
    return STK_OK;
}

/* Every output row, of all columns that the pass across looks at. Then rows are there to be picked.
 */
static stk_status pass_down(struct work *work, int32_t *width, struct scratch *scratch,
                            struct stk_error *err)
{
    struct range range = axis_needs(&work->across);
    const uint8_t *from = work->rows + (int64_t)range.first * work->channels;
    int64_t stride = work->stride;
    int32_t height = work->row_count, count = work->down.axis.count;
    *width = range.stop - range.first;
    uint8_t *room = rows_room(work, *width, count, scratch, err);
    if (!room)
        return STK_MEMORY;
    for (int32_t i = 0; i < count; i++)
        work->passes->down(from, stride, height, &work->down.table, i,
                           (int64_t)*width * work->channels, room + i * work->stride);
    axis_rebase(&work->across, range.first);
    work->down.axis = (struct axis){.from = count, .stop = count, .to = count, .count = count};
    return axis_prepare(&work->down, 1, scratch, err);
}

/* Pillow's rule since 13; before it, always across first. So is torch's, which is the model without
 * antialias. For bilinear and area the order makes one level of difference; the others' overshoot
 * is cut between the passes. */
static int is_down_first(const struct work *work)
{
    const struct axis *across = &work->across.axis, *down = &work->down.axis;
    int64_t less_wide = (int64_t)across->from - across->to;
    int64_t less_high = (int64_t)down->from - down->to;
    return across->antialias && work->down.way == AXIS_WEIGHED && less_high > 0 &&
           less_high > 2 * less_wide;
}

static stk_status passes_run(struct work *work, const struct image_view *view,
                             struct scratch *scratch, struct stk_error *err)
{
    work->rows = view->pixels + (int64_t)work->across.base * work->channels;
    work->stride = view->stride;
    work->row_count = view->height;
    int32_t width = view->width;
    stk_status status = STK_OK;
    if (work->across.way != AXIS_WEIGHED)
        return STK_OK;
    if (is_down_first(work))
        status = pass_down(work, &width, scratch, err);
    if (!status)
        status = pass_across(work, width, scratch, err);
    return status;
}

/* --- rows ----------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void pick_pixels(const uint8_t *from,
                                                              const int32_t *picked, int32_t count,
                                                              int32_t channels, uint8_t *to)
{
    for (int32_t i = 0; i < count; i++)
        for (int32_t c = 0; c < channels; c++)
            to[i * channels + c] = from[picked[i] * channels + c];
}

static void pick_row(const struct work *work, const uint8_t *from, uint8_t *to)
{
    const int32_t *picked = work->across.picked;
    int32_t count = work->across.axis.count;
    if (work->channels == 3)
        pick_pixels(from, picked, count, 3, to);
    else if (work->channels == 1)
        pick_pixels(from, picked, count, 1, to);
    else
        pick_pixels(from, picked, count, work->channels, to);
}

static void fill_pixels(const struct work *work, uint8_t *to, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        memcpy(to + i * work->channels, work->geometry->fill, (size_t)work->channels);
}

/* Bytes of the row that the pass down makes. */
static int64_t made_bytes(const struct work *work)
{
    return (int64_t)work->across.axis.count * work->channels;
}

/* Row i of what is seen of the picture. place: where it may be made at once; NULL: nowhere. */
static const uint8_t *row_make(const struct work *work, int32_t i, uint8_t *place)
{
    const struct axis_plan *down = &work->down;
    int picks = work->across.way == AXIS_PICKED;
    const uint8_t *row;
    if (down->way == AXIS_PICKED) {
        row = work->rows + (down->base + down->picked[i]) * work->stride;
    } else {
        uint8_t *made = picks || !place ? work->made : place;
        work->passes->down(work->rows, work->stride, work->row_count, &down->table, i,
                           made_bytes(work), made);
        row = made;
    }
    if (!picks)
        return row;
    uint8_t *chosen = place ? place : work->chosen;
    pick_row(work, row, chosen);
    return chosen;
}

static void row_write(const struct work *work, int32_t y, uint8_t *to)
{
    const struct image_geometry *geometry = work->geometry;
    int32_t width = geometry->out_width, left = work->across.place;
    int32_t inner = work->across.axis.count, i = y - work->down.place;
    const uint8_t *row = work->framed;
    if (i < 0 || i >= work->down.axis.count) {
        fill_pixels(work, work->framed, width);
    } else if (inner == width) {
        uint8_t *place = image_write_is_copy(work->writer, work->channels) ? to : NULL;
        row = row_make(work, i, place);
        if (row == to)
            return;
    } else {
        uint8_t *place = work->framed + (int64_t)left * work->channels;
        row = row_make(work, i, place);
        if (row != place)
            memcpy(place, row, (size_t)inner * (size_t)work->channels);
        fill_pixels(work, work->framed, left);
        fill_pixels(work, place + (int64_t)inner * work->channels, width - left - inner);
        row = work->framed;
    }
    image_write_row(work->loops, work->writer, row, width, work->channels, work->line, to);
}

static stk_status rows_take(struct work *work, struct scratch *scratch, struct stk_error *err)
{
    uint64_t bytes = (uint64_t)work->geometry->out_width * (uint64_t)work->channels;
    work->made = scratch_take(scratch, bytes);
    work->chosen = scratch_take(scratch, bytes);
    work->framed = scratch_take(scratch, bytes);
    work->line = scratch_take(scratch, bytes * sizeof *work->line);
    if (!work->made || !work->chosen || !work->framed || !work->line)
        return fail_memory(err, bytes * (3 + sizeof *work->line));
    return STK_OK;
}

stk_status image_resample(const struct image_view *view, const struct image_geometry *geometry,
                          const struct image_writer *writer, void *to, struct scratch *scratch,
                          struct stk_error *err)
{
    assert(view->channels >= 1 && view->channels <= 4);
    struct work work = {.geometry = geometry,
                        .writer = writer,
                        .passes = image_passes_best(),
                        .loops = image_write_best(),
                        .channels = view->channels};
    struct scratch_mark mark = scratch_mark(scratch); /* frames of a video come one by one */
    stk_status status = work_plan(&work, view, scratch, err);
    if (!status)
        status = rows_take(&work, scratch, err);
    if (!status && work.down.axis.count)
        status = passes_run(&work, view, scratch, err);
    if (status)
        goto done;
    int64_t step = writer->row * (int64_t)stk_dtype_size(writer->dtype);
    for (int32_t y = 0; y < geometry->out_height; y++)
        row_write(&work, y, (uint8_t *)to + y * step);
done:
    scratch_return(scratch, mark);
    return status;
}
