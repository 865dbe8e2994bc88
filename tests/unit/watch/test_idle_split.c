/* Outside next(): one planted cause each, in made-up time, to the nanosecond. */
#include "watch/watch_loop.h"

/* Kernels of 10 ms with a gap of 30 ms before each, in which the story puts something. */
static void bare_steps(struct story *story)
{
    for (int i = 0; i < STEPS; i++) {
        uint64_t start = (uint64_t)i * PERIOD;
        if (i == 0)
            SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
        story_kernel(story, start + WAIT, start + PERIOD, 0);
        story_mark(story, MARK_STEP, start + PERIOD, 0, 0);
    }
}

static void what_a_copy_fills_is_the_copys(void **state)
{
    (void)state;
    struct story *story = story_begin();
    for (uint64_t i = 0; i < STEPS; i++) { /* torch waits for it, too: that is no other cause */
        story_copy(story, i * PERIOD + 2 * MS, i * PERIOD + 28 * MS, 1 << 20, COPY_TO_DEVICE);
        story_sync(story, i * PERIOD, i * PERIOD + 28 * MS);
    }
    bare_steps(story);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_COPY, STEPS * 26 * MS);
    expect(rank, CAUSE_LAUNCH, STEPS * 4 * MS);
    assert_int_equal(rank->copy_ns, STEPS * 26 * MS);
    assert_int_equal(rank->pageable_bytes, STEPS << 20);
    story_free(story);
}

static void a_gap_that_begins_in_a_synchronisation_is_its(void **state)
{
    (void)state;
    struct story *story = story_begin();
    for (uint64_t i = 1; i < STEPS; i++)
        story_sync(story, i * PERIOD - 5 * MS, i * PERIOD + 5 * US);
    bare_steps(story);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_SYNC, (STEPS - 1) * WAIT);
    expect(rank, CAUSE_LAUNCH, WAIT);
    story_free(story);
}

static void small_gaps_are_python_that_launches(void **state)
{
    (void)state;
    struct story *story = story_begin();
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
    for (uint64_t i = 0; i < 100000; i++)
        story_kernel(story, i * 10 * US + 6 * US, i * 10 * US + 10 * US, 0);
    story_mark(story, MARK_STEP, 500 * MS, 0, 0);
    story_mark(story, MARK_STEP, 1000 * MS, 0, 0);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_LAUNCH, 600 * MS);
    assert_int_equal(rank->compute_ns, 400 * MS);
    assert_int_equal(story->summary.gap_total, 100000);
    assert_int_equal(story->summary.gap_sizes[0].count, 100000);
    story_free(story);
}

/* TensorFlow's hook tells that there is a process, and no more; threads of it wait for the device.
 */
static void a_loop_that_is_not_known_launches_nothing(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_process(story, MAIN, PROCESS_MAIN, -1);
    story_text(story, MAIN, RECORD_PROCESS, 0, "{}");
    story_mark(story, MARK_END, 200 * MS, 0, 0);
    story_machine(story, 0, 200 * MS, 1, 3);
    story_thread(story, MAIN, 0, 200 * MS, 0.5, 0.5);
    for (uint64_t i = 0; i < 20; i++) {
        story_kernel(story, i * 10 * MS, i * 10 * MS + 5 * MS, 0);
        story_sync(story, i * 10 * MS, i * 10 * MS + 5 * MS);
    }
    const struct summary_rank *rank = story_end(story);
    assert_true(rank->loop_unseen);
    assert_int_equal(rank->idle_ns, 19 * 5 * MS);
    assert_int_equal(rank->causes[CAUSE_CONTENTION].ns + rank->causes[CAUSE_OTHER].ns,
                     rank->idle_ns);
    assert_true(rank->causes[CAUSE_CONTENTION].ns > 19 * 2 * MS);
    story_free(story);
}

