/* Sums that add up whatever comes, in any order and however it is settled; bounded memory; and what
 * makes a run unreliable. */
#include "watch/attribution_state.h"
#include "watch/watch_story.h"

/* --- random runs -------------------------------------------------------------------------------*/

enum { RANDOM_STEPS = 400 };

struct telling { /* one event of a random run, so that it can be told in any order */
    int kind;
    uint64_t start, end, number, extra;
};

static uint64_t draw(uint64_t key, uint64_t *counter, uint64_t bound)
{
    return random_below(key, (*counter)++, bound);
}

/* A run of everything: waits, kernels, copies, synchronisations, checkpoints, samples. */
static size_t run_make(uint64_t key, struct telling *out, int with_gpu)
{
    size_t count = 0;
    uint64_t counter = 0, at = 1 * MS;
    out[count++] = (struct telling){0, 0, at, 2, 0};
    for (uint64_t i = 0; i < RANDOM_STEPS; i++) {
        uint64_t wait = draw(key, &counter, 9 * MS), fetch = wait + draw(key, &counter, 5 * MS);
        uint64_t next = at + wait;
        out[count++] = (struct telling){1, at, next, i, 0};
        out[count++] = (struct telling){2, next > fetch ? next - fetch : 0, next - wait / 8, i,
                                        draw(key, &counter, 100)};
        out[count++] = (struct telling){9, at, next + 2 * MS, i, draw(key, &counter, 100)};
        at = next;
        uint64_t kernels = with_gpu ? 1 + draw(key, &counter, 30) : 0;
        for (uint64_t k = 0; k < kernels; k++) {
            uint64_t gap = draw(key, &counter, 3) ? draw(key, &counter, 9 * US)
                                                  : draw(key, &counter, 900 * US);
            uint64_t length = 1 + draw(key, &counter, 200 * US);
            out[count++] = (struct telling){3, at + gap, at + gap + length, 0, 0};
            at += gap + length;
        }
        if (with_gpu && !draw(key, &counter, 3))
            out[count++] = (struct telling){4, at, at + 100 * US, 1 << 20, 0};
        if (with_gpu && !draw(key, &counter, 3))
            out[count++] = (struct telling){5, at - 50 * US, at + 5 * US, 0, 0};
        if (!draw(key, &counter, 20))
            out[count++] = (struct telling){6, at + 1 * MS, at + 4 * MS, 0, 0};
        at += draw(key, &counter, 6 * MS);
        out[count++] = (struct telling){7, at, at, 0, 0};
    }
    return count;
}

static void event_tell(struct story *story, const struct telling *told)
{
    switch (told->kind) {
    case 0:
        SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = told->start, .end = told->end,
             .batch = told->number);
        return;
    case 1:
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = told->start, .end = told->end,
             .batch = told->number);
        return;
    case 2:
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = told->start, .end = told->end,
             .batch = told->number, .cpu = RAN((double)told->extra / 100));
        return;
    case 3:
        story_kernel(story, told->start, told->end, 0);
        return;
    case 4:
        story_copy(story, told->start, told->end, told->number, COPY_TO_DEVICE);
        return;
    case 5:
        story_sync(story, told->start, told->end);
        return;
    case 6:
        SPAN(story, .pid = MAIN, .what = SPAN_CHECKPOINT, .start = told->start, .end = told->end);
        return;
    case 7:
        story_mark(story, MARK_STEP, told->start, 0, 0);
        return;
    default:
        story_sample(story, MAIN, told->start, told->end, 1, (double)told->extra / 100);
        return;
    }
}

static struct story *random_begin(void)
{
    struct story *story = story_begin();
    story_process(story, MAIN, PROCESS_MAIN, -1);
    story_process(story, WORKER, PROCESS_WORKER, 0);
    story_text(story, MAIN, RECORD_LOADER, LOADER, "{\"workers\": 1}");
    story_frame(story, MAIN, 1, 0, "train", "/data/user/train.py", 3);
    return story;
}

