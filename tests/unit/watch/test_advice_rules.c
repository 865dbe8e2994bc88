#include "base/testing.h"

#include "watch/advice_rules.h"
#include "watch/summary_making.h"

#define ROOM 32

/* The advice of a rule; NULL: it was not given. */
static const struct advice *advised(const struct made *made, const char *rule)
{
    static struct advice found[ROOM];
    size_t count = advice_find(&made->summary, found, ROOM);
    for (size_t i = 0; i < count; i++)
        if (strcmp(found[i].rule, rule) == 0)
            return &found[i];
    return NULL;
}

static const struct advice *against(const struct made *made, const char *rule)
{
    static struct advice found[ROOM];
    size_t count = advice_against(&made->summary, found, ROOM);
    for (size_t i = 0; i < count; i++)
        if (strcmp(found[i].rule, rule) == 0)
            return &found[i];
    return NULL;
}

/* --- a run in which each rule applies, and what must change for it not to ------------------------
 */

static void slow_transform(struct made *made)
{
    made_wait(made, 0, CAUSE_TRANSFORM, 60);
    made_function(made, CAUSE_TRANSFORM, "blur", 55);
    made_busy_workers(made);
}
static void no_cpu_is_free(struct made *made)
{
    made->summary.own_cpu_share = 0.99;
}
static void no_workers(struct made *made)
{
    slow_transform(made);
    made->loader.workers = 0;
    made->loader.fetch_ns = 58 * SECOND;
    made->loader.fetch_cpu_ns = 58 * SECOND;
    made->summary.own_cpu_share = 0.125;
}
static void it_has_workers(struct made *made)
{
    made->loader.workers = 2;
}
static void sixteen_workers(struct made *made)
{
    slow_transform(made);
    made->loader.workers = 16;
    made->processes[0].run_delay_ns = 20 * SECOND;
}
static void the_loop_has_its_cpu(struct made *made)
{
    made->processes[0].run_delay_ns = SECOND;
}
static void workers_start_each_epoch(struct made *made)
{
    made_wait(made, 0, CAUSE_START, 30);
    made->loader.starts = made->loader.epochs = 10;
}
static void workers_stay(struct made *made)
{
    made->loader.persistent_workers = 1;
}
static void epochs_start_slowly(struct made *made)
{
    workers_start_each_epoch(made);
    made->loader.persistent_workers = 1;
    made->loader.starts = 1;
}
static void there_is_one_epoch(struct made *made)
{
    made->loader.epochs = 1;
}
static void there_is_no_gpu(struct made *made)
{
    made->summary.mode = WATCH_CPU;
}
static void transform_without_gpu(struct made *made)
{
    slow_transform(made);
    there_is_no_gpu(made);
}
static void the_function_takes_little(struct made *made)
{
    made_function(made, CAUSE_TRANSFORM, "blur", 1);
}
static void transform_on_main(struct made *made)
{
    slow_transform(made);
    made->main_nodes[1] = (struct summary_node){.function = (char *)(uintptr_t) "blur",
                                                .file = (char *)(uintptr_t) "/src/train.py",
                                                .ns = 55 * SECOND};
    made->summary.main_tree = (struct summary_tree){made->main_nodes, 2};
}
static void it_is_in_the_workers(struct made *made)
{
    made->worker_nodes[1] = made->main_nodes[1];
    made->worker_nodes[1].ns *= 2;
    made->summary.worker_tree = (struct summary_tree){made->worker_nodes, 2};
}
static void no_loader(struct made *made)
{
    slow_transform(made);
    made->summary.loader_count = 0;
}
static void there_is_a_loader(struct made *made)
{
    made->summary.loader_count = 1;
}
static void small_files(struct made *made)
{
    made_wait(made, 0, CAUSE_FETCH, 50);
    made_busy_workers(made);
    made->loader.fetch_cpu_ns = 20 * SECOND;
    made_files(made, "jpg", 40000, 51000);
}
static void files_are_large(struct made *made)
{
    made_files(made, "jpg", 400, 5100000);
}
static void reading_is_quick(struct made *made)
{
    made->ranks[0].causes[CAUSE_OTHER].ns += 49 * SECOND;
    made->ranks[0].causes[CAUSE_FETCH].ns -= 49 * SECOND;
}
static void uneven_batches(struct made *made)
{
    made_wait(made, 0, CAUSE_TRANSFORM, 20);
    made_busy_workers(made);
    made->loader.idle_ns = 100 * SECOND;
    made->loader.fetch_max_ns = 2 * SECOND;
}
static void workers_are_never_idle(struct made *made)
{
    made->loader.idle_ns = 0;
}
static void it_is_a_stoker_loader(struct made *made)
{
    snprintf(made->loader.kind, sizeof made->loader.kind, "stoker");
}
static void memory_is_short(struct made *made)
{
    made_wait(made, 0, CAUSE_FETCH, 30);
    made->processes[0].major_faults = 100000;
}
static void memory_is_not_short(struct made *made)
{
    made->processes[0].major_faults = 100;
}
static void rest_of(struct made *made, enum cause cause)
{
    made_wait(made, 0, cause, 30);
}
static void none_of(struct made *made, enum cause cause)
{
    made->ranks[0].causes[CAUSE_OTHER].ns += made->ranks[0].causes[cause].ns;
    made->ranks[0].causes[cause].ns = 0;
}
#define SIMPLE(cause)                                                                              \
    static void much_##cause(struct made *made)                                                    \
    {                                                                                              \
        rest_of(made, CAUSE_##cause);                                                              \
    }                                                                                              \
    static void no_##cause(struct made *made)                                                      \
    {                                                                                              \
        none_of(made, CAUSE_##cause);                                                              \
    }
SIMPLE(COLLATE)
SIMPLE(SLOW_SAMPLE)
SIMPLE(SYNC)
SIMPLE(LAUNCH)
SIMPLE(GIL)
SIMPLE(CHECKPOINT)
SIMPLE(VALIDATION)

static void pageable_copies(struct made *made)
{
    made_wait(made, 0, CAUSE_COPY, 30);
    made->ranks[0].copied_bytes = UINT64_C(9000000000);
    made->ranks[0].pageable_bytes = UINT64_C(8000000000);
}
static void pinned_copies(struct made *made)
{
    pageable_copies(made);
    made->ranks[0].pageable_bytes = 0;
}
static void all_is_pinned(struct made *made)
{
    made->ranks[0].pageable_bytes = 0;
}
static void some_is_pageable(struct made *made)
{
    made->ranks[0].pageable_bytes = made->ranks[0].copied_bytes;
}
static void the_gpu_is_hot(struct made *made)
{
    static const float clocks[] = {1980, 1000, 1000, 1000};
    memcpy(made->clocks, clocks, sizeof clocks);
    made->summary.series[SERIES_GPU_CLOCK] = made->clocks;
    made->summary.bins = 4;
    made->summary.throttle = 0x40;
}
static void the_gpu_is_cool(struct made *made)
{
    made->summary.throttle = 0x4; /* a power cap is no fault */
}
static void others_use_the_cpus(struct made *made)
{
    made_wait(made, 0, CAUSE_CONTENTION, 30);
    made->summary.foreign_cpu_share = 0.5;
}
static void nobody_else_runs(struct made *made)
{
    made->summary.foreign_cpu_share = 0.01;
}
static void rank_one_is_slow(struct made *made)
{
    made->summary.rank_count = 3;
    made->ranks[0].rank = 0;
    made_wait(made, 0, CAUSE_RANK, 40);
    made_wait(made, 2, CAUSE_RANK, 40);
}
static void all_ranks_wait_alike(struct made *made)
{
    made_wait(made, 1, CAUSE_RANK, 40);
}
static void all_is_well(struct made *made)
{
    (void)made;
}
static void it_waits_for_input(struct made *made)
{
    slow_transform(made);
}

static const struct {
    const char *rule;
    void (*make)(struct made *made);
    void (*unless)(struct made *made);
    const char *action, *why; /* words that must be there */
} cases[] = {
    {"more-workers", slow_transform, no_cpu_is_free, "num_workers=6", "5.6 of 8 CPUs are free"},
    {"use-workers", no_workers, it_has_workers, "persistent_workers=True", "num_workers=0"},
    {"fewer-workers", sixteen_workers, the_loop_has_its_cpu, "num_workers=7", "16 workers for 8"},
    {"persistent-workers", workers_start_each_epoch, workers_stay, "persistent_workers=True",
     "started 10 times, and that took 30 s, 30 %"},
    {"epoch-start", epochs_start_slowly, there_is_one_epoch, "__iter__", "10 epochs"},
    {"transform-to-gpu", slow_transform, there_is_no_gpu, "Move blur (train.py:31) to the GPU",
     "55 s, 55 %"},
    {"transform-vectorise", transform_without_gpu, the_function_takes_little, "blur (train.py:31)",
     "55 s"},
    {"main-thread-transform", transform_on_main, it_is_in_the_workers, "Move blur (train.py:31)",
     "on the main thread"},
    {"use-a-loader", no_loader, there_is_a_loader, "put blur (train.py:31) into", "No loader"},
    {"shard-small-files", small_files, files_are_large, "the 40,000 files in /data/photos",
     "51 KB each"},
    {"faster-storage", small_files, reading_is_quick, "local disk", "50 s"},
    {"prefetch-factor", uneven_batches, workers_are_never_idle, "prefetch_factor=8", "33 %"},
    {"use-stoker", small_files, it_is_a_stoker_loader, "Stoker", "40,000 files (.jpg)"},
    {"memory-pressure", memory_is_short, memory_is_not_short, "memory", "100,000 times"},
    {"collate", much_COLLATE, no_COLLATE, "torch.stack", "30 s, 30 %"},
    {"slow-sample", much_SLOW_SAMPLE, no_SLOW_SAMPLE, "in_order=False", "60 ms"},
    {"pin-memory", pageable_copies, all_is_pinned, "pin_memory=True", "8.0 GB of 9.0 GB"},
    {"overlap-copy", pinned_copies, some_is_pageable, "non_blocking=True", "9.0 GB"},
    {"sync", much_SYNC, no_SYNC, ".item()", "30 s"},
    {"cuda-graphs", much_LAUNCH, no_LAUNCH, "torch.compile", "30 s"},
    {"throttle", the_gpu_is_hot, the_gpu_is_cool, "cooling", "too hot"},
    {"gil", much_GIL, no_GIL, "Python threads", "30 s"},
    {"checkpoint-async", much_CHECKPOINT, no_CHECKPOINT, "async_save", "30 s"},
    {"validation-less-often", much_VALIDATION, no_VALIDATION, "less often", "30 s"},
    {"noisy-neighbour", others_use_the_cpus, nobody_else_runs, "other programs", "4.0 of 8 CPUs"},
    {"slow-rank", rank_one_is_slow, all_ranks_wait_alike, "rank 1", "40 %"},
    {"nothing-to-do", all_is_well, it_waits_for_input, "mixed precision", "100 %"},
};
#define CASES (sizeof cases / sizeof cases[0])

static void every_rule_applies_to_its_evidence_and_to_nothing_less(void **state)
{
    (void)state;
    for (size_t i = 0; i < CASES; i++) {
        struct made made;
        made_healthy(&made);
        cases[i].make(&made);
        const struct advice *advice = advised(&made, cases[i].rule);
        if (!advice || !strstr(advice->action, cases[i].action) ||
            !strstr(advice->why, cases[i].why))
            print_error("%s: %s\n  %s\n", cases[i].rule, advice ? advice->action : "not given",
                        advice ? advice->why : "");
        assert_non_null(advice);
        assert_non_null(strstr(advice->action, cases[i].action));
        assert_non_null(strstr(advice->why, cases[i].why));
        assert_true(advice->gain >= 1 && advice->gain <= 10);
        assert_false(advice->measured);
        cases[i].unless(&made);
        if (advised(&made, cases[i].rule))
            print_error("%s is given without its evidence\n", cases[i].rule);
        assert_null(advised(&made, cases[i].rule));
    }
}

static void every_rule_has_a_case_here(void **state)
{
    (void)state;
    size_t count = 0;
    for (const char *name; (name = advice_rule_name(count)); count++) {
        int found = 0;
        for (size_t i = 0; i < CASES; i++)
            found |= strcmp(cases[i].rule, name) == 0;
        if (!found)
            print_error("no case for the rule %s\n", name);
        assert_true(found);
    }
    assert_int_equal(count, CASES);
}

static void a_program_that_the_script_started_is_named(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    others_use_the_cpus(&made);
    made.summary.process_count = 2;
    made.processes[1] = (struct summary_process){
        .pid = 4711, .role = "unknown", .name = "ffmpeg", .cpu_ns = 50 * SECOND};
    assert_null(strstr(advised(&made, "noisy-neighbour")->why, "ffmpeg")); /* of 400 s */
    made.processes[1].cpu_ns = 300 * SECOND;
    assert_non_null(strstr(advised(&made, "noisy-neighbour")->why,
                           "(the script itself started ffmpeg, process 4711)"));
}

static void a_pool_of_processes_makes_batches_ahead_already(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    no_loader(&made);
    made.summary.process_count = 2;
    made.processes[1] =
        (struct summary_process){.role = "helper", .name = "python train.py", .cpu_ns = SECOND};
    assert_non_null(advised(&made, "use-a-loader"));
    made.processes[1].cpu_ns = 50 * SECOND;
    assert_null(advised(&made, "use-a-loader"));
    assert_null(advised(&made, "main-thread-transform"));
    assert_non_null(
        strstr(advised(&made, "transform-to-gpu")->action, "Move what the pool's processes do to"));
}

static void gains_are_bounded_by_what_is_left_and_by_the_cpus(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    made_wait(&made, 0, CAUSE_SYNC, 50);
    assert_true(advised(&made, "sync")->gain == 2.0); /* half of the time is gone */
    made_healthy(&made);
    slow_transform(&made); /* computing is 40 %: no change gains more than 2.5 */
    assert_true(advised(&made, "more-workers")->gain <= 2.5);
    made.summary.own_cpu_share = 0.6; /* all CPUs give 1 / 0.6 */
    assert_true(advised(&made, "more-workers")->gain < 1.68);
    assert_true(advised(&made, "more-workers")->gain > 1.5);
}

static void what_was_measured_bounds_what_is_estimated(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    slow_transform(&made);
    made.what_if = (struct summary_what_if){.measured = 1, .gain = 1.2};
    made.summary.what_if = &made.what_if;
    const struct advice *advice = advised(&made, "more-workers");
    assert_true(advice->gain == 1.2 && advice->measured);
}

static void the_best_comes_first_and_an_easy_change_before_a_hard_one(void **state)
{
    (void)state;
    struct made made;
    struct advice found[3];
    made_healthy(&made);
    small_files(&made);
    assert_int_equal(advice_find(&made.summary, found, 3), 3);
    for (int i = 0; i < 3; i++)
        assert_string_not_equal(found[i].rule, "faster-storage"); /* the hardest of the four */
    assert_true(found[0].gain >= found[2].gain);
}

static void an_unreliable_run_is_given_no_advice(void **state)
{
    (void)state;
    struct made made;
    struct advice found[3];
    made_healthy(&made);
    slow_transform(&made);
    made.summary.unreliable[0] = (char *)(uintptr_t) "CUPTI dropped 7 records.";
    assert_int_equal(advice_find(&made.summary, found, 3), 0);
    assert_int_equal(advice_against(&made.summary, found, 3), 0);
}

static void the_slow_rank_is_what_the_others_gain_by(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    rank_one_is_slow(&made);
    made_wait(&made, 1, CAUSE_SYNC, 50);
    assert_true(advised(&made, "sync")->gain == 2.0); /* of rank 1 alone, not of a third */
}

static void what_would_not_help_is_said_with_the_reason(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    slow_transform(&made);
    assert_null(against(&made, "more-workers"));
    assert_string_equal(against(&made, "faster-storage")->why, "reading is 0 % of the waiting");
    assert_string_equal(against(&made, "pin-memory")->why, "copies are waited for 0 % of the time");
    assert_string_equal(against(&made, "faster-gpu")->why, "this one is busy 40 % of the time");
    assert_non_null(against(&made, "prefetch-factor"));
    no_cpu_is_free(&made);
    assert_non_null(strstr(against(&made, "more-workers")->why, "no CPU is free"));
    made_healthy(&made);
    pageable_copies(&made);
    assert_null(against(&made, "pin-memory"));
    assert_string_equal(against(&made, "more-workers")->why, "input is waited for 0 % of the time");
}

static void the_snippet_is_for_the_data_that_was_seen(void **state)
{
    (void)state;
    static const struct {
        const char *extension, *words;
    } kinds[] = {{"npy", "batch[\"npy\"]"},      {"jpg", "stoker.RandomResizedCrop(224)"},
                 {".PNG", "{\"PNG\": chain}"},   {"wav", "stoker.DecodeAudio("},
                 {"mp4", "stoker.DecodeVideo("}, {"ply", "stoker.DecodePoints("},
                 {"tar", "a dict of the fields"}};
    struct made made;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        made_healthy(&made);
        small_files(&made);
        made_files(&made, kinds[i].extension, 500, 51000);
        const struct advice *advice = advised(&made, "use-stoker");
        assert_non_null(strstr(advice->snippet, kinds[i].words));
        assert_non_null(strstr(advice->snippet, "stoker.open(\"/data/photos\")"));
        assert_non_null(strstr(advice->snippet, "batch_size=32"));
        assert_non_null(strstr(advice->snippet, "device=\"cuda\""));
        assert_null(strstr(advice->snippet, "stoker pack"));
    }
    made_files(&made, "pkl", 500, 51000); /* pickles are not read */
    assert_null(advised(&made, "use-stoker"));
    made_files(&made, "jpg", 40000, 51000);
    snprintf(made.loader.folder, sizeof made.loader.folder, "/data/it's \"here\"");
    const struct advice *advice = advised(&made, "use-stoker");
    assert_non_null(strstr(advice->snippet, "stoker pack '/data/it'\\''s \"here\"' -o "
                                            "'/data/it'\\''s \"here\"-shards' --to tar"));
    assert_non_null(strstr(advice->snippet, "stoker.open(\"/data/it's \\\"here\\\"-shards\")"));
}

static void a_function_that_stoker_does_not_know_stays_the_scripts(void **state)
{
    (void)state;
    struct made made;
    made_healthy(&made);
    made_wait(&made, 0, CAUSE_TRANSFORM, 60);
    made_busy_workers(&made);
    made_files(&made, "jpg", 500, 51000);
    made_function(&made, CAUSE_TRANSFORM, "fold_proteins", 55);
    assert_null(advised(&made, "use-stoker"));
    made_function(&made, CAUSE_TRANSFORM, "GaussianBlur.__call__", 55);
    assert_non_null(strstr(advised(&made, "use-stoker")->snippet, "stoker.GaussianBlur(5)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rule_applies_to_its_evidence_and_to_nothing_less),
        cmocka_unit_test(every_rule_has_a_case_here),
        cmocka_unit_test(a_program_that_the_script_started_is_named),
        cmocka_unit_test(a_pool_of_processes_makes_batches_ahead_already),
        cmocka_unit_test(gains_are_bounded_by_what_is_left_and_by_the_cpus),
        cmocka_unit_test(what_was_measured_bounds_what_is_estimated),
        cmocka_unit_test(the_best_comes_first_and_an_easy_change_before_a_hard_one),
        cmocka_unit_test(an_unreliable_run_is_given_no_advice),
        cmocka_unit_test(the_slow_rank_is_what_the_others_gain_by),
        cmocka_unit_test(what_would_not_help_is_said_with_the_reason),
        cmocka_unit_test(the_snippet_is_for_the_data_that_was_seen),
        cmocka_unit_test(a_function_that_stoker_does_not_know_stays_the_scripts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
