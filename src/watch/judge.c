#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "watch/attribution_state.h"

#define SECOND UINT64_C(1000000000)
#define TAIL_GAP UINT64_C(5000000) /* kernels that follow the last step as closely are its */
#define SET_UP_LEAST UINT64_C(200000000)
#define SET_UP_TIMES 5u
#define STOOD_MOST 0.25 /* a fetch that stands still for more of its time is reading */

static enum watch_mode rank_mode(const struct process_line *line)
{
    return line->rank->kernels ? WATCH_GPU : WATCH_CPU;
}

/* --- whether more workers would do -------------------------------------------------------------*/

/* What the loaders that train did, all together: scripts make a loader anew for each epoch. */
struct loader_sums {
    uint64_t handed_out, busy_batches;
    double next_ns, fetch_ns, stood_ns, busy_cpu_ns;
};

static struct loader_sums loaders_sum(const struct attribution *attribution,
                                      const struct process_line *line)
{
    struct loader_sums sums = {0};
    for (size_t i = 0; i < attribution->loader_count; i++) {
        const struct loader_facts *loader = &attribution->loaders[i];
        const struct summary_loader *facts = &loader->summary;
        if (loader->main != line->facts.pid || (line->rank->steps && !loader->steps))
            continue;
        sums.handed_out += facts->handed_out;
        sums.busy_batches += loader->busy_batches;
        sums.next_ns += (double)(facts->next_ns + facts->start_ns);
        sums.fetch_ns += (double)facts->fetch_ns;
        sums.stood_ns += (double)(facts->fetch_ns - facts->fetch_cpu_ns);
        sums.busy_cpu_ns += (double)loader->busy_cpu_ns;
    }
    return sums;
}

enum cause judge_worker_cause(const struct attribution *attribution,
                              const struct process_line *line)
{
    const struct rank_line *rank = line->rank;
    const struct loader_facts *loader = loop_points_loader(attribution, line);
    struct loader_sums sums = loaders_sum(attribution, line);
    if (!loader || loader->summary.workers < 1 || !sums.busy_batches || sums.handed_out < 2)
        return CAUSE_TRANSFORM;
    uint64_t begin = loop_points_begin(attribution, line);
    double length = rank->last_point > begin ? (double)(rank->last_point - begin) : 0;
    length -= (double)(rank->account.ns[CAUSE_VALIDATION] + rank->account.ns[CAUSE_CHECKPOINT]);
    double compute = length > sums.next_ns ? length - sums.next_ns : 0;
    double loop = length > 0 ? 0.5 * compute / length : 0; /* the loop needs a CPU at times */
    if (rank->kernels) /* a GPU computes while the loop is in next() already */
        compute = rank_line_busy(rank) * length;
    double step = compute / (double)sums.handed_out;
    double batch = sums.busy_cpu_ns / (double)sums.busy_batches;
    if (step <= 0 || sums.stood_ns > STOOD_MOST * sums.fetch_ns)
        return CAUSE_TRANSFORM;
    double needed = batch / step, cpus = attribution->options.cpus;
    const uint64_t looked = attribution->machine_sums.length;
    double foreign =
        attribution->machine_sums.busy > attribution->machine_sums.own && looked
            ? (double)(attribution->machine_sums.busy - attribution->machine_sums.own) /
                  (double)looked
            : 0;
    return needed > loader->summary.workers && needed <= cpus - foreign - loop + 0.5
               ? CAUSE_WORKERS
               : CAUSE_TRANSFORM;
}

/* --- telling -----------------------------------------------------------------------------------*/

static enum cause slot_cause(const struct attribution *attribution, const struct process_line *line,
                             uint32_t slot)
{
    return slot < CAUSE_COUNT ? (enum cause)slot : judge_worker_cause(attribution, line);
}

