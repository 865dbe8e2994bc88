#include "loader/stretches.h"

#include "base/fail.h"
#include "base/memory.h"
#include "loader/lanes.h"

#define BLOCK 64                       /* samples that are looked up at once */
#define RANGES 4                       /* places that one run may lie in */
#define GAP (UINT64_C(64) << 10)       /* less than this between two values is fetched with them */
#define RANGE_MOST (UINT64_C(4) << 20) /* a longer one is not made of neighbours */
#define AHEAD 4                        /* runs behind the newest batch, in sequence */

/* The runs that are mixed with one another, and come and go together. */
struct group {
    struct group *next;
    uint32_t lane;
    uint64_t epoch, number;
    uint64_t last; /* the newest slot that lies in it */
    int is_over;   /* the lane has come behind it */
    uint32_t asked, run_count;
    uint32_t count;
    uint64_t bytes;
    struct store_stretch *held[]; /* [run_count * RANGES] */
};

/* Where values of a run lie close together. */
struct range {
    uint32_t object;
    uint64_t start, end;
    uint64_t wanted; /* bytes of values in it */
};

struct stretches {
    struct stk_loader *loader;
    uint64_t most, bytes; /* bytes: held now */
    uint64_t run;         /* samples, where runs are not the plan's */
    struct group *groups;
    struct range ranges[RANGES];
    uint32_t range_count;
    uint64_t samples[BLOCK];
    struct extent *resolved, *extents; /* [BLOCK * fields] of the index, of the dataset */
};

/* --- making ----------------------------------------------------------------------------------- */

static int is_of_use(const struct stk_loader *loader)
{
    const struct plan *plan = loader->plan;
    const struct index *index = dataset_index(loader->dataset);
    return loader->remote && !loader->resident && index_chunk_count(index) == 0 &&
           plan->order != STK_ORDER_TIME && plan_run_samples(plan) > 0 &&
           !store_has_cache(dataset_store(loader->dataset));
}

uint64_t stretches_size(const struct stk_loader *loader)
{
    uint64_t fields = index_field_count(dataset_index(loader->dataset)) +
                      stk_dataset_field_count(loader->dataset);
    return is_of_use(loader) ? sizeof(struct stretches) + BLOCK * fields * sizeof(struct extent)
                             : 0;
}

stk_status stretches_new(struct stretches **out, struct stk_loader *loader, uint64_t limit,
                         struct stk_error *err)
{
    uint32_t fields = stk_dataset_field_count(loader->dataset);
    uint32_t index_fields = index_field_count(dataset_index(loader->dataset));
    *out = NULL;
    if (!is_of_use(loader))
        return STK_OK;
    struct stretches *stretches = memory_zero(1, sizeof *stretches);
    if (!stretches)
        return fail_memory(err, sizeof *stretches);
    stretches->loader = loader;
    stretches->most = limit / 4;
    stretches->run = plan_run_samples(loader->plan);
    stretches->resolved = memory_zero((size_t)BLOCK * index_fields, sizeof(struct extent));
    stretches->extents = memory_zero((size_t)BLOCK * fields, sizeof(struct extent));
    if (!stretches->resolved || !stretches->extents) {
        stretches_free(stretches);
        return fail_memory(err, stretches_size(loader));
    }
    *out = stretches;
    return STK_OK;
}

static void group_free(struct stretches *stretches, struct group *group)
{
    for (uint32_t i = 0; i < group->count; i++)
        store_let_go(group->held[i]);
    budget_give(box_pool_budget(stretches->loader->pool), group->bytes);
    stretches->bytes -= group->bytes;
    memory_free(group);
}

void stretches_reset(struct stretches *stretches)
{
    while (stretches && stretches->groups) {
        struct group *group = stretches->groups;
        stretches->groups = group->next;
        group_free(stretches, group);
    }
}

