#include "pipeline/video_fixture.h"

#include "pipeline/pipeline.h"

#define NEEDS_VIDEO()                                                                              \
    if (!video_ready)                                                                              \
    skip()
#define FRAME ((size_t)128 * 96 * 3)
#define FRAMES 45

static struct stk_bytes video;
static uint8_t *oracle; /* FRAMES of FRAME bytes */

static int setup(void **state)
{
    size_t len;
    video_setup(state);
    if (!video_ready)
        return 0;
    assert_true(video_make(FRAMES / 30.0, "-c:v mpeg4 -g 12 -bf 2 run.mp4"));
    video = video_bytes("run.mp4");
    oracle = video_oracle("run.mp4", &len);
    assert_int_equal(len, FRAME * FRAMES);
    return 0;
}

static int teardown(void **state)
{
    free((void *)(uintptr_t)video.data);
    free(oracle);
    return video_teardown(state);
}

static struct pipeline *pipeline_of(const char *chain)
{
    struct pipeline *pipeline;
    struct stk_error err;
    struct pipeline_options options = {.chain = chain, .media = STK_MEDIA_VIDEO};
    stk_status status = pipeline_new(&pipeline, &options, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return pipeline;
}

/* A pipeline, its state, and what came out of the last run. */
struct bench {
    struct pipeline *pipeline;
    struct pipeline_state *state;
    struct stk_flow flow;
};

static struct bench bench_new(const char *chain)
{
    struct bench bench = {.pipeline = pipeline_of(chain)};
    assert_int_equal(pipeline_state_new(&bench.state, NULL), STK_OK);
    return bench;
}

static void bench_free(struct bench *bench)
{
    pipeline_state_free(bench->state);
    pipeline_free(bench->pipeline);
}

static const uint8_t *bench_run(struct bench *bench, uint64_t key)
{
    struct stk_error err = {0};
    struct pipeline_input input = {.bytes = video, .key = key};
    bench->flow = (struct stk_flow){0};
    stk_status status = pipeline_run(bench->pipeline, bench->state, &input, &bench->flow, &err);
    if (status)
        print_error("%s\n", err.what);
    assert_int_equal(status, STK_OK);
    return bench->flow.tensor.data;
}

/* The number of the frame; -1: it is none of the video's. */
static int frame_number(const uint8_t *frame)
{
    for (int i = 0; i < FRAMES; i++)
        if (!memcmp(frame, oracle + FRAME * (size_t)i, FRAME))
            return i;
    return -1;
}

static void clip_is(const uint8_t *clip, const int *numbers, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(frame_number(clip + FRAME * (size_t)i), numbers[i]);
}

static void shape_is(const struct stk_flow *flow, const int64_t *shape, int rank)
{
    assert_int_equal(flow->media, STK_MEDIA_VIDEO);
    assert_int_equal(flow->tensor.dtype, STK_U8);
    assert_int_equal(flow->tensor.rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(flow->tensor.shape[i], shape[i]);
}

static void a_clip_begins_at_the_start_or_in_the_middle(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(4, 3, start='start')");
    shape_is(pipeline_out(bench.pipeline), (int64_t[]){4, -1, -1, 3}, 4);
    clip_is(bench_run(&bench, 1), (int[]){0, 3, 6, 9}, 4);
    shape_is(&bench.flow, (int64_t[]){4, 96, 128, 3}, 4);
    assert_true(bench.flow.rate == 10); /* 30 a second, every third */
    bench_free(&bench);
    bench = bench_new("DecodeVideo(5, start=center)"); /* 20 before it, 20 behind it */
    clip_is(bench_run(&bench, 1), (int[]){20, 21, 22, 23, 24}, 5);
    bench_free(&bench);
}

static void several_clips_are_spread(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(2, 2, clips=3, start=start)");
    shape_is(pipeline_out(bench.pipeline), (int64_t[]){3, 2, -1, -1, 3}, 5);
    clip_is(bench_run(&bench, 1), (int[]){0, 2, 21, 23, 42, 44}, 6);
    shape_is(&bench.flow, (int64_t[]){3, 2, 96, 128, 3}, 5);
    bench_free(&bench);
    bench = bench_new("DecodeVideo(1, clips=3, start=center)");
    clip_is(bench_run(&bench, 1), (int[]){7, 22, 37}, 3);
    bench_free(&bench);
}

static void random_clips_follow_the_key_and_reach_both_ends(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(1, clips=2)"),
                 again = bench_new("DecodeVideo(1, clips=2)");
    int least = FRAMES, most = -1, same = 0;
    for (uint64_t key = 0; key < 60; key++) {
        const uint8_t *clips = bench_run(&bench, key);
        int first = frame_number(clips), second = frame_number(clips + FRAME);
        assert_true(first >= 0 && second >= 0);
        same += first == second;
        least = first < least ? first : least;
        most = second > most ? second : most;
        if (key < 5)
            assert_memory_equal(bench_run(&again, key), clips, 2 * FRAME);
    }
    assert_true(least < 5 && most > FRAMES - 6 && same < 10);
    bench_free(&bench);
    bench_free(&again);
}

static void a_video_that_is_too_short_repeats_its_last_frame(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(6, 10, start=center)");
    clip_is(bench_run(&bench, 1), (int[]){0, 10, 20, 30, 40, 44}, 6);
    bench_free(&bench);
    bench = bench_new("DecodeVideo(8, 22)");
    clip_is(bench_run(&bench, 9), (int[]){0, 22, 44, 44, 44, 44, 44, 44}, 8);
    bench_free(&bench);
}

static void all_frames_are_wanted_with_zero(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(0, start=start)");
    shape_is(pipeline_out(bench.pipeline), (int64_t[]){-1, -1, -1, 3}, 4);
    assert_memory_equal(bench_run(&bench, 1), oracle, FRAME * FRAMES);
    shape_is(&bench.flow, (int64_t[]){FRAMES, 96, 128, 3}, 4);
    bench_free(&bench);
}

static void without_a_chain_sixteen_frames_come(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new(NULL);
    int first = frame_number(bench_run(&bench, 4));
    shape_is(&bench.flow, (int64_t[]){16, 96, 128, 3}, 4);
    for (int i = 0; i < 16; i++)
        assert_int_equal(frame_number((const uint8_t *)bench.flow.tensor.data + FRAME * (size_t)i),
                         first + i);
    bench_free(&bench);
}

static void steps_behind_it_reach_every_frame(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(2, 5, clips=2, start=start) | "
                                   "RandomHorizontalFlip(1) | RandomVerticalFlip(1)");
    const uint8_t *frames = bench_run(&bench, 1);
    static const int numbers[4] = {0, 5, 39, 44};
    shape_is(&bench.flow, (int64_t[]){2, 2, 96, 128, 3}, 5);
    for (size_t k = 0; k < 4; k++) {
        const uint8_t *from = oracle + FRAME * (size_t)numbers[k];
        for (size_t i = 0; i < FRAME / 3; i++)
            assert_memory_equal(frames + FRAME * k + 3 * i, from + FRAME - 3 * (i + 1), 3);
    }
    bench_free(&bench);
}

static void chains_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const char *const chains[] = {"DecodeVideo(-1)",          "DecodeVideo(stride=0)",
                                         "DecodeVideo(clips=0)",     "DecodeVideo(clips=17)",
                                         "DecodeVideo(start=never)", "DecodeVideo(0, clips=2)",
                                         "DecodeVideo(70000)"};
    for (size_t i = 0; i < sizeof chains / sizeof chains[0]; i++) {
        struct pipeline *pipeline;
        struct stk_error err;
        struct pipeline_options options = {.chain = chains[i], .media = STK_MEDIA_VIDEO};
        assert_int_equal(pipeline_new(&pipeline, &options, &err), STK_USAGE);
        assert_null(pipeline);
    }
}

