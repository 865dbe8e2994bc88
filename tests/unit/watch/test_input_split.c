/* What held next(): one planted cause each, in made-up time, to the nanosecond. */
#include "watch/watch_loop.h"

/* A worker whose fetch of each batch ends with next(), so much of it on the CPU. The first next()
 * is as long as the others: none of it is the start. */
static const struct summary_rank *fetch_story(struct story **out, double cpu)
{
    struct story *story = *out = loop_begin("{\"kind\": \"torch\", \"workers\": 1}");
    story_frame(story, WORKER, 1, 0, "run", "/usr/lib/python3.11/multiprocessing/process.py", 9);
    story_frame(story, WORKER, 2, 1, "__getitem__", "/data/user/data.py", 31);
    for (int i = 0; i < STEPS; i++) {
        uint64_t start = next_start(i);
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = start, .end = start + WAIT,
             .batch = (uint64_t)i, .cpu = RAN(cpu));
        story_sample(story, WORKER, start, start + WAIT, 2, cpu);
    }
    loop_steps(story);
    return story_end(story);
}

static void a_worker_that_stands_still_is_reading(void **state)
{
    (void)state;
    struct story *story;
    const struct summary_rank *rank = fetch_story(&story, 0);
    expect(rank, CAUSE_FETCH, STEPS * WAIT);
    expect(rank, CAUSE_START, 1 * MS);
    assert_int_equal(rank->compute_ns, STEPS * 10 * MS);
    assert_string_equal(rank->causes[CAUSE_FETCH].functions[0].function, "__getitem__");
    assert_string_equal(rank->causes[CAUSE_FETCH].functions[0].file, "/data/user/data.py");
    assert_int_equal(rank->causes[CAUSE_FETCH].functions[0].line, 31);
    assert_int_equal(rank->causes[CAUSE_FETCH].functions[0].ns, STEPS * WAIT);
    assert_null(rank->causes[CAUSE_FETCH].functions[1].function);
    assert_int_equal(rank->steps, STEPS);
    assert_int_equal(rank->samples, STEPS * 32);
    assert_int_equal(rank->step_median_ns, PERIOD);
    assert_int_equal(story->told[CAUSE_FETCH], STEPS * WAIT);
    story_free(story);
}

static void a_worker_that_computes_is_one_too_few(void **state)
{
    (void)state;
    struct story *story; /* 30 ms a batch, 10 ms a step: three would do, and there are four CPUs */
    expect(fetch_story(&story, 1), CAUSE_WORKERS, STEPS * WAIT);
    story_free(story);
}

static void half_a_fetch_on_the_cpu_is_half_transforming(void **state)
{
    (void)state;
    struct story *story;
    const struct summary_rank *rank = fetch_story(&story, 0.5);
    expect(rank, CAUSE_FETCH, STEPS * WAIT / 2);
    expect(rank, CAUSE_TRANSFORM, STEPS * WAIT / 2); /* it waits for reading: no more workers */
    story_free(story);
}

static void a_loader_made_anew_each_epoch_has_as_few_workers(void **state)
{
    (void)state;
    struct story *story = loop_begin("{\"kind\": \"torch\", \"workers\": 1}");
    for (uint32_t i = 0; i < 2 * STEPS; i++) { /* 30 ms a batch, 20 ms a step */
        uint64_t at = 1 * MS + i * 50 * MS;
        uint32_t loader = LOADER + i / STEPS;
        if (i == STEPS)
            story_text(story, MAIN, RECORD_LOADER, loader, "{\"kind\": \"torch\", \"workers\": 1}");
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = at, .end = at + WAIT,
             .batch = i % STEPS, .cpu = RAN(1), .loader = loader);
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + WAIT,
             .batch = i % STEPS, .loader = loader);
        story_mark(story, MARK_STEP, at + 50 * MS, 0, 0);
    }
    expect(story_end(story), CAUSE_WORKERS, 2 * STEPS * WAIT);
    story_free(story);
}

