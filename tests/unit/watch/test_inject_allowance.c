#include "../../../inject/inject_allowance.h"

#include "base/testing.h"

#define MS UINT64_C(1000000)
#define LOOK (250 * MS) /* as often as the library looks */

/* A loop on a GPU, as the library sees it. */
struct loop {
    struct inject_allowance allowance;
    uint64_t now, records, busy_ns;
};

/* Lets it launch for so long. Returns how long it was recorded. */
static uint64_t launch_for(struct loop *loop, uint64_t ns, uint64_t records_s, double busy)
{
    uint64_t begun = loop->now;
    while (loop->now < begun + ns) {
        loop->now += LOOK;
        loop->records += records_s * LOOK / (1000 * MS);
        loop->busy_ns += (uint64_t)(busy * (double)LOOK);
        if (inject_allowance_spend(&loop->allowance, loop->now, loop->records, loop->busy_ns))
            break;
    }
    return loop->now - begun;
}

static struct loop loop_begin(void)
{
    struct loop loop = {.now = 1000 * MS};
    assert_false(inject_allowance_spend(&loop.allowance, loop.now, 0, 0));
    return loop;
}

static void a_few_kernels_are_recorded_for_ever(void **state)
{
    (void)state;
    struct loop loop = loop_begin();
    assert_int_equal(launch_for(&loop, 36000000 * MS, 1200, 0.5), 36000000 * MS);
}

static void many_kernels_are_recorded_for_a_while(void **state)
{
    (void)state;
    struct loop loop = loop_begin();
    assert_in_range(launch_for(&loop, 36000000 * MS, 67000, 0.5), 1400 * MS, 1800 * MS);
    loop = loop_begin();
    assert_in_range(launch_for(&loop, 36000000 * MS, 3000, 0.5), 50000 * MS, 60000 * MS);
}

static void a_device_that_is_always_busy_hides_what_a_record_costs(void **state)
{
    (void)state;
    struct loop loop = loop_begin();
    assert_int_equal(launch_for(&loop, 36000000 * MS, 9600, 0.95), 36000000 * MS);
    assert_true(launch_for(&loop, 36000000 * MS, 100000, 1.0) < 20000 * MS);
}

static void a_device_that_waits_saves_up_no_more_than_at_first(void **state)
{
    (void)state;
    struct loop loop = loop_begin();
    (void)launch_for(&loop, 1000 * MS, 67000, 0.5);
    (void)launch_for(&loop, 3600000 * MS, 0, 0);
    assert_in_range(launch_for(&loop, 36000000 * MS, 67000, 0.5), 1400 * MS, 1800 * MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_kernels_are_recorded_for_ever),
        cmocka_unit_test(many_kernels_are_recorded_for_a_while),
        cmocka_unit_test(a_device_that_is_always_busy_hides_what_a_record_costs),
        cmocka_unit_test(a_device_that_waits_saves_up_no_more_than_at_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