static int end_order(const void *a, const void *b)
{
    const struct telling *left = a, *right = b;
    return (left->end > right->end) - (left->end < right->end);
}

/* As it would come: by end, settled every so often. */
static const struct summary_rank *run_tell(struct story *story, struct telling *events,
                                           size_t count, uint64_t every)
{
    qsort(events, count, sizeof *events, end_order);
    uint64_t settled = every;
    for (size_t i = 0; i < count; i++) {
        while (every && events[i].end > settled) {
            story_settle(story, settled);
            settled += every;
        }
        event_tell(story, &events[i]);
    }
    return story_end(story);
}

/* The gaps of a made-up run, counted plainly. */
static uint64_t plain_busy(const struct telling *events, size_t count, uint64_t from, uint64_t to)
{
    struct telling *kernels = malloc(count * sizeof *kernels);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == 3)
            kernels[kept++] = events[i];
    uint64_t busy = 0, upto = from;
    qsort(kernels, kept, sizeof *kernels, end_order); /* none overlaps another */
    for (size_t i = 0; i < kept; i++) {
        uint64_t start = kernels[i].start > upto ? kernels[i].start : upto;
        uint64_t end = kernels[i].end < to ? kernels[i].end : to;
        busy += end > start ? end - start : 0;
        upto = end > upto ? end : upto;
    }
    free(kernels);
    return busy;
}

static void shares_of_random_runs_add_up(void **state)
{
    (void)state;
    struct telling *events = calloc(RANDOM_STEPS * 40 + 10, sizeof *events);
    for (uint64_t key = 1; key <= 12; key++) {
        int gpu = key % 3 != 0;
        size_t count = run_make(key, events, gpu);
        struct story *story = random_begin();
        const struct summary_rank *rank = run_tell(story, events, count, 0); /* checks the sums */
        if (gpu) {
            uint64_t end = rank->end - 0;
            assert_int_equal(rank->compute_ns, plain_busy(events, count, rank->start, end));
        }
        story_free(story);
    }
    free(events);
}

static void what_comes_in_any_order_is_judged_alike(void **state)
{
    (void)state;
    struct telling *events = calloc(RANDOM_STEPS * 40 + 10, sizeof *events);
    size_t count = run_make(5, events, 1);
    struct story *in_order = random_begin(), *shuffled = random_begin();
    const struct summary_rank *expected = run_tell(in_order, events, count, 0);
    struct permutation permutation;
    permutation_init(&permutation, count, 77);
    for (uint64_t i = 0; i < count; i++)
        event_tell(shuffled, &events[permutation_at(&permutation, i)]);
    const struct summary_rank *rank = story_end(shuffled);
    for (int i = 0; i < CAUSE_COUNT; i++)
        assert_int_equal(rank->causes[i].ns, expected->causes[i].ns);
    assert_int_equal(rank->compute_ns, expected->compute_ns);
    story_free(in_order);
    story_free(shuffled);
    free(events);
}

static void how_often_it_is_settled_changes_nothing(void **state)
{
    (void)state;
    struct telling *events = calloc(RANDOM_STEPS * 40 + 10, sizeof *events);
    for (int gpu = 0; gpu <= 1; gpu++) {
        size_t count = run_make(9, events, gpu);
        struct story *once = random_begin(), *often = random_begin();
        const struct summary_rank *expected = run_tell(once, events, count, 0);
        const struct summary_rank *rank = run_tell(often, events, count, 100 * MS);
        for (int i = 0; i < CAUSE_COUNT; i++) {
            assert_int_equal(rank->causes[i].ns, expected->causes[i].ns);
            assert_int_equal(often->told[i], once->told[i]);
        }
        assert_int_equal(often->summary.gap_total, once->summary.gap_total);
        story_free(once);
        story_free(often);
    }
    free(events);
}

/* --- long runs ---------------------------------------------------------------------------------*/

/* malloc'd bytes, as far as the hook can see them: it is told of what is asked for, so the largest
 * list at its largest counts. */