/* What was idle for one cause without a break is told at once. */
static void run_tell(struct attribution *attribution, struct process_line *line)
{
    struct idle_run *told = &line->rank->told;
    if (told->end <= told->start)
        return;
    enum cause cause = slot_cause(attribution, line, told->slot);
    const struct attribution_options *options = &attribution->options;
    if (options->idle)
        options->idle(options->user, line->facts.pid, told->start, told->end, cause);
    struct excerpt_lane lane = {.kind = LANE_IDLE, .pid = line->facts.pid};
    struct excerpt_slice slice = {.start = told->start, .end = told->end};
    const char *id = cause_id(cause);
    memcpy(slice.name, id, strlen(id) + 1);
    if (!attribution->told_status)
        attribution->told_status = excerpt_add(&attribution->excerpt, &lane, &slice, NULL);
    *told = (struct idle_run){0};
}

static uint32_t slot_most(const uint64_t *by)
{
    uint32_t most = 0;
    for (uint32_t i = 1; i <= ACCOUNT_WORKER_CPU; i++)
        if (by[i] > by[most])
            most = i;
    return most;
}

static void gap_note(struct attribution *attribution, const struct process_line *line,
                     uint64_t start, uint64_t ns, uint64_t count, const uint64_t *by)
{
    struct summary_gap gap = {.start = start - attribution->options.begun,
                              .ns = ns,
                              .cause = slot_cause(attribution, line, slot_most(by)),
                              .rank = line->facts.rank};
    gap_list_add(&attribution->gaps, &gap, count);
}

static void open_gap_close(struct attribution *attribution, struct process_line *line)
{
    struct rank_line *rank = line->rank;
    if (rank->open_gap.ns)
        gap_note(attribution, line, rank->open_gap.start, rank->open_gap.ns, 1, rank->open_gap.by);
    memset(&rank->open_gap, 0, sizeof rank->open_gap);
}

/* Without a GPU a gap is a stretch in which the loop did not compute for the most part. */
static void open_gap_add(struct attribution *attribution, struct process_line *line, uint64_t start,
                         uint64_t end, uint64_t idle, uint32_t slot)
{
    struct rank_line *rank = line->rank;
    if (rank->open_gap.ns && (idle * 2 < end - start || start != rank->open_gap.end))
        open_gap_close(attribution, line);
    if (idle * 2 < end - start)
        return;
    if (!rank->open_gap.ns)
        rank->open_gap.start = start;
    rank->open_gap.end = end;
    rank->open_gap.ns += idle;
    rank->open_gap.by[slot] += idle;
}

static void moment_told(void *user, uint64_t start, uint64_t end, uint64_t idle, uint32_t slot)
{
    struct attribution *attribution = user;
    struct process_line *line = attribution->judged;
    struct idle_run *told = &line->rank->told;
    if (rank_mode(line) == WATCH_CPU) {
        open_gap_add(attribution, line, start, end, idle, slot);
        if (!attribution->told_status)
            attribution->told_status = series_spread(&attribution->series, SERIES_COMPUTE, start,
                                                     end, (double)(end - start - idle) / 1e9, NULL);
    }
    int idles = idle * 2 >= end - start && ACCOUNT_IDLE(slot);
    if (idles && told->end == start && told->slot == slot) {
        told->end = end;
        return;
    }
    run_tell(attribution, line);
    if (idles)
        *told = (struct idle_run){start, end, slot};
}

/* --- judging -----------------------------------------------------------------------------------*/

static stk_status workers_find(struct attribution *attribution, const struct process_line *line,
                               size_t *count, struct stk_error *err)
{
    if (attribution->worker_cap < attribution->process_count) {
        size_t cap = attribution->process_cap;
        void *grown = memory_grow(attribution->workers, cap * sizeof *attribution->workers);
        if (!grown)
            return fail_memory(err, cap * sizeof *attribution->workers);
        attribution->workers = grown;
        attribution->worker_cap = cap;
    }
    *count = 0;
    for (size_t i = 0; i < attribution->process_count; i++) {
        struct process_line *other = attribution->processes[i];
        int serves = other->facts.role == PROCESS_WORKER || other->facts.role == PROCESS_HELPER;
        if (serves && other->facts.main == line->facts.pid && process_line_bytes(other))
            attribution->workers[(*count)++] = other;
    }
    return STK_OK;
}

