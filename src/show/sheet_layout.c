#include "show/sheet_layout.h"

#include "base/fail.h"

#define CELL_DEFAULT 224
#define COLUMNS_DEFAULT 4
#define PIXELS_MOST ((uint64_t)1 << 28)

void sheet_layout_tiles(struct sheet_layout *layout, const struct stk_show_options *options)
{
    uint32_t columns = options->columns ? options->columns : COLUMNS_DEFAULT;
    int32_t cell = options->cell ? (int32_t)options->cell : CELL_DEFAULT;
    if (columns > options->count)
        columns = options->count;
    *layout = (struct sheet_layout){.cell = cell, .columns = (int32_t)columns};
    layout->large = cell >= 448 ? 3 : cell >= 96 ? 2 : 1;
    layout->small = layout->large > 1 ? layout->large - 1 : 1;
    layout->info = cell >= 200 ? layout->large : layout->small; /* most have room then */
    layout->margin = cell / 14 + 4;
    layout->gap = cell / 16 + 4;
    layout->tile_width = options->chain ? 2 * cell + layout->gap : cell;
    layout->caption = cell + 4 * layout->large;
    layout->tile_height = layout->caption + 2 * (text_height(layout->large) + layout->large);
    layout->width = layout->margin + layout->columns * (layout->tile_width + layout->margin);
}

stk_status sheet_layout_finish(struct sheet_layout *layout, int32_t head, uint32_t count,
                               struct stk_error *err)
{
    uint64_t columns = (uint64_t)layout->columns, rows = (count + columns - 1) / columns;
    uint64_t height = (uint64_t)head + rows * (uint64_t)(layout->tile_height + layout->margin);
    layout->head_height = head;
    if (height * (uint64_t)layout->width > PIXELS_MOST) {
        stk_status status = fail(err, STK_USAGE, "the sheet would be %d x %llu pixels large",
                                 (int)layout->width, (unsigned long long)height);
        fail_remedy(err, "show fewer samples, or smaller cells");
        return status;
    }
    layout->height = (int32_t)height;
    return STK_OK;
}

struct box sheet_layout_before(const struct sheet_layout *layout, uint32_t number)
{
    int32_t column = (int32_t)number % layout->columns, row = (int32_t)number / layout->columns;
    return (struct box){layout->margin + column * (layout->tile_width + layout->margin),
                        layout->head_height + row * (layout->tile_height + layout->margin),
                        layout->cell, layout->cell};
}

struct box sheet_layout_after(const struct sheet_layout *layout, uint32_t number)
{
    struct box box = sheet_layout_before(layout, number);
    box.x += layout->cell + layout->gap;
    return box;
}