struct asked {
    size_t most;
};

static int asked_hook(void *user, size_t size)
{
    struct asked *asked = user;
    if (size > asked->most)
        asked->most = size;
    return 0;
}

/* Twenty seconds of half a million kernels each, a step every 10 ms, workers and stacks. */
static void ten_million_kernels_take_little_memory(void **state)
{
    (void)state;
    struct story *story = random_begin();
    struct asked asked = {0};
    memory_set_hook(asked_hook, &asked);
    const uint64_t kernels = 10000000, period = 2 * US, step = 5000;
    for (uint64_t i = 0; i < kernels; i++) {
        uint64_t at = i * period;
        story_kernel(story, at + 700, at + period, 0);
        if (i % step == 0) {
            SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 500, .batch = i);
            story_mark(story, MARK_STEP, at + step * period - 1, 0, 0);
            story_sample(story, MAIN, at, at + step * period, 1, 1);
            story_sample(story, WORKER, at, at + step * period, 1, 1);
        }
        if (i % 500000 == 499999)
            story_settle(story, at);
    }
    const struct summary_rank *rank = story_end(story);
    memory_set_hook(NULL, NULL);
    assert_int_equal(rank->kernels, kernels);
    /* From the start of the first next() to the last step, but for its last nanosecond. */
    assert_int_equal(rank->idle_ns, kernels * 700);
    assert_true(asked.most < (size_t)6 << 20);
    story_free(story);
}

/* Hours of a loop with workers: what is kept does not grow, and nothing is lost by settling it. */
static void a_long_run_is_settled_as_it_goes(void **state)
{
    (void)state;
    struct story *story = random_begin();
    struct asked asked = {0};
    memory_set_hook(asked_hook, &asked);
    const uint64_t steps = 100000, period = 30 * MS;
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t at = i * period;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 10 * MS,
             .batch = i % 1000);
        SPAN(story, .pid = WORKER, .what = SPAN_FETCH, .start = at, .end = at + 10 * MS,
             .batch = i % 1000, .cpu = RAN(0));
        for (uint64_t k = 0; k < 3; k++)
            story_sample(story, MAIN, at + k * 10 * MS, at + (k + 1) * 10 * MS, 1, k ? 0.5 : 0);
        story_mark(story, MARK_STEP, at + period, 0, 0);
        if (i % 33 == 0)
            story_settle(story, at);
    }
    const struct summary_rank *rank = story_end(story);
    memory_set_hook(NULL, NULL);
    assert_true(asked.most < (size_t)6 << 20);
    assert_int_equal(rank->steps, steps);
    /* The first batches of "epochs" are as long as the others: reading all of it. */
    assert_int_equal(rank->causes[CAUSE_FETCH].ns, steps * 10 * MS);
    assert_int_equal(story->summary.bin_ns, 1600 * MS);
    story_free(story);
}

/* --- what cannot be judged ---------------------------------------------------------------------*/

static void a_small_run(struct story *story)
{
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 1 * MS);
    for (uint64_t i = 0; i < 10; i++) {
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = i * 20 * MS + 1 * MS,
             .end = i * 20 * MS + 5 * MS, .batch = i);
        story_kernel(story, i * 20 * MS + 6 * MS, i * 20 * MS + 20 * MS, 0);
        story_mark(story, MARK_STEP, i * 20 * MS + 20 * MS, 0, 0);
    }
}

static void lost_records_make_a_run_unreliable(void **state)
{
    (void)state;
    static const char *const words[] = {"CUPTI dropped 3", "3 records of", "3 CUDA graphs",
                                        "3 records were lost"};
    for (uint32_t why = 1; why <= 4; why++) {
        struct story *story = random_begin();
        a_small_run(story);
        struct record_lost lost = {
            .head = {RECORD_LOST, 0, sizeof lost}, .time = BEGUN, .count = 3, .why = why};
        story_record(story, MAIN, BEGUN, BEGUN, &lost);
        story_end(story);
        assert_non_null(story->summary.unreliable[0]);
        assert_non_null(strstr(story->summary.unreliable[0], words[why - 1]));
        assert_null(story->summary.unreliable[1]);
        story_free(story);
    }
}

