/* test_plan_lanes.c -- the order of data on the network: lanes, their arithmetic, and what ranks
 * get of them. The data here lies on this disk and is called remote: the order does not look. */
#include "loader_fixture.h"

#include "dataset/dataset_state.h"
#include "loader/lanes.h"
#include "loader/plan.h"

#define LANES 16
#define REACH 8
#define SMALL_REACH 16

/* How data is cut: bytes of a run, and how many are mixed. */
struct cut {
    uint64_t run;
    uint32_t reach;
};
static const struct cut large = {(uint64_t)16 << 20, REACH};
static const struct cut small = {(uint64_t)512 << 10, SMALL_REACH};

/* A file of n samples, all holes: its size alone counts. */
static void fixture_holes(struct fixture *fixture, uint64_t n, int64_t size)
{
    char path[256];
    struct stk_dataset_options options = {
        .format = "raw", .dtype = "uint8", .shape = &size, .rank = 1};
    fixture_folder(fixture);
    fixture_path(fixture, "records.bin", path, sizeof path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (off_t)(n * (uint64_t)size)), 0);
    fclose(file);
    fixture_open(fixture, "records.bin", &options);
    fixture->dataset->source->remote = 1;
}

static struct plan *plan_of(const struct fixture *fixture, const struct stk_loader_options *options)
{
    struct plan *plan;
    struct stk_error err;
    if (plan_new(&plan, fixture->dataset, options, &err))
        fixture_fail(&err);
    return plan;
}

/* ---- arithmetic ---------------------------------------------------------------------------- */

static void lanes_share_the_samples_evenly(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes < 20; lanes++)
        for (uint64_t n = 0; n < 100; n++) {
            assert_int_equal(lanes_start(n, lanes, 0), 0);
            assert_int_equal(lanes_start(n, lanes, lanes), n);
            for (uint32_t lane = 0; lane < lanes; lane++) {
                uint64_t length = lanes_start(n, lanes, lane + 1) - lanes_start(n, lanes, lane);
                uint64_t positions = n / lanes + (lane < n % lanes); /* p < n with p % L == lane */
                assert_int_equal(length, positions);
            }
        }
}

/* Against a list of all positions of the step, lane by lane. */
static void check_step(uint32_t lanes, uint64_t position, uint64_t taken)
{
    uint64_t listed[64];
    uint32_t count = 0;
    for (uint32_t lane = 0; lane < lanes; lane++)
        for (uint64_t p = position; p < position + taken; p++)
            if (p % lanes == lane)
                listed[count++] = p;
    assert_int_equal(count, taken);
    for (uint32_t place = 0; place < count; place++) {
        struct lanes_run run;
        lanes_find(lanes, position, taken, place, 1000, &run);
        assert_int_equal(run.first * lanes + run.lane, listed[place]);
        assert_true(run.count > 0 && place + run.count <= count);
        for (uint32_t i = 0; i < run.count; i++)
            assert_int_equal((run.first + i) * lanes + run.lane, listed[place + i]);
        lanes_find(lanes, position, taken, place, 1, &run);
        assert_int_equal(run.count, 1);
    }
}

static void a_step_is_laid_out_lane_by_lane(void **state)
{
    (void)state;
    for (uint32_t lanes = 2; lanes < 18; lanes++)
        for (uint64_t position = 0; position < 40; position += 1 + lanes % 3)
            for (uint64_t taken = 1; taken < 50; taken += 1 + position % 4)
                check_step(lanes, position, taken);
}

/* ---- the order ----------------------------------------------------------------------------- */

static void small_data_is_shuffled_as_a_whole(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_loader_options options = {.batch_size = 4, .shuffle = 1};
    fixture_holes(&fixture, 1000, 4096);
    struct plan *plan = plan_of(&fixture, &options);
    assert_int_equal(plan->order, STK_ORDER_GLOBAL);
    plan_free(plan);
    fixture_close(&fixture);
}