static void the_users_own_code_on_the_main_thread_transforms(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_frame(story, MAIN, 1, 0, "<module>", "/data/user/train.py", 80);
    story_frame(story, MAIN, 2, 1, "blur", "/data/user/train.py", 12);
    story_frame(story, MAIN, 3, 1, "_call_impl",
                "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1700);
    for (uint64_t i = 0; i < STEPS; i++) {
        story_sample(story, MAIN, i * PERIOD, i * PERIOD + 20 * MS, 2, 1);
        story_sample(story, MAIN, i * PERIOD + 20 * MS, i * PERIOD + 30 * MS, 3, 1);
        story_sample(story, MAIN, i * PERIOD + 30 * MS, i * PERIOD + PERIOD, 2, 1);
    }
    bare_steps(story);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_TRANSFORM, STEPS * 20 * MS);
    expect(rank, CAUSE_LAUNCH, STEPS * 10 * MS);
    assert_string_equal(rank->causes[CAUSE_TRANSFORM].functions[0].function, "blur");
    story_free(story);
}

/* The loop's thread stands still between kernels; another thread of the process runs so much of the
 * time, and tells of it in so many steps. */
static const struct summary_rank *stood_for(struct story **out, double other, uint32_t frame,
                                            uint64_t steps)
{
    struct story *story = *out = story_begin();
    story_frame(story, MAIN, 1, 0, "train", "/data/user/train.py", 80);
    story_frame(story, MAIN, 2, 0, "MapStage.run", "site-packages/stoker/_map_stage.py", 96);
    story_frame(story, MAIN, 3, 2, "augment", "/data/user/train.py", 12);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * PERIOD;
        struct record_sample sample = {.head = {RECORD_SAMPLE, 0, sizeof sample},
                                       .time = BEGUN + at + PERIOD,
                                       .weight = PERIOD,
                                       .cpu = (uint64_t)((double)PERIOD * other),
                                       .thread = MAIN + 5,
                                       .kind = SAMPLE_OTHER,
                                       .frame = frame};
        story_sample(story, MAIN, at, at + PERIOD, 1, 0);
        if (i < steps)
            story_record(story, MAIN, sample.time, sample.time, &sample);
    }
    bare_steps(story);
    return story_end(story);
}

static const struct summary_rank *stood_story(struct story **out, double other, uint32_t frame)
{
    return stood_for(out, other, frame, STEPS);
}

static void a_loop_that_stands_while_another_thread_runs_waits_for_the_interpreter(void **state)
{
    (void)state;
    struct story *story;
    expect(stood_story(&story, 1, 1), CAUSE_GIL, STEPS * WAIT);
    story_free(story);
    expect(stood_story(&story, 0.6, 1), CAUSE_GIL, STEPS * WAIT); /* it holds it most of the time */
    story_free(story);
}

static void a_loop_without_a_loader_that_stands_in_its_own_code_reads(void **state)
{
    (void)state;
    struct story *story;
    const struct summary_rank *rank = stood_story(&story, 0, 1);
    expect(rank, CAUSE_GIL, 0);
    expect(rank, CAUSE_FETCH, STEPS * WAIT);
    assert_string_equal(rank->causes[CAUSE_FETCH].functions[0].function, "train");
    story_free(story);
}

static void a_loop_that_stands_under_torch_waits_for_something_else(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_frame(story, MAIN, 1, 0, "train", "/data/user/train.py", 80);
    story_frame(story, MAIN, 2, 1, "step", "/x/site-packages/torch/optim/adam.py", 9);
    story_sample(story, MAIN, 0, STEPS * PERIOD, 2, 0);
    bare_steps(story);
    expect(story_end(story), CAUSE_OTHER, STEPS * WAIT);
    story_free(story);
}

/* next() until 5 ms, a kernel from 10 to 20 ms with its step; then the loop is in its own code for
 * 20 ms, of which it runs so much. */
static const struct summary_rank *log_story(struct story **out, double cpu)
{
    struct story *story = *out = loop_begin("{\"kind\": \"torch\", \"workers\": 0}");
    story_frame(story, MAIN, 1, 0, "log_metrics", "/data/user/train.py", 80);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = 1 * MS + i * PERIOD;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 5 * MS, .batch = i);
        story_kernel(story, at + 10 * MS, at + 20 * MS, 0);
        SPAN(story, .pid = MAIN, .what = SPAN_OPTIMIZER, .start = at + 19 * MS,
             .end = at + 20 * MS);
        story_mark(story, MARK_STEP, at + 20 * MS, 0, 0);
        story_sample(story, MAIN, at + 20 * MS, at + PERIOD, 1, cpu);
    }
    story_kernel(story, 1 * MS + STEPS * PERIOD, 2 * MS + STEPS * PERIOD, 0);
    return story_end(story);
}