/* Kernels at 0 to 100 ms and from 300 ms on; the script's profiler had CUPTI in between. */
static const struct summary_rank *yield_story(struct story *story, int handed_over)
{
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
    story_gpu(story, GPU_YIELDS, 100 * MS, "");
    story_gpu(story, GPU_RECORDS, 300 * MS, "13.0");
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t at = i * 10 * MS;
        if (handed_over || at < 100 * MS || at >= 300 * MS)
            story_kernel(story, at + 4 * MS, at + 10 * MS, 0);
        story_mark(story, MARK_STEP, at + 10 * MS, 0, 0);
    }
    return story_end(story);
}

static void time_of_the_scripts_own_profiler_is_not_judged(void **state)
{
    (void)state;
    struct story *story = random_begin();
    const struct summary_rank *rank = yield_story(story, 0);
    assert_int_equal(rank->excluded_ns, 200 * MS);
    assert_int_equal(rank->idle_ns, 20 * 4 * MS);
    assert_non_null(strstr(story->summary.notices[0], "0.2 s in which the script's own profiler"));
    story_free(story);
}

/* Steps of 10 ms that wait for 4 ms each, in next(); recording rests for three quarters of them. */
static const struct summary_rank *rest_story(struct story *story, int rests)
{
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t at = i * 10 * MS;
        if (rests && i % 100 == 25)
            story_gpu(story, GPU_RESTS, at, "");
        if (rests && i && i % 100 == 0)
            story_gpu(story, GPU_RECORDS, at, "");
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 4 * MS);
        if (!rests || i % 100 < 25)
            story_kernel(story, at + 4 * MS, at + 10 * MS, 0);
        story_mark(story, MARK_STEP, at + 10 * MS, 0, 0);
        if (i % 50 == 49)
            story_settle(story, at + 10 * MS);
    }
    return story_end(story);
}

static void time_that_was_not_recorded_is_taken_to_be_like_the_rest(void **state)
{
    (void)state;
    struct story *story = random_begin();
    const struct summary_rank whole = *rest_story(story, 0);
    assert_true(whole.recorded == 1);
    story_free(story);
    story = random_begin();
    const struct summary_rank *rank = rest_story(story, 1);
    assert_in_range((uint64_t)(1000 * rank->recorded), 245,
                    250); /* less the first gap after each */
    assert_int_equal(rank->excluded_ns, 0);
    assert_int_equal(rank->steps, 400);
    assert_int_equal(rank->end - rank->start, whole.end - whole.start);
    assert_int_equal(rank->idle_ns, whole.idle_ns);
    assert_in_range(rank->kernels, 399, 400);
    assert_int_equal(rank->next_ns, whole.next_ns);
    assert_non_null(strstr(story->summary.notices[0], "the first 1.0 s, 25 % of the time"));
    const float *busy = story->summary.series[SERIES_COMPUTE];
    double sum = 0;
    for (size_t i = 0; i < story->summary.bins; i++)
        sum += (double)busy[i];
    assert_in_range((uint64_t)(100 * sum / (double)story->summary.bins), 58, 62);
    story_free(story);
}

/* Steps: some wait for input, 2 ms in which no kernel runs, 7 ms of computing. When recording
 * rests, input is slower than before, and there is a checkpoint. */
