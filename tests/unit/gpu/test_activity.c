/* How much of a stretch of time is covered by spans; and what a machine without CUPTI is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "stoker/activity.h"
#include "base/memory.h"
#include "gpu/activity.h"

static struct cover cover_new(uint64_t bin_ns)
{
    struct cover cover;
    assert_int_equal(cover_init(&cover, bin_ns, NULL), STK_OK);
    return cover;
}

static void add(struct cover *cover, uint64_t start, uint64_t end)
{
    assert_int_equal(cover_add(cover, (struct cover_span){start, end}, NULL), STK_OK);
}

static void time_that_spans_share_counts_once(void **state)
{
    (void)state;
    struct cover cover = cover_new(100);
    add(&cover, 50, 60);
    add(&cover, 10, 30);
    add(&cover, 20, 40);
    add(&cover, 22, 25);
    assert_int_equal(cover_total(&cover), 40);
    add(&cover, 0, 10); /* late, and counted none the less */
    assert_int_equal(cover_total(&cover), 50);
    cover_reset(&cover);
}

static void a_span_is_cut_at_the_borders_of_bins(void **state)
{
    (void)state;
    struct cover cover = cover_new(100);
    add(&cover, 150, 420);
    add(&cover, 90, 110);
    uint64_t bins[6];
    cover_bins(&cover, bins, 6);
    const uint64_t wanted[6] = {10, 60, 100, 100, 20, 0};
    assert_memory_equal(bins, wanted, sizeof bins);
    cover_bins(&cover, bins, 2); /* fewer than there are */
    assert_int_equal(bins[1], 60);
    cover_reset(&cover);
}

/* Several lists' worth, each pair out of order: an exact sum and exact bins. */
static void spans_beyond_the_list_are_summed_up(void **state)
{
    (void)state;
    struct cover cover = cover_new(1000);
    const uint64_t count = 3 * COVER_SPANS;
    for (uint64_t i = 0; i < count; i++)
        add(&cover, 10 * (i ^ 1), 10 * (i ^ 1) + 4);
    assert_true(cover.count <= COVER_SPANS);
    assert_int_equal(cover_total(&cover), 4 * count);
    uint64_t bins[10], last;
    cover_bins(&cover, bins, 10);
    for (int i = 0; i < 10; i++)
        assert_int_equal(bins[i], 400);
    last = 10 * count / 1000;
    uint64_t *all = memory_alloc((last + 1) * sizeof *all);
    assert_non_null(all);
    cover_bins(&cover, all, last + 1);
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= last; i++)
        sum += all[i];
    assert_int_equal(sum, 4 * count);
    memory_free(all);
    cover_reset(&cover);
}

static int refuse_large(void *user, size_t size)
{
    (void)user;
    return size >= 8192;
}

static void without_memory_for_bins_the_sum_is_still_right(void **state)
{
    (void)state;
    struct cover cover = cover_new(1000);
    for (uint64_t i = 0; i < COVER_SPANS; i++)
        add(&cover, 10 * i, 10 * i + 4);
    memory_set_hook(refuse_large, NULL);
    struct stk_error err;
    const uint64_t start = 10 * COVER_SPANS;
    stk_status status = cover_add(&cover, (struct cover_span){start, start + 4}, &err);
    memory_set_hook(NULL, NULL);
    assert_int_equal(status, STK_MEMORY);
    assert_int_equal(cover_total(&cover), 4 * (COVER_SPANS + 1));
    cover_reset(&cover);
}

/* --- a CUPTI of our own ------------------------------------------------------------------------
 */

static struct {
    cupti_request_function *request;
    cupti_complete_function *complete;
    uint64_t now;
    int enabled, refuse, dropped;
    struct cupti_kernel_record kernels[4];
    struct cupti_copy_record copies[2];
    int kernel_count, copy_count, flushed;
    cupti_clock_function *clock;
} fake;

static int fake_timestamp(uint64_t *nanoseconds)
{
    *nanoseconds = fake.now;
    return 0;
}

static int fake_words(int result, const char **words)
{
    (void)result;
    *words = "because";
    return 0;
}

static int fake_register(cupti_request_function *request, cupti_complete_function *complete)
{
    fake.request = request;
    fake.complete = complete;
    return 0;
}

static int fake_enable(int kind)
{
    assert_int_not_equal(kind, CUPTI_KERNEL_ALONE); /* kernels would run one after the other */
    if (fake.enabled == 2 && fake.refuse)
        return fake.refuse;
    fake.enabled++;
    return 0;
}