static void what_the_loop_does_after_a_step_is_logging(void **state)
{
    (void)state;
    struct story *story;
    for (int ran = 0; ran < 2; ran++) {
        const struct summary_rank *rank = log_story(&story, ran);
        assert_in_range(rank->causes[CAUSE_SYNC].ns, (STEPS - 1) * 20 * MS, STEPS * 20 * MS);
        assert_string_equal(rank->causes[CAUSE_SYNC].functions[0].function, "log_metrics");
        expect(rank, CAUSE_OTHER, 0);
        story_free(story);
    }
}

static void what_a_thread_did_last_it_did_to_its_end(void **state)
{
    (void)state;
    struct story *story;
    expect(stood_for(&story, 1, 1, STEPS - 3), CAUSE_GIL, STEPS * WAIT);
    story_free(story);
    const struct summary_rank *rank = stood_for(&story, 0, 1, STEPS - 3);
    expect(rank, CAUSE_FETCH, STEPS * WAIT);
    story_free(story);
}

static void the_interpreter_that_a_map_of_the_loader_holds_is_lost_to_transforming(void **state)
{
    (void)state;
    struct story *story;
    const struct summary_rank *rank = stood_story(&story, 1, 3);
    expect(rank, CAUSE_TRANSFORM, STEPS * WAIT);
    assert_string_equal(rank->causes[CAUSE_TRANSFORM].functions[0].function, "augment");
    story_free(story);
}

static void a_loop_that_stands_in_backward_launches_from_torchs_own_thread(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_frame(story, MAIN, 1, 0, "train", "/data/user/train.py", 80);
    for (uint64_t i = 0; i < STEPS; i++) {
        SPAN(story, .pid = MAIN, .what = SPAN_BACKWARD, .start = i * PERIOD,
             .end = i * PERIOD + WAIT);
        story_sample(story, MAIN, i * PERIOD, (i + 1) * PERIOD, 1, 0);
    }
    bare_steps(story);
    expect(story_end(story), CAUSE_LAUNCH, STEPS * WAIT);
    story_free(story);
}

static void standing_in_backward_is_not_told_of_the_rest_of_a_step(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_frame(story, MAIN, 1, 0, "step", "site-packages/torch/optim/adam.py", 80);
    for (uint64_t i = 0; i < STEPS; i++) { /* half of each wait; a sample is as long as a step */
        SPAN(story, .pid = MAIN, .what = SPAN_BACKWARD, .start = i * PERIOD,
             .end = i * PERIOD + WAIT / 2, .cpu = RAN(0));
        story_sample(story, MAIN, i * PERIOD, (i + 1) * PERIOD, 1,
                     1 - (double)(WAIT / 2) / (double)PERIOD);
    }
    bare_steps(story);
    const struct summary_rank *rank = story_end(story);
    assert_true(rank->causes[CAUSE_LAUNCH].ns > STEPS * WAIT / 100 * 97); /* all but the ends */
    story_free(story);
}

static void compiling_is_not_judged(void **state)
{
    (void)state;
    struct story *story = story_begin();
    SPAN(story, .pid = MAIN, .what = SPAN_COMPILE, .start = PERIOD, .end = PERIOD + 20 * MS);
    bare_steps(story);
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(rank->excluded_ns, 20 * MS);
    expect(rank, CAUSE_LAUNCH, STEPS * WAIT - 20 * MS);
    story_free(story);
}

static void nccl_that_spins_is_no_work(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_text(story, MAIN, RECORD_NAME, 5, "ncclDevKernel_AllReduce_Sum_f32_RING_LL");
    for (uint64_t i = 0; i < STEPS; i++)
        story_kernel(story, i * PERIOD + 10 * MS, i * PERIOD + 35 * MS, 5);
    bare_steps(story);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_RANK, STEPS * 20 * MS); /* and 5 ms of it beside the kernel */
    assert_int_equal(rank->communication_ns, STEPS * 25 * MS);
    assert_int_equal(rank->compute_ns, STEPS * 10 * MS);
    story_free(story);
}

