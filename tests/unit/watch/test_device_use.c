/* Whose GPU it is, and how busy it was, where its kernels were not recorded. */
#include "watch/attribution_state.h"
#include "watch/watch_story.h"

#define STRANGER 999u

static struct story *rank_begin(void)
{
    struct story *story = story_begin();
    story_process(story, MAIN, PROCESS_MAIN, -1);
    return story;
}

/* Ten steps of 100 ms from 1 s on, 20 ms of each in next(). */
static void loop_tell(struct story *story)
{
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 1000 * MS, .end = 1000 * MS);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t at = 1000 * MS + i * 100 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 20 * MS, .batch = i);
        story_mark(story, MARK_STEP, at + 100 * MS, 0, 0);
    }
}

/* Eight devices that do nothing for a second, and then some work. */
static void devices_tell(struct story *story, const uint32_t busy[8], const uint32_t pids[8])
{
    for (uint64_t at = 0; at < 2000 * MS; at += 100 * MS)
        for (uint32_t i = 0; i < 8; i++)
            story_device(story, at, i, at < 1000 * MS ? 0 : busy[i], pids[i]);
}

static const uint32_t nobody[8], one_works[8] = {3, 0, 0, 60, 0, 0, 0, 0};

static void a_gpu_without_cupti_is_judged_by_samples(void **state)
{
    (void)state;
    struct story *story = rank_begin();
    story_gpu(story, GPU_ABSENT, 0, "there is no libcupti.");
    story_mark(story, MARK_CUDA, 1, 0, 0);
    loop_tell(story);
    devices_tell(story, one_works, nobody);
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(story->summary.mode, WATCH_SAMPLED);
    assert_int_equal(rank->idle_ns, 400 * MS);
    assert_int_equal(rank->causes[CAUSE_COLLATE].ns, 200 * MS);
    assert_int_equal(rank->causes[CAUSE_OTHER].ns, 200 * MS);
    assert_non_null(strstr(story->summary.notices[0], "there is no libcupti."));
    assert_non_null(strstr(story->summary.notices[1], "NVML"));
    story_free(story);
}

static void a_process_that_nvml_names_is_judged_by_its_own_device(void **state)
{
    (void)state;
    const uint32_t busy[8] = {99, 0, 40, 0, 0, 0, 0, 0}, pids[8] = {STRANGER, 0, MAIN};
    struct story *story = rank_begin();
    loop_tell(story);
    devices_tell(story, busy, pids);
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(story->summary.mode, WATCH_SAMPLED);
    assert_int_equal(rank->compute_ns, 400 * MS);
    assert_int_equal(rank->device, 2);
    assert_true(story->summary.series[SERIES_GPU_NVML][10] > 0.39f);
    assert_true(story->summary.series[SERIES_GPU_NVML][10] < 0.41f);
    story_free(story);
}

static void where_nvml_names_nobody_the_busiest_device_is_the_ranks(void **state)
{
    (void)state;
    struct story *story = rank_begin();
    story_mark(story, MARK_CUDA, 1, 0, 0);
    loop_tell(story);
    devices_tell(story, one_works, nobody);
    assert_int_equal(story_end(story)->compute_ns, 600 * MS);
    assert_int_equal(story->summary.mode, WATCH_SAMPLED);
    story_free(story);
}

static void a_cpu_training_beside_a_busy_gpu_stays_one(void **state)
{
    (void)state;
    const uint32_t pids[8] = {STRANGER, 0, 0, STRANGER};
    for (int asked = 0; asked < 2; asked++) {
        struct story *story = rank_begin();
        if (asked) /* for a device, and no more */
            story_gpu(story, GPU_ABSENT, 0, "there is no libcupti.");
        loop_tell(story);
        devices_tell(story, one_works, pids);
        assert_int_equal(story_end(story)->compute_ns, 800 * MS);
        assert_int_equal(story->summary.mode, WATCH_CPU);
        story_free(story);
    }
}