void stretches_free(struct stretches *stretches)
{
    if (!stretches)
        return;
    stretches_reset(stretches);
    memory_free(stretches->resolved);
    memory_free(stretches->extents);
    memory_free(stretches);
}

/* --- where a run lies ------------------------------------------------------------------------- */

/* Values come in order, so that a range grows at its end. 0: they lie in too many places. */
static int range_add(struct stretches *stretches, const struct extent *extent)
{
    for (uint32_t i = stretches->range_count; i-- > 0;) {
        struct range *range = &stretches->ranges[i];
        uint64_t end = extent->offset + extent->length;
        if (range->object != extent->object || extent->offset + GAP < range->start ||
            extent->offset > range->end + GAP)
            continue;
        range->start = extent->offset < range->start ? extent->offset : range->start;
        range->end = end > range->end ? end : range->end;
        range->wanted += extent->length;
        return 1;
    }
    if (stretches->range_count == RANGES)
        return 0;
    stretches->ranges[stretches->range_count++] = (struct range){
        extent->object, extent->offset, extent->offset + extent->length, extent->length};
    return 1;
}

/* The sample behind the run: a read may go on into it, and what lies between belongs to nobody. */
static void ranges_reach(struct stretches *stretches, const struct extent *extents, uint32_t fields)
{
    for (uint32_t i = 0; i < stretches->range_count; i++) {
        struct range *range = &stretches->ranges[i];
        uint64_t next = UINT64_MAX;
        for (uint32_t f = 0; f < fields; f++)
            if (extents[f].object == range->object && extents[f].offset >= range->end &&
                extents[f].offset < next)
                next = extents[f].offset;
        if (next - range->end < GAP)
            range->end = next;
    }
}

/* Samples first .. first + count - 1 of the plan's list of positions, or of the index. */
struct run {
    uint64_t first, count;
    int of_index;
};

static int samples_of(struct stretches *stretches, const struct run *run, uint64_t from, uint32_t n)
{
    const struct plan *plan = stretches->loader->plan;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = run->first + from + i;
        stretches->samples[i] = plan->grouped && !run->of_index ? plan->grouped[at] : at;
    }
    if (!run->of_index)
        dataset_samples(plan->dataset, stretches->samples, n);
    return !dataset_resolve(plan->dataset, stretches->samples, n, stretches->resolved,
                            stretches->extents, NULL);
}

static int run_resolve(struct stretches *stretches, const struct run *run)
{
    const struct plan *plan = stretches->loader->plan;
    uint32_t fields = stk_dataset_field_count(plan->dataset);
    uint32_t objects = stretches->loader->objects;
    uint64_t all = run->of_index ? index_samples(dataset_index(plan->dataset)) : plan->samples;
    stretches->range_count = 0;
    for (uint64_t from = 0; from < run->count; from += BLOCK) {
        uint32_t n = run->count - from < BLOCK ? (uint32_t)(run->count - from) : BLOCK;
        if (!samples_of(stretches, run, from, n))
            return 0;
        for (uint32_t i = 0; i < n * fields; i++)
            if (stretches->extents[i].object < objects && stretches->extents[i].length &&
                !range_add(stretches, &stretches->extents[i]))
                return 0;
    }
    if (run->first + run->count < all && samples_of(stretches, run, run->count, 1))
        ranges_reach(stretches, stretches->extents, fields);
    return 1;
}

/* --- holding ---------------------------------------------------------------------------------- */

/* 0: there is no room for it. */
static int range_hold(struct stretches *stretches, struct group *group, const struct range *range)
{
    struct stk_loader *loader = stretches->loader;
    struct budget *budget = box_pool_budget(loader->pool);
    uint64_t length = range->end - range->start;
    if (range->wanted < length / 2 || length > RANGE_MOST)
        return 1; /* most of it is not wanted: value by value is better */
    if (stretches->bytes + length > stretches->most || !budget_try(budget, length))
        return 0;
    struct store_stretch *held =
        store_hold(dataset_store(loader->dataset), range->object, range->start, length);
    if (!held) {
        budget_give(budget, length);
        return 0;
    }
    group->held[group->count++] = held;
    group->bytes += length;
    stretches->bytes += length;
    return 1;
}