static int fake_disable(int kind)
{
    (void)kind;
    fake.enabled--;
    return 0;
}

/* Records are of several lengths in one buffer; here their places stand for them. */
static int fake_next(uint8_t *buffer, size_t valid, struct cupti_record **record)
{
    (void)buffer;
    (void)valid;
    if (fake.kernel_count)
        *record = (struct cupti_record *)&fake.kernels[--fake.kernel_count];
    else if (fake.copy_count)
        *record = &fake.copies[--fake.copy_count].first;
    else
        return CUPTI_NO_MORE_RECORDS;
    return 0;
}

static int fake_dropped(void *context, uint32_t stream, size_t *count)
{
    (void)context;
    (void)stream;
    *count = (size_t)fake.dropped;
    fake.dropped = 0;
    return 0;
}

static int fake_flush(uint32_t flag)
{
    (void)flag;
    uint8_t *buffer = NULL;
    size_t size = 0, most = 1;
    fake.request(&buffer, &size, &most);
    assert_non_null(buffer);
    assert_int_equal(most, 0);
    fake.complete(NULL, 0, buffer, size, size);
    fake.flushed++;
    return 0;
}

static int fake_register_clock(cupti_clock_function *clock)
{
    assert_int_equal(fake.enabled, 0); /* nothing has other times yet */
    fake.clock = clock;
    return 0;
}

static const struct cupti_api fake_api = {
    .get_timestamp = fake_timestamp,
    .get_words = fake_words,
    .register_callbacks = fake_register,
    .enable = fake_enable,
    .disable = fake_disable,
    .flush_all = fake_flush,
    .next_record = fake_next,
    .get_dropped = fake_dropped,
};

static struct stk_activity *fake_start(uint32_t device)
{
    memset(&fake, 0, sizeof fake);
    fake.now = 1000000000;
    struct stk_activity *activity;
    struct stk_activity_options options = {.device = device, .bin_ns = 1000000};
    assert_int_equal(activity_start(&activity, &options, &fake_api, NULL), STK_OK);
    assert_int_equal(fake.enabled, 3);
    return activity;
}

static struct cupti_kernel_record kernel_at(uint64_t start, uint64_t end, uint32_t device)
{
    return (struct cupti_kernel_record){CUPTI_KERNEL, {0}, start, end, end, device, 1, 7};
}

static void kernels_and_copies_are_summed_apart(void **state)
{
    (void)state;
    struct stk_activity *activity = fake_start(1);
    const uint64_t begun = fake.now;
    fake.kernels[0] = kernel_at(begun + 100, begun + 300, 1);
    fake.kernels[1] = kernel_at(begun + 200, begun + 500, 1);
    fake.kernels[2] = kernel_at(begun + 600, begun + 900, 0); /* of another device */
    fake.kernels[3] = kernel_at(begun - 50, begun + 10, 1);   /* began before */
    fake.kernel_count = 4;
    fake.copies[0] = (struct cupti_copy_record){{CUPTI_COPY, 0, 4096, begun, begun + 50}, 1, 1, 8};
    fake.copies[1] = (struct cupti_copy_record){{CUPTI_CLEAR, 0, 512, begun, begun + 80}, 1, 1, 8};
    fake.copy_count = 2;
    fake.now = begun + 2500000;
    struct stk_activity_sums sums;
    assert_int_equal(stk_activity_read(activity, &sums, NULL), STK_OK);
    assert_int_equal(sums.wall_ns, 2500000);
    assert_int_equal(sums.kernel_ns, 410);
    assert_int_equal(sums.kernels, 3);
    assert_int_equal(sums.copy_ns, 80);
    assert_int_equal(sums.copies, 2);
    assert_int_equal(sums.copied_bytes, 4096);
    assert_int_equal(sums.lost, 0);
    assert_int_equal(sums.bins, 3);
    uint64_t kernels[3], copies[3];
    stk_activity_bins(activity, kernels, copies, 3);
    assert_int_equal(kernels[0], 410);
    assert_int_equal(copies[0], 80);
    assert_int_equal(kernels[2], 0);
    stk_activity_stop(activity);
    assert_int_equal(fake.enabled, 0);
}

