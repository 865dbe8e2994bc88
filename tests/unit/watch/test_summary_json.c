#include "base/testing.h"

#include <locale.h>

#include "base/json.h"
#include "watch/event.h"
#include "watch/summary_json.h"
#include "watch/summary_making.h"

#define WORKS(call) assert_int_equal((call), STK_OK)

static char *written(const struct made *made)
{
    struct verdict verdict;
    char *text;
    verdict_find(&verdict, &made->summary);
    WORKS(summary_json_write(&made->summary, &verdict, &text, NULL));
    return text;
}

static struct json *parsed(const struct made *made)
{
    struct json *json;
    struct stk_error err = {0};
    char *text = written(made);
    stk_status status = json_parse(&json, text, strlen(text), &err);
    if (status)
        print_error("%s at %llu\n%s\n", err.what, (unsigned long long)err.offset, text);
    memory_free(text);
    WORKS(status);
    return json;
}

static double number(const struct json *object, const char *name)
{
    double value = -12345;
    assert_true(json_double(json_member(object, name), &value));
    return value;
}

static const char *text_of(const struct json *object, const char *name)
{
    const char *text = "";
    assert_true(json_get_text(object, name, &text));
    return text;
}

static int is_null(const struct json *object, const char *name)
{
    return json_kind(json_member(object, name)) == JSON_KIND_NULL;
}

static void waiting(struct made *made)
{
    made_healthy(made);
    made_wait(made, 0, CAUSE_FETCH, 10);
    made_wait(made, 0, CAUSE_TRANSFORM, 30);
    made_function(made, CAUSE_TRANSFORM, "blur", 25);
    made_busy_workers(made);
    made_files(made, "jpg", 40000, 51000);
}

static void a_run_is_written_with_its_numbers(void **state)
{
    (void)state;
    struct made made;
    waiting(&made);
    struct json *run = parsed(&made);
    assert_true(number(run, "stoker_run") == 1);
    assert_string_equal(text_of(run, "mode"), "gpu");
    assert_true(number(run, "wall_s") == 110);
    assert_true(is_null(json_member(run, "exit"), "signal"));
    assert_string_equal(text_of(json_member(run, "machine"), "gpu"), "NVIDIA H200");
    assert_true(is_null(json_member(run, "machine"), "cupti"));
    const struct json *rank = json_item(json_member(run, "ranks"), 0);
    assert_true(is_null(rank, "rank"));
    assert_true(number(json_member(rank, "busy"), "compute") == 0.6);
    assert_true(number(rank, "idle_s") == 40 && number(rank, "samples_s") == 320);
    assert_true(number(json_member(rank, "step_s"), "median") == 0.1);
    const struct json *first = json_item(json_member(rank, "causes"), 0);
    assert_string_equal(text_of(first, "cause"), "input/transform");
    assert_true(number(first, "share") == 0.75 && number(first, "seconds") == 30);
    const struct json *function = json_item(json_member(first, "functions"), 0);
    assert_string_equal(text_of(function, "function"), "blur");
    assert_true(number(function, "line") == 31 && number(function, "seconds") == 25);
    assert_int_equal(json_count(json_member(rank, "causes")), 2);
    assert_true(is_null(run, "slowest_rank") && is_null(run, "what_if"));
    const struct json *loader = json_item(json_member(run, "loaders"), 0);
    assert_true(number(json_member(loader, "files"), "distinct") == 40000);
    const struct json *verdict = json_member(run, "verdict");
    assert_string_equal(text_of(verdict, "bound"), "input");
    assert_string_equal(text_of(verdict, "cause"), "input/transform");
    assert_string_equal(text_of(verdict, "gain_is"), "estimated");
    assert_true(json_count(json_member(verdict, "advice")) == 3);
    json_free(run);
}

static void shares_of_all_causes_add_up_to_one(void **state)
{
    (void)state;
    struct made made;
    double sum = 0, before = 2;
    made_healthy(&made);
    for (int i = 0; i < CAUSE_COUNT; i++)
        made_wait(&made, 0, (enum cause)i, 1 + (uint64_t)i % 5);
    struct json *run = parsed(&made);
    const struct json *causes = json_member(run, "causes");
    assert_int_equal(json_count(causes), CAUSE_COUNT);
    for (size_t i = 0; i < json_count(causes); i++) {
        double share = number(json_item(causes, i), "share");
        assert_true(share <= before);
        before = share;
        sum += share;
    }
    assert_true(sum > 0.9999 && sum < 1.0001);
    json_free(run);
}