/* The first step loads libraries and kernels; it is not judged where it is much longer. */
static struct stretch set_up_find(const struct rank_line *rank)
{
    struct stretch none = {1, 0};
    if (rank->first_step <= rank->first_next || !rank->first_next)
        return none;
    uint64_t length = rank->first_step - rank->first_next;
    uint64_t median = durations_at(&rank->step_lengths, 0.5);
    if (length < SET_UP_LEAST || length < SET_UP_TIMES * median || rank->steps < 3)
        return none;
    return (struct stretch){rank->first_next, rank->first_step};
}

static stk_status split_make(struct attribution *attribution, struct process_line *line,
                             struct idle_split *split, struct stk_error *err)
{
    size_t workers = 0;
    stk_status status = workers_find(attribution, line, &workers, err);
    *split = (struct idle_split){.main = line,
                                 .workers = attribution->workers,
                                 .worker_count = workers,
                                 .loaders = attribution->loaders,
                                 .loader_count = attribution->loader_count,
                                 .machine = &attribution->machine,
                                 .mode = rank_mode(line),
                                 .set_up = set_up_find(line->rank),
                                 .account = &line->rank->account};
    idle_split_begin(split);
    return status;
}

/* Cuts a gap to [from, to). Returns 0: nothing is left. */
static int gap_clip(struct busy_gap *gap, uint64_t from, uint64_t to)
{
    if (gap->end <= from || gap->start >= to)
        return 0;
    struct busy_gap whole = *gap;
    gap->start = gap->start > from ? gap->start : from;
    gap->end = gap->end < to ? gap->end : to;
    uint64_t left = gap->end - gap->start, length = whole.end - whole.start;
    if (whole.idle == length)
        gap->idle = left;
    else if (left < length)
        gap->idle = (uint64_t)((double)whole.idle * (double)left / (double)length);
    return gap->idle > 0;
}

/* Of a rest it is known what the loop waited for. In the picture it is as busy as the device was so
 * far. */
static stk_status rest_judge(struct attribution *attribution, struct rank_line *rank,
                             struct idle_split *split, struct stretch rest, struct stk_error *err)
{
    uint64_t length = rest.end - rest.start;
    if (split->account != &rank->account) {
        split->account->ns[ACCOUNT_RESTED] += length;
        return STK_OK;
    }
    rank->rested_ns += length;
    if (!attribution->told_status)
        attribution->told_status = series_spread(&attribution->series, SERIES_COMPUTE, rest.start,
                                                 rest.end, rank->busy * (double)length / 1e9, NULL);
    struct idle_split host = *split;
    host.mode = WATCH_NOTHING;
    host.account = &rank->rest_account;
    host.told = NULL;
    return idle_split_host(&host, rest.start, rest.end, err);
}

/* Gives a gap to the account of the split; one that is the rank's own is for good. */
static stk_status gap_judge(struct attribution *attribution, struct process_line *line,
                            struct idle_split *split, struct busy_gap gap, struct stk_error *err)
{
    struct rank_line *rank = line->rank;
    stk_status status = STK_OK;
    if (!gap_clip(&gap, rank->tail_to, gap.end))
        return STK_OK;
    struct stretch rest = {rank_line_rest(rank, gap.start, gap.end), gap.end};
    if (rest.start == gap.end || gap_clip(&gap, gap.start, rest.start)) {
        status = idle_split_gap(split, &gap, err);
        if (!status && split->account == &rank->account)
            gap_note(attribution, line, gap.start, gap.idle, gap.count, split->given);
    }
    if (!status && rest.start < rest.end)
        status = rest_judge(attribution, rank, split, rest, err);
    return status;
}