static void large_data_is_shuffled_in_lanes_unless_told_otherwise(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_loader_options options = {.batch_size = 4, .shuffle = 1};
    fixture_holes(&fixture, 3000, 1 << 20);
    struct plan *plan = plan_of(&fixture, &options);
    assert_int_equal(plan->order, STK_ORDER_LOCAL);
    assert_int_equal(plan->lane_count, LANES);
    assert_int_equal(plan->reach, REACH);
    plan_free(plan);
    options.order = STK_ORDER_GLOBAL;
    plan = plan_of(&fixture, &options);
    assert_int_equal(plan->order, STK_ORDER_GLOBAL);
    plan_free(plan);
    options = (struct stk_loader_options){.batch_size = 4};
    plan = plan_of(&fixture, &options);
    assert_int_equal(plan->order, STK_ORDER_SEQUENTIAL);
    plan_free(plan);
    fixture.dataset->source->remote = 0;
    options.shuffle = 1;
    plan = plan_of(&fixture, &options);
    assert_int_equal(plan->order, STK_ORDER_GLOBAL);
    plan_free(plan);
    fixture_close(&fixture);
}

/* One lane of the model: its samples in the order of the epoch, with plain lists. tags 2 and 3 are
 * plan.c's for chunks and groups. */
static void model_lane(uint64_t n, uint64_t bytes, const struct cut *cut, uint32_t lane,
                       const uint64_t keys[2], uint32_t *first_group, uint64_t *out)
{
    uint64_t begin = lanes_start(n, LANES, lane), end = lanes_start(n, LANES, lane + 1);
    uint64_t runs = bytes / cut->run + 1, starts[4096], count = 0, done = 0;
    for (uint64_t i = 0; i <= runs; i++) { /* borders of runs inside the lane */
        uint64_t border = n * i / runs;
        if (border > begin && border < end) {
            if (!count)
                starts[count++] = begin;
            starts[count++] = border;
        }
    }
    if (!count)
        starts[count++] = begin;
    starts[count] = end;
    struct permutation chunks, within;
    permutation_init(&chunks, count, random_key(keys[0], lane));
    for (uint64_t c = 0; c < count; c += cut->reach, ++*first_group) {
        uint64_t group[65536], size = 0;
        for (uint64_t k = c; k < count && k < c + cut->reach; k++) {
            uint64_t run = permutation_at(&chunks, k);
            for (uint64_t sample = starts[run]; sample < starts[run + 1]; sample++)
                group[size++] = sample;
        }
        permutation_init(&within, size, random_key(keys[1], *first_group));
        for (uint64_t i = 0; i < size; i++)
            out[done++] = group[permutation_at(&within, i)];
    }
    assert_int_equal(done, end - begin);
}

static void check_model(uint64_t size, const struct cut *cut)
{
    static uint64_t lanes[LANES][4096], found[20011];
    struct fixture fixture;
    struct plan_cursor cursor;
    uint64_t n = 20011, seed = 7, epoch = 5;
    uint32_t group = 0;
    fixture_holes(&fixture, n, (int64_t)size);
    struct stk_loader_options options = {.batch_size = 4, .order = STK_ORDER_LOCAL, .seed = seed};
    struct plan *plan = plan_of(&fixture, &options);
    assert_true(plan->reach <= cut->reach);
    uint64_t keys[2] = {random_key(random_key(seed, 2), epoch),
                        random_key(random_key(seed, 3), epoch)};
    for (uint32_t lane = 0; lane < LANES; lane++)
        model_lane(n, n * size, cut, lane, keys, &group, lanes[lane]);
    assert_int_equal(plan_cursor_init(&cursor, plan, NULL), STK_OK);
    struct plan_range range = {epoch, 0, (uint32_t)n};
    assert_int_equal(plan_samples(plan, &cursor, &range, found, NULL), STK_OK);
    for (uint64_t p = 0; p < n; p++)
        assert_int_equal(found[p], lanes[p % LANES][p / LANES]);
    plan_cursor_reset(&cursor);
    plan_free(plan);
    fixture_close(&fixture);
}

static void the_order_is_that_of_a_model_with_plain_lists(void **state)
{
    (void)state;
    check_model(300000, &large);
    check_model(64 << 10, &large);
    check_model((64 << 10) - 1, &small);
    check_model(10000, &small);
}

