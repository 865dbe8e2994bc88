/* The parts that attribution is made of: unions of kernels, stacks, series, quantiles, gaps. */
#include "base/testing.h"

#include <math.h>

#include "watch/busy_line.h"
#include "watch/call_tree.h"
#include "watch/durations.h"
#include "watch/excerpt.h"
#include "watch/gap_list.h"
#include "watch/loader_facts.h"
#include "watch/series_bins.h"
#include "watch/time_list.h"

static void kernel(struct busy_line *line, uint64_t start, uint64_t end)
{
    assert_int_equal(busy_line_add(line, start, end, NULL), STK_OK);
}

static uint64_t gaps_sum(const struct busy_line *line, uint64_t *count)
{
    uint64_t idle = 0;
    *count = 0;
    for (size_t i = 0; i < line->gaps.count; i++) {
        const struct busy_gap *gap = time_list_at(&line->gaps, i);
        idle += gap->idle;
        *count += gap->count;
    }
    return idle;
}

static void kernels_of_several_streams_are_one_line(void **state)
{
    (void)state;
    struct busy_line line = {.origin = 1000000};
    uint64_t count;
    kernel(&line, 5000000, 6000000);
    kernel(&line, 2000000, 3000000);
    kernel(&line, 2500000, 3500000); /* overlaps it */
    kernel(&line, 5200000, 5300000); /* lies in it */
    assert_int_equal(busy_line_close(&line, NULL), STK_OK);
    assert_int_equal(gaps_sum(&line, &count), 1000000 + 1500000);
    assert_int_equal(count, 2);
    assert_int_equal(line.first, 2000000);
    kernel(&line, 4000000, 4000500); /* late: splits a gap in two */
    assert_int_equal(busy_line_close(&line, NULL), STK_OK);
    assert_int_equal(gaps_sum(&line, &count), 1000000 + 1499500);
    assert_int_equal(count, 3);
    busy_line_reset(&line);
}

static void small_gaps_are_kept_together(void **state)
{
    (void)state;
    struct busy_line line = {0};
    uint64_t count;
    for (uint64_t i = 0; i < 10000; i++) /* 100 ms */
        kernel(&line, i * 10000 + 3000, i * 10000 + 10000);
    assert_int_equal(busy_line_close(&line, NULL), STK_OK);
    assert_int_equal(gaps_sum(&line, &count), 10000 * 3000);
    assert_int_equal(count, 10000);
    assert_true(line.gaps.count <= 101);
    busy_line_reset(&line);
}

static void frame(struct call_tree *tree, struct call_frames *frames, uint32_t id, uint32_t parent,
                  const char *function, const char *file)
{
    char room[256];
    struct record_frame *record = (struct record_frame *)(void *)room;
    memset(room, 0, sizeof room);
    record->id = id;
    record->parent = parent;
    record->line = 10 * id;
    record->function_len = (uint16_t)strlen(function);
    record->file_len = (uint16_t)strlen(file);
    memcpy(record->text, function, strlen(function));
    memcpy(record->text + strlen(function), file, strlen(file));
    assert_int_equal(call_tree_frame(tree, frames, record, NULL), STK_OK);
}

