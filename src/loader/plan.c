#include "loader/plan.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/fail.h"
#include "base/hash.h"
#include "base/memory.h"
#include "loader/lanes.h"

/* Streams of random numbers that must not meet: each has a tag of its own. */
enum { TAG_SHUFFLE = 1, TAG_CHUNKS, TAG_GROUP, TAG_WEIGHTS, TAG_SUBSTITUTE };

#define REACH_BYTES ((uint64_t)512 << 20) /* what a default reach may hold decoded */
#define REACH_MOST 16

/* The local order of data that is not compressed; these are part of it, and so never change. A
 * window of LANES * reach * run bytes is mixed at a time: 2 GiB. Of small samples it is 128 MiB,
 * which fits into memory: runs of them are fetched whole (stretches.h). */
#define LANES 16
#define LANES_REACH 8
#define SMALL_REACH 16
#define LANES_LEAST 64 /* samples that are worth cutting up */
#define RUN_BYTES ((uint64_t)16 << 20)
#define SMALL_RUN ((uint64_t)512 << 10)
#define SMALL_BYTES ((uint64_t)64 << 10) /* a sample from here on is worth a request of its own */
#define RUNS_MOST ((uint64_t)1 << 20)

static uint64_t plan_key(const struct plan *plan, uint64_t tag, uint64_t epoch)
{
    return random_key(random_key(plan->seed, tag), epoch);
}

/* --- weights ---------------------------------------------------------------------------------- */

static stk_status weights_check(const double *weights, uint64_t n, double *sum,
                                struct stk_error *err)
{
    *sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        if (!(weights[i] >= 0) || isinf(weights[i]))
            return fail(err, STK_USAGE, "weight %llu is not a finite number >= 0",
                        (unsigned long long)i);
        *sum += weights[i];
    }
    if (!(*sum > 0) || isinf(*sum))
        return fail(err, STK_USAGE, "the weights add up to %g", *sum);
    return STK_OK;
}

/* Walker's alias method (Vose's construction): small places are topped up from large ones. One
 * array serves as both stacks: small ones grow from the left, large ones from the right. */
static void weights_balance(struct plan *plan, uint64_t *stack)
{
    uint64_t n = plan->samples, small = 0, large = n;
    for (uint64_t i = 0; i < n; i++) {
        if (plan->chance[i] < 1)
            stack[small++] = i;
        else
            stack[--large] = i;
    }
    while (small > 0 && large < n) {
        uint64_t poor = stack[--small], rich = stack[large];
        plan->alias[poor] = rich;
        plan->chance[rich] -= 1 - plan->chance[poor];
        if (plan->chance[rich] < 1) {
            large++;
            stack[small++] = rich;
        }
    }
    while (small > 0) /* only rounding is left */
        plan->chance[stack[--small]] = 1;
    while (large < n)
        plan->chance[stack[large++]] = 1;
}

static stk_status weights_init(struct plan *plan, const double *weights, struct stk_error *err)
{
    uint64_t n = plan->samples, *stack = NULL;
    double sum;
    stk_status status = weights_check(weights, n, &sum, err);
    if (status)
        return status;
    plan->chance = memory_zero(n, sizeof *plan->chance);
    plan->alias = memory_zero(n, sizeof *plan->alias);
    stack = memory_zero(n, sizeof *stack);
    if (!plan->chance || !plan->alias || !stack) {
        status = fail_memory(err, n * (sizeof *plan->chance + 2 * sizeof *stack));
        goto done;
    }
    for (uint64_t i = 0; i < n; i++)
        plan->chance[i] = weights[i] / sum * (double)n;
    weights_balance(plan, stack);
    plan->weights_hash = hash_bytes(weights, n * sizeof *weights, 1) | 1;
done:
    memory_free(stack);
    return status;
}

/* --- local order ------------------------------------------------------------------------------ */

/* The chunks as ranges of samples; samples between them (of plain shards) are ranges of their own.
 */
