#include "base/testing.h"

#include <pthread.h>

#include "work/budget.h"

static void a_reservation_fits_or_is_refused(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 100);
    assert_true(budget_try(&budget, 60));
    assert_false(budget_try(&budget, 41));
    assert_true(budget_try(&budget, 40));
    assert_false(budget_try(&budget, 1));
    assert_true(budget_try(&budget, 0));
    budget_give(&budget, 100);
    assert_int_equal(budget.held, 0);
    assert_int_equal(budget.peak, 100);
    assert_false(budget_try(&budget, UINT64_MAX));
}

static void what_is_forced_counts_and_is_given_back(void **state)
{
    (void)state;
    struct budget budget;
    budget_init(&budget, 100);
    budget_force(&budget, 250);
    assert_int_equal(budget.peak, 250);
    assert_false(budget_try(&budget, 0)); /* over the limit: nothing fits */
    budget_give(&budget, 200);
    assert_true(budget_try(&budget, 50));
    assert_int_equal(budget.held, 100);
    assert_int_equal(budget.peak, 250);
}

static void *take_and_give(void *user)
{
    struct budget *budget = user;
    for (int i = 0; i < 20000; i++) {
        if (budget_try(budget, 30))
            budget_give(budget, 30);
    }
    return NULL;
}

static void threads_that_race_never_pass_the_limit(void **state)
{
    (void)state;
    struct budget budget;
    pthread_t threads[4];
    budget_init(&budget, 100);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &budget), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(budget.held, 0);
    assert_true(budget.peak <= 90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reservation_fits_or_is_refused),
        cmocka_unit_test(what_is_forced_counts_and_is_given_back),
        cmocka_unit_test(threads_that_race_never_pass_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