static void checkpoints_and_validation_come_first(void **state)
{
    (void)state;
    struct story *story = story_begin();
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * PERIOD;
        SPAN(story, .pid = MAIN, .what = SPAN_CHECKPOINT, .start = at, .end = at + 8 * MS);
        SPAN(story, .pid = MAIN, .what = SPAN_VALIDATION, .start = at + 8 * MS,
             .end = at + 20 * MS);
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at + 10 * MS, .end = at + 15 * MS,
             .batch = 1);
    }
    bare_steps(story);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_CHECKPOINT, STEPS * 8 * MS);
    expect(rank, CAUSE_VALIDATION, STEPS * 12 * MS);
    expect(rank, CAUSE_LAUNCH, STEPS * 10 * MS);
    story_free(story);
}

static void a_loader_without_steps_validates(void **state)
{
    (void)state;
    struct story *story = loop_begin("{\"workers\": 0}");
    loop_steps(story);
    uint64_t at = next_start(STEPS);
    for (uint64_t i = 0; i < 4; i++)
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at + i * 20 * MS,
             .end = at + i * 20 * MS + 5 * MS, .batch = i, .loader = 2);
    SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at + 80 * MS, .end = at + 81 * MS,
         .batch = 4, .loader = 2, .flags = SPAN_ENDED_EPOCH);
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_VALIDATION, 80 * MS);
    expect(rank, CAUSE_COLLATE, STEPS * WAIT);
    story_free(story);
}

static void recording_costs_are_our_own(void **state)
{
    (void)state;
    struct story *story = story_begin();
    for (uint64_t i = 0; i < STEPS; i++) {
        struct record_cost cost = {.head = {RECORD_COST, 0, sizeof cost},
                                   .start = BEGUN + i * PERIOD + 10 * MS,
                                   .end = BEGUN + i * PERIOD + 13 * MS};
        story_record(story, MAIN, cost.start, cost.end, &cost);
    }
    bare_steps(story);
    expect(story_end(story), CAUSE_OVERHEAD, STEPS * 3 * MS);
    story_free(story);
}

/* --- without a GPU -----------------------------------------------------------------------------*/

static void without_a_gpu_the_rest_of_the_loop_computes(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_text(story, MAIN, RECORD_LOADER, LOADER, "{\"workers\": 0}");
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 1 * MS);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = 1 * MS + i * PERIOD;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + WAIT, .batch = i);
        SPAN(story, .pid = MAIN, .what = SPAN_FETCH, .start = at + 1 * MS, .end = at + 21 * MS,
             .batch = i, .cpu = RAN(0.75));
        SPAN(story, .pid = MAIN, .what = SPAN_COLLATE, .start = at + 21 * MS, .end = at + 29 * MS,
             .batch = i);
        story_mark(story, MARK_STEP, at + PERIOD, 0, 0);
    }
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(story->summary.mode, WATCH_CPU);
    expect(rank, CAUSE_START, 1 * MS);
    expect(rank, CAUSE_FETCH, STEPS * 5 * MS);
    expect(rank, CAUSE_TRANSFORM, STEPS * 15 * MS);
    expect(rank, CAUSE_COLLATE, STEPS * 10 * MS);
    assert_int_equal(rank->compute_ns, STEPS * 10 * MS);
    assert_int_equal(rank->next_ns, STEPS * WAIT);
    assert_int_equal(story->summary.gap_total, STEPS);
    story_free(story);
}

/* What runs between next() and the backward pass in 30 ms of each 100. */
static const struct summary_rank *filter_story(struct story **out, int has_model)
{
    struct story *story = *out = story_begin();
    if (has_model)
        story_mark(story, MARK_MODULE, 0, 0, 0);
    story_frame(story, MAIN, 1, 0, "<module>", "train.py", 80);
    story_frame(story, MAIN, 2, 1, "denoise", "train.py", 12);
    story_frame(story, MAIN, 3, 1, "_call_impl", "/x/site-packages/torch/nn/modules/module.py", 1);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * 100 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 10 * MS, .batch = i,
             .cpu = RAN(1));
        story_sample(story, MAIN, at, at + 10 * MS, 1, 1);
        story_sample(story, MAIN, at + 10 * MS, at + 40 * MS, 2, 1);
        story_sample(story, MAIN, at + 40 * MS, at + 60 * MS, 3, 1);
        SPAN(story, .pid = MAIN, .what = SPAN_BACKWARD, .start = at + 60 * MS, .end = at + 90 * MS);
        story_sample(story, MAIN, at + 60 * MS, at + 100 * MS, 1, 1);
        story_mark(story, MARK_STEP, at + 100 * MS, 0, 0);
    }
    return story_end(story);
}

