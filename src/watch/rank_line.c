#include "watch/rank_line.h"

#include <assert.h>

#include "base/memory.h"

/* --- taking ------------------------------------------------------------------------------------*/

static stk_status span_add(struct time_list *list, const struct record_span *span,
                           struct stk_error *err)
{
    struct host_span item = {.start = span->start,
                             .end = span->end,
                             .loader = (uint32_t)span->a,
                             .flags = span->head.flags,
                             .batch = span->b};
    return time_list_add(list, &item, sizeof item, err);
}

stk_status process_line_span(struct process_line *line, const struct record_span *span,
                             struct stk_error *err)
{
    if (span->what >= SPAN_KINDS || span->end < span->start)
        return STK_OK;
    /* What is not the loop is left out, but for the pin thread, for Stoker's own, and for a thread
     * that reads ahead. */
    int anywhere = span->what == SPAN_PIN || span->what == SPAN_STAGE || !line->rank ||
                   span->what == SPAN_FETCH || span->what == SPAN_COLLATE;
    uint32_t loop = line->rank ? line->rank->loop_thread : 0;
    if (anywhere || !loop || span->thread == loop)
        return span_add(&line->spans[span->what], span, err);
    return span->what == SPAN_NEXT ? span_add(&line->ahead, span, err) : STK_OK;
}

/* A thread that stays where it is needs one item, not a hundred a second. */
static int sample_joins(const struct time_list *list, const struct host_sample *sample)
{
    if (!list->count)
        return 0;
    struct host_sample *last = time_list_at(list, list->count - 1);
    uint64_t cpu = sample->end - sample->start, last_cpu = last->end - last->start;
    int same = last->thread == sample->thread && last->node == sample->node &&
               last->place == sample->place && last->end == sample->start;
    int at_rest = sample->cpu == 0 && last->cpu == 0;
    int at_work = sample->cpu == cpu && last->cpu == last_cpu;
    if (!same || (!at_rest && !at_work) || last_cpu > UINT64_C(1000000000))
        return 0;
    last->end = sample->end;
    last->cpu += sample->cpu;
    last->flags |= SAMPLE_JOINED;
    return 1;
}

stk_status process_line_sample(struct process_line *line, const struct record_sample *sample,
                               struct stk_error *err)
{
    if (sample->kind == SAMPLE_OURS || !sample->weight || sample->weight > sample->time)
        return STK_OK;
    struct call_frame frame = call_tree_find(&line->frames, sample->frame);
    struct host_sample item = {.start = sample->time - sample->weight,
                               .end = sample->time,
                               .cpu = sample->cpu,
                               .node = frame.node,
                               .place = frame.place,
                               .flags = frame.flags,
                               .thread = sample->thread};
    if (item.cpu != CPU_UNKNOWN && item.cpu > sample->weight)
        item.cpu = sample->weight;
    if (sample->kind != SAMPLE_MAIN && !item.cpu)
        return STK_OK; /* of other threads only what they ran matters */
    struct time_list *list = sample->kind == SAMPLE_MAIN ? &line->samples : &line->others;
    return sample_joins(list, &item) ? STK_OK : time_list_add(list, &item, sizeof item, err);
}

/* --- lists
 * ---------------------------------------------------------------------------------------*/

#define RANK_LISTS 9
static void rank_lists(struct rank_line *rank, struct time_list *lists[RANK_LISTS])
{
    struct time_list *all[RANK_LISTS] = {&rank->copies_in, &rank->copies, &rank->talks,
                                         &rank->syncs,     &rank->yields, &rank->costs,
                                         &rank->queues,    &rank->points, &rank->rests};
    for (int i = 0; i < RANK_LISTS; i++)
        lists[i] = all[i];
}

