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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_apart_and_stay_until_the_reset),
        cmocka_unit_test(a_second_sample_of_the_same_size_allocates_nothing),
        cmocka_unit_test(without_memory_nothing_is_taken_and_nothing_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