static void what_the_loop_waits_for_in_a_rest_is_known(void **state)
{
    (void)state;
    uint64_t at = 0;
    struct story *story = random_begin();
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
    for (uint64_t i = 0; i < 400; i++) {
        uint64_t waits = i < 100 ? MS : 4 * MS;
        if (i == 100)
            story_gpu(story, GPU_RESTS, at, "");
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + waits);
        at += waits + 9 * MS;
        if (i < 100)
            story_kernel(story, at - 7 * MS, at, 0);
        story_mark(story, MARK_STEP, at, 0, 0);
        if (i == 300)
            SPAN(story, .pid = MAIN, .what = SPAN_CHECKPOINT, .start = at, .end = at + 60 * MS);
        at += i == 300 ? 60 * MS : 0;
        if (i % 50 == 49)
            story_settle(story, at);
    }
    const struct summary_rank *rank = story_end(story);
    uint64_t input = 0;
    for (int i = CAUSE_FETCH; i <= CAUSE_START; i++)
        input += rank->causes[i].ns;
    assert_in_range(input, (100 * 1 + 300 * 4) * MS - 9, (100 * 1 + 300 * 4) * MS);
    assert_in_range(rank->causes[CAUSE_CHECKPOINT].ns, 60 * MS - 1, 60 * MS);
    assert_in_range(rank->causes[CAUSE_LAUNCH].ns, 800 * MS - 1, 800 * MS + 1);
    assert_int_equal(rank->kernels, 400);
    story_free(story);
}

/* Hours of it are not kept. */
static void a_long_rest_is_settled_as_it_goes(void **state)
{
    (void)state;
    const uint64_t steps = 1000000;
    struct story *story = random_begin();
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
    for (uint64_t i = 0; i < steps; i++) {
        uint64_t at = i * 10 * MS;
        if (i == 100)
            story_gpu(story, GPU_RESTS, at, "");
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 4 * MS);
        if (i < 100)
            story_kernel(story, at + 5 * MS, at + 10 * MS, 0);
        story_mark(story, MARK_STEP, at + 10 * MS, 0, 0);
        if (i % 1000 == 999)
            story_settle(story, at + 10 * MS);
        assert_true(story->attribution->processes[0]->spans[SPAN_NEXT].count < 200000);
    }
    const struct summary_rank *rank = story_end(story);
    assert_in_range(rank->idle_ns, steps * 5 * MS - steps, steps * 5 * MS);
    assert_int_equal(rank->next_ns, steps * 4 * MS);
    assert_in_range(rank->kernels, steps - 1, steps);
    story_free(story);
}

/* The script ends, or is killed, while recording rests. */
static void a_rest_that_does_not_end_is_taken_to_be_like_the_rest(void **state)
{
    (void)state;
    struct story *story = random_begin();
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t at = i * 10 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 4 * MS);
        if (i < 50)
            story_kernel(story, at + 4 * MS, at + 10 * MS, 0);
        if (i == 50)
            story_gpu(story, GPU_RESTS, at, "");
        story_mark(story, MARK_STEP, at + 10 * MS, 0, 0);
    }
    const struct summary_rank *rank = story_end(story);
    assert_in_range((uint64_t)(1000 * rank->recorded), 499, 501);
    assert_in_range(rank->idle_ns, 399 * MS, 401 * MS);
    story_free(story);
}

static void kernels_that_the_profiler_hands_over_are_judged(void **state)
{
    (void)state;
    struct story *story = random_begin();
    const struct summary_rank *rank = yield_story(story, 1);
    assert_int_equal(rank->excluded_ns, 0);
    assert_int_equal(rank->idle_ns, 40 * 4 * MS);
    assert_null(story->summary.notices[0]);
    story_free(story);
}

static void kernels_that_come_late_are_taken_off_the_gaps(void **state)
{
    (void)state;
    struct story *story = random_begin();
    SPAN(story, .pid = MAIN, .what = SPAN_ITER, .start = 0, .end = 0);
    for (uint64_t i = 0; i < 10; i++) {
        story_kernel(story, i * 100 * MS + 90 * MS, i * 100 * MS + 100 * MS, 0);
        story_mark(story, MARK_STEP, i * 100 * MS + 100 * MS, 0, 0);
    }
    story_settle(story, 1000 * MS);
    for (uint64_t i = 0; i < 1000; i++) /* a kernel each millisecond, after all */
        story_kernel(story, i * MS, i * MS + 100 * US, 0);
    assert_int_equal(story_end(story)->compute_ns, 10 * 10 * MS + 900 * 100 * US);
    story_free(story);
}

