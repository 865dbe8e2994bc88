#include <stdio.h>
#include <string.h>

#include "base/context.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/text.h"
#include "pack/png_write.h"
#include "show/cell_draw.h"
#include "show/color_map.h"
#include "show/sheet_layout.h"
#include "show/show_source.h"
#include "transform/cast.h"

#define PAPER 0xf4f5f7
#define INK 0x1c2026
#define PALE_INK 0x6b7280
#define BEFORE_FRAME 0xaeb4bd
#define AFTER_FRAME 0x1f6fb4
#define ERROR_PAPER 0xfdecea
#define ERROR_INK 0xa3261e
#define CELL_LEAST 32
#define CELL_MOST 2048
#define COLUMNS_MOST 256
#define PNG_LEVEL 6

struct sheet {
    struct stk_sheet seen; /* what the caller has */
    struct canvas canvas;
    struct stk_sheet_cell *cells;
    struct text png;
};

struct drawing {
    struct sheet *sheet;
    struct sheet_layout layout;
    struct show_source source;
    struct scratch scratch;
    const char *title, *chain; /* chain: its canonical text; NULL: none */
};

/* --- the head --------------------------------------------------------------------------------- */

static struct box inner_width(const struct sheet_layout *layout, int32_t y)
{
    return (struct box){layout->margin, y, layout->width - 2 * layout->margin, INT32_MAX / 2};
}

static void swatch(struct canvas *canvas, const struct sheet_layout *layout, int32_t y, color color)
{
    int32_t side = 7 * layout->large;
    if (canvas)
        canvas_frame(canvas, (struct box){layout->margin, y, side, side}, layout->large, color);
}

/* Title, and what the two cells of a sample are. canvas NULL: only measured. Returns its height. */
static int32_t draw_head(struct canvas *canvas, const struct drawing *drawing)
{
    const struct sheet_layout *layout = &drawing->layout;
    struct text_style large = {layout->large, INK}, pale = {layout->large, PALE_INK};
    int32_t y = layout->margin, indent = 10 * layout->large;
    char words[96];
    if (drawing->title)
        y += canvas_wrapped(canvas, inner_width(layout, y), drawing->title, large);
    if (drawing->chain) {
        struct box box = inner_width(layout, y += layout->large * 2);
        box.x += indent, box.width -= indent;
        swatch(canvas, layout, box.y, BEFORE_FRAME);
        box.y += canvas_wrapped(canvas, box, "as stored", pale);
        swatch(canvas, layout, box.y, AFTER_FRAME);
        pale.color = AFTER_FRAME;
        box.y += canvas_wrapped(canvas, box, drawing->chain, pale);
        snprintf(words, sizeof words, "seed %llu, epoch %llu",
                 (unsigned long long)drawing->source.seed,
                 (unsigned long long)drawing->source.epoch);
        pale.color = PALE_INK;
        box.y += canvas_wrapped(canvas, box, words, pale);
        y = box.y;
    }
    return y == layout->margin ? y : y + layout->margin / 2 + 2;
}

/* --- a sample --------------------------------------------------------------------------------- */

/* What happened, and smaller what can be done. */
static void draw_words(struct drawing *drawing, struct box box, const struct stk_error *error)
{
    struct canvas *canvas = &drawing->sheet->canvas;
    int32_t pad = 4 * drawing->layout.large;
    struct box inner = {box.x + pad, box.y + pad, box.width - 2 * pad, box.height - 2 * pad};
    struct box measure = {0, 0, inner.width, INT32_MAX / 2};
    struct text_style what = {drawing->layout.large, ERROR_INK};
    struct text_style remedy = {drawing->layout.small, PALE_INK};
    int32_t left = inner.height - pad - canvas_wrapped(NULL, measure, error->remedy, remedy);
    while (what.scale > 1 && canvas_wrapped(NULL, measure, error->what, what) > left)
        what.scale--;
    canvas_fill(canvas, box, ERROR_PAPER);
    int32_t used = canvas_wrapped(canvas, inner, error->what, what) + pad;
    inner.y += used, inner.height -= used;
    canvas_wrapped(canvas, inner, error->remedy, remedy);
}

/* A fault of the sample is drawn; other ones end the sheet. */
static int is_fault(stk_status status)
{
    return status != STK_OK && status != STK_MEMORY && status != STK_CANCELLED &&
           status != STK_USAGE;
}

/* What it is, under its cell. */
static void draw_info(struct drawing *drawing, struct box box, const struct stk_flow *flow)
{
    const struct sheet_layout *layout = &drawing->layout;
    int32_t y = box.y + layout->caption + text_height(layout->large) + layout->large;
    struct text_style style = {layout->info, PALE_INK};
    char info[128];
    cell_describe(flow, info, sizeof info);
    if (text_width(info, strlen(info), style.scale) > box.width)
        style.scale = layout->small;
    canvas_text(&drawing->sheet->canvas, box.x, y, box.width, info, style);
}