static stk_status gaps_judge(struct attribution *attribution, struct process_line *line,
                             struct idle_split *split, struct stretch window, struct stk_error *err)
{
    struct time_list *gaps = &line->rank->compute.gaps;
    stk_status status = STK_OK;
    size_t i = 0;
    for (; !status && i < gaps->count; i++) {
        struct busy_gap gap = *(struct busy_gap *)time_list_at(gaps, i);
        if (gap.end > window.end)
            break;
        if (gap_clip(&gap, window.start, window.end))
            status = gap_judge(attribution, line, split, gap, err);
    }
    uint64_t needed = line->rank->compute.frontier;
    if (i < gaps->count)
        needed = time_list_stretch(gaps, i)->start;
    else if (line->rank->compute.cell.count)
        needed = line->rank->compute.cell.start;
    line->rank->needed_from = needed < window.end ? needed : window.end;
    time_list_drop(gaps, window.end);
    return status;
}

/* The gap that no kernel ends. */
static stk_status tail_judge(struct attribution *attribution, struct process_line *line,
                             struct idle_split *split, uint64_t upto, struct stk_error *err)
{
    struct rank_line *rank = line->rank;
    struct busy_gap tail = {rank->compute.frontier, upto, 0, 1};
    if (tail.start < rank->judged_from)
        tail.start = rank->judged_from;
    if (tail.start >= tail.end)
        return STK_OK;
    tail.idle = tail.end - tail.start;
    stk_status status = gap_judge(attribution, line, split, tail, err);
    rank->tail_to = rank->needed_from = upto;
    return status;
}

static stk_status last_gap_judge(struct attribution *attribution, struct process_line *line,
                                 struct idle_split *split, uint64_t upto, struct stk_error *err)
{
    struct time_list *gaps = &line->rank->compute.gaps;
    stk_status status = STK_OK;
    if (gaps->count) { /* one that reaches beyond the end */
        struct busy_gap gap = *(struct busy_gap *)time_list_at(gaps, 0);
        if (gap_clip(&gap, line->rank->judged_from, upto))
            status = gap_judge(attribution, line, split, gap, err);
    }
    return status ? status : tail_judge(attribution, line, split, upto, err);
}

/* Yields in which the script's profiler handed kernels over are judged like any other time. */
static void yields_check(struct rank_line *rank)
{
    size_t kept = 0;
    for (size_t i = 0; i < rank->yields.count; i++) {
        struct stretch yield = *time_list_stretch(&rank->yields, i);
        uint64_t idle = 0;
        for (size_t g = time_list_after(&rank->compute.gaps, yield.start);
             g < rank->compute.gaps.count; g++) {
            const struct busy_gap *gap = time_list_at(&rank->compute.gaps, g);
            if (gap->start >= yield.end)
                break;
            uint64_t part = stretch_overlap(gap->start, gap->end, yield.start, yield.end);
            idle += part < gap->idle ? part : gap->idle;
        }
        if (idle + 1000 >= yield.end - yield.start)
            *time_list_stretch(&rank->yields, kept++) = yield;
    }
    rank->yields.count = kept;
}

uint64_t judge_end(const struct process_line *line)
{
    const struct rank_line *rank = line->rank;
    if (!rank->kernels)
        return rank->last_point;
    if (!rank->last_point)
        return rank->compute.frontier;
    /* The device may be some way behind the loop: as long as it goes on without a pause. */
    const struct time_list *gaps = &rank->compute.gaps;
    uint64_t end = rank->last_point;
    for (size_t i = time_list_after(gaps, end); i < gaps->count; i++) {
        const struct busy_gap *gap = time_list_at(gaps, i);
        if (gap->idle >= TAIL_GAP)
            return gap->start > end ? gap->start : end;
    }
    return rank->compute.frontier > end ? rank->compute.frontier : end;
}

