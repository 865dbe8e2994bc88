#include "loader_fixture.h"

#include "loader/plan.h"

static void samples_at(const struct plan *plan, struct plan_cursor *cursor, uint64_t epoch,
                       uint64_t position, uint32_t n, uint64_t *out)
{
    struct plan_range range = {.epoch = epoch, .position = position, .n = n};
    assert_int_equal(plan_samples(plan, cursor, &range, out, NULL), STK_OK);
}

static struct plan *plan_of(struct fixture *fixture, const struct stk_loader_options *options)
{
    struct plan *plan;
    struct stk_error err;
    if (plan_new(&plan, fixture->dataset, options, &err))
        fixture_fail(&err);
    return plan;
}

/* Marks every sample of an epoch as all ranks of a world see it; returns the steps. */
static uint64_t see_epoch(struct fixture *fixture, struct stk_loader_options options,
                          uint32_t world, uint64_t epoch, uint8_t *seen)
{
    uint64_t steps = 0, samples[64];
    for (uint32_t rank = 0; rank < world; rank++) {
        struct plan_cursor cursor;
        options.rank = rank;
        options.world_size = world;
        struct plan *plan = plan_of(fixture, &options);
        assert_int_equal(plan_cursor_init(&cursor, plan, NULL), STK_OK);
        uint64_t position = 0, own = 0;
        while (plan_steps(plan, position)) {
            struct plan_share share;
            plan_share(plan, position, &share);
            assert_true(share.count <= plan_capacity(plan) && share.count <= 64);
            samples_at(plan, &cursor, epoch, share.first, share.real, samples);
            for (uint32_t i = 0; i < share.real; i++)
                seen[samples[i]]++;
            position = share.end;
            own++;
        }
        assert_true(rank == 0 || own == steps);
        assert_int_equal(own, plan_steps(plan, 0));
        steps = own;
        plan_cursor_reset(&cursor);
        plan_free(plan);
    }
    return steps;
}

static void every_sample_comes_once_for_any_world(void **state)
{
    (void)state;
    struct fixture fixture;
    uint8_t seen[101];
    fixture_records(&fixture, 101);
    for (uint32_t world = 1; world <= 8; world++) {
        struct stk_loader_options options = {.batch_size = 7, .shuffle = 1, .seed = 3};
        memset(seen, 0, sizeof seen);
        uint64_t steps = see_epoch(&fixture, options, world, 2, seen);
        assert_int_equal(steps, (101 + 7 * world - 1) / (7 * world));
        for (int i = 0; i < 101; i++)
            assert_int_equal(seen[i], 1);
    }
    fixture_close(&fixture);
}

static void drop_leaves_out_less_than_a_step(void **state)
{
    (void)state;
    struct fixture fixture;
    uint8_t seen[101] = {0};
    uint64_t total = 0;
    fixture_records(&fixture, 101);
    struct stk_loader_options options = {.batch_size = 7, .shuffle = 1, .last = STK_LAST_DROP};
    assert_int_equal(see_epoch(&fixture, options, 2, 0, seen), 7);
    for (int i = 0; i < 101; i++)
        total += seen[i];
    assert_int_equal(total, 98);
    fixture_close(&fixture);
}

static void global_batches_are_the_same_on_any_number_of_ranks(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 100);
    struct stk_loader_options options = {.global_batch_size = 12, .shuffle = 1, .seed = 9};
    uint64_t alone[12], mine[12];
    struct plan *plan = plan_of(&fixture, &options);
    struct plan_share share;
    plan_share(plan, 24, &share);
    assert_int_equal(share.real, 12);
    samples_at(plan, NULL, 1, share.first, share.real, alone);
    plan_free(plan);
    options.world_size = 5;
    uint32_t at = 0;
    for (options.rank = 0; options.rank < 5; options.rank++) {
        plan = plan_of(&fixture, &options);
        plan_share(plan, 24, &share);
        samples_at(plan, NULL, 1, share.first, share.real, mine + at);
        at += share.real;
        plan_free(plan);
    }
    assert_int_equal(at, 12);
    assert_memory_equal(alone, mine, sizeof alone);
    fixture_close(&fixture);
}

static void epochs_and_seeds_change_the_order(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_records(&fixture, 1000);
    struct stk_loader_options options = {.batch_size = 64, .shuffle = 1, .seed = 1};
    uint64_t a[64], b[64];
    struct plan *plan = plan_of(&fixture, &options);
    samples_at(plan, NULL, 0, 0, 64, a);
    samples_at(plan, NULL, 1, 0, 64, b);
    assert_memory_not_equal(a, b, sizeof a);
    samples_at(plan, NULL, 0, 0, 64, b);
    assert_memory_equal(a, b, sizeof a);
    plan_free(plan);
    options.seed = 2;
    plan = plan_of(&fixture, &options);
    samples_at(plan, NULL, 0, 0, 64, b);
    assert_memory_not_equal(a, b, sizeof a);
    plan_free(plan);
    fixture_close(&fixture);
}