static void workers_that_no_cpu_is_left_for_are_too_slow_each(void **state)
{
    (void)state;
    struct story *story = loop_begin("{\"kind\": \"torch\", \"workers\": 1}");
    for (int i = 0; i < STEPS; i++) /* 60 ms a batch by two threads of it: six CPUs */
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = next_start(i) - 30 * MS * (i > 0),
             .end = next_start(i) + WAIT, .batch = (uint64_t)i, .cpu = RAN(1));
    loop_steps(story);
    expect(story_end(story), CAUSE_TRANSFORM, STEPS * WAIT);
    story_free(story);
}

static void collating_and_sending_are_told_from_fetching(void **state)
{
    (void)state;
    struct story *story = loop_begin("{\"kind\": \"torch\", \"workers\": 1}");
    for (int i = 0; i < STEPS; i++) {
        uint64_t start = next_start(i), batch = (uint64_t)i;
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = start, .end = start + 2 * MS,
             .batch = batch, .cpu = RAN(0));
        SPAN(story, .pid = WORKER, .what = SPAN_COLLATE, .start = start + 2 * MS,
             .end = start + 15 * MS, .batch = batch);
        SPAN(story, .pid = WORKER, .what = SPAN_SEND, .start = start + 15 * MS,
             .end = start + 20 * MS, .batch = batch);
        SPAN(story, .pid = MAIN, .what = SPAN_PIN, .start = start + 21 * MS, .end = start + 24 * MS,
             .batch = batch, .thread = 101);
    }
    loop_steps(story);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_FETCH, STEPS * 2 * MS);
    expect(rank, CAUSE_GIL, STEPS * 4 * MS); /* from the worker's end to the pin thread's */
    expect(rank, CAUSE_COLLATE, STEPS * 24 * MS);
    story_free(story);
}

static void a_worker_that_never_rests_holds_up_the_pin_thread_too(void **state)
{
    (void)state;
    struct story *story = loop_begin("{\"kind\": \"torch\", \"workers\": 1}");
    for (int i = 0; i < STEPS; i++) { /* the pin thread gets a batch while the next is fetched */
        uint64_t start = next_start(i), batch = (uint64_t)i;
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = start - 30 * MS * (i > 0),
             .end = start + 10 * MS, .batch = batch, .cpu = RAN(1));
        SPAN(story, .pid = MAIN, .what = SPAN_PIN, .start = start + 11 * MS, .end = start + WAIT,
             .batch = batch, .thread = 101);
    }
    loop_steps(story);
    expect(story_end(story), CAUSE_WORKERS, STEPS * WAIT);
    story_free(story);
}

static void one_slow_sample_holds_up_the_others(void **state)
{
    (void)state;
    struct story *story = loop_begin("{\"kind\": \"torch\", \"workers\": 2}");
    story_process(story, WORKER + 1, PROCESS_WORKER, 1);
    uint64_t at = 1 * MS;
    for (int i = 0; i < 20; i++) { /* each takes 1 ms but number 9 */
        uint64_t wait = i == 9 ? 200 * MS : 1 * MS;
        SPAN(story, .pid = WORKER + (i & 1), .what = SPAN_FETCH, .start = at, .end = at + wait,
             .batch = (uint64_t)i, .cpu = RAN(0));
        if (i == 9) /* the other worker is done with the next one meanwhile */
            SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = at, .end = at + 1 * MS,
                 .batch = 10, .cpu = RAN(0));
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + wait,
             .batch = (uint64_t)i);
        story_kernel(story, at + wait, at + wait + 10 * MS, 0);
        at += wait + 10 * MS;
        story_mark(story, MARK_STEP, at, 0, 0);
    }
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_SLOW_SAMPLE, 200 * MS);
    expect(rank, CAUSE_FETCH, 19 * MS);
    story_free(story);
}