static stk_status chunks_collect(struct plan *plan, uint64_t *largest, struct stk_error *err)
{
    const struct index *index = dataset_index(plan->dataset);
    uint32_t n = index_chunk_count(index);
    uint64_t next = 0;
    plan->chunks = memory_zero((size_t)n * 2 + 1, sizeof *plan->chunks);
    if (!plan->chunks)
        return fail_memory(err, ((uint64_t)n * 2 + 1) * sizeof *plan->chunks);
    *largest = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct chunk chunk;
        stk_status status = index_chunk(index, i, &chunk, err);
        if (status)
            return status;
        if (chunk.decoded > *largest)
            *largest = chunk.decoded;
        if (chunk.count == 0 || chunk.first < next)
            continue; /* not a run of samples, or another field of the same run */
        if (chunk.first > next)
            plan->chunks[plan->chunk_count++] =
                (struct plan_chunk){.first = next, .count = chunk.first - next};
        plan->chunks[plan->chunk_count++] =
            (struct plan_chunk){.first = chunk.first, .count = chunk.count};
        next = chunk.first + chunk.count;
    }
    if (next < index_samples(index))
        plan->chunks[plan->chunk_count++] =
            (struct plan_chunk){.first = next, .count = index_samples(index) - next};
    return STK_OK;
}