static void weights_draw_in_proportion(void **state)
{
    (void)state;
    struct fixture fixture;
    double weights[4] = {0, 1, 2, 5};
    uint64_t drawn[4] = {0}, samples[64];
    fixture_records(&fixture, 4);
    struct stk_loader_options options = {.batch_size = 4, .seed = 5, .weights = weights};
    struct plan *plan = plan_of(&fixture, &options);
    for (uint64_t epoch = 0; epoch < 20000; epoch++) {
        samples_at(plan, NULL, epoch, 0, 4, samples);
        for (int i = 0; i < 4; i++)
            drawn[samples[i]]++;
    }
    assert_int_equal(drawn[0], 0);
    for (int i = 1; i < 4; i++) {
        double expected = 80000 * weights[i] / 8;
        assert_true(drawn[i] > expected * 0.96 && drawn[i] < expected * 1.04);
    }
    plan_free(plan);
    fixture_close(&fixture);
}

static void bad_weights_are_refused(void **state)
{
    (void)state;
    struct fixture fixture;
    double negative[2] = {1, -1}, none[2] = {0, 0};
    struct plan *plan;
    struct stk_error err;
    fixture_records(&fixture, 2);
    struct stk_loader_options options = {.batch_size = 1, .weights = negative};
    assert_int_equal(plan_new(&plan, fixture.dataset, &options, &err), STK_USAGE);
    options.weights = none;
    assert_int_equal(plan_new(&plan, fixture.dataset, &options, &err), STK_USAGE);
    fixture_close(&fixture);
}

/* Chunks: how many different ones a run of samples touches. */
static void the_local_order_stays_within_reach_and_covers_all(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t samples[40];
    uint8_t seen[160] = {0};
    struct plan_cursor cursor;
    fixture_shards(&fixture, 16, 10, "wb");
    struct stk_loader_options options = {.batch_size = 40, .shuffle = 1, .seed = 1, .reach = 4};
    struct plan *plan = plan_of(&fixture, &options);
    assert_int_equal(plan->order, STK_ORDER_LOCAL);
    assert_int_equal(plan_cursor_init(&cursor, plan, NULL), STK_OK);
    for (uint64_t position = 0; position < 160; position += 40) {
        uint32_t shards = 0;
        samples_at(plan, &cursor, 3, position, 40, samples);
        for (int i = 0; i < 40; i++) {
            seen[samples[i]]++;
            shards |= 1u << samples[i] / 10;
        }
        assert_int_equal(__builtin_popcount(shards), 4);
    }
    for (int i = 0; i < 160; i++)
        assert_int_equal(seen[i], 1);
    plan_cursor_reset(&cursor);
    plan_free(plan);
    fixture_close(&fixture);
}

static void the_local_order_covers_a_subset(void **state)
{
    (void)state;
    struct fixture fixture;
    double shares[2] = {0.7, 0.3};
    uint8_t seen[160] = {0};
    uint64_t total = 0;
    fixture_shards(&fixture, 16, 10, "wb");
    for (uint32_t part = 0; part < 2; part++) {
        struct stk_dataset *subset, *whole = fixture.dataset;
        struct stk_error err;
        assert_int_equal(stk_dataset_split(whole, &subset, shares, 2, part, 1, &err), STK_OK);
        fixture.dataset = subset;
        struct stk_loader_options options = {
            .batch_size = 8, .shuffle = 1, .order = STK_ORDER_LOCAL, .reach = 3};
        see_epoch(&fixture, options, 3, 1, seen);
        fixture.dataset = whole;
        stk_dataset_close(subset);
    }
    for (int i = 0; i < 160; i++)
        total += seen[i] == 1;
    assert_int_equal(total, 160);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_sample_comes_once_for_any_world),
        cmocka_unit_test(drop_leaves_out_less_than_a_step),
        cmocka_unit_test(global_batches_are_the_same_on_any_number_of_ranks),
        cmocka_unit_test(epochs_and_seeds_change_the_order),
        cmocka_unit_test(weights_draw_in_proportion),
        cmocka_unit_test(bad_weights_are_refused),
        cmocka_unit_test(the_local_order_stays_within_reach_and_covers_all),
        cmocka_unit_test(the_local_order_covers_a_subset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