typedef stk_status (*value_reader)(struct show_source *, struct stk_flow *, struct stk_error *);

/* One of the two cells. problem: not NULL when there is nothing to run. */
static stk_status draw_cell(struct drawing *drawing, struct box box, value_reader read,
                            const struct stk_error *problem, struct stk_sheet_cell *cell,
                            struct stk_error *err)
{
    static const struct pixel_levels unknown;
    struct sheet *sheet = drawing->sheet;
    struct stk_error own = problem ? *problem : (struct stk_error){0};
    struct stk_flow flow = {0};
    int is_after = read == show_source_after;
    stk_status status = problem ? problem->status : read(&drawing->source, &flow, &own);
    if (!status) {
        int normalized = is_after && cast_is_float(flow.tensor.dtype);
        scratch_reset(&drawing->scratch);
        status =
            cell_draw(&sheet->canvas, box, &flow, normalized ? &drawing->source.levels : &unknown,
                      &drawing->scratch, &own);
    }
    if (!status) {
        draw_info(drawing, box, &flow);
    } else if (is_fault(status)) {
        draw_words(drawing, box, &own);
        if (!*cell->words)
            memcpy(cell->words, own.what, sizeof own.what);
        status = STK_OK;
    } else {
        if (err)
            *err = own;
        return status;
    }
    canvas_frame(&sheet->canvas, box, is_after ? 2 : 1, is_after ? AFTER_FRAME : BEFORE_FRAME);
    return status;
}

/* A wedge between the two cells that points to the right. */
static void draw_arrow(struct drawing *drawing, struct box before)
{
    int32_t half = drawing->layout.gap / 3, middle = before.y + before.height / 2;
    int32_t left = before.x + before.width + (drawing->layout.gap - half) / 2;
    for (int32_t x = 0; x <= half; x++)
        canvas_fill(&drawing->sheet->canvas,
                    (struct box){left + x, middle - half + x, 1, 2 * (half - x) + 1}, AFTER_FRAME);
}

/* The key at the left, the class in its colour at the right. */
static void draw_caption(struct drawing *drawing, struct box before, uint64_t position)
{
    const struct sheet_layout *layout = &drawing->layout;
    struct canvas *canvas = &drawing->sheet->canvas;
    struct show_caption caption;
    int32_t y = before.y + layout->caption, room = layout->tile_width, pad = 2 * layout->large;
    show_source_caption(&drawing->source, position, &caption);
    if (*caption.class) {
        int32_t wide = text_width(caption.class, strlen(caption.class), layout->large);
        int32_t most = layout->tile_width * 3 / 5;
        wide = wide < most ? wide : most;
        struct box chip = {before.x + room - wide - 2 * pad, y - layout->large, wide + 2 * pad,
                           10 * layout->large};
        canvas_fill(canvas, chip,
                    caption.number >= 0 ? color_of_class((uint64_t)caption.number) : PALE_INK);
        canvas_text(canvas, chip.x + pad, y, wide, caption.class,
                    (struct text_style){layout->large, 0xffffff});
        room -= chip.width + pad;
    }
    canvas_text(canvas, before.x, y, room, caption.key, (struct text_style){layout->large, INK});
}

static struct stk_sheet_box public_box(struct box box)
{
    return (struct stk_sheet_box){(uint32_t)box.x, (uint32_t)box.y, (uint32_t)box.width,
                                  (uint32_t)box.height};
}

static stk_status draw_sample(struct drawing *drawing, uint32_t number, uint64_t position,
                              struct stk_error *err)
{
    struct stk_sheet_cell *cell = &drawing->sheet->cells[number];
    struct box before = sheet_layout_before(&drawing->layout, number);
    struct box after = sheet_layout_after(&drawing->layout, number);
    struct stk_error own = {0};
    stk_status status = show_source_read(&drawing->source, position, &own);
    const struct stk_error *problem = status ? &own : NULL;
    cell->position = position;
    cell->before = public_box(before);
    status = draw_cell(drawing, before, show_source_before, problem, cell, err);
    if (!status && drawing->source.after) {
        cell->after = public_box(after);
        draw_arrow(drawing, before);
        status = draw_cell(drawing, after, show_source_after, problem, cell, err);
    }
    if (!status)
        draw_caption(drawing, before, position);
    drawing->sheet->seen.bad += *cell->words != 0;
    return status;
}

/* --- the sheet -------------------------------------------------------------------------------- */

