#include "watch/attribution_state.h"

#include "base/fail.h"

#define AFTER_LOOP UINT64_C(1000000000) /* a checkpoint so soon after a step is the loop's */

static void point_reached(struct rank_line *rank, uint64_t start, uint64_t end)
{
    if (!rank->first_point || start < rank->first_point)
        rank->first_point = start;
    if (end > rank->last_point)
        rank->last_point = end;
}

/* A run that seemed to have no steps has some: what was settled so far came before training. */
static void judging_restart(struct rank_line *rank)
{
    account_reset(&rank->account);
    account_reset(&rank->rest_account);
    rank->rested_ns = 0;
    rank->talk_ns = rank->copy_ns = 0;
    rank->judged_from = 0;
}

static int in_rest(const struct rank_line *rank, const struct loop_point *point)
{
    return rank_line_rest(rank, point->end - 1, point->end) < point->end;
}

static void step_follow(struct rank_line *rank, struct loader_facts *loader,
                        const struct loop_point *point)
{
    point_reached(rank, point->start, point->end);
    if (!rank->steps) {
        rank->optimizer = point->value;
        rank->first_step = point->end;
        judging_restart(rank);
    }
    if (loader)
        loader->steps++;
    if (point->value != rank->optimizer) /* of several, the first one counts */
        return;
    if (rank->steps++)
        durations_add(&rank->step_lengths, point->end - rank->last_step);
    rank->rest_steps += in_rest(rank, point) ? 1 : 0;
    rank->last_step = point->end;
    struct summary_epoch *epoch = loader ? loader_facts_now(loader) : NULL;
    if (epoch)
        epoch->steps++;
}

static void next_follow(struct rank_line *rank, struct loader_facts *loader,
                        const struct loop_point *point)
{
    uint64_t length = point->end - point->start;
    /* An epoch's end counts if something follows it: nothing waits for the end of the last one. */
    int over = (point->flags & SPAN_ENDED_EPOCH) != 0;
    point_reached(rank, point->start, over ? point->start : point->end);
    rank->last_next = point->end;
    if (!rank->first_next)
        rank->first_next = point->end;
    rank->loader_now = point->loader;
    loader->summary.next_ns += length;
    if (!loader->begun)
        loader->begun = point->start;
    if (over) {
        loader_facts_epoch_end(loader, point->end);
        return;
    }
    rank->batches++;
    rank->rest_batches += in_rest(rank, point) ? 1 : 0;
    if (point->value)
        durations_add(&loader->next_lengths, length);
    else
        loader->summary.start_ns += length;
    if (loader->summary.handed_out++ && point->value)
        durations_add(&loader->distances, point->end - loader->last_next);
    loader->last_next = point->end;
}

static stk_status point_follow(struct attribution *attribution, struct process_line *line,
                               const struct loop_point *point, struct stk_error *err)
{
    struct rank_line *rank = line->rank;
    uint32_t id = point->what == POINT_STEP ? rank->loader_now : point->loader;
    struct loader_facts *loader = NULL;
    if (point->what != POINT_AFTER && id != UINT32_MAX) {
        loader = attribution_loader(attribution, line->facts.pid, id);
        if (!loader)
            return fail_memory(err, sizeof *loader);
    }
    struct summary_epoch *epoch;
    switch (point->what) {
    case POINT_ITER:
        if (!rank->first_iter || point->start < rank->first_iter)
            rank->first_iter = point->start;
        if (!loader->begun || point->start < loader->begun)
            loader->begun = point->start;
        return STK_OK;
    case POINT_NEXT:
        next_follow(rank, loader, point);
        return STK_OK;
    case POINT_BATCH:
        loader->seen += point->value;
        attribution->samples_seen += (double)point->value;
        epoch = loader_facts_now(loader);
        if (epoch)
            epoch->samples += point->value;
        return series_spread(&attribution->series, SERIES_SAMPLES, point->end, point->end + 1,
                             (double)point->value, err);
    case POINT_STEP:
        step_follow(rank, loader, point);
        return STK_OK;
    case POINT_EPOCH:
        return loader_facts_epoch(loader, point->end, err);
    case POINT_EPOCH_END:
        loader_facts_epoch_end(loader, point->end);
        return STK_OK;
    case POINT_AFTER:
        if (rank->last_point && (point->start <= rank->last_point + AFTER_LOOP ||
                                 point->start <= rank->last_next + AFTER_LOOP))
            point_reached(rank, rank->first_point, point->end);
        return STK_OK;
    }
    return STK_OK;
}

stk_status loop_points_follow(struct attribution *attribution, struct process_line *line,
                              uint64_t upto, struct stk_error *err)
{
    struct time_list *points = &line->rank->points;
    time_list_sort(points);
    stk_status status = STK_OK;
    size_t kept = 0;
    for (size_t i = 0; i < points->count; i++) {
        struct loop_point point = *(struct loop_point *)time_list_at(points, i);
        if (!status && point.end <= upto)
            status = point_follow(attribution, line, &point, err);
        else
            *(struct loop_point *)time_list_at(points, kept++) = point;
    }
    points->count = kept;
    return status;
}

struct loader_facts *loop_points_loader(const struct attribution *attribution,
                                        const struct process_line *line)
{
    struct loader_facts *best = NULL;
    for (size_t i = 0; i < attribution->loader_count; i++) {
        struct loader_facts *loader = &attribution->loaders[i];
        if (loader->main != line->facts.pid || !loader->summary.handed_out)
            continue;
        if (!best || loader->steps > best->steps ||
            (loader->steps == best->steps && loader->summary.handed_out > best->summary.handed_out))
            best = loader;
    }
    return best;
}

uint64_t loop_points_begin(const struct attribution *attribution, const struct process_line *line)
{
    const struct rank_line *rank = line->rank;
    uint64_t begin = 0;
    for (size_t i = 0; i < attribution->loader_count; i++) {
        const struct loader_facts *loader = &attribution->loaders[i];
        if (loader->main == line->facts.pid && loader->begun && (loader->steps || !rank->steps) &&
            (!begin || loader->begun < begin))
            begin = loader->begun;
    }
    if (begin)
        return begin;
    if (rank->first_iter && rank->first_iter < rank->first_point)
        return rank->first_iter;
    return rank->first_point ? rank->first_point : rank->compute.first;
}
