#include "watch/busy_line.h"

#include "base/memory.h"

stk_status busy_line_add(struct busy_line *line, uint64_t start, uint64_t end,
                         struct stk_error *err)
{
    if (end <= start)
        return STK_OK;
    struct time_list *waiting = &line->waiting;
    if (waiting->count) { /* kernels that follow each other at once are one */
        struct stretch *last = time_list_stretch(waiting, waiting->count - 1);
        if (start >= last->start && start <= last->end) {
            last->end = end > last->end ? end : last->end;
            return STK_OK;
        }
    }
    if (waiting->count >= BUSY_WAITING) {
        stk_status status = busy_line_fold(line, err);
        if (status)
            return status;
    }
    return time_list_add(waiting, &(struct stretch){start, end}, sizeof(struct stretch), err);
}

static stk_status cell_close(struct busy_line *line, struct stk_error *err)
{
    struct busy_gap cell = line->cell;
    line->cell = (struct busy_gap){0};
    return cell.count ? time_list_add(&line->gaps, &cell, sizeof cell, err) : STK_OK;
}

static stk_status gap_add(struct busy_line *line, uint64_t start, uint64_t end,
                          struct stk_error *err)
{
    struct busy_gap *cell = &line->cell;
    stk_status status = STK_OK;
    int small = end - start < BUSY_SMALL;
    if (cell->count && (!small || start / BUSY_CELL != cell->start / BUSY_CELL))
        status = cell_close(line, err);
    if (status)
        return status;
    struct busy_gap gap = {start, end, end - start, 1};
    if (!small)
        return time_list_add(&line->gaps, &gap, sizeof gap, err);
    if (!cell->count)
        *cell = (struct busy_gap){.start = start};
    cell->end = end;
    cell->idle += end - start;
    cell->count++;
    return STK_OK;
}

static void busy_tell(const struct busy_line *line, uint64_t start, uint64_t end)
{
    if (line->busy && end > start)
        line->busy(line->user, start, end);
}

/* What is left of a gap when late kernels lie in it; *next is the first of them that may. */
static stk_status gap_carve(const struct busy_line *line, struct busy_gap gap,
                            const struct time_list *late, size_t *next, struct time_list *to,
                            struct stk_error *err)
{
    while (*next < late->count && time_list_stretch(late, *next)->end <= gap.start)
        ++*next;
    stk_status status = STK_OK;
    uint64_t length = gap.end - gap.start;
    int whole = gap.idle == length;
    for (size_t i = *next; !status && i < late->count; i++) {
        const struct stretch *kernel = time_list_stretch(late, i);
        if (kernel->start >= gap.end)
            break;
        uint64_t start = kernel->start > gap.start ? kernel->start : gap.start;
        uint64_t end = kernel->end < gap.end ? kernel->end : gap.end;
        if (!whole) { /* where in it the small gaps lie is not known: in proportion */
            uint64_t less = (uint64_t)((double)gap.idle * (double)(end - start) / (double)length);
            busy_tell(line, start, start + less);
            gap.idle -= less < gap.idle ? less : gap.idle;
            continue;
        }
        busy_tell(line, start, end);
        struct busy_gap before = {gap.start, start, start - gap.start, 1};
        if (before.idle)
            status = time_list_add(to, &before, sizeof before, err);
        gap.start = end;
        gap.idle = gap.end - end;
    }
    if (!status && gap.idle && gap.end > gap.start)
        status = time_list_add(to, &gap, sizeof gap, err);
    return status;
}

/* Kernels that lie before the frontier, all in one pass over the gaps behind the first. */
static stk_status late_carve(struct busy_line *line, const struct time_list *late,
                             struct stk_error *err)
{
    if (!late->count)
        return STK_OK;
    stk_status status = cell_close(line, err);
    struct time_list *gaps = &line->gaps, rest = {0};
    size_t next = 0, kept = time_list_after(gaps, time_list_stretch(late, 0)->start);
    for (size_t i = kept; !status && i < gaps->count; i++)
        status =
            gap_carve(line, *(struct busy_gap *)time_list_at(gaps, i), late, &next, &rest, err);
    if (!status)
        gaps->count = kept;
    for (size_t i = 0; !status && i < rest.count; i++)
        status = time_list_add(gaps, time_list_at(&rest, i), sizeof(struct busy_gap), err);
    time_list_reset(&rest);
    return status;
}

static stk_status late_note(const struct busy_line *line, const struct stretch *kernel,
                            struct time_list *late, struct stk_error *err)
{
    struct stretch part = *kernel;
    if (part.end > line->frontier)
        part.end = line->frontier;
    if (late->count) {
        struct stretch *last = time_list_stretch(late, late->count - 1);
        if (part.start <= last->end) {
            last->end = part.end > last->end ? part.end : last->end;
            return STK_OK;
        }
    }
    return time_list_add(late, &part, sizeof part, err);
}

static stk_status late_fold(struct busy_line *line, struct stk_error *err)
{
    struct time_list late = {0};
    stk_status status = STK_OK;
    for (size_t i = 0; !status && i < line->waiting.count; i++) {
        const struct stretch *kernel = time_list_stretch(&line->waiting, i);
        if (kernel->start >= line->frontier)
            break;
        status = late_note(line, kernel, &late, err);
    }
    if (!status)
        status = late_carve(line, &late, err);
    time_list_reset(&late);
    return status;
}

stk_status busy_line_fold(struct busy_line *line, struct stk_error *err)
{
    time_list_sort(&line->waiting);
    if (!line->waiting.count)
        return STK_OK;
    if (!line->frontier)
        line->frontier = line->origin;
    stk_status status = late_fold(line, err);
    for (size_t i = 0; !status && i < line->waiting.count; i++) {
        const struct stretch *kernel = time_list_stretch(&line->waiting, i);
        if (kernel->end <= line->frontier)
            continue;
        if (kernel->start > line->frontier)
            status = gap_add(line, line->frontier, kernel->start, err);
        busy_tell(line, kernel->start > line->frontier ? kernel->start : line->frontier,
                  kernel->end);
        line->frontier = kernel->end;
    }
    uint64_t first = time_list_stretch(&line->waiting, 0)->start;
    if (!line->first || first < line->first)
        line->first = first;
    line->waiting.count = 0;
    return status;
}

stk_status busy_line_close(struct busy_line *line, struct stk_error *err)
{
    stk_status status = busy_line_fold(line, err);
    return status ? status : cell_close(line, err);
}

void busy_line_reset(struct busy_line *line)
{
    time_list_reset(&line->waiting);
    time_list_reset(&line->gaps);
    line->cell = (struct busy_gap){0};
}