static void what_was_not_told_of_a_process_is_null(void **state)
{
    (void)state;
    static const char *const io[] = {"read_bytes", "written_bytes", "read_calls_bytes",
                                     "write_calls_bytes"};
    struct made made;
    made_healthy(&made);
    made.summary.process_count = 2;
    made.processes[0].told = USE_STAT | USE_DELAY | USE_IO;
    made.processes[0].cpu_ns = SECOND;
    made.processes[0].minor_faults = 7;
    made.processes[0].written_bytes = 40;
    made.processes[1].told = USE_BLOCK;
    made.processes[1].block_ns = 2 * SECOND;
    struct json *run = parsed(&made);
    const struct json *first = json_item(json_member(run, "processes"), 0);
    const struct json *second = json_item(json_member(run, "processes"), 1);
    assert_true(number(first, "cpu_s") == 1 && number(first, "run_delay_s") == 0);
    assert_true(number(first, "minor_faults") == 7 && number(first, "written_bytes") == 40);
    assert_true(is_null(first, "io_wait_s") && number(second, "io_wait_s") == 2);
    assert_true(is_null(second, "cpu_s") && is_null(second, "run_delay_s"));
    assert_true(is_null(second, "major_faults") && is_null(second, "max_rss_bytes"));
    for (size_t i = 0; i < sizeof io / sizeof io[0]; i++)
        assert_true(number(first, io[i]) >= 0 && is_null(second, io[i]));
    json_free(run);
}

static void threads_and_the_machine_are_told_with_their_use(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    made.summary.machine_io =
        (struct summary_machine_io){.told = MACHINE_NETWORK, .network_out = 9};
    made.summary.device_count = 1;
    made.summary.devices[0] = (struct summary_device){.device = 3, .pcie_in = {1, 5, 8}};
    made.summary.thread_count = 1;
    made.summary.threads[0] = (struct summary_thread){
        .pid = 100, .thread = 103, .name = "a\"b", .cpu_ns = SECOND, .run_delay_ns = 5 * MILLI};
    struct json *run = parsed(&made);
    const struct json *thread = json_item(json_member(run, "threads"), 0);
    assert_true(number(thread, "pid") == 100 && number(thread, "thread") == 103);
    assert_string_equal(text_of(thread, "name"), "a\"b");
    const struct json *device = json_item(json_member(run, "devices"), 0);
    assert_true(number(device, "device") == 3);
    assert_true(number(json_member(device, "pcie_received_bytes_s"), "mean") == 5);
    assert_true(number(json_member(device, "pcie_received_bytes_s"), "peak") == 8);
    assert_true(is_null(json_member(device, "pcie_sent_bytes_s"), "mean"));
    assert_true(is_null(json_member(device, "pcie_sent_bytes_s"), "peak"));
    assert_true(is_null(json_member(run, "machine_io"), "disk_read_bytes"));
    assert_true(is_null(json_member(run, "machine_io"), "disk_written_bytes"));
    assert_true(number(json_member(run, "machine_io"), "network_received_bytes") == 0);
    assert_true(number(json_member(run, "machine_io"), "network_sent_bytes") == 9);
    assert_true(number(thread, "cpu_s") == 1 && number(thread, "run_delay_s") == 0.005);
    json_free(run);
}

static void functions_of_several_ranks_are_one(void **state)
{
    (void)state;
    struct made made;
    waiting(&made);
    made.summary.rank_count = 2;
    made_wait(&made, 1, CAUSE_TRANSFORM, 30);
    made.ranks[1].causes[CAUSE_TRANSFORM].functions[0] =
        made.ranks[0].causes[CAUSE_TRANSFORM].functions[0];
    struct json *run = parsed(&made);
    const struct json *first = json_item(json_member(run, "causes"), 0);
    assert_int_equal(json_count(json_member(first, "functions")), 1);
    assert_true(number(json_item(json_member(first, "functions"), 0), "seconds") == 50);
    json_free(run);
}