static void the_first_batch_of_an_epoch_is_its_start(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_process(story, MAIN, PROCESS_MAIN, -1);
    uint64_t at = 0;
    for (int epoch = 0; epoch < 3; epoch++) {
        story_mark(story, MARK_EPOCH, at, LOADER, (uint64_t)epoch);
        SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = at, .end = at + 50 * MS, .batch = 2);
        at += 50 * MS;
        for (int i = 0; i < 5; i++) {
            uint64_t wait = i ? 2 * MS : 100 * MS;
            SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + wait,
                 .batch = (uint64_t)i);
            story_mark(story, MARK_BATCH, at + wait, LOADER, 8);
            story_kernel(story, at + wait, at + wait + 10 * MS, 0);
            at += wait + 10 * MS;
            story_mark(story, MARK_STEP, at, 0, 0);
        }
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 1 * MS, .batch = 5,
             .flags = SPAN_ENDED_EPOCH);
        at += 1 * MS;
    }
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_START, 3 * (50 + 98) * MS + 2 * MS); /* nothing follows the last end */
    expect(rank, CAUSE_COLLATE, 3 * 10 * MS);
    assert_int_equal(rank->epoch_count, 3);
    assert_int_equal(rank->epochs[1].steps, 5);
    assert_int_equal(rank->epochs[1].samples, 40);
    story_free(story);
}

/* A worker that ran a share of each fetch and wanted to run the rest; other programs did. */
static const struct summary_rank *contention_story(struct story **out, double cpu, double foreign)
{
    struct story *story = *out = loop_begin("{\"kind\": \"torch\", \"workers\": 1}");
    for (int i = 0; i < STEPS; i++) {
        uint64_t start = next_start(i);
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = start, .end = start + WAIT,
             .batch = (uint64_t)i, .cpu = RAN(cpu));
        story_thread(story, WORKER, start, start + WAIT, cpu, 1 - cpu);
    }
    story_machine(story, 0, 500 * MS, cpu, foreign);
    loop_steps(story);
    return story_end(story);
}

static void time_that_others_took_on_the_cpu_is_contention(void **state)
{
    (void)state;
    struct story *story;
    expect(contention_story(&story, 0.75, 3), CAUSE_CONTENTION, STEPS * WAIT / 4);
    story_free(story);
    expect(contention_story(&story, 0.75, 0.1), CAUSE_CONTENTION, 0); /* too little to matter */
    story_free(story);
}

static void a_worker_that_would_be_in_time_waits_for_other_programs_alone(void **state)
{
    (void)state;
    struct story *story; /* 7.5 ms of work a step of 10 ms */
    expect(contention_story(&story, 0.25, 3), CAUSE_CONTENTION, STEPS * WAIT);
    story_free(story);
}

static void workers_that_stand_in_each_others_way_transform(void **state)
{
    (void)state;
    struct story *story = loop_begin("{\"kind\": \"torch\", \"workers\": 1}");
    for (int i = 0; i < STEPS; i++) {
        uint64_t start = next_start(i);
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = start, .end = start + WAIT,
             .batch = (uint64_t)i, .cpu = RAN(0.25));
        story_thread(story, WORKER, start, start + WAIT, 0.25, 0.75);
    }
    story_machine(story, 0, 500 * MS, 4, 0.1);
    loop_steps(story);
    expect(story_end(story), CAUSE_TRANSFORM, STEPS * WAIT);
    story_free(story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_stands_still_is_reading),
        cmocka_unit_test(a_worker_that_computes_is_one_too_few),
        cmocka_unit_test(half_a_fetch_on_the_cpu_is_half_transforming),
        cmocka_unit_test(a_loader_made_anew_each_epoch_has_as_few_workers),
        cmocka_unit_test(workers_that_no_cpu_is_left_for_are_too_slow_each),
        cmocka_unit_test(collating_and_sending_are_told_from_fetching),
        cmocka_unit_test(a_worker_that_never_rests_holds_up_the_pin_thread_too),
        cmocka_unit_test(one_slow_sample_holds_up_the_others),
        cmocka_unit_test(the_first_batch_of_an_epoch_is_its_start),
        cmocka_unit_test(time_that_others_took_on_the_cpu_is_contention),
        cmocka_unit_test(a_worker_that_would_be_in_time_waits_for_other_programs_alone),
        cmocka_unit_test(workers_that_stand_in_each_others_way_transform),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