static void a_filter_between_next_and_the_model_transforms(void **state)
{
    (void)state;
    struct story *story;
    const struct summary_rank *rank = filter_story(&story, 1);
    expect(rank, CAUSE_TRANSFORM, STEPS * 30 * MS);
    assert_string_equal(rank->causes[CAUSE_TRANSFORM].functions[0].function, "denoise");
    assert_int_equal(rank->compute_ns, STEPS * 60 * MS);
    story_free(story);
}

static void a_model_of_the_users_own_functions_computes(void **state)
{
    (void)state;
    struct story *story;
    const struct summary_rank *rank = filter_story(&story, 0);
    expect(rank, CAUSE_TRANSFORM, 0);
    assert_int_equal(rank->compute_ns, STEPS * 90 * MS);
    story_free(story);
}

static void a_pause_in_the_loop_is_an_accelerator_that_computes(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_frame(story, MAIN, 1, 0, "step", "train.py", 80);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * 100 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 10 * MS, .batch = i);
        story_sample(story, MAIN, at, at + 10 * MS, 1, 1);
        story_sample(story, MAIN, at + 10 * MS, at + 100 * MS, 1, 0);
        story_mark(story, MARK_STEP, at + 100 * MS, 0, 0);
    }
    assert_int_equal(story_end(story)->compute_ns, STEPS * 90 * MS);
    story_free(story);
}

static void a_rank_that_stands_still_in_backward_waits_for_another(void **state)
{
    (void)state;
    struct story *story = story_begin();
    struct watch_process process = {
        .pid = MAIN, .role = PROCESS_MAIN, .main = MAIN, .worker = -1, .rank = 1, .world = 2};
    story_take(story,
               &(struct watch_event){.type = EVENT_PROCESS, .pid = MAIN, .process = &process});
    story_frame(story, MAIN, 1, 0, "train", "train.py", 80);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * 100 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 10 * MS, .batch = i);
        SPAN(story, .pid = MAIN, .what = SPAN_BACKWARD, .start = at + 20 * MS, .end = at + 60 * MS);
        SPAN(story, .pid = MAIN, .what = SPAN_COLLECTIVE, .start = at + 60 * MS,
             .end = at + 70 * MS);
        story_sample(story, MAIN, at + 20 * MS, at + 60 * MS, 1, 0.25);
        story_mark(story, MARK_STEP, at + 100 * MS, 0, 0);
    }
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_RANK, STEPS * 40 * MS);
    assert_int_equal(rank->rank, 1);
    story_free(story);
}

static void a_loop_that_takes_from_a_thread_that_reads_ahead_waits_in_its_queue(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_text(story, MAIN, RECORD_LOADER, LOADER, "{\"workers\": 0}");
    story_frame(story, MAIN, 1, 0, "main", "train.py", 80);
    story_frame(story, MAIN, 2, 1, "Queue.get", "python3.11/queue.py", 171);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * 50 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 50 * MS, .batch = i,
             .thread = 105);
        SPAN(story, .pid = MAIN, .what = SPAN_FETCH, .start = at, .end = at + 50 * MS, .batch = i,
             .thread = 105, .cpu = RAN(0));
        story_sample(story, MAIN, at, at + 30 * MS, 2, 0);
        story_sample(story, MAIN, at + 30 * MS, at + 50 * MS, 1, 0);
    }
    const struct summary_rank *rank = story_end(story);
    expect(rank, CAUSE_FETCH, STEPS * 30 * MS);
    assert_int_equal(rank->compute_ns, STEPS * 20 * MS);
    story_free(story);
}

/* A loop over a generator of the script's: it is in `frame` for 30 ms of each 40, and then in its
 * own function, where a GPU computes or it stands itself. */
enum { MODULE = 1, STEP, SOURCE, UNDER, TORCH, UNDER_TORCH, QUEUE };