static void secrets_of_the_command_are_hidden(void **state)
{
    (void)state;
    static char *command[] = {"python",         "train.py",     "--api-key",   "abc",
                              "--apikey=def",   "HF_TOKEN=ghi", "--tokenizer", "gpt2",
                              "--max-tokens",   "512",          "--password",  "--lr",
                              "s3://u:jkl@h/x", "--monkey",     "mno",         NULL};
    static const char *const shown[] = {"python",         "train.py",     "--api-key",   "***",
                                        "--apikey=***",   "HF_TOKEN=***", "--tokenizer", "gpt2",
                                        "--max-tokens",   "512",          "--password",  "--lr",
                                        "s3://u:***@h/x", "--monkey",     "mno"};
    struct made made;
    made_healthy(&made);
    made.summary.command = command;
    snprintf(made.processes[0].name, sizeof made.processes[0].name,
             "python train.py --secret pqr x");
    struct json *run = parsed(&made);
    const struct json *list = json_member(run, "command");
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        const char *word = "";
        assert_true(json_text(json_item(list, i), &word));
        assert_string_equal(word, shown[i]);
    }
    assert_string_equal(text_of(json_item(json_member(run, "processes"), 0), "name"),
                        "python train.py --secret *** x");
    json_free(run);
}

static void names_with_quotes_and_bad_bytes_are_escaped(void **state)
{
    (void)state;
    struct made made;
    waiting(&made);
    made_function(&made, CAUSE_TRANSFORM, "<b>\"\\\n\xff</b>", 25);
    struct json *run = parsed(&made);
    const struct json *first = json_item(json_member(run, "causes"), 0);
    assert_string_equal(text_of(json_item(json_member(first, "functions"), 0), "function"),
                        "<b>\"\\\n\xef\xbf\xbd</b>");
    json_free(run);
}

static void trees_are_nested_and_what_is_small_or_deep_is_left_out(void **state)
{
    (void)state;
    enum { DEEP = 3000 };
    static struct summary_node nodes[DEEP];
    struct made made;
    made_healthy(&made);
    for (uint32_t i = 0; i < DEEP; i++)
        nodes[i] = (struct summary_node){.function = "f",
                                         .ns = 10 * SECOND,
                                         .cpu_ns = SECOND,
                                         .first_child = i + 1 < DEEP ? i + 1 : 0};
    nodes[1].next_sibling = 2000;
    nodes[2000].ns = 1000; /* too small to be drawn */
    made.summary.main_tree = (struct summary_tree){nodes, DEEP};
    struct json *run = parsed(&made);
    const struct json *node = json_member(json_member(run, "functions"), "main");
    assert_true(is_null(json_member(run, "functions"), "workers"));
    assert_int_equal(json_count(json_member(node, "children")), 1);
    size_t depth = 0;
    for (; node; depth++)
        node = json_item(json_member(node, "children"), 0);
    assert_true(depth > 50 && depth < 200);
    json_free(run);
}

static void series_and_lanes_are_written_as_they_were_seen(void **state)
{
    (void)state;
    struct made made;
    struct summary_slice slices[] = {{SECOND, SECOND + 1500, "gemm"}};
    struct summary_lane lane = {"GPU 0, stream 7", slices, 1};
    float busy[] = {0.25f, 0.123456f}, rss[] = {1e9f, 2e9f};
    double value = 0;
    made_healthy(&made);
    made.summary.series[SERIES_COMPUTE] = busy;
    made.summary.series[SERIES_RSS] = rss;
    made.summary.bins = 2;
    made.summary.bin_ns = SECOND;
    made.summary.lanes = &lane;
    made.summary.lane_count = 1;
    struct json *run = parsed(&made);
    const struct json *series = json_member(run, "series");
    assert_int_equal(json_count(series), 3); /* bin_s too */
    assert_true(json_double(json_item(json_member(series, "compute"), 1), &value));
    assert_true(value == 0.1235);
    const struct json *slice = json_item(
        json_member(json_item(json_member(json_member(run, "timeline"), "lanes"), 0), "slices"), 0);
    assert_true(json_double(json_item(slice, 1), &value) && value == 1.000002);
    json_free(run);
}