static void a_stack_is_named_by_the_innermost_function_of_the_user(void **state)
{
    (void)state;
    struct call_tree tree;
    struct call_frames frames = {0}, others = {0};
    assert_int_equal(call_tree_init(&tree, NULL), STK_OK);
    frame(&tree, &frames, 1, 0, "main", "train.py");
    frame(&tree, &frames, 2, 1, "blur", "filters.py");
    frame(&tree, &frames, 3, 2, "gaussian_filter", "site-packages/scipy/ndimage/_filters.py");
    frame(&tree, &frames, 4, 1, "_call_impl", "site-packages/torch/nn/modules/module.py");
    frame(&tree, &frames, 5, 4, "forward", "model.py");
    frame(&tree, &others, 1, 0, "run", "python3.11/threading.py");
    const struct call_place *place = &tree.places[call_tree_find(&frames, 3).place];
    assert_string_equal(call_tree_text(&tree, place->function), "blur");
    assert_int_equal(place->line, 20);
    assert_false(call_tree_find(&frames, 3).flags & FRAME_TORCH);
    assert_true(call_tree_find(&frames, 5).flags & FRAME_TORCH);
    place = &tree.places[call_tree_find(&others, 1).place]; /* nothing of the user's: itself */
    assert_string_equal(call_tree_text(&tree, place->function), "run");
    assert_true(call_tree_find(&others, 1).flags & FRAME_WAITS);
    assert_int_equal(call_tree_find(&frames, 99).place, 0);

    call_tree_count(&tree, CALL_MAIN, call_tree_find(&frames, 3).node, 300, 200);
    call_tree_count(&tree, CALL_MAIN, call_tree_find(&frames, 5).node, 100, 100);
    struct summary_tree out;
    assert_int_equal(call_tree_summary(&tree, CALL_MAIN, &out, NULL), STK_OK);
    assert_int_equal(out.count, 6); /* with the root, without the other process's */
    assert_int_equal(out.nodes[0].ns, 400);
    assert_int_equal(out.nodes[out.nodes[0].first_child].cpu_ns, 300);
    struct summary summary = {.main_tree = out};
    summary_free(&summary);
    call_frames_reset(&frames);
    call_frames_reset(&others);
    call_tree_reset(&tree);
}

static void files_of_packages_are_not_the_users(void **state)
{
    (void)state;
    assert_true(call_file_is_users("train.py"));
    assert_true(call_file_is_users("/data/project/lib/blur.py"));
    assert_false(call_file_is_users("/opt/venv/lib/python3.12/site-packages/PIL/Image.py"));
    assert_false(call_file_is_users("site-packages/numpy/core.py"));
    assert_false(call_file_is_users("python3.11/queue.py"));
    assert_false(call_file_is_users("<frozen importlib._bootstrap>"));
    assert_false(call_file_is_users(""));
}

static void bins_double_when_there_are_too_many(void **state)
{
    (void)state;
    struct series_bins series;
    struct summary summary = {0};
    series_bins_init(&series, 0);
    const uint64_t second = 1000000000;
    assert_int_equal(series_spread(&series, SERIES_CPU, 0, 1000 * second, 500, NULL), STK_OK);
    assert_int_equal(series_value(&series, SERIES_RSS, 100 * second, 7, NULL), STK_OK);
    assert_int_equal(series_value(&series, SERIES_RSS, 100 * second, 9, NULL), STK_OK);
    assert_int_equal(series_summary(&series, 1, &summary, NULL), STK_OK);
    assert_int_equal(summary.bin_ns, second * 8 / 10);
    assert_int_equal(summary.bins, 1250);
    assert_true(summary.series[SERIES_CPU][3] > 0.499 && summary.series[SERIES_CPU][3] < 0.501);
    assert_true(isnan(summary.series[SERIES_RSS][0])); /* before the first value */
    assert_true(summary.series[SERIES_RSS][125] > 7.9 && summary.series[SERIES_RSS][125] < 8.1);
    assert_null(summary.series[SERIES_COMPUTE]);
    summary_free(&summary);
    series_bins_reset(&series);
}

static void quantiles_of_many_are_near_enough(void **state)
{
    (void)state;
    struct durations durations = {0};
    assert_int_equal(durations_at(&durations, 0.5), 0);
    for (uint64_t i = 0; i < 101; i++)
        durations_add(&durations, i);
    assert_int_equal(durations_at(&durations, 0.5), 50);
    for (uint64_t i = 0; i < 1000000; i++)
        durations_add(&durations, i % 1000);
    uint64_t median = durations_at(&durations, 0.5);
    assert_true(median > 400 && median < 600);
    assert_int_equal(durations.most, 999);
}