static void frames_tell(struct story *story)
{
    static const struct told_frame frames[] = {
        {MODULE, 0, 0, "<module>", "train.py", 90},
        {STEP, MODULE, 0, "step", "train.py", 70},
        {SOURCE, MODULE, FRAME_IS_SOURCE, "batches", "train.py", 12},
        {UNDER, SOURCE, 0, "decode", "train.py", 5},
        {TORCH, MODULE, 0, "_call_impl", "/x/site-packages/torch/nn/modules/module.py", 1},
        {UNDER_TORCH, TORCH, FRAME_IS_SOURCE, "layers", "train.py", 30},
        {QUEUE, MODULE, 0, "Queue.get", "python3.11/queue.py", 171},
    };
    for (size_t i = 0; i < sizeof frames / sizeof frames[0]; i++)
        story_tell_frame(story, MAIN, &frames[i]);
}

static struct story *source_tell(uint32_t frame, double cpu, int with_gpu)
{
    struct story *story = story_begin();
    frames_tell(story);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * PERIOD;
        for (uint64_t k = 0; k < 3; k++)
            story_sample(story, MAIN, at + k * 10 * MS, at + (k + 1) * 10 * MS, frame, cpu);
        story_sample(story, MAIN, at + WAIT, at + PERIOD, STEP, 0);
        if (with_gpu)
            story_kernel(story, at + WAIT, at + PERIOD, 0);
        story_mark(story, MARK_STEP, at + PERIOD, 0, 0);
    }
    story_mark(story, MARK_STEP, 0, 0, 0); /* the first: here judging begins */
    return story;
}

static const struct summary_rank *source_story(struct story **out, uint32_t frame, double cpu,
                                               int with_gpu)
{
    *out = source_tell(frame, cpu, with_gpu);
    return story_end(*out);
}

static void what_a_loop_iterates_over_makes_its_batches(void **state)
{
    (void)state;
    struct story *story;
    for (int with_gpu = 0; with_gpu < 2; with_gpu++) {
        const struct summary_rank *rank = source_story(&story, UNDER, 0, with_gpu);
        expect(rank, CAUSE_FETCH, STEPS * WAIT);
        assert_string_equal(rank->causes[CAUSE_FETCH].functions[0].function, "decode");
        story_free(story);
        rank = source_story(&story, UNDER, 1, with_gpu);
        expect(rank, CAUSE_TRANSFORM, STEPS * WAIT);
        assert_string_equal(rank->causes[CAUSE_TRANSFORM].functions[0].function, "decode");
        story_free(story);
        expect(source_story(&story, QUEUE, 0, with_gpu), CAUSE_FETCH, STEPS * WAIT);
        story_free(story);
    }
}

/* As much of a wait for a process of the script's own is its work as that runs. */
static void expect_helped(uint32_t frame, double ran)
{
    struct story *story;
    for (int with_gpu = 0; with_gpu < 2; with_gpu++) {
        story = source_tell(frame, 0, with_gpu);
        for (uint32_t i = 0; i < 3; i++) {
            story_process(story, WORKER + i, PROCESS_HELPER, -1);
            story_use(story, WORKER + i, 0, STEPS * PERIOD, i == 1 ? ran : 0.1);
        }
        const struct summary_rank *rank = story_end(story);
        uint64_t made = (uint64_t)((double)(STEPS * WAIT) * ran);
        expect(rank, CAUSE_TRANSFORM, made);
        expect(rank, CAUSE_FETCH, STEPS * WAIT - made);
        assert_null(rank->causes[CAUSE_TRANSFORM].functions[0].function);
        story_free(story);
    }
}

static void a_pool_of_processes_makes_what_the_loop_waits_for(void **state)
{
    (void)state;
    expect_helped(QUEUE, 1);
    expect_helped(SOURCE, 1);
    expect_helped(QUEUE, 0.5);
    expect_helped(SOURCE, 0.25);
}

static void without_a_gpu_what_runs_before_the_model_makes_the_batch(void **state)
{
    (void)state;
    const uint32_t models[] = {TORCH, STEP};
    for (int is_own = 0; is_own < 2; is_own++) { /* a module, or functions of the script's own */
        struct story *story = story_begin();
        if (!is_own)
            story_mark(story, MARK_MODULE, 0, 0, 0);
        frames_tell(story);
        for (uint64_t i = 0; i < STEPS; i++) {
            uint64_t at = i * PERIOD;
            story_sample(story, MAIN, at, at + 20 * MS, STEP, 1);
            story_sample(story, MAIN, at + 20 * MS, at + WAIT, models[is_own], 1);
            SPAN(story, .pid = MAIN, .what = SPAN_BACKWARD, .start = at + WAIT,
                 .end = at + WAIT + 5 * MS);
            SPAN(story, .pid = MAIN, .what = SPAN_OPTIMIZER, .start = at + WAIT + 5 * MS,
                 .end = at + PERIOD);
            story_mark(story, MARK_STEP, at + PERIOD, 0, 0);
        }
        story_mark(story, MARK_STEP, 0, 0, 0); /* the first: here judging begins */
        const struct summary_rank *rank = story_end(story);
        expect(rank, CAUSE_TRANSFORM, is_own ? 0 : (STEPS - 1) * 20 * MS);
        assert_int_equal(rank->idle_ns, rank->causes[CAUSE_TRANSFORM].ns);
        story_free(story);
    }
}

