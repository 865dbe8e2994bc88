#include "codec/jpeg_cut.h"

#include "base/fail.h"
#include "base/memory.h"
#include "codec/jpeg_tail.h"

/* MCUs, measured: to begin anew below costs a decoder about as much as to read 60 of them, and so
 * does it to make a table. */
#define LEAST 64
#define LEAST_TABLE 64
#define LATE_EVERY 16 /* rows between two looks at the clock */

struct jpeg_cut {
    struct jpeg_skim *skim;
    struct jpeg_scan scan;
    struct jpeg_tail tail;
    uint8_t height[2];
    struct stk_bytes pieces[JPEG_PIECES];
};

stk_status jpeg_cut_new(struct jpeg_cut **out, struct stk_error *err)
{
    struct jpeg_cut *cut = memory_zero(1, sizeof *cut);
    stk_status status = cut ? STK_OK : fail_memory(err, sizeof *cut);
    *out = NULL;
    if (!status)
        status = jpeg_skim_new(&cut->skim, err);
    if (status)
        goto done;
    *out = cut;
    cut = NULL;
done:
    jpeg_cut_free(cut);
    return status;
}

void jpeg_cut_free(struct jpeg_cut *cut)
{
    if (!cut)
        return;
    jpeg_skim_free(cut->skim);
    memory_free(cut);
}

uint64_t jpeg_cut_bytes(const struct jpeg_cut *cut)
{
    return sizeof *cut + jpeg_skim_bytes(cut->skim);
}

struct jpeg_scan *jpeg_cut_scan(struct jpeg_cut *cut)
{
    return &cut->scan;
}

const struct stk_bytes *jpeg_cut_pieces(const struct jpeg_cut *cut)
{
    return cut->pieces;
}

/* Restart markers are numbered from 0 to 7, and a decoder counts them from the scan's beginning. So
 * what is cut off must be a multiple of eight intervals, and of a row. */
static uint32_t rows_of_restarts(const struct jpeg_scan *scan)
{
    uint32_t cycle = 8 * scan->restart, a = cycle, b = scan->mcus;
    while (b > 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return cycle / a;
}

static int pays(const struct jpeg_cut *cut, uint32_t rows)
{
    uint64_t least = LEAST + LEAST_TABLE * (uint64_t)jpeg_skim_missing(cut->skim, &cut->scan);
    return (uint64_t)rows * cut->scan.mcus >= least;
}

/* Walks down to where the row begins. An image that is late is the decoder's, who will say so. */
static int skim_to(struct jpeg_cut *cut, const struct image_task *task, uint32_t rows,
                   struct jpeg_place *place)
{
    if (!jpeg_skim_begin(cut->skim, &cut->scan))
        return 0;
    while (rows > 0) {
        uint32_t step = rows < LATE_EVERY ? rows : LATE_EVERY;
        if (!jpeg_skim_rows(cut->skim, step) || image_task_is_late(task))
            return 0;
        rows -= step;
    }
    return jpeg_skim_place(cut->skim, place);
}

/* The header with another height, the tail, and the rest of the scan. */
static void set_pieces(struct jpeg_cut *cut, const struct stk_bytes *bytes, size_t height_at,
                       uint32_t lines)
{
    const uint8_t *old = bytes->data + height_at;
    uint32_t height = ((uint32_t)old[0] << 8 | old[1]) - lines;
    size_t scan_at = bytes->len - cut->scan.bytes.len, rest_at = scan_at + cut->tail.rest;
    size_t head_at = height_at + sizeof cut->height;
    cut->height[0] = (uint8_t)(height >> 8);
    cut->height[1] = (uint8_t)height;
    cut->pieces[0] = (struct stk_bytes){bytes->data, height_at};
    cut->pieces[1] = (struct stk_bytes){cut->height, sizeof cut->height};
    cut->pieces[2] = (struct stk_bytes){bytes->data + head_at, scan_at - head_at};
    cut->pieces[3] = (struct stk_bytes){cut->tail.bytes, cut->tail.len};
    cut->pieces[4] = (struct stk_bytes){bytes->data + rest_at, bytes->len - rest_at};
}

uint32_t jpeg_cut_above(struct jpeg_cut *cut, const struct image_task *task, uint32_t rows,
                        uint32_t lines)
{
    const struct jpeg_scan *scan = &cut->scan;
    struct jpeg_place place;
    size_t height_at;
    if (scan->restart) /* sums of DC begin anew there, at a whole byte */
        rows -= rows % rows_of_restarts(scan);
    /* Without restarts a row is made, in place of the last that is cut off. */
    uint32_t made = scan->restart ? 0 : 1;
    if (rows <= made || !pays(cut, rows) ||
        !jpeg_height_find(&task->bytes, task->bytes.len - scan->bytes.len, &height_at) ||
        !skim_to(cut, task, rows, &place))
        return 0;
    cut->tail.len = 0;
    cut->tail.rest = place.at;
    if (made > 0 && !jpeg_tail_make(&cut->tail, cut->skim, scan, &place))
        return 0;
    set_pieces(cut, &task->bytes, height_at, (rows - made) * lines);
    return rows - made;
}
