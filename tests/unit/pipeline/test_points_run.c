/* test_points_run.c -- clouds through a pipeline: how many points, which, and what is padding. */
#include <math.h>

#include "base/fail.h"
#include "base/npy_header.h"
#include "base/random.h"
#include "codec/points_maker.h"
#include "pipeline/pipeline.h"

enum { POINTS = 500 };

struct work {
    struct pipeline *pipeline;
    struct pipeline_state *state;
    struct stk_flow result;
    struct stk_error err;
};

static void work_new(struct work *work, const char *chain)
{
    struct pipeline_options options = {.chain = chain, .media = STK_MEDIA_POINTS};
    *work = (struct work){0};
    stk_status status = pipeline_new(&work->pipeline, &options, &work->err);
    if (status)
        fprintf(stderr, "%s\n", work->err.what);
    assert_int_equal(status, STK_OK);
    assert_int_equal(pipeline_state_new(&work->state, NULL), STK_OK);
}

static stk_status work_run(struct work *work, struct blob *blob, uint64_t key)
{
    struct pipeline_input input = {.bytes = blob_bytes(blob), .key = key};
    work->result = (struct stk_flow){0};
    return pipeline_run(work->pipeline, work->state, &input, &work->result, &work->err);
}

static void work_free(struct work *work)
{
    pipeline_state_free(work->state);
    pipeline_free(work->pipeline);
}

/* Column 3 of point i is i. */
static void bin_make(struct blob *blob, int count)
{
    for (int i = 0; i < count; i++) {
        float row[] = {(float)i * 0.5f, -(float)i, 7, (float)i};
        blob_add(blob, row, sizeof row);
    }
}

static const float *row_of(const struct work *work, int64_t i)
{
    return (const float *)work->result.tensor.data + i * work->result.tensor.shape[1];
}

static void a_cloud_without_a_chain_is_decoded_whole(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    bin_make(&blob, POINTS);
    work_new(&work, NULL);
    assert_int_equal(pipeline_out(work.pipeline)->tensor.shape[0], -1);
    assert_false(pipeline_pads(work.pipeline));
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.tensor.shape[0], POINTS);
    assert_int_equal(work.result.tensor.shape[1], 4);
    assert_int_equal(work.result.real, -1);
    assert_memory_equal(work.result.tensor.data, blob.data, blob.len);
    work_free(&work);
    blob_free(&blob);
}

static void a_fixed_count_is_a_seeded_choice_in_order(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    float first[64];
    bin_make(&blob, POINTS);
    work_new(&work, "DecodePoints(count=64)");
    assert_int_equal(pipeline_out(work.pipeline)->tensor.shape[0], 64);
    assert_true(pipeline_pads(work.pipeline));
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.tensor.shape[0], 64);
    assert_int_equal(work.result.real, 64);
    for (int i = 0; i < 64; i++) {
        const float *row = row_of(&work, i);
        first[i] = row[3];
        assert_true(i == 0 || first[i - 1] < first[i]);
        assert_true(row[0] == row[3] * 0.5f && row[1] == -row[3] && row[2] == 7);
    }
    assert_true(first[63] > 64);
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    for (int i = 0; i < 64; i++)
        assert_true(row_of(&work, i)[3] == first[i]);
    assert_int_equal(work_run(&work, &blob, 2), STK_OK);
    int same = 0;
    for (int i = 0; i < 64; i++)
        same += row_of(&work, i)[3] == first[i];
    assert_true(same < 60);
    work_free(&work);
    blob_free(&blob);
}

static void the_first_points_are_taken_where_asked(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    bin_make(&blob, POINTS);
    work_new(&work, "DecodePoints(3, 10, sample='first')");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.tensor.shape[1], 3);
    for (int i = 0; i < 10; i++)
        assert_true(row_of(&work, i)[1] == -(float)i);
    work_free(&work);
    blob_free(&blob);
}

static void fewer_points_are_padded_or_repeated(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    int seen[5] = {0};
    bin_make(&blob, 5);
    work_new(&work, "DecodePoints(count=50)");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.real, 5);
    for (int i = 0; i < 50; i++)
        assert_true(row_of(&work, i)[2] == (i < 5 ? 7 : 0));
    work_free(&work);
    work_new(&work, "DecodePoints(count=50, pad=False)");
    assert_false(pipeline_pads(work.pipeline));
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.real, -1);
    for (int i = 0; i < 50; i++) {
        assert_true(i >= 5 || row_of(&work, i)[3] == (float)i);
        seen[(int)row_of(&work, i)[3]]++;
    }
    for (int i = 0; i < 5; i++)
        assert_true(seen[i] >= 2);
    work_free(&work);
    blob_free(&blob);
}

static void a_cloud_without_points_can_only_be_padded(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    blob_text(&blob, "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nPOINTS 0\nDATA ascii\n");
    work_new(&work, "DecodePoints(count=4)");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.real, 0);
    work_free(&work);
    work_new(&work, "DecodePoints(count=4, pad=False)");
    assert_int_equal(work_run(&work, &blob, 1), STK_SHAPE);
    assert_non_null(strstr(work.err.remedy, "pad=True"));
    work_free(&work);
    work_new(&work, "DecodePoints | Rotate | Jitter | Drop(replace=False)");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.tensor.shape[0], 0);
    work_free(&work);
    blob_free(&blob);
}