void process_line_sort(struct process_line *line)
{
    for (int i = 0; i < SPAN_KINDS; i++)
        if (i == SPAN_STAGE) /* several threads at a time */
            time_list_sort(&line->spans[i]);
        else
            time_list_untangle(&line->spans[i]);
    time_list_untangle(&line->ahead);
    time_list_untangle(&line->samples);
    time_list_sort(&line->others);
    time_list_untangle(&line->looks);
    time_list_untangle(&line->uses);
    if (!line->rank)
        return;
    struct time_list *lists[RANK_LISTS];
    rank_lists(line->rank, lists);
    for (int i = 0; i < RANK_LISTS; i++)
        if (lists[i] == &line->rank->queues || lists[i] == &line->rank->points)
            time_list_sort(lists[i]);
        else
            time_list_untangle(lists[i]);
}

/* The rules look back at the last next(), and the last step. */
static void span_remember(const struct time_list *list, uint64_t before, struct host_span *out)
{
    size_t at = time_list_after(list, before);
    if (at)
        *out = *(struct host_span *)time_list_at(list, at - 1);
}

void process_line_drop(struct process_line *line, uint64_t before)
{
    if (line->rank) {
        span_remember(&line->spans[SPAN_NEXT], before, &line->rank->next_dropped);
        span_remember(&line->spans[SPAN_OPTIMIZER], before, &line->rank->step_dropped);
    }
    for (int i = 0; i < SPAN_KINDS; i++)
        time_list_drop(&line->spans[i], before);
    time_list_drop(&line->ahead, before);
    time_list_drop(&line->samples, before);
    time_list_drop(&line->others, before);
    time_list_drop(&line->looks, before);
    time_list_drop(&line->uses, before);
    if (!line->rank)
        return;
    struct time_list *lists[RANK_LISTS];
    rank_lists(line->rank, lists);
    for (int i = 0; i < RANK_LISTS; i++)
        if (lists[i] != &line->rank->points) /* those go as they are looked at */
            time_list_drop(lists[i], before);
    time_list_drop(&line->rank->compute.gaps, before);
}

static size_t list_bytes(const struct time_list *list)
{
    return list->count * list->size;
}

size_t process_line_bytes(const struct process_line *line)
{
    size_t bytes = list_bytes(&line->ahead) + list_bytes(&line->samples) +
                   list_bytes(&line->others) + list_bytes(&line->looks) + list_bytes(&line->uses);
    for (int i = 0; i < SPAN_KINDS; i++)
        bytes += list_bytes(&line->spans[i]);
    if (!line->rank)
        return bytes;
    struct time_list *lists[RANK_LISTS];
    rank_lists(line->rank, lists);
    for (int i = 0; i < RANK_LISTS; i++)
        bytes += list_bytes(lists[i]);
    return bytes + list_bytes(&line->rank->compute.gaps);
}

void process_line_reset(struct process_line *line)
{
    for (int i = 0; i < SPAN_KINDS; i++)
        time_list_reset(&line->spans[i]);
    time_list_reset(&line->ahead);
    time_list_reset(&line->samples);
    time_list_reset(&line->others);
    time_list_reset(&line->looks);
    time_list_reset(&line->uses);
    call_frames_reset(&line->frames);
    if (!line->rank)
        return;
    struct time_list *lists[RANK_LISTS];
    rank_lists(line->rank, lists);
    for (int i = 0; i < RANK_LISTS; i++)
        time_list_reset(lists[i]);
    busy_line_reset(&line->rank->compute);
    account_reset(&line->rank->account);
    account_reset(&line->rank->rest_account);
    memory_free(line->rank);
    line->rank = NULL;
}

/* --- shares ------------------------------------------------------------------------------------*/

double host_span_cpu(const struct host_span *span)
{
    uint32_t share = (span->flags & 0xffffu) >> SPAN_CPU_SHIFT;
    if (!share)
        return -1;
    double cpu = (double)(share - 1) / SPAN_CPU_WHOLE;
    return cpu < 1 ? cpu : 1;
}