static void a_process_that_is_recorded_and_has_no_kernels_computes_on_the_cpu(void **state)
{
    (void)state;
    const uint32_t pids[8] = {0, 0, 0, MAIN};
    struct story *story = rank_begin();
    story_gpu(story, GPU_RECORDS, 0, "13.0");
    loop_tell(story);
    devices_tell(story, one_works, pids);
    assert_int_equal(story_end(story)->compute_ns, 800 * MS);
    assert_int_equal(story->summary.mode, WATCH_CPU);
    story_free(story);
}

static void a_device_that_does_not_say_how_busy_it_is_stands_for_nothing(void **state)
{
    (void)state;
    struct story *story = rank_begin();
    struct watch_device about = {.busy_untold = 1};
    story_mark(story, MARK_CUDA, 1, 0, 0);
    loop_tell(story);
    for (uint64_t at = 0; at < 2000 * MS; at += 100 * MS)
        story_take(story, &(struct watch_event){.type = EVENT_DEVICE,
                                                .start = BEGUN + at,
                                                .end = BEGUN + at,
                                                .device = &about});
    (void)story_end(story);
    assert_int_equal(story->summary.mode, WATCH_CPU);
    assert_null(story->summary.series[SERIES_GPU_NVML]);
    story_free(story);
}

static void without_a_loop_a_process_is_judged_while_it_has_a_device(void **state)
{
    (void)state;
    const uint32_t busy[8] = {0, 25}, pids[8] = {0, MAIN};
    struct story *story = story_begin();
    story_process(story, MAIN, PROCESS_UNKNOWN, -1);
    devices_tell(story, busy, nobody); /* until it sets CUDA up */
    for (uint64_t at = 2000 * MS; at <= 6000 * MS; at += 100 * MS)
        for (uint32_t i = 0; i < 2; i++)
            story_device(story, at, i, busy[i], pids[i]);
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(story->summary.mode, WATCH_SAMPLED);
    assert_int_equal(rank->start, 2000 * MS);
    assert_int_equal(rank->end, 6000 * MS);
    assert_int_equal(rank->compute_ns, 1000 * MS);
    assert_int_equal(rank->causes[CAUSE_OTHER].ns, 3000 * MS);
    story_free(story);
}

static void a_device_without_kernels_is_no_rank_where_others_have_a_loop(void **state)
{
    (void)state;
    const uint32_t pids[8] = {0, 0, 0, MAIN + 1};
    struct story *story = rank_begin();
    story_process(story, MAIN + 1, PROCESS_UNKNOWN, -1);
    loop_tell(story);
    devices_tell(story, one_works, pids);
    (void)story_end(story); /* there is one */
    assert_int_equal(story->summary.mode, WATCH_CPU);
    story_free(story);
}

static void the_live_line_has_the_last_samples(void **state)
{
    (void)state;
    const uint32_t busy[8] = {99, 0, 40}, pids[8] = {STRANGER, 0, MAIN};
    struct stk_watch_now now;
    struct story *story = rank_begin();
    loop_tell(story);
    story_settle(story, 2000 * MS);
    attribution_now(story->attribution, &now);
    assert_true(now.busy < 0);
    devices_tell(story, busy, pids);
    story_settle(story, 2000 * MS);
    attribution_now(story->attribution, &now);
    assert_true(now.busy > 0.39 && now.busy < 0.41);
    (void)story_end(story);
    story_free(story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_without_cupti_is_judged_by_samples),
        cmocka_unit_test(a_process_that_nvml_names_is_judged_by_its_own_device),
        cmocka_unit_test(where_nvml_names_nobody_the_busiest_device_is_the_ranks),
        cmocka_unit_test(a_cpu_training_beside_a_busy_gpu_stays_one),
        cmocka_unit_test(a_process_that_is_recorded_and_has_no_kernels_computes_on_the_cpu),
        cmocka_unit_test(a_device_that_does_not_say_how_busy_it_is_stands_for_nothing),
        cmocka_unit_test(without_a_loop_a_process_is_judged_while_it_has_a_device),
        cmocka_unit_test(a_device_without_kernels_is_no_rank_where_others_have_a_loop),
        cmocka_unit_test(the_live_line_has_the_last_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