static int run_hold(struct stretches *stretches, struct group *group, const struct run *run)
{
    int held = 1;
    if (!run_resolve(stretches, run))
        return 1;
    for (uint32_t i = 0; i < stretches->range_count; i++)
        held &= range_hold(stretches, group, &stretches->ranges[i]);
    return held;
}

static struct group *group_find(struct stretches *stretches, uint32_t lane, uint64_t epoch,
                                uint64_t number)
{
    struct group *group = stretches->groups;
    while (group && (group->lane != lane || group->epoch != epoch || group->number != number))
        group = group->next;
    return group;
}

static struct group *group_new(struct stretches *stretches, uint32_t lane, uint64_t epoch,
                               uint64_t number, uint32_t runs)
{
    struct group *group =
        memory_zero(1, sizeof *group + (size_t)runs * RANGES * sizeof group->held[0]);
    if (!group)
        return NULL;
    group->lane = lane;
    group->epoch = epoch;
    group->number = number;
    group->run_count = runs;
    group->next = stretches->groups;
    stretches->groups = group;
    return group;
}

/* The lane has come to a group: those before it are over. */
static void lane_moves(struct stretches *stretches, const struct group *now)
{
    for (struct group *group = stretches->groups; group; group = group->next)
        if (group->lane == now->lane &&
            (group->epoch < now->epoch ||
             (group->epoch == now->epoch && group->number < now->number)))
            group->is_over = 1;
}

static void release_over(struct stretches *stretches)
{
    uint64_t taken = stretches->loader->taken;
    for (struct group **at = &stretches->groups; *at;) {
        struct group *group = *at;
        if (!group->is_over || group->last >= taken) {
            at = &group->next;
            continue;
        }
        *at = group->next;
        group_free(stretches, group);
    }
}

/* --- the local order -------------------------------------------------------------------------- */

/* Asks for the first `most` runs of a group. Of one that is used already, what finds no room is
 * read sample by sample for good; of one that comes later it is asked for again. */
static void lane_ask(struct stretches *stretches, uint32_t lane, uint64_t epoch, uint64_t number,
                     uint64_t most, int is_now)
{
    const struct plan *plan = stretches->loader->plan;
    uint64_t first = number * plan->reach, left = plan->lanes[lane].chunk_count - first;
    uint32_t runs = left < plan->reach ? (uint32_t)left : plan->reach;
    struct group *group = group_find(stretches, lane, epoch, number);
    if (!group)
        group = group_new(stretches, lane, epoch, number, runs);
    if (!group)
        return;
    group->last = stretches->loader->admitted;
    if (is_now)
        lane_moves(stretches, group);
    for (; group->asked < most && group->asked < runs; group->asked++) {
        uint64_t chunk = plan_lane_chunk(plan, epoch, lane, first + group->asked);
        const struct run run = {plan->chunks[chunk].first, plan->chunks[chunk].count, 0};
        if (!run_hold(stretches, group, &run) && !is_now)
            return;
    }
}

/* A slot reads a run of a lane. A group of which less than half is left is not worth beginning. */
static void lane_admit(struct stretches *stretches, uint64_t epoch, const struct lanes_run *run)
{
    struct stk_loader *loader = stretches->loader;
    const struct plan *plan = loader->plan;
    uint64_t end = run->first + run->count;
    uint32_t lane = run->lane;
    struct plan_part part;
    int is_worth = 0;
    for (uint64_t at = run->first; at < end; at = part.end) {
        plan_lane_group(plan, &loader->cursor, lane, at, &part);
        is_worth = group_find(stretches, lane, epoch, part.number) ||
                   part.end - at >= (part.end - part.start) / 2;
        if (is_worth)
            lane_ask(stretches, lane, epoch, part.number, UINT64_MAX, 1);
    }
    if (!is_worth)
        return;
    uint64_t ahead = (end - part.start) * plan->reach / (part.end - part.start);
    if (part.number + 1 < plan->lanes[lane].group_count)
        lane_ask(stretches, lane, epoch, part.number + 1, ahead, 0);
    else if (epoch + 1 < loader->epoch_end)
        lane_ask(stretches, lane, epoch + 1, 0, ahead, 0);
}

