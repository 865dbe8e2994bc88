#include "base/testing.h"

#include "base/scratch.h"

static int allocations;
static int count_allocation(void *user, size_t size)
{
    (void)user;
    (void)size;
    allocations++;
    return 0;
}

static void pieces_are_aligned_apart_and_stay_until_the_reset(void **state)
{
    (void)state;
    struct scratch scratch = {0};
    uint8_t *pieces[100];
    for (uint64_t i = 0; i < 100; i++) {
        pieces[i] = scratch_take(&scratch, i * 37);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % SCRATCH_ALIGN, 0);
        memset(pieces[i], (int)i, i * 37 + 64); /* the slack is ours too */
    }
    for (uint64_t i = 1; i < 100; i++)
        assert_int_equal(pieces[i][i * 37 - 1], i);
    scratch_free(&scratch);
}

static void a_second_sample_of_the_same_size_allocates_nothing(void **state)
{
    (void)state;
    struct scratch scratch = {0};
    for (int sample = 0; sample < 5; sample++) {
        scratch_reset(&scratch);
        allocations = 0;
        memory_set_hook(count_allocation, NULL);
        for (uint64_t i = 0; i < 20; i++)
            assert_non_null(scratch_take(&scratch, 100000 + i));
        memory_set_hook(NULL, NULL);
        assert_int_equal(allocations, sample ? 0 : 20);
    }
    scratch_free(&scratch);
}

static void without_memory_nothing_is_taken_and_nothing_is_lost(void **state)
{
    (void)state;
    struct scratch scratch = {0};
    assert_non_null(scratch_take(&scratch, 1000));
    assert_null(scratch_take(&scratch, UINT64_MAX));
    assert_null(scratch_take(&scratch, UINT64_MAX - 70));
    scratch_reset(&scratch);
    assert_non_null(scratch_take(&scratch, 1000));
    scratch_free(&scratch);
    assert_int_equal(scratch_size(&scratch), 0);
}

static void work_done_again_and_again_takes_its_pieces_once(void **state)
{
    (void)state;
    struct scratch scratch = {0};
    for (int sample = 0; sample < 3; sample++) {
        scratch_reset(&scratch);
        allocations = 0;
        memory_set_hook(count_allocation, NULL);
        uint8_t *kept = scratch_take(&scratch, 5000);
        memset(kept, 77, 5000);
        for (int frame = 0; frame < 100; frame++) {
            struct scratch_mark mark = scratch_mark(&scratch);
            memset(scratch_take(&scratch, 100000), 1, 100000);
            memset(scratch_take(&scratch, 300), 2, 300);
            scratch_return(&scratch, mark);
        }
        memory_set_hook(NULL, NULL);
        assert_int_equal(kept[4999], 77);
        assert_true(sample == 0 || allocations == 0);
        assert_true(scratch_size(&scratch) < 200000);
    }
    scratch_free(&scratch);
}

static void what_is_dropped_does_not_make_the_block_grow(void **state)
{
    (void)state;
    struct scratch scratch = {0};
    assert_non_null(scratch_take(&scratch, 1000));
    scratch_reset(&scratch);
    uint64_t size = scratch_size(&scratch);
    assert_non_null(scratch_take(&scratch, 1000000));
    scratch_drop(&scratch);
    scratch_reset(&scratch);
    assert_int_equal(scratch_size(&scratch), size);
    scratch_free(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_apart_and_stay_until_the_reset),
        cmocka_unit_test(a_second_sample_of_the_same_size_allocates_nothing),
        cmocka_unit_test(without_memory_nothing_is_taken_and_nothing_is_lost),
        cmocka_unit_test(work_done_again_and_again_takes_its_pieces_once),
        cmocka_unit_test(what_is_dropped_does_not_make_the_block_grow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