static void a_bad_video_is_a_status_and_the_next_one_is_decoded(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(2, start=start)");
    struct stk_error err;
    struct stk_flow flow = {0};
    struct pipeline_input input = {.bytes = {video.data, 100}};
    assert_int_not_equal(pipeline_run(bench.pipeline, bench.state, &input, &flow, &err), STK_OK);
    assert_non_null(strstr(err.what, "video"));
    clip_is(bench_run(&bench, 1), (int[]){0, 1}, 2);
    bench_free(&bench);
}

static int count_hook(void *user, size_t size)
{
    (void)size;
    ++*(int *)user;
    return 0;
}

static void after_the_first_sample_nothing_of_ours_is_allocated(void **state)
{
    (void)state;
    NEEDS_VIDEO();
    struct bench bench = bench_new("DecodeVideo(3)");
    int count = 0;
    (void)bench_run(&bench, 1);
    (void)bench_run(&bench, 2);
    memory_set_hook(count_hook, &count);
    (void)bench_run(&bench, 3);
    memory_set_hook(NULL, NULL);
    assert_int_equal(count, 0);
    bench_free(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clip_begins_at_the_start_or_in_the_middle),
        cmocka_unit_test(several_clips_are_spread),
        cmocka_unit_test(random_clips_follow_the_key_and_reach_both_ends),
        cmocka_unit_test(a_video_that_is_too_short_repeats_its_last_frame),
        cmocka_unit_test(all_frames_are_wanted_with_zero),
        cmocka_unit_test(without_a_chain_sixteen_frames_come),
        cmocka_unit_test(steps_behind_it_reach_every_frame),
        cmocka_unit_test(chains_that_make_no_sense_are_refused),
        cmocka_unit_test(a_bad_video_is_a_status_and_the_next_one_is_decoded),
        cmocka_unit_test(after_the_first_sample_nothing_of_ours_is_allocated),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