static void numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    struct made made;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        skip();
    waiting(&made);
    json_free(parsed(&made));
    setlocale(LC_ALL, "C");
}

/* A second run of 500 steps of 50 ms, and 5 seconds of its own for the first batches. */
static char *replayed(void)
{
    struct made made;
    made_healthy(&made);
    made.ranks[0].end = 35 * SECOND;
    made.ranks[0].steps = 500;
    made.ranks[0].compute_ns = 30 * SECOND;
    made.ranks[0].step_median_ns = 50 * MILLI;
    made_wait(&made, 0, CAUSE_START, 5);
    return written(&made);
}

static void a_replay_tells_what_free_input_gains(void **state)
{
    (void)state;
    struct made made;
    struct summary_what_if what_if;
    char *text = replayed();
    waiting(&made); /* 1,000 steps in 100 s */
    WORKS(summary_json_read_what_if(text, &made.summary, &what_if, NULL));
    assert_true(what_if.measured && what_if.steps == 500);
    assert_true(what_if.step_median_ns == 50 * MILLI);
    assert_true(what_if.gain > 1.999 && what_if.gain < 2.001);
    memory_free(text);
    made.what_if = what_if;
    made.summary.what_if = &made.what_if;
    struct json *run = parsed(&made);
    assert_true(number(json_member(run, "what_if"), "gain") == 2);
    assert_string_equal(text_of(json_member(run, "verdict"), "gain_is"), "measured");
    json_free(run);
}

static void a_file_cut_short_or_of_another_version_is_refused_in_words(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "", "{", "{}", "[1]", "{\"stoker_run\": \"one\"}", "{\"stoker_run\": 1, \"ranks\": []}"};
    struct made made;
    struct summary_what_if what_if = {.measured = 1};
    struct stk_error err;
    waiting(&made);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(summary_json_read_what_if(bad[i], &made.summary, &what_if, &err),
                         STK_CORRUPT);
        assert_false(what_if.measured);
        assert_true(strlen(err.what) > 10);
    }
    assert_int_equal(
        summary_json_read_what_if("{\"stoker_run\": 7}", &made.summary, &what_if, &err),
        STK_CORRUPT);
    assert_string_equal(err.what, "this run file is of version 7, and this Stoker reads version 1");
    char *text = replayed();
    for (size_t len = 0; len < strlen(text) - 2; len += 97) {
        char *cut = memory_text(text, len);
        assert_int_equal(summary_json_read_what_if(cut, &made.summary, &what_if, &err),
                         STK_CORRUPT);
        assert_true(strlen(err.remedy) > 10);
        memory_free(cut);
    }
    memory_free(text);
}

static int write_a_run(void *user)
{
    struct verdict verdict;
    char *text;
    verdict_find(&verdict, user);
    if (summary_json_write(user, &verdict, &text, NULL)) {
        assert_null(text);
        return 0;
    }
    memory_free(text);
    return 1;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    struct made made;
    waiting(&made);
    made.loader.extension[0] = '\0'; /* snippets are left out when there is no memory for them */
    fail_each_allocation(write_a_run, &made.summary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_is_written_with_its_numbers),
        cmocka_unit_test(shares_of_all_causes_add_up_to_one),
        cmocka_unit_test(what_was_not_told_of_a_process_is_null),
        cmocka_unit_test(threads_and_the_machine_are_told_with_their_use),
        cmocka_unit_test(functions_of_several_ranks_are_one),
        cmocka_unit_test(secrets_of_the_command_are_hidden),
        cmocka_unit_test(names_with_quotes_and_bad_bytes_are_escaped),
        cmocka_unit_test(trees_are_nested_and_what_is_small_or_deep_is_left_out),
        cmocka_unit_test(series_and_lanes_are_written_as_they_were_seen),
        cmocka_unit_test(numbers_do_not_follow_the_locale),
        cmocka_unit_test(a_replay_tells_what_free_input_gains),
        cmocka_unit_test(a_file_cut_short_or_of_another_version_is_refused_in_words),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