/* What is fetched ahead is named by these: they must say the same as the order. */
static void groups_and_their_chunks_hold_the_samples_of_their_places(void **state)
{
    (void)state;
    struct fixture fixture;
    struct plan_cursor cursor;
    uint64_t n = 20011, epoch = 3;
    fixture_holes(&fixture, n, 10000);
    struct stk_loader_options options = {.batch_size = 4, .shuffle = 1, .reach = 3};
    struct plan *plan = plan_of(&fixture, &options);
    assert_int_equal(plan_cursor_init(&cursor, plan, NULL), STK_OK);
    for (uint64_t p = 0; p < n; p++) {
        struct plan_part part;
        uint32_t lane = (uint32_t)(p % LANES);
        uint64_t sample, place = p / LANES, found = 0;
        struct plan_range range = {epoch, p, 1};
        assert_int_equal(plan_samples(plan, &cursor, &range, &sample, NULL), STK_OK);
        plan_lane_group(plan, &cursor, lane, place, &part);
        assert_true(place >= part.start && place < part.end);
        for (uint64_t c = part.number * 3;
             c < plan->lanes[lane].chunk_count && c / 3 == part.number; c++) {
            const struct plan_chunk *chunk = &plan->chunks[plan_lane_chunk(plan, epoch, lane, c)];
            found += sample >= chunk->first && sample - chunk->first < chunk->count;
        }
        assert_int_equal(found, 1);
    }
    plan_cursor_reset(&cursor);
    plan_free(plan);
    fixture_close(&fixture);
}

static void only_small_samples_are_worth_fetching_together(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 10000, (64 << 10) - 1, 64 << 10, 1 << 20};
    static const uint64_t runs[] = {512 << 10, 52, 8, 0, 0};
    for (int i = 0; i < 5; i++) {
        struct fixture fixture;
        struct stk_loader_options options = {.batch_size = 4};
        fixture_holes(&fixture, 100, sizes[i]);
        struct plan *plan = plan_of(&fixture, &options);
        assert_int_equal(plan_run_samples(plan), runs[i]);
        plan_free(plan);
        fixture_close(&fixture);
    }
}

/* ---- ranks --------------------------------------------------------------------------------- */

/* The samples of one rank's epoch; returns how many. */
static uint64_t rank_epoch(const struct fixture *fixture, struct stk_loader_options options,
                           uint32_t rank, uint32_t world, uint64_t *out)
{
    struct plan_cursor cursor;
    uint64_t count = 0;
    options.rank = rank;
    options.world_size = world;
    struct plan *plan = plan_of(fixture, &options);
    assert_int_equal(plan_cursor_init(&cursor, plan, NULL), STK_OK);
    for (uint64_t position = 0; plan_steps(plan, position);) {
        struct plan_share share;
        plan_share(plan, position, &share);
        assert_int_equal(plan_share_samples(plan, &cursor, 1, &share, out + count, NULL), STK_OK);
        for (uint32_t i = 0; i < share.real; i++) { /* one by one it is the same */
            uint64_t one;
            struct plan_range range = {1, plan_share_position(plan, &share, i), 1};
            assert_int_equal(plan_samples(plan, &cursor, &range, &one, NULL), STK_OK);
            assert_int_equal(one, out[count + i]);
            assert_true(range.position >= position && range.position < share.end);
        }
        count += share.real;
        position = share.end;
    }
    plan_cursor_reset(&cursor);
    plan_free(plan);
    return count;
}

static void every_sample_comes_once_for_any_world_and_batch(void **state)
{
    (void)state;
    static uint64_t samples[1003];
    struct fixture fixture;
    fixture_holes(&fixture, 1003, 1 << 18);
    for (uint32_t world = 1; world <= 24; world += world < 4 ? 1 : 5)
        for (uint32_t batch = 1; batch < 40; batch += 6) {
            struct stk_loader_options options = {
                .batch_size = batch, .order = STK_ORDER_LOCAL, .reach = 2, .seed = batch};
            uint8_t seen[1003] = {0};
            for (uint32_t rank = 0; rank < world; rank++) {
                uint64_t count = rank_epoch(&fixture, options, rank, world, samples);
                for (uint64_t i = 0; i < count; i++)
                    seen[samples[i]]++;
            }
            for (int i = 0; i < 1003; i++)
                assert_int_equal(seen[i], 1);
        }
    fixture_close(&fixture);
}