static void a_gpu_without_a_hook_is_judged_by_its_records(void **state)
{
    (void)state;
    struct story *story = story_begin();
    for (uint64_t i = 0; i < 10; i++) {
        story_kernel(story, i * 100 * MS, i * 100 * MS + 40 * MS, 0);
        story_copy(story, i * 100 * MS + 50 * MS, i * 100 * MS + 70 * MS, 1 << 20, COPY_TO_DEVICE);
    }
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(rank->end - rank->start, 940 * MS);
    assert_int_equal(rank->causes[CAUSE_COPY].ns, 9 * 20 * MS);
    assert_int_equal(rank->causes[CAUSE_OTHER].ns, 9 * 40 * MS);
    assert_non_null(strstr(story->summary.notices[0], "was not seen"));
    story_free(story);
}

static void nothing_at_all_is_said_to_be_nothing(void **state)
{
    (void)state;
    struct story *story = story_begin();
    story_process(story, MAIN, PROCESS_UNKNOWN, -1);
    assert_int_equal(attribution_settle(story->attribution, BEGUN + 1000 * MS, NULL), STK_OK);
    assert_int_equal(attribution_finish(story->attribution, &story->summary, NULL), STK_OK);
    assert_int_equal(story->summary.mode, WATCH_NOTHING);
    assert_int_equal(story->summary.rank_count, 0);
    assert_int_equal(story->summary.process_count, 1);
    story_free(story);
}

static void what_came_before_training_is_not_judged(void **state)
{
    (void)state;
    struct story *story = random_begin(); /* a pass over another loader, for statistics */
    for (uint64_t i = 0; i < 50; i++)
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = i * 10 * MS, .end = i * 10 * MS + MS,
             .batch = i, .loader = 7);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t at = 1000 * MS + i * 20 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 5 * MS, .batch = i);
        story_mark(story, MARK_STEP, at + 20 * MS, 0, 0);
    }
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(rank->start, 1000 * MS);
    assert_int_equal(rank->end, 1200 * MS);
    assert_int_equal(rank->idle_ns, 50 * MS);
    story_free(story);
}

static void a_checkpoint_at_the_end_belongs_to_the_loop(void **state)
{
    (void)state;
    struct story *story = random_begin();
    a_small_run(story);
    SPAN(story, .pid = MAIN, .what = SPAN_CHECKPOINT, .start = 210 * MS, .end = 300 * MS);
    SPAN(story, .pid = MAIN, .what = SPAN_CHECKPOINT, .start = 5000 * MS, .end = 6000 * MS);
    const struct summary_rank *rank = story_end(story);
    assert_int_equal(rank->end, 300 * MS);
    assert_int_equal(rank->causes[CAUSE_CHECKPOINT].ns, 90 * MS);
    story_free(story);
}

static void the_last_second_is_told_as_it_goes(void **state)
{
    (void)state;
    struct story *story = random_begin();
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t at = i * 100 * MS;
        SPAN(story, .pid = MAIN, .what = SPAN_NEXT, .start = at, .end = at + 75 * MS, .batch = i);
        story_mark(story, MARK_BATCH, at + 75 * MS, LOADER, 16);
        story_kernel(story, at + 75 * MS, at + 100 * MS, 0);
        story_mark(story, MARK_STEP, at + 100 * MS, 0, 0);
        if (i % 10 == 9)
            story_settle(story, at + 100 * MS);
    }
    struct stk_watch_now now;
    attribution_now(story->attribution, &now);
    assert_true(now.busy > 0.249 && now.busy < 0.251);
    assert_true(now.samples_s > 159 && now.samples_s < 161);
    assert_string_equal(now.waits, cause_words(CAUSE_COLLATE));
    story_end(story);
    story_free(story);
}

