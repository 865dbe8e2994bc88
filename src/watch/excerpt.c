#include "watch/excerpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"

#define FIRST_AGE UINT64_C(4000000000)
#define JOIN_KERNELS UINT64_C(200000) /* kernels as close as that are one slice */

static void window_reset(struct excerpt_window *window)
{
    for (size_t i = 0; i < window->lane_count; i++)
        memory_free(window->lanes[i].slices);
    *window = (struct excerpt_window){0};
}

void excerpt_reach(struct excerpt *excerpt, uint64_t moment, uint64_t latest)
{
    if (!excerpt->loop_start) {
        excerpt->loop_start = moment;
        excerpt->next_age = FIRST_AGE;
        excerpt->windows[0].start = moment;
        excerpt->windows[0].end = moment + EXCERPT_LENGTH;
        return;
    }
    if (moment < excerpt->loop_start || moment - excerpt->loop_start < excerpt->next_age ||
        latest < excerpt->windows[0].end)
        return;
    excerpt->next_age *= 2;
    window_reset(&excerpt->windows[EXCERPT_WINDOWS - 1]);
    memmove(&excerpt->windows[1], &excerpt->windows[0],
            (EXCERPT_WINDOWS - 1) * sizeof excerpt->windows[0]);
    excerpt->windows[0] = (struct excerpt_window){.start = latest, .end = latest + EXCERPT_LENGTH};
}

static struct excerpt_lane *lane_find(struct excerpt_window *window,
                                      const struct excerpt_lane *lane)
{
    for (size_t i = 0; i < window->lane_count; i++) {
        struct excerpt_lane *known = &window->lanes[i];
        if (known->kind == lane->kind && known->pid == lane->pid && known->number == lane->number)
            return known;
    }
    if (window->lane_count == EXCERPT_LANES)
        return NULL;
    struct excerpt_lane *added = &window->lanes[window->lane_count++];
    *added = (struct excerpt_lane){.kind = lane->kind, .pid = lane->pid, .number = lane->number};
    return added;
}

static int slice_joins(struct excerpt_lane *lane, const struct excerpt_slice *slice)
{
    if (!lane->count)
        return 0;
    struct excerpt_slice *last = &lane->slices[lane->count - 1];
    if (slice->start < last->start)
        return 0;
    int same = !strcmp(last->name, slice->name);
    int close = slice->start <= last->end + JOIN_KERNELS;
    if (!(same && slice->start <= last->end + 1000) && lane->count < EXCERPT_SLICES &&
        !(close && lane->kind == LANE_STREAM))
        return 0;
    if (!same)
        snprintf(last->name, sizeof last->name, "several");
    last->end = slice->end > last->end ? slice->end : last->end;
    return 1;
}

static stk_status window_add(struct excerpt_window *window, const struct excerpt_lane *key,
                             const struct excerpt_slice *slice, struct stk_error *err)
{
    struct excerpt_lane *lane = lane_find(window, key);
    struct excerpt_slice clipped = *slice;
    if (clipped.start < window->start)
        clipped.start = window->start;
    if (clipped.end > window->end)
        clipped.end = window->end;
    if (!lane || slice_joins(lane, &clipped))
        return STK_OK;
    if (lane->count == lane->cap) {
        size_t cap = lane->cap ? lane->cap * 2 : 16;
        struct excerpt_slice *grown = memory_grow(lane->slices, cap * sizeof *grown);
        if (!grown)
            return fail_memory(err, cap * sizeof *grown);
        lane->slices = grown;
        lane->cap = cap;
    }
    lane->slices[lane->count++] = clipped;
    return STK_OK;
}

stk_status excerpt_add(struct excerpt *excerpt, const struct excerpt_lane *lane,
                       const struct excerpt_slice *slice, struct stk_error *err)
{
    stk_status status = STK_OK;
    if (!excerpt->pid && excerpt->loop_start)
        excerpt->pid = lane->pid;
    if (lane->pid != excerpt->pid)
        return STK_OK;
    for (int i = 0; !status && i < EXCERPT_WINDOWS; i++) {
        struct excerpt_window *window = &excerpt->windows[i];
        if (window->end && slice->start < window->end && slice->end > window->start)
            status = window_add(window, lane, slice, err);
    }
    return status;
}

/* --- the summary -------------------------------------------------------------------------------*/

static int lane_order(const void *a, const void *b)
{
    const struct excerpt_lane *left = a, *right = b;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    if (left->pid != right->pid)
        return left->pid < right->pid ? -1 : 1;
    return (left->number > right->number) - (left->number < right->number);
}

static int slice_order(const void *a, const void *b)
{
    const struct excerpt_slice *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static char *lane_name(const struct excerpt_lane *lane)
{
    char name[64];
    if (lane->kind == LANE_STREAM)
        snprintf(name, sizeof name, "GPU %u, stream %u", lane->number >> 24,
                 lane->number & 0xffffffu);
    else if (lane->kind == LANE_COPIES)
        snprintf(name, sizeof name, "copies");
    else if (lane->kind == LANE_IDLE)
        snprintf(name, sizeof name, "idle");
    else if (lane->kind == LANE_MAIN)
        snprintf(name, sizeof name, "main thread");
    else
        snprintf(name, sizeof name, "worker %u", lane->number);
    return memory_text(name, strlen(name));
}

static stk_status lane_copy(struct excerpt_lane *from, uint64_t begun, struct summary_lane *to,
                            struct stk_error *err)
{
    qsort(from->slices, from->count, sizeof *from->slices, slice_order);
    to->name = lane_name(from);
    to->slices = memory_zero(from->count, sizeof *to->slices);
    if (!to->name || !to->slices)
        return fail_memory(err, from->count * sizeof *to->slices);
    for (size_t i = 0; i < from->count; i++) {
        const struct excerpt_slice *slice = &from->slices[i];
        to->slices[i].start = slice->start - begun;
        to->slices[i].end = slice->end - begun;
        to->slices[i].name = memory_text(slice->name, strlen(slice->name));
        if (!to->slices[i].name)
            return fail_memory(err, sizeof slice->name);
        to->count = i + 1;
    }
    return STK_OK;
}

stk_status excerpt_summary(struct excerpt *excerpt, uint64_t begun, uint64_t end,
                           struct summary *out, struct stk_error *err)
{
    struct excerpt_window *window = NULL;
    for (int i = 0; i < EXCERPT_WINDOWS; i++) {
        struct excerpt_window *candidate = &excerpt->windows[i];
        if (candidate->lane_count && (!window || window->end > end))
            window = candidate;
    }
    if (!window || window->start < begun)
        return STK_OK;
    qsort(window->lanes, window->lane_count, sizeof window->lanes[0], lane_order);
    out->lanes = memory_zero(window->lane_count, sizeof *out->lanes);
    if (!out->lanes)
        return fail_memory(err, window->lane_count * sizeof *out->lanes);
    uint64_t last = window->end < end ? window->end : end;
    out->excerpt_start = window->start - begun;
    out->excerpt_end = (last > window->start ? last : window->end) - begun;
    stk_status status = STK_OK;
    for (size_t i = 0; !status && i < window->lane_count; i++) {
        out->lane_count = i + 1;
        status = lane_copy(&window->lanes[i], begun, &out->lanes[i], err);
    }
    return status;
}

void excerpt_reset(struct excerpt *excerpt)
{
    for (int i = 0; i < EXCERPT_WINDOWS; i++)
        window_reset(&excerpt->windows[i]);
    *excerpt = (struct excerpt){0};
}
