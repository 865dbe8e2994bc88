#include "base/testing.h"

#include "base/clock.h"
#include "base/text.h"

static void allocations_of_nothing_are_blocks_too(void **state)
{
    (void)state;
    void *a = memory_alloc(0), *b = memory_zero(0, 8);
    assert_non_null(a);
    assert_non_null(b);
    a = memory_grow(a, 0);
    assert_non_null(a);
    memory_free(a);
    memory_free(b);
    memory_free(NULL);
}

static void a_product_that_overflows_is_refused(void **state)
{
    (void)state;
    assert_null(memory_zero(SIZE_MAX / 2, 3));
    assert_null(memory_map(SIZE_MAX - 100));
    assert_null(memory_text("x", SIZE_MAX));
}

static void large_blocks_are_aligned_and_cleared(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 4096, 100000, 2 << 20, (2 << 20) + 1, 5000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *block = memory_map(sizes[i]);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % (sizes[i] >= 2 << 20 ? 2 << 20 : 4096), 0);
        assert_int_equal(block[0] + block[sizes[i] - 1], 0);
        block[0] = block[sizes[i] - 1] = 1;
        memory_unmap(block, sizes[i]);
    }
    memory_unmap(NULL, 5);
}

static void the_hook_fails_every_kind_of_allocation(void **state)
{
    (void)state;
    struct nth_failure nth;
    for (int i = 0; i < 5; i++) {
        nth = (struct nth_failure){.countdown = 1};
        memory_set_hook(nth_hook, &nth);
        void *got = i == 0   ? memory_alloc(1)
                    : i == 1 ? memory_zero(1, 1)
                    : i == 2 ? memory_grow(NULL, 1)
                    : i == 3 ? (void *)memory_text("a", 1)
                             : memory_map(10);
        memory_set_hook(NULL, NULL);
        assert_null(got);
        assert_true(nth.happened);
    }
}

static void text_grows_and_stays_ended(void **state)
{
    (void)state;
    struct text text = {0};
    text_add(&text, "", 0);
    assert_string_equal(text.data, "");
    for (int i = 0; i < 1000; i++)
        text_format(&text, "%d,", i % 10);
    text_add(&text, "end", 3);
    assert_int_equal(text.len, 2003);
    assert_string_equal(text.data + 1990, "5,6,7,8,9,end");
    assert_false(text.failed);
    text_free(&text);
    assert_null(text.data);
}

static void text_that_runs_out_of_memory_says_so_and_keeps_what_it_has(void **state)
{
    (void)state;
    struct text text = {0};
    struct nth_failure nth = {.countdown = 2};
    memory_set_hook(nth_hook, &nth);
    text_add(&text, "kept", 4);
    for (int i = 0; i < 100; i++)
        text_format(&text, "%s", "more than one block of it ");
    memory_set_hook(NULL, NULL);
    text_add(&text, "not this", 8);
    assert_true(text.failed);
    assert_int_equal(strlen(text.data), text.len);
    assert_null(strstr(text.data, "not this"));
    text_free(&text);
}

static void the_clocks_do_not_go_back(void **state)
{
    (void)state;
    int64_t before = clock_now(), coarse = clock_coarse();
    assert_true(before > 0 && coarse > 0 && coarse <= clock_now());
    assert_true(clock_now() >= before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(allocations_of_nothing_are_blocks_too),
        cmocka_unit_test(a_product_that_overflows_is_refused),
        cmocka_unit_test(large_blocks_are_aligned_and_cleared),
        cmocka_unit_test(the_hook_fails_every_kind_of_allocation),
        cmocka_unit_test(text_grows_and_stays_ended),
        cmocka_unit_test(text_that_runs_out_of_memory_says_so_and_keeps_what_it_has),
        cmocka_unit_test(the_clocks_do_not_go_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