stk_status judge_rank(struct attribution *attribution, struct process_line *line, uint64_t upto,
                      int last, struct stk_error *err)
{
    struct rank_line *rank = line->rank;
    uint64_t begin = loop_points_begin(attribution, line);
    uint64_t from = rank->judged_to > begin ? rank->judged_to : begin;
    if (!begin || upto <= from)
        return STK_OK;
    if (!rank->judged_from)
        rank->judged_from = from;
    yields_check(rank);
    rank_line_look(rank, from);
    struct idle_split split;
    stk_status status = split_make(attribution, line, &split, err);
    if (status)
        return status;
    split.told = moment_told;
    split.user = attribution;
    attribution->judged = line;
    struct stretch window = {rank->judged_from, upto};
    if (split.mode == WATCH_GPU) {
        status = gaps_judge(attribution, line, &split, window, err);
        if (!status && last)
            status = last_gap_judge(attribution, line, &split, upto, err);
        else if (!status && rank->rested_at && rank->rested_at < upto)
            status = tail_judge(attribution, line, &split, upto, err);
    } else {
        status = idle_split_host(&split, from, upto, err);
        rank->needed_from = upto;
    }
    run_tell(attribution, line);
    if (last)
        open_gap_close(attribution, line);
    rank->talk_ns += time_list_cover(&rank->talks, from, upto);
    rank->copy_ns += time_list_cover(&rank->copies, from, upto);
    rank->next_ns += time_list_cover(&line->spans[SPAN_NEXT], from, upto);
    rank->judged_to = upto;
    return status ? status : attribution_told(attribution, err);
}

/* --- now ---------------------------------------------------------------------------------------*/

static stk_status rank_now(struct attribution *attribution, struct process_line *line,
                           struct stretch window, struct account *account, struct stk_error *err)
{
    struct idle_split split;
    stk_status status = split_make(attribution, line, &split, err);
    split.account = account;
    if (!status && split.mode == WATCH_CPU)
        return idle_split_host(&split, window.start, window.end, err);
    const struct time_list *gaps = &line->rank->compute.gaps;
    for (size_t i = time_list_after(gaps, window.start); !status && i < gaps->count; i++) {
        struct busy_gap gap = *(struct busy_gap *)time_list_at(gaps, i);
        if (gap_clip(&gap, window.start, window.end))
            status = gap_judge(attribution, line, &split, gap, err);
    }
    struct busy_gap tail = {line->rank->compute.frontier, window.end, 0, 1};
    tail.start = tail.start > window.start ? tail.start : window.start;
    tail.idle = tail.end > tail.start ? tail.end - tail.start : 0;
    if (!status && tail.idle)
        status = gap_judge(attribution, line, &split, tail, err);
    return status;
}

static void samples_now(struct attribution *attribution, uint64_t upto)
{
    if (attribution->samples_seen <= 0)
        return;
    if (attribution->samples_at && upto > attribution->samples_at)
        attribution->now.samples_s = (attribution->samples_seen - attribution->samples_before) *
                                     1e9 / (double)(upto - attribution->samples_at);
    attribution->samples_before = attribution->samples_seen;
    attribution->samples_at = upto;
}

stk_status judge_now(struct attribution *attribution, uint64_t upto, struct stk_error *err)
{
    struct account account = {0};
    struct stretch window = {upto > SECOND ? upto - SECOND : 0, upto};
    uint64_t idle = 0, judged = 0;
    struct process_line *any = NULL;
    stk_status status = STK_OK;
    for (size_t i = 0; !status && i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        uint64_t begin = line->rank ? loop_points_begin(attribution, line) : 0;
        if (!begin || begin >= window.start || line->ended)
            continue;
        status = rank_now(attribution, line, window, &account, err);
        judged += window.end - window.start;
        any = line;
    }
    for (uint32_t i = 0; i <= ACCOUNT_WORKER_CPU; i++)
        idle += account.ns[i];
    judged -= account.ns[ACCOUNT_RESTED] < judged ? account.ns[ACCOUNT_RESTED] : judged;
    if (judged || !account.ns[ACCOUNT_RESTED]) { /* else it is as it was before the rest */
        attribution->now.busy = judged && any->rank->kernels ? 1 - (double)idle / (double)judged
                                                             : device_use_now(attribution);
        attribution->now.waits =
            idle ? cause_words(slot_cause(attribution, any, slot_most(account.ns))) : "";
    }
    samples_now(attribution, upto);
    account_reset(&account);
    return status;
}