static void ranks_read_parts_of_their_own(void **state)
{
    (void)state;
    static uint64_t samples[4096];
    struct fixture fixture;
    fixture_holes(&fixture, 4096, 1 << 20);
    struct stk_loader_options options = {.batch_size = 16, .shuffle = 1};
    for (uint32_t rank = 0; rank < 4; rank++) {
        uint64_t count = rank_epoch(&fixture, options, rank, 4, samples);
        assert_int_equal(count, 1024);
        for (uint64_t i = 0; i < count; i++)
            assert_int_equal(samples[i] / 1024, rank);
    }
    fixture_close(&fixture);
}

static void global_batches_are_the_same_on_any_number_of_ranks(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t alone[100], mine[100];
    struct plan_share share;
    struct plan_cursor cursor;
    fixture_holes(&fixture, 3000, 1 << 20);
    struct stk_loader_options options = {.global_batch_size = 100, .shuffle = 1, .seed = 3};
    for (uint32_t world = 1; world < 9; world++) {
        uint32_t at = 0;
        options.world_size = world;
        for (options.rank = 0; options.rank < world; options.rank++) {
            struct plan *plan = plan_of(&fixture, &options);
            assert_int_equal(plan_cursor_init(&cursor, plan, NULL), STK_OK);
            plan_share(plan, 300, &share);
            assert_int_equal(plan_share_samples(plan, &cursor, 2, &share, mine + at, NULL), STK_OK);
            at += share.real;
            plan_cursor_reset(&cursor);
            plan_free(plan);
        }
        assert_int_equal(at, 100);
        if (world == 1)
            memcpy(alone, mine, sizeof alone);
        assert_memory_equal(alone, mine, sizeof alone);
    }
    fixture_close(&fixture);
}

static void subsets_are_covered_and_stay_within_their_lanes(void **state)
{
    (void)state;
    static uint64_t samples[3000];
    double shares[2] = {0.7, 0.3};
    struct fixture fixture;
    uint8_t seen[3000] = {0};
    fixture_holes(&fixture, 3000, 1 << 20);
    struct stk_dataset *whole = fixture.dataset;
    for (uint32_t part = 0; part < 2; part++) {
        struct stk_error err;
        assert_int_equal(stk_dataset_split(whole, &fixture.dataset, shares, 2, part, 1, &err),
                         STK_OK);
        struct stk_loader_options options = {.batch_size = 8, .shuffle = 1, .seed = 4};
        for (uint32_t rank = 0; rank < 3; rank++) {
            uint64_t count = rank_epoch(&fixture, options, rank, 3, samples);
            for (uint64_t i = 0; i < count; i++)
                seen[samples[i]]++;
        }
        stk_dataset_close(fixture.dataset);
    }
    fixture.dataset = whole;
    for (int i = 0; i < 3000; i++)
        assert_int_equal(seen[i], 1);
    fixture_close(&fixture);
}

/* ---- the loader ---------------------------------------------------------------------------- */

static struct stk_loader *loader_of(const struct fixture *fixture,
                                    const struct stk_loader_options *options)
{
    struct stk_loader *loader;
    struct stk_error err;
    if (stk_loader_open(fixture->context, fixture->dataset, &loader, options, &err))
        fixture_fail(&err);
    return loader;
}

/* Draws until the end, or `most` batches; marks what came. */
static void draw(struct stk_loader *loader, int most, uint8_t *seen)
{
    struct stk_batch *batch;
    struct stk_error err;
    for (int i = 0; i < most; i++) {
        stk_status status = stk_loader_next(loader, &batch, &err);
        if (status == STK_END)
            return;
        if (status)
            fixture_fail(&err);
        for (uint32_t k = 0; k < batch->real; k++)
            seen[batch->samples[k]]++;
        stk_batch_release(batch);
    }
}