static stk_status check_options(const struct stk_show_options *options, struct stk_error *err)
{
    if (!options->count)
        return fail(err, STK_USAGE, "there is no sample to show");
    if (options->cell && (options->cell < CELL_LEAST || options->cell > CELL_MOST))
        return fail(err, STK_USAGE, "a cell has %d to %d pixels, not %u", CELL_LEAST, CELL_MOST,
                    options->cell);
    if (options->columns > COLUMNS_MOST)
        return fail(err, STK_USAGE, "%u columns are more than %d", options->columns, COLUMNS_MOST);
    return STK_OK;
}

static stk_status draw_all(struct drawing *drawing, struct stk_context *context,
                           const struct stk_show_options *options, struct stk_error *err)
{
    struct context_timer timer = {0};
    struct stk_progress progress = {.what = "drawing", .unit = "samples", .total = options->count};
    stk_status status = STK_OK;
    for (uint32_t i = 0; i < options->count && !status; i++) {
        status = draw_sample(drawing, i, options->positions[i], err);
        progress.done++;
        if (!status && context_progress(context, &timer, &progress))
            status = fail(err, STK_CANCELLED, "cancelled");
    }
    return status;
}

static stk_status sheet_begin(struct drawing *drawing, const struct stk_show_options *options,
                              struct stk_error *err)
{
    struct sheet *sheet = drawing->sheet;
    struct sheet_layout *layout = &drawing->layout;
    sheet_layout_tiles(layout, options);
    stk_status status = sheet_layout_finish(layout, draw_head(NULL, drawing), options->count, err);
    if (status)
        return status;
    sheet->cells = memory_zero(options->count, sizeof *sheet->cells);
    if (!sheet->cells)
        return fail_memory(err, options->count * sizeof *sheet->cells);
    status = canvas_init(&sheet->canvas, layout->width, layout->height, err);
    if (status)
        return status;
    canvas_fill(&sheet->canvas, (struct box){0, 0, layout->width, layout->height}, PAPER);
    draw_head(&sheet->canvas, drawing);
    return STK_OK;
}

static void sheet_finish(struct drawing *drawing, uint32_t count)
{
    struct sheet *sheet = drawing->sheet;
    sheet->seen.width = (uint32_t)sheet->canvas.width;
    sheet->seen.height = (uint32_t)sheet->canvas.height;
    sheet->seen.pixels = sheet->canvas.pixels;
    sheet->seen.field = stk_dataset_field(drawing->source.dataset, drawing->source.field)->name;
    sheet->seen.cells = sheet->cells;
    sheet->seen.count = count;
}

stk_status stk_sheet_draw(struct stk_context *context, struct stk_dataset *dataset,
                          struct stk_sheet **out, const struct stk_show_options *options,
                          struct stk_error *err)
{
    struct drawing drawing = {.title = options->title};
    stk_status status = check_options(options, err);
    *out = NULL;
    if (status)
        return status;
    drawing.sheet = memory_zero(1, sizeof *drawing.sheet);
    if (!drawing.sheet)
        return fail_memory(err, sizeof *drawing.sheet);
    status = show_source_init(&drawing.source, context, dataset, options, err);
    if (status)
        goto done;
    if (drawing.source.after)
        drawing.chain = stk_pipeline_text(drawing.source.after);
    status = sheet_begin(&drawing, options, err);
    if (!status)
        status = draw_all(&drawing, context, options, err);
    if (status)
        goto done;
    sheet_finish(&drawing, options->count);
    *out = &drawing.sheet->seen;
    drawing.sheet = NULL;
done:
    show_source_reset(&drawing.source);
    scratch_free(&drawing.scratch);
    stk_sheet_free(drawing.sheet ? &drawing.sheet->seen : NULL);
    return status;
}

stk_status stk_sheet_png(struct stk_sheet *sheet, struct stk_bytes *png, struct stk_error *err)
{
    struct sheet *own = (struct sheet *)sheet; /* seen is its first member */
    struct png_picture picture = {sheet->pixels, sheet->width, sheet->height, 3};
    stk_status status = STK_OK;
    *png = (struct stk_bytes){0};
    if (!own->png.len)
        status = png_write(&picture, PNG_LEVEL, &own->png, err);
    if (!status && own->png.failed)
        status = fail_memory(err, own->png.len);
    if (status)
        text_free(&own->png); /* what was written of it is no file */
    else
        *png = (struct stk_bytes){(const uint8_t *)own->png.data, own->png.len};
    return status;
}

void stk_sheet_free(struct stk_sheet *sheet)
{
    struct sheet *own = (struct sheet *)sheet;
    if (!own)
        return;
    canvas_reset(&own->canvas);
    memory_free(own->cells);
    text_free(&own->png);
    memory_free(own);
}