static void lanes_admit(struct stretches *stretches, const struct slot *slot)
{
    const struct plan *plan = stretches->loader->plan;
    const struct plan_share *share = &slot->share;
    uint64_t alone = share->taken / plan->lane_count / 2; /* fewer: the lane is another rank's */
    for (uint32_t i = 0; i < share->real;) {
        struct lanes_run run;
        lanes_find(plan->lane_count, share->start, share->taken, share->first - share->start + i,
                   share->real - i, &run);
        if (run.count >= alone)
            lane_admit(stretches, slot->epoch, &run);
        i += run.count;
    }
}

/* --- other orders ----------------------------------------------------------------------------- */

/* One run of positions is a group of its own. 0: there was no room. */
static int positions_ask(struct stretches *stretches, const struct slot *slot, uint64_t first,
                         uint64_t end, int is_now)
{
    struct group *group = group_find(stretches, 0, slot->epoch, first);
    const struct run run = {first, end - first, 0};
    if (!group)
        group = group_new(stretches, 0, slot->epoch, first, 1);
    if (!group)
        return 0;
    group->last = stretches->loader->admitted;
    if (is_now)
        lane_moves(stretches, group);
    if (!group->asked && !run_hold(stretches, group, &run) && !is_now)
        return 0;
    group->asked = 1;
    return 1;
}

/* A rank among several reads its share of each step; one that is alone reads on and on. */
static void sequence_admit(struct stretches *stretches, const struct slot *slot)
{
    const struct plan *plan = stretches->loader->plan;
    uint64_t first = slot->share.first, end = first + slot->share.real, run = stretches->run;
    if (first == end)
        return;
    if (plan->world > 1) {
        for (uint64_t at = first; at < end; at += run)
            positions_ask(stretches, slot, at, end - at < run ? end : at + run, 1);
        return;
    }
    uint64_t number = first / run, last = (end - 1) / run;
    for (int more = 1; more && number <= last + AHEAD && number * run < plan->samples; number++) {
        uint64_t at = number * run;
        more = positions_ask(stretches, slot, at,
                             plan->samples - at < run ? plan->samples : at + run, number <= last);
    }
}

/* All of it, once and for all epochs, where there is room for that. */
static void whole_admit(struct stretches *stretches)
{
    const struct plan *plan = stretches->loader->plan;
    uint64_t samples = index_samples(dataset_index(plan->dataset)), run = stretches->run;
    uint64_t runs = (samples + run - 1) / run;
    if (stretches->groups || plan->stored > stretches->most || plan->samples < samples / 2)
        return;
    struct group *group = group_new(stretches, 0, 0, 0, (uint32_t)runs);
    for (uint64_t i = 0; group && i < runs; i++) {
        uint64_t first = i * run, left = samples - first;
        const struct run all = {first, left < run ? left : run, 1};
        run_hold(stretches, group, &all);
    }
}

void stretches_admit(struct stretches *stretches, const struct slot *slot)
{
    if (!stretches)
        return;
    release_over(stretches);
    if (stretches->loader->plan->order == STK_ORDER_LOCAL)
        lanes_admit(stretches, slot);
    else if (stretches->loader->plan->order == STK_ORDER_SEQUENTIAL)
        sequence_admit(stretches, slot);
    else
        whole_admit(stretches);
}