static void a_picture_is_kept_of_some_seconds(void **state)
{
    (void)state;
    struct story *story = random_begin();
    a_small_run(story);
    story_end(story);
    assert_int_equal(story->summary.lane_count, 3);
    assert_string_equal(story->summary.lanes[0].name, "GPU 0, stream 7");
    assert_int_equal(story->summary.lanes[0].count, 10);
    assert_string_equal(story->summary.lanes[1].name, "idle");
    assert_string_equal(story->summary.lanes[1].slices[0].name, "input/start");
    assert_string_equal(story->summary.lanes[2].name, "main thread");
    assert_int_equal(story->summary.excerpt_end, 200 * MS);
    story_free(story);
}

/* --- memory ------------------------------------------------------------------------------------*/

struct failing {
    struct telling *events;
    size_t count;
};

static int whole_run(void *user)
{
    const struct failing *failing = user;
    struct attribution *attribution;
    struct attribution_options options = {.begun = BEGUN, .cpus = 4};
    struct stk_error err;
    struct summary summary = {0};
    stk_status status = attribution_new(&attribution, &options, &err);
    struct record_kernel kernel = {.head = {RECORD_KERNEL, 0, sizeof kernel}};
    struct record_span span = {.head = {RECORD_SPAN, 0, sizeof span}, .thread = MAIN};
    for (size_t i = 0; !status && i < failing->count; i++) {
        const struct telling *told = &failing->events[i];
        struct watch_event event = {.type = EVENT_RECORD,
                                    .pid = MAIN,
                                    .start = BEGUN + told->start,
                                    .end = BEGUN + told->end};
        kernel.start = span.start = event.start;
        kernel.end = span.end = event.end;
        span.what = told->kind == 1 ? SPAN_NEXT : SPAN_FETCH;
        span.b = told->number;
        event.record = told->kind == 3 ? &kernel.head : &span.head;
        status = attribution_take(attribution, &event, &err);
    }
    if (!status)
        status = attribution_settle(attribution, BEGUN + 100 * MS, &err);
    if (!status)
        status = attribution_finish(attribution, &summary, &err);
    attribution_free(attribution);
    summary_free(&summary);
    assert_true(!status || status == STK_MEMORY);
    return !status;
}

static void a_lack_of_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    struct failing failing = {.events = calloc(RANDOM_STEPS * 40 + 10, sizeof(struct telling))};
    size_t all = run_make(3, failing.events, 1);
    failing.count = all < 60 ? all : 60;
    fail_each_allocation(whole_run, &failing);
    free(failing.events);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_of_random_runs_add_up),
        cmocka_unit_test(what_comes_in_any_order_is_judged_alike),
        cmocka_unit_test(how_often_it_is_settled_changes_nothing),
        cmocka_unit_test(ten_million_kernels_take_little_memory),
        cmocka_unit_test(a_long_run_is_settled_as_it_goes),
        cmocka_unit_test(lost_records_make_a_run_unreliable),
        cmocka_unit_test(time_of_the_scripts_own_profiler_is_not_judged),
        cmocka_unit_test(time_that_was_not_recorded_is_taken_to_be_like_the_rest),
        cmocka_unit_test(what_the_loop_waits_for_in_a_rest_is_known),
        cmocka_unit_test(a_long_rest_is_settled_as_it_goes),
        cmocka_unit_test(a_rest_that_does_not_end_is_taken_to_be_like_the_rest),
        cmocka_unit_test(kernels_that_the_profiler_hands_over_are_judged),
        cmocka_unit_test(kernels_that_come_late_are_taken_off_the_gaps),
        cmocka_unit_test(a_gpu_without_a_hook_is_judged_by_its_records),
        cmocka_unit_test(nothing_at_all_is_said_to_be_nothing),
        cmocka_unit_test(what_came_before_training_is_not_judged),
        cmocka_unit_test(a_checkpoint_at_the_end_belongs_to_the_loop),
        cmocka_unit_test(the_last_second_is_told_as_it_goes),
        cmocka_unit_test(a_picture_is_kept_of_some_seconds),
        cmocka_unit_test(a_lack_of_memory_is_told_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