/* What the samples say of the CPU; returns how much of the time they cover. */
static uint64_t samples_cpu(const struct time_list *samples, uint64_t start, uint64_t end,
                            double *cpu)
{
    uint64_t covered = 0;
    for (size_t i = time_list_after(samples, start); i < samples->count; i++) {
        const struct host_sample *sample = time_list_at(samples, i);
        if (sample->start >= end)
            break;
        if (sample->cpu == CPU_UNKNOWN)
            continue;
        uint64_t part = stretch_overlap(sample->start, sample->end, start, end);
        covered += part;
        *cpu += (double)part * (double)sample->cpu / (double)(sample->end - sample->start);
    }
    return covered;
}

struct host_use process_line_use(const struct process_line *line, uint64_t start, uint64_t end)
{
    struct host_use use = {0};
    double looked = 0, look_cpu = 0;
    for (size_t i = time_list_after(&line->looks, start); i < line->looks.count; i++) {
        const struct host_look *look = time_list_at(&line->looks, i);
        if (look->start >= end)
            break;
        double part = (double)stretch_overlap(look->start, look->end, start, end);
        double share = part / (double)(look->end - look->start);
        looked += part;
        look_cpu += share * (double)look->cpu;
        use.delay += share * (double)look->delay;
        use.block += share * (double)look->block;
    }
    double cpu = 0;
    uint64_t sampled = samples_cpu(&line->samples, start, end, &cpu);
    use.known = sampled || looked > 0;
    use.cpu = sampled ? cpu / (double)sampled : looked > 0 ? look_cpu / looked : 0;
    use.delay = looked > 0 ? use.delay / looked : 0;
    use.block = looked > 0 ? use.block / looked : 0;
    use.cpu = use.cpu < 1 ? use.cpu : 1;
    use.delay = use.delay < 1 - use.cpu ? use.delay : 1 - use.cpu;
    use.block = use.block < 1 - use.cpu - use.delay ? use.block : 1 - use.cpu - use.delay;
    return use;
}

double rank_line_busy(const struct rank_line *rank)
{
    if (rank->judged_to <= rank->judged_from)
        return 0;
    double judged = (double)(rank->judged_to - rank->judged_from), idle = 0;
    judged -= (double)rank->rested_ns;
    for (int i = 0; i < ACCOUNT_SLOTS; i++)
        idle += i == ACCOUNT_COMPUTE ? 0 : (double)rank->account.ns[i];
    return idle < judged ? 1 - idle / judged : 0;
}

uint64_t rank_line_rest(const struct rank_line *rank, uint64_t start, uint64_t end)
{
    uint64_t rested = rank->rested_at ? rank->rested_at : UINT64_MAX;
    size_t at = time_list_after(&rank->rests, start);
    if (at < rank->rests.count)
        rested = time_list_stretch(&rank->rests, at)->start;
    rested = rested > start ? rested : start;
    return rested < end ? rested : end;
}

void rank_line_look(struct rank_line *rank, uint64_t from)
{
    const struct time_list *gaps = &rank->compute.gaps;
    double judged =
        rank->judged_to > rank->judged_from ? (double)(rank->judged_to - rank->judged_from) : 0;
    judged -= (double)rank->rested_ns;
    double ahead = rank->compute.frontier > from ? (double)(rank->compute.frontier - from) : 0;
    double idle = 0;
    for (size_t i = time_list_after(gaps, from); i < gaps->count; i++) {
        const struct busy_gap *gap = time_list_at(gaps, i);
        uint64_t rested = rank_line_rest(rank, gap->start, gap->end);
        double part = (double)stretch_overlap(gap->start, rested, from, gap->end);
        idle += part * (double)gap->idle / (double)(gap->end - gap->start);
        ahead -= (double)stretch_overlap(rested, gap->end, from, gap->end);
    }
    double busy = rank_line_busy(rank) * judged + (idle < ahead ? ahead - idle : 0);
    rank->busy = judged + ahead > 0 ? busy / (judged + ahead) : 0;
}