static void a_run_goes_on_with_other_batches_and_ranks(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_error err;
    uint8_t seen[1000] = {0};
    char text[1024];
    size_t len;
    fixture_records(&fixture, 1000);
    fixture.dataset->source->remote = 1;
    struct stk_loader_options options = {
        .batch_size = 7, .order = STK_ORDER_LOCAL, .seed = 3, .threads = 2};
    struct stk_loader *loader = loader_of(&fixture, &options);
    draw(loader, 33, seen);
    assert_int_equal(stk_loader_save(loader, text, sizeof text, &len, &err), STK_OK);
    assert_non_null(strstr(text, "\"lanes\": 16"));
    stk_loader_close(loader);
    options.batch_size = 10;
    options.world_size = 3;
    for (options.rank = 0; options.rank < 3; options.rank++) {
        loader = loader_of(&fixture, &options);
        assert_int_equal(stk_loader_load(loader, text, &err), STK_OK);
        draw(loader, INT32_MAX, seen);
        stk_loader_close(loader);
    }
    for (int i = 0; i < 1000; i++)
        assert_int_equal(seen[i], 1);
    fixture_close(&fixture);
}

static void the_local_order_is_the_same_wherever_the_data_lies(void **state)
{
    (void)state;
    uint64_t found[2][500];
    struct fixture fixture;
    struct plan_cursor cursor;
    struct plan_range range = {3, 100, 500};
    struct stk_loader_options options = {.batch_size = 7, .order = STK_ORDER_LOCAL, .seed = 2};
    fixture_holes(&fixture, 3000, 1 << 20);
    for (int remote = 0; remote < 2; remote++) {
        fixture.dataset->source->remote = remote;
        struct plan *plan = plan_of(&fixture, &options);
        assert_int_equal(plan_cursor_init(&cursor, plan, NULL), STK_OK);
        assert_int_equal(plan_samples(plan, &cursor, &range, found[remote], NULL), STK_OK);
        plan_cursor_reset(&cursor);
        plan_free(plan);
    }
    assert_memory_equal(found[0], found[1], sizeof found[0]);
    fixture_close(&fixture);
}

static void a_state_of_another_order_is_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    struct stk_error err;
    char text[1024];
    size_t len;
    fixture_records(&fixture, 1000);
    struct stk_loader_options options = {.batch_size = 7, .shuffle = 1};
    struct stk_loader *loader = loader_of(&fixture, &options);
    assert_int_equal(stk_loader_save(loader, text, sizeof text, &len, &err), STK_OK);
    stk_loader_close(loader);
    options.order = STK_ORDER_LOCAL;
    loader = loader_of(&fixture, &options);
    assert_int_equal(stk_loader_load(loader, text, &err), STK_MISMATCH);
    assert_non_null(strstr(err.remedy, "global"));
    stk_loader_close(loader);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_share_the_samples_evenly),
        cmocka_unit_test(a_step_is_laid_out_lane_by_lane),
        cmocka_unit_test(small_data_is_shuffled_as_a_whole),
        cmocka_unit_test(large_data_is_shuffled_in_lanes_unless_told_otherwise),
        cmocka_unit_test(the_order_is_that_of_a_model_with_plain_lists),
        cmocka_unit_test(groups_and_their_chunks_hold_the_samples_of_their_places),
        cmocka_unit_test(only_small_samples_are_worth_fetching_together),
        cmocka_unit_test(every_sample_comes_once_for_any_world_and_batch),
        cmocka_unit_test(ranks_read_parts_of_their_own),
        cmocka_unit_test(global_batches_are_the_same_on_any_number_of_ranks),
        cmocka_unit_test(subsets_are_covered_and_stay_within_their_lanes),
        cmocka_unit_test(a_run_goes_on_with_other_batches_and_ranks),
        cmocka_unit_test(the_local_order_is_the_same_wherever_the_data_lies),
        cmocka_unit_test(a_state_of_another_order_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