/* What CUPTI's own clock says does not matter: another profiler's may be set, in other units. */
static void times_are_by_a_clock_that_is_given(void **state)
{
    (void)state;
    struct cupti_api api = fake_api;
    api.register_clock = fake_register_clock;
    memset(&fake, 0, sizeof fake);
    fake.now = UINT64_MAX / 2;
    struct stk_activity *activity;
    assert_int_equal(activity_start(&activity, NULL, &api, NULL), STK_OK);
    const uint64_t begun = fake.clock();
    while (fake.clock() < begun + 2000000)
        ;
    fake.now = 0;
    fake.kernels[0] = kernel_at(begun, begun + 1000000, 0);
    fake.kernel_count = 1;
    struct stk_activity_sums sums;
    assert_int_equal(stk_activity_read(activity, &sums, NULL), STK_OK);
    assert_in_range(sums.wall_ns, 2000000, fake.clock() - begun + 1000000);
    assert_int_equal(sums.kernels, 1);
    assert_int_equal(sums.kernel_ns, 1000000);
    stk_activity_stop(activity);
}

static void what_is_missing_is_counted(void **state)
{
    (void)state;
    struct stk_activity *activity = fake_start(0);
    fake.kernels[0] = kernel_at(0, 0, 0); /* was not timed */
    fake.kernel_count = 1;
    fake.dropped = 5;
    struct stk_activity_sums sums;
    assert_int_equal(stk_activity_read(activity, &sums, NULL), STK_OK);
    assert_int_equal(sums.lost, 6);
    assert_int_equal(sums.kernels, 0);
    stk_activity_stop(activity);
}

static void there_is_one_recording_at_a_time(void **state)
{
    (void)state;
    struct stk_activity *activity = fake_start(0), *second;
    struct stk_error err;
    assert_int_equal(activity_start(&second, NULL, &fake_api, &err), STK_BUSY);
    assert_null(second);
    assert_true(strlen(err.remedy) > 0);
    assert_int_equal(fake.enabled, 3);
    stk_activity_stop(activity);
    stk_activity_stop(fake_start(0));
}

static void a_profiler_that_holds_cupti_is_named(void **state)
{
    (void)state;
    memset(&fake, 0, sizeof fake);
    fake.refuse = CUPTI_OTHER_TOOL;
    struct stk_activity *activity;
    struct stk_error err;
    assert_int_equal(activity_start(&activity, NULL, &fake_api, &err), STK_BUSY);
    assert_non_null(strstr(err.what, "profiler"));
    assert_int_equal(fake.enabled, 0); /* what was enabled is not left so */
    fake.refuse = 0;
    stk_activity_stop(fake_start(0));
}

/* A buffer that comes after the end is freed, and counted nowhere. */
static void a_late_buffer_does_no_harm(void **state)
{
    (void)state;
    stk_activity_stop(fake_start(0));
    assert_int_equal(fake_flush(0), 0);
}

static void bins_that_are_too_short_are_refused(void **state)
{
    (void)state;
    struct stk_activity *activity;
    struct stk_activity_options options = {.bin_ns = 10};
    assert_int_equal(activity_start(&activity, &options, &fake_api, NULL), STK_USAGE);
    assert_null(activity);
    stk_activity_stop(activity);
}

/* Machines differ: where there is no CUPTI or no driver it says so, else it records. */
static void a_recording_starts_or_says_why_not(void **state)
{
    (void)state;
    struct stk_activity *activity, *second;
    struct stk_error err = {0};
    stk_status status = stk_activity_start(&activity, NULL, &err);
    if (status) {
        assert_null(activity);
        assert_int_equal(status, STK_UNSUPPORTED);
        assert_true(strlen(err.what) > 0);
        return;
    }
    assert_int_equal(stk_activity_start(&second, NULL, &err), STK_BUSY);
    struct stk_activity_sums sums;
    assert_int_equal(stk_activity_read(activity, &sums, &err), STK_OK);
    assert_int_equal(sums.kernels, 0);
    stk_activity_stop(activity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_that_spans_share_counts_once),
        cmocka_unit_test(a_span_is_cut_at_the_borders_of_bins),
        cmocka_unit_test(spans_beyond_the_list_are_summed_up),
        cmocka_unit_test(without_memory_for_bins_the_sum_is_still_right),
        cmocka_unit_test(kernels_and_copies_are_summed_apart),
        cmocka_unit_test(times_are_by_a_clock_that_is_given),
        cmocka_unit_test(what_is_missing_is_counted),
        cmocka_unit_test(there_is_one_recording_at_a_time),
        cmocka_unit_test(a_profiler_that_holds_cupti_is_named),
        cmocka_unit_test(a_late_buffer_does_no_harm),
        cmocka_unit_test(bins_that_are_too_short_are_refused),
        cmocka_unit_test(a_recording_starts_or_says_why_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