static void nan_points_are_kept_unless_dropped(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    bin_make(&blob, 40);
    for (int i = 0; i < 40; i += 4)
        memcpy(blob.data + i * 16 + i % 3 * 4, &(uint32_t){0x7fc12345}, 4);
    memcpy(blob.data + 5 * 16 + 12, &(uint32_t){0x7fc12345}, 4); /* no coordinate */
    work_new(&work, "DecodePoints(nan='keep')");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_memory_equal(work.result.tensor.data, blob.data, blob.len);
    work_free(&work);
    work_new(&work, "DecodePoints(nan=drop)");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.tensor.shape[0], 30);
    work_free(&work);
    work_new(&work, "DecodePoints(columns=2, count=20, nan=drop)");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.real, 20);
    for (int i = 0; i < 20; i++)
        assert_true((int)-row_of(&work, i)[1] % 4 != 0);
    work_free(&work);
    work_new(&work, "DecodePoints(count=35, nan=drop)");
    assert_int_equal(work_run(&work, &blob, 1), STK_OK);
    assert_int_equal(work.result.real, 30);
    work_free(&work);
    blob_free(&blob);
}

static void more_columns_than_stored_are_refused(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    bin_make(&blob, 3);
    work_new(&work, "DecodePoints(columns=5)");
    assert_int_equal(work_run(&work, &blob, 1), STK_SHAPE);
    assert_non_null(strstr(work.err.what, "4 columns, 5 are wanted"));
    work_free(&work);
    blob_free(&blob);
}

/* Straight into the batch when no step follows, through the last step when one does. */
static void a_result_lands_in_its_place(void **state)
{
    (void)state;
    static const char *const chains[] = {"DecodePoints(4, 64)",
                                         "DecodePoints(4, 64) | Rotate | Scale"};
    struct blob blob = {0};
    float place[64 * 4];
    bin_make(&blob, POINTS);
    for (int i = 0; i < 2; i++) {
        struct work work;
        struct pipeline_input input = {.bytes = blob_bytes(&blob), .key = 9};
        work_new(&work, chains[i]);
        memset(place, 0xff, sizeof place);
        work.result.tensor = pipeline_out(work.pipeline)->tensor;
        work.result.tensor.data = place;
        assert_int_equal(pipeline_run(work.pipeline, work.state, &input, &work.result, &work.err),
                         STK_OK);
        assert_ptr_equal(work.result.tensor.data, place);
        for (int k = 0; k < 64 * 4; k++)
            assert_false(isnan(place[k]));
        work_free(&work);
    }
    blob_free(&blob);
}

static int nth_hook_count(void *user, size_t size)
{
    (void)size;
    ++*(int *)user;
    return 0;
}

static void a_warm_pipeline_allocates_nothing(void **state)
{
    (void)state;
    struct work work;
    struct blob blob = {0};
    int calls = 0;
    bin_make(&blob, POINTS);
    work_new(&work, "DecodePoints(count=64) | Rotate | Scale | Jitter | Drop | Noise");
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(work_run(&work, &blob, i), STK_OK);
    memory_set_hook(nth_hook_count, &calls);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(work_run(&work, &blob, i), STK_OK);
    memory_set_hook(NULL, NULL);
    assert_int_equal(calls, 0);
    work_free(&work);
    blob_free(&blob);
}

static int run_once(void *user)
{
    struct pipeline_options options = {.chain = "DecodePoints(count=8, nan=drop) | Jitter | Drop",
                                       .media = STK_MEDIA_POINTS};
    struct pipeline *pipeline = NULL;
    struct pipeline_state *state = NULL;
    struct stk_flow result = {0};
    struct stk_error err = {0};
    struct pipeline_input input = {.bytes = *(struct stk_bytes *)user};
    stk_status status = pipeline_new(&pipeline, &options, &err);
    if (!status)
        status = pipeline_state_new(&state, &err);
    if (!status)
        status = pipeline_run(pipeline, state, &input, &result, &err);
    pipeline_state_free(state);
    pipeline_free(pipeline);
    assert_true(!status || status == STK_MEMORY);
    return !status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct blob blob = {0};
    bin_make(&blob, 50);
    struct stk_bytes bytes = blob_bytes(&blob);
    fail_each_allocation(run_once, &bytes);
    blob_free(&blob);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cloud_without_a_chain_is_decoded_whole),
        cmocka_unit_test(a_fixed_count_is_a_seeded_choice_in_order),
        cmocka_unit_test(the_first_points_are_taken_where_asked),
        cmocka_unit_test(fewer_points_are_padded_or_repeated),
        cmocka_unit_test(a_cloud_without_points_can_only_be_padded),
        cmocka_unit_test(nan_points_are_kept_unless_dropped),
        cmocka_unit_test(more_columns_than_stored_are_refused),
        cmocka_unit_test(a_result_lands_in_its_place),
        cmocka_unit_test(a_warm_pipeline_allocates_nothing),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