static uint64_t chunk_of_sample(const struct plan *plan, uint64_t sample)
{
    uint64_t low = 0, high = plan->chunk_count;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (plan->chunks[middle].first <= sample)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* A subset's positions sorted by chunk (a counting sort), so that a chunk is a range again. */
static stk_status chunks_group_subset(struct plan *plan, struct stk_error *err)
{
    uint64_t *starts = memory_zero(plan->chunk_count + 1, sizeof *starts), at = 0;
    stk_status status = STK_OK;
    plan->grouped = memory_zero(plan->samples, sizeof *plan->grouped);
    if (!starts || !plan->grouped) {
        status = fail_memory(err, plan->samples * sizeof *plan->grouped);
        goto done;
    }
    for (uint64_t i = 0; i < plan->samples; i++) {
        uint64_t sample = i;
        dataset_samples(plan->dataset, &sample, 1);
        starts[chunk_of_sample(plan, sample) + 1]++;
    }
    for (uint64_t c = 0; c < plan->chunk_count; c++)
        starts[c + 1] += starts[c];
    for (uint64_t i = 0; i < plan->samples; i++) {
        uint64_t sample = i;
        dataset_samples(plan->dataset, &sample, 1);
        plan->grouped[starts[chunk_of_sample(plan, sample)]++] = i;
    }
    for (uint64_t c = 0; c < plan->chunk_count; c++) { /* starts[c] is now the end of chunk c */
        plan->chunks[c] = (struct plan_chunk){.first = at, .count = starts[c] - at};
        at = starts[c];
    }
done:
    memory_free(starts);
    return status;
}

/* ---- lanes: data that is read as it lies
 * ---------------------------------------------------------------
 */

/* Bytes of all objects; 0: loose files, or a damaged index. */
static uint64_t stored_bytes(const struct index *index)
{
    uint64_t bytes = 0;
    if (index_object_count(index) > index_samples(index) / 2)
        return 0;
    for (uint32_t i = 0; i < index_object_count(index); i++) {
        struct index_object object;
        if (index_object(index, i, &object, NULL) || !checked_add(bytes, object.size, &bytes))
            return 0;
    }
    return bytes;
}

static int is_small(const struct plan *plan)
{
    uint64_t samples = index_samples(dataset_index(plan->dataset));
    return plan->stored && plan->stored / SMALL_BYTES < samples;
}

uint64_t plan_run_samples(const struct plan *plan)
{
    uint64_t samples = index_samples(dataset_index(plan->dataset));
    if (!is_small(plan))
        return 0;
    uint64_t one = plan->stored / samples;
    return SMALL_RUN / (one ? one : 1);
}

/* Runs of consecutive samples of about so many bytes: what is read in one place. They need not end
 * where shards end. */
static stk_status runs_collect(struct plan *plan, uint64_t run, struct stk_error *err)
{
    uint64_t n = index_samples(dataset_index(plan->dataset));
    uint64_t runs = plan->stored / run + 1;
    if (runs > RUNS_MOST)
        runs = RUNS_MOST;
    if (runs > n)
        runs = n;
    plan->chunks = memory_zero(runs, sizeof *plan->chunks);
    if (!plan->chunks)
        return fail_memory(err, runs * sizeof *plan->chunks);
    for (uint64_t i = 0; i < runs; i++) {
        uint64_t first = (uint64_t)((unsigned __int128)n * i / runs);
        uint64_t end = (uint64_t)((unsigned __int128)n * (i + 1) / runs);
        plan->chunks[i] = (struct plan_chunk){.first = first, .count = end - first};
    }
    plan->chunk_count = runs;
    return STK_OK;
}

/* Cuts chunks, which lie one behind the other, where lanes begin. */
static stk_status chunks_cut(struct plan *plan, struct stk_error *err)
{
    uint64_t most = plan->chunk_count + plan->lane_count, count = 0, from = 0;
    struct plan_chunk *cut = memory_zero(most, sizeof *cut);
    if (!cut)
        return fail_memory(err, most * sizeof *cut);
    for (uint32_t lane = 0; lane < plan->lane_count; lane++) {
        uint64_t end = lanes_start(plan->samples, plan->lane_count, lane + 1);
        uint64_t at = lanes_start(plan->samples, plan->lane_count, lane);
        plan->lanes[lane].first_chunk = count;
        while (at < end) {
            struct plan_chunk *chunk = &plan->chunks[from];
            uint64_t left = chunk->first + chunk->count - at, own = end - at;
            if (left <= own)
                from++;
            if (left)
                cut[count++] = (struct plan_chunk){at, left < own ? left : own};
            at += left < own ? left : own;
        }
        plan->lanes[lane].chunk_count = count - plan->lanes[lane].first_chunk;
    }
    memory_free(plan->chunks);
    plan->chunks = cut;
    plan->chunk_count = count;
    return STK_OK;
}

/* The lanes and their groups, once the chunks are known. */
static stk_status lanes_init(struct plan *plan, uint32_t count, struct stk_error *err)
{
    uint64_t most = 1;
    stk_status status = STK_OK;
    plan->lanes = memory_zero(count, sizeof *plan->lanes);
    if (!plan->lanes)
        return fail_memory(err, count * sizeof *plan->lanes);
    plan->lane_count = count;
    if (count > 1)
        status = chunks_cut(plan, err);
    else
        plan->lanes[0].chunk_count = plan->chunk_count;
    for (uint32_t i = 0; i < count; i++)
        if (plan->lanes[i].chunk_count > most)
            most = plan->lanes[i].chunk_count;
    if (plan->reach > most)
        plan->reach = (uint32_t)most;
    for (uint32_t i = 0; i < count && !status; i++) {
        struct plan_lane *lane = &plan->lanes[i];
        lane->first_group = plan->group_count;
        lane->group_count = (lane->chunk_count + plan->reach - 1) / plan->reach;
        plan->group_count += lane->group_count;
    }
    return status;
}

static int is_whole(const struct plan *plan)
{
    return dataset_is_whole(plan->dataset) &&
           plan->samples == index_samples(dataset_index(plan->dataset));
}

/* Unless it is asked for outright, small data is shuffled as a whole: all of it is within reach. */
static stk_status lanes_order_init(struct plan *plan, const struct stk_loader_options *options,
                                   struct stk_error *err)
{
    uint64_t run = is_small(plan) ? SMALL_RUN : RUN_BYTES;
    uint32_t reach = is_small(plan) ? SMALL_REACH : LANES_REACH;
    if (options->order != STK_ORDER_LOCAL && plan->stored <= run * LANES * reach) {
        plan->order = STK_ORDER_GLOBAL;
        return STK_OK;
    }
    plan->order = STK_ORDER_LOCAL;
    plan->reach = options->reach ? options->reach : reach;
    stk_status status = runs_collect(plan, run, err);
    if (!status && !is_whole(plan))
        status = chunks_group_subset(plan, err);
    if (!status)
        status = lanes_init(plan, plan->samples >= LANES_LEAST ? LANES : 1, err);
    return status;
}

/* ---- chunks that are decoded whole ------------------------------------------------------------
 */

/* Chunks are worth keeping together when they hold two samples or more each. */
static stk_status local_init(struct plan *plan, const struct stk_loader_options *options,
                             struct stk_error *err)
{
    uint64_t largest = 0;
    stk_status status = chunks_collect(plan, &largest, err);
    if (status)
        return status;
    if (options->order != STK_ORDER_LOCAL && plan->chunk_count * 2 > plan->samples) {
        plan->order = STK_ORDER_GLOBAL;
        return STK_OK;
    }
    plan->order = STK_ORDER_LOCAL;
    plan->reach = options->reach;
    if (plan->reach == 0) {
        uint64_t fit = largest ? REACH_BYTES / largest : REACH_MOST;
        plan->reach = fit < 1 ? 1 : fit > REACH_MOST ? REACH_MOST : (uint32_t)fit;
    }
    if (!is_whole(plan))
        status = chunks_group_subset(plan, err);
    return status ? status : lanes_init(plan, 1, err);
}

/* --- making ----------------------------------------------------------------------------------- */

static stk_status plan_set_order(struct plan *plan, const struct stk_loader_options *options,
                                 struct stk_error *err)
{
    if (options->weights) {
        if (options->order != STK_ORDER_AUTO)
            return fail(err, STK_USAGE, "weights draw with replacement: they take no order");
        plan->order = STK_ORDER_GLOBAL;
        return weights_init(plan, options->weights, err);
    }
    plan->order = options->order;
    if (plan->order == STK_ORDER_TIME && options->shuffle) {
        stk_status status = fail(err, STK_USAGE, "the order of time is no shuffle");
        fail_remedy(err, "give shuffle= or order=\"time\", one of them");
        return status;
    }
    if (plan->order == STK_ORDER_TIME)
        return time_order_new(&plan->times, plan->dataset, err);
    if (plan->order == STK_ORDER_AUTO && !options->shuffle)
        plan->order = STK_ORDER_SEQUENTIAL;
    int chunks = index_chunk_count(dataset_index(plan->dataset)) > 0;
    int is_remote = dataset_is_remote(plan->dataset);
    if (plan->order == STK_ORDER_LOCAL || (plan->order == STK_ORDER_AUTO && (chunks || is_remote)))
        return chunks ? local_init(plan, options, err) : lanes_order_init(plan, options, err);
    if (plan->order == STK_ORDER_AUTO)
        plan->order = STK_ORDER_GLOBAL;
    return STK_OK;
}

static stk_status plan_set_batch(struct plan *plan, const struct stk_loader_options *options,
                                 struct stk_error *err)
{
    plan->world = options->world_size ? options->world_size : 1;
    plan->rank = options->rank;
    if (plan->rank >= plan->world)
        return fail(err, STK_USAGE, "rank %u of a world of %u: ranks count from 0", plan->rank,
                    plan->world);
    if (!options->batch_size == !options->global_batch_size)
        return fail(err, STK_USAGE, "give batch_size (per rank) or global_batch_size, one of them");
    plan->global = options->global_batch_size;
    if (options->batch_size)
        plan->global = (uint64_t)options->batch_size * plan->world;
    plan->last = options->last;
    if (plan->last == STK_LAST_AUTO)
        plan->last = plan->world > 1 ? STK_LAST_MASK : STK_LAST_SHORT;
    return STK_OK;
}

stk_status plan_new(struct plan **out, const struct stk_dataset *dataset,
                    const struct stk_loader_options *options, struct stk_error *err)
{
    *out = NULL;
    struct plan *plan = memory_zero(1, sizeof *plan);
    if (!plan)
        return fail_memory(err, sizeof *plan);
    plan->dataset = dataset;
    plan->samples = stk_dataset_samples(dataset);
    plan->seed = options->seed;
    plan->stored = stored_bytes(dataset_index(dataset));
    stk_status status = plan_set_batch(plan, options, err);
    if (!status)
        status = plan_set_order(plan, options, err);
    if (status)
        goto done;
    *out = plan;
    plan = NULL;
done:
    plan_free(plan);
    return status;
}

void plan_free(struct plan *plan)
{
    if (!plan)
        return;
    memory_free(plan->chance);
    memory_free(plan->alias);
    memory_free(plan->chunks);
    memory_free(plan->grouped);
    memory_free(plan->lanes);
    time_order_free(plan->times);
    memory_free(plan);
}

stk_status plan_cursor_init(struct plan_cursor *cursor, const struct plan *plan,
                            struct stk_error *err)
{
    *cursor = (struct plan_cursor){.epoch = STK_NOWHERE};
    if (plan->group_count == 0)
        return STK_OK;
    cursor->ends = memory_zero(plan->group_count, sizeof *cursor->ends);
    cursor->chunks = memory_zero(plan->lane_count, sizeof *cursor->chunks);
    if (cursor->ends && cursor->chunks)
        return STK_OK;
    plan_cursor_reset(cursor);
    return fail_memory(err, plan->group_count * sizeof *cursor->ends);
}

uint64_t plan_cursor_size(const struct plan *plan)
{
    return plan->group_count * sizeof(uint64_t) + plan->lane_count * sizeof(struct permutation) +
           (plan->times ? time_cursor_size(plan->times) : 0);
}

int plan_needs_cursor(const struct plan *plan)
{
    return plan->order == STK_ORDER_LOCAL || plan->order == STK_ORDER_TIME;
}

void plan_cursor_reset(struct plan_cursor *cursor)
{
    time_cursor_free(cursor->times);
    memory_free(cursor->ends);
    memory_free(cursor->chunks);
    *cursor = (struct plan_cursor){.epoch = STK_NOWHERE};
}

/* --- asking ----------------------------------------------------------------------------------- */

/* Lanes are shuffled each by itself; where there is one, its key is the epoch's own. */
static uint64_t lane_key(const struct plan *plan, uint64_t epoch, uint32_t lane)
{
    uint64_t key = plan_key(plan, TAG_CHUNKS, epoch);
    return plan->lane_count > 1 ? random_key(key, lane) : key;
}

static void cursor_turn(const struct plan *plan, struct plan_cursor *cursor, uint64_t epoch)
{
    if (cursor->epoch == epoch)
        return;
    for (uint32_t l = 0; l < plan->lane_count; l++) {
        const struct plan_lane *lane = &plan->lanes[l];
        struct permutation *chunks = &cursor->chunks[l];
        permutation_init(chunks, lane->chunk_count, lane_key(plan, epoch, l));
        uint64_t end = 0;
        for (uint64_t c = 0; c < lane->chunk_count; c++) {
            end += plan->chunks[lane->first_chunk + permutation_at(chunks, c)].count;
            cursor->ends[lane->first_group + c / plan->reach] = end;
        }
    }
    cursor->epoch = epoch;
}

/* The lane's group that holds its place-th sample. */
static uint64_t group_at(const struct plan_lane *lane, const uint64_t *ends, uint64_t place)
{
    uint64_t low = 0, high = lane->group_count - 1;
    while (low < high) { /* the first group that ends after it */
        uint64_t middle = low + (high - low) / 2;
        if (ends[middle] <= place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The place-th sample of a group's chunks laid end to end. */
static uint64_t group_place(const struct plan *plan, const struct plan_cursor *cursor,
                            uint32_t lane, uint64_t group, uint64_t place)
{
    const struct plan_chunk *chunks = plan->chunks + plan->lanes[lane].first_chunk;
    for (uint64_t c = group * plan->reach;; c++) {
        const struct plan_chunk *chunk = &chunks[permutation_at(&cursor->chunks[lane], c)];
        if (place < chunk->count)
            return plan->grouped ? plan->grouped[chunk->first + place] : chunk->first + place;
        place -= chunk->count;
    }
}

/* n samples of a lane, from its first-th on. The cursor is at the epoch. */
static void lane_positions(const struct plan *plan, const struct plan_cursor *cursor,
                           const struct lanes_run *run, uint64_t *out)
{
    const struct plan_lane *lane = &plan->lanes[run->lane];
    const uint64_t *ends = cursor->ends + lane->first_group;
    uint64_t key = plan_key(plan, TAG_GROUP, cursor->epoch);
    for (uint32_t i = 0; i < run->count;) {
        uint64_t at = run->first + i, group = group_at(lane, ends, at);
        uint64_t start = group ? ends[group - 1] : 0, end = ends[group];
        struct permutation within;
        permutation_init(&within, end - start, random_key(key, lane->first_group + group));
        uint64_t left = end - at;
        uint32_t stop = left < run->count - i ? i + (uint32_t)left : run->count;
        permutation_many(&within, at - start, stop - i, out + i);
        for (; i < stop; i++)
            out[i] = group_place(plan, cursor, run->lane, group, out[i]);
    }
}

void plan_lane_group(const struct plan *plan, const struct plan_cursor *cursor, uint32_t lane,
                     uint64_t place, struct plan_part *out)
{
    const struct plan_lane *own = &plan->lanes[lane];
    const uint64_t *ends = cursor->ends + own->first_group;
    uint64_t group = group_at(own, ends, place);
    *out = (struct plan_part){group, group ? ends[group - 1] : 0, ends[group]};
}

uint64_t plan_lane_chunk(const struct plan *plan, uint64_t epoch, uint32_t lane, uint64_t number)
{
    struct permutation chunks;
    permutation_init(&chunks, plan->lanes[lane].chunk_count, lane_key(plan, epoch, lane));
    return plan->lanes[lane].first_chunk + permutation_at(&chunks, number);
}

static void local_positions(const struct plan *plan, struct plan_cursor *cursor,
                            const struct plan_range *range, uint64_t *out)
{
    uint32_t lanes = plan->lane_count;
    cursor_turn(plan, cursor, range->epoch);
    if (lanes == 1) {
        struct lanes_run run = {0, range->position, range->n};
        lane_positions(plan, cursor, &run, out);
        return;
    }
    for (uint32_t i = 0; i < range->n; i++) {
        uint64_t position = range->position + i;
        struct lanes_run run = {(uint32_t)(position % lanes), position / lanes, 1};
        lane_positions(plan, cursor, &run, out + i);
    }
}

static uint64_t weighted_position(const struct plan *plan, uint64_t key, uint64_t position)
{
    uint64_t i = random_below(key, 2 * position, plan->samples);
    return random_unit(key, 2 * position + 1) < plan->chance[i] ? i : plan->alias[i];
}

static void global_positions(const struct plan *plan, uint64_t epoch, uint64_t position, uint32_t n,
                             uint64_t *out)
{
    struct permutation shuffle;
    permutation_init(&shuffle, plan->samples, plan_key(plan, TAG_SHUFFLE, epoch));
    permutation_many(&shuffle, position, n, out);
}

/* Already numbers of the index: a range of the series is cut out by the order itself. */
static stk_status time_samples(const struct plan *plan, struct plan_cursor *cursor,
                               const struct plan_range *range, uint64_t *out, struct stk_error *err)
{
    stk_status status = STK_OK;
    if (!cursor->times)
        status = time_cursor_new(&cursor->times, plan->times, err);
    if (!status)
        status = time_cursor_samples(cursor->times, range->position, range->n, out, err);
    return status;
}

stk_status plan_samples(const struct plan *plan, struct plan_cursor *cursor,
                        const struct plan_range *range, uint64_t *out, struct stk_error *err)
{
    uint64_t epoch = range->epoch, position = range->position;
    uint32_t n = range->n;
    if (plan->times)
        return time_samples(plan, cursor, range, out, err);
    if (plan->chance) {
        uint64_t key = plan_key(plan, TAG_WEIGHTS, epoch);
        for (uint32_t i = 0; i < n; i++)
            out[i] = weighted_position(plan, key, position + i);
    } else if (plan->order == STK_ORDER_GLOBAL) {
        global_positions(plan, epoch, position, n, out);
    } else if (plan->order == STK_ORDER_LOCAL) {
        local_positions(plan, cursor, range, out);
    } else {
        for (uint32_t i = 0; i < n; i++)
            out[i] = position + i;
    }
    dataset_samples(plan->dataset, out, n);
    return STK_OK;
}

uint64_t plan_substitute(const struct plan *plan, uint64_t epoch, uint64_t position,
                         uint32_t attempt)
{
    uint64_t key = random_key(plan_key(plan, TAG_SUBSTITUTE, epoch), position);
    uint64_t sample = random_below(key, attempt, plan->samples);
    dataset_samples(plan->dataset, &sample, 1);
    return sample;
}

void plan_share(const struct plan *plan, uint64_t position, struct plan_share *share)
{
    uint64_t left = plan->samples - position;
    uint64_t taken = left < plan->global ? left : plan->global;
    /* Shares are cut evenly, so a short last step is spread over the ranks. */
    uint64_t low = (uint64_t)((unsigned __int128)taken * plan->rank / plan->world);
    uint64_t high = (uint64_t)((unsigned __int128)taken * (plan->rank + 1) / plan->world);
    share->start = position;
    share->taken = taken;
    share->first = position + low;
    share->real = (uint32_t)(high - low);
    share->count = plan->last == STK_LAST_MASK ? plan_capacity(plan) : share->real;
    share->end = position + taken;
}

stk_status plan_share_samples(const struct plan *plan, struct plan_cursor *cursor, uint64_t epoch,
                              const struct plan_share *share, uint64_t *out, struct stk_error *err)
{
    struct plan_range range = {epoch, share->first, share->real};
    if (plan->lane_count <= 1)
        return plan_samples(plan, cursor, &range, out, err);
    cursor_turn(plan, cursor, epoch);
    for (uint32_t i = 0; i < share->real;) {
        struct lanes_run run;
        lanes_find(plan->lane_count, share->start, share->taken, share->first - share->start + i,
                   share->real - i, &run);
        lane_positions(plan, cursor, &run, out + i);
        i += run.count;
    }
    dataset_samples(plan->dataset, out, share->real);
    return STK_OK;
}

uint64_t plan_share_position(const struct plan *plan, const struct plan_share *share,
                             uint32_t place)
{
    struct lanes_run run;
    if (plan->lane_count <= 1)
        return share->first + place;
    lanes_find(plan->lane_count, share->start, share->taken, share->first - share->start + place, 1,
               &run);
    return run.first * plan->lane_count + run.lane;
}

uint32_t plan_capacity(const struct plan *plan)
{
    return (uint32_t)((plan->global + plan->world - 1) / plan->world);
}

uint64_t plan_steps(const struct plan *plan, uint64_t position)
{
    uint64_t left = position < plan->samples ? plan->samples - position : 0;
    return left / plan->global + (plan->last != STK_LAST_DROP && left % plan->global != 0);
}

uint64_t plan_group(const struct plan *plan, struct plan_cursor *cursor, uint64_t epoch,
                    uint64_t position)
{
    cursor_turn(plan, cursor, epoch);
    return group_at(&plan->lanes[0], cursor->ends, position);
}

uint64_t plan_group_next(const struct plan *plan, const struct plan_cursor *cursor, uint64_t group,
                         uint32_t *chunk)
{
    while (*chunk < plan->reach && group * plan->reach + *chunk < plan->chunk_count) {
        uint64_t c = permutation_at(&cursor->chunks[0], group * plan->reach + (*chunk)++);
        if (plan->chunks[c].count == 0)
            continue; /* a subset may leave a chunk empty */
        uint64_t first = plan->chunks[c].first;
        uint64_t sample = plan->grouped ? plan->grouped[first] : first;
        dataset_samples(plan->dataset, &sample, 1);
        return sample;
    }
    return STK_NOWHERE;
}