static void the_longest_gaps_are_kept_in_order_of_time(void **state)
{
    (void)state;
    struct gap_list list = {0};
    struct summary summary = {0};
    for (uint64_t i = 0; i < 1000; i++) {
        struct summary_gap gap = {.start = i * 100000, .ns = 1 + (i * 7919) % 1000};
        gap_list_add(&list, &gap, 1);
    }
    gap_list_add(&list, &(struct summary_gap){.ns = 50000}, 10); /* ten of 5 us */
    assert_int_equal(gap_list_summary(&list, &summary, NULL), STK_OK);
    assert_int_equal(summary.gap_total, 1010);
    assert_int_equal(summary.gap_sizes[0].count, 1010);
    assert_int_equal(summary.gap_count, GAPS_KEPT);
    for (size_t i = 0; i < summary.gap_count; i++) {
        assert_true(summary.gaps[i].ns > 1000 - GAPS_KEPT);
        assert_true(!i || summary.gaps[i].start > summary.gaps[i - 1].start);
    }
    summary_free(&summary);
}

static void a_loader_is_read_from_what_the_hook_says(void **state)
{
    (void)state;
    struct loader_facts facts = {0};
    const char *text = "{\"kind\":\"torch\",\"workers\":4,\"pin_memory\":true,\"samples\":null,"
                       "\"batch_size\":32,\"in_order\":false,\"line\":77,\"file\":\"train.py\"}";
    loader_facts_describe(&facts, text, strlen(text));
    loader_facts_describe(&facts, "{ cut short", 11); /* says nothing */
    assert_int_equal(facts.summary.workers, 4);
    assert_int_equal(facts.summary.pin_memory, 1);
    assert_int_equal(facts.summary.in_order, 0);
    assert_int_equal(facts.summary.line, 77);
    assert_string_equal(facts.summary.file, "train.py");
    const char *files = "{\"opens\":40000,\"folder\":\"/data\"}";
    loader_facts_files(&facts, files, strlen(files) - 1); /* cut short */
    assert_int_equal(facts.summary.opens, 0);
    loader_facts_files(&facts, files, strlen(files));
    assert_int_equal(facts.summary.opens, 40000);
    assert_string_equal(facts.summary.folder, "/data");
    loader_facts_reset(&facts);
}

static void lists_forget_and_find(void **state)
{
    (void)state;
    struct time_list list = {0};
    for (uint64_t i = 10; i-- > 0;) {
        struct stretch item = {i * 10, i * 10 + 5};
        assert_int_equal(time_list_add(&list, &item, sizeof item, NULL), STK_OK);
    }
    time_list_untangle(&list);
    assert_int_equal(time_list_from(&list, 41), 5);
    assert_int_equal(time_list_after(&list, 45), 5);
    assert_int_equal(time_list_cover(&list, 3, 22), 2 + 5 + 2);
    time_list_drop(&list, 45);
    assert_int_equal(list.count, 5);
    struct stretch inside = {51, 53}, across = {53, 58};
    assert_int_equal(time_list_add(&list, &inside, sizeof inside, NULL), STK_OK);
    assert_int_equal(time_list_add(&list, &across, sizeof across, NULL), STK_OK);
    time_list_untangle(&list);
    assert_int_equal(list.count, 6);
    assert_int_equal(time_list_stretch(&list, 1)->start, 55);
    time_list_reset(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_of_several_streams_are_one_line),
        cmocka_unit_test(small_gaps_are_kept_together),
        cmocka_unit_test(a_stack_is_named_by_the_innermost_function_of_the_user),
        cmocka_unit_test(files_of_packages_are_not_the_users),
        cmocka_unit_test(bins_double_when_there_are_too_many),
        cmocka_unit_test(quantiles_of_many_are_near_enough),
        cmocka_unit_test(the_longest_gaps_are_kept_in_order_of_time),
        cmocka_unit_test(a_loader_is_read_from_what_the_hook_says),
        cmocka_unit_test(lists_forget_and_find),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