static void what_is_iterated_over_under_torch_is_the_models(void **state)
{
    (void)state;
    struct story *story;
    assert_int_equal(source_story(&story, UNDER_TORCH, 1, 0)->idle_ns, 0);
    story_free(story);
    expect(source_story(&story, UNDER_TORCH, 1, 1), CAUSE_LAUNCH, STEPS * WAIT);
    story_free(story);
}

static void a_loop_that_draws_from_a_loader_computes_in_generators_of_its_own(void **state)
{
    (void)state;
    struct story *story = story_begin();
    static const struct told_frame source = {1, 0, FRAME_IS_SOURCE, "parts", "train.py", 12};
    story_tell_frame(story, MAIN, &source);
    for (uint64_t i = 0; i < STEPS; i++) {
        uint64_t at = i * PERIOD;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 10 * MS, .batch = i);
        story_sample(story, MAIN, at + 10 * MS, at + PERIOD, 1, 0);
        story_mark(story, MARK_STEP, at + PERIOD, 0, 0);
    }
    assert_int_equal(story_end(story)->compute_ns, STEPS * 30 * MS);
    story_free(story);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_copy_fills_is_the_copys),
        cmocka_unit_test(a_gap_that_begins_in_a_synchronisation_is_its),
        cmocka_unit_test(small_gaps_are_python_that_launches),
        cmocka_unit_test(a_loop_that_is_not_known_launches_nothing),
        cmocka_unit_test(the_users_own_code_on_the_main_thread_transforms),
        cmocka_unit_test(a_loop_that_stands_while_another_thread_runs_waits_for_the_interpreter),
        cmocka_unit_test(a_loop_without_a_loader_that_stands_in_its_own_code_reads),
        cmocka_unit_test(a_loop_that_stands_under_torch_waits_for_something_else),
        cmocka_unit_test(what_the_loop_does_after_a_step_is_logging),
        cmocka_unit_test(what_a_thread_did_last_it_did_to_its_end),
        cmocka_unit_test(the_interpreter_that_a_map_of_the_loader_holds_is_lost_to_transforming),
        cmocka_unit_test(a_loop_that_stands_in_backward_launches_from_torchs_own_thread),
        cmocka_unit_test(standing_in_backward_is_not_told_of_the_rest_of_a_step),
        cmocka_unit_test(compiling_is_not_judged),
        cmocka_unit_test(nccl_that_spins_is_no_work),
        cmocka_unit_test(checkpoints_and_validation_come_first),
        cmocka_unit_test(a_loader_without_steps_validates),
        cmocka_unit_test(recording_costs_are_our_own),
        cmocka_unit_test(without_a_gpu_the_rest_of_the_loop_computes),
        cmocka_unit_test(a_filter_between_next_and_the_model_transforms),
        cmocka_unit_test(a_model_of_the_users_own_functions_computes),
        cmocka_unit_test(a_pause_in_the_loop_is_an_accelerator_that_computes),
        cmocka_unit_test(a_rank_that_stands_still_in_backward_waits_for_another),
        cmocka_unit_test(a_loop_that_takes_from_a_thread_that_reads_ahead_waits_in_its_queue),
        cmocka_unit_test(what_a_loop_iterates_over_makes_its_batches),
        cmocka_unit_test(a_pool_of_processes_makes_what_the_loop_waits_for),
        cmocka_unit_test(without_a_gpu_what_runs_before_the_model_makes_the_batch),
        cmocka_unit_test(what_is_iterated_over_under_torch_is_the_models),
        cmocka_unit_test(a_loop_that_draws_from_a_loader_computes_in_generators_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
