/* summary_making.h -- runs that never were, for tests of what is said about them: a rank, a loader
 * and their times, on the stack of a test.
 * Owns: nothing; texts are literals, so such a summary is never freed.   Threads: one.
 * Errors: none.   Not here: any test. */
#ifndef TESTS_WATCH_SUMMARY_MAKING_H
#define TESTS_WATCH_SUMMARY_MAKING_H

#include <stdio.h>
#include <string.h>

#include "watch/summary.h"

#define MADE __attribute__((unused)) static
#define SECOND UINT64_C(1000000000)
#define MILLI UINT64_C(1000000)

struct made {
    struct summary summary;
    struct summary_rank ranks[4];
    struct summary_loader loader;
    struct summary_process processes[4];
    char *command[4];
    struct summary_what_if what_if;
    struct summary_node main_nodes[2], worker_nodes[2];
    float clocks[4];
};

/* A GPU that computed the whole 100 seconds: 1,000 steps of 32 samples, 2 workers, 8 CPUs. */
MADE void made_healthy(struct made *made)
{
    *made = (struct made){0};
    made->command[0] = "python";
    made->command[1] = "train.py";
    made->summary = (struct summary){.mode = WATCH_GPU,
                                     .command = made->command,
                                     .started = 1763200000,
                                     .wall_ns = 110 * SECOND,
                                     .cpus = 8,
                                     .memory_bytes = UINT64_C(64000000000),
                                     .gpu_name = "NVIDIA H200",
                                     .ranks = made->ranks,
                                     .rank_count = 1,
                                     .loaders = &made->loader,
                                     .loader_count = 1,
                                     .processes = made->processes,
                                     .process_count = 1,
                                     .records = 100000,
                                     .sampled_hz = 98.5,
                                     .own_cpu_share = 0.3};
    for (int i = 0; i < 4; i++)
        made->ranks[i] = (struct summary_rank){.rank = i,
                                               .pid = 100 + (uint32_t)i,
                                               .start = 5 * SECOND,
                                               .end = 105 * SECOND,
                                               .compute_ns = 100 * SECOND,
                                               .steps = 1000,
                                               .samples = 32000,
                                               .step_median_ns = 100 * MILLI,
                                               .step_p95_ns = 120 * MILLI};
    made->ranks[0].rank = -1;
    made->processes[0] = (struct summary_process){
        .pid = 100, .role = "main", .name = "python train.py", .rank = -1, .worker = -1};
    made->loader = (struct summary_loader){.id = 1,
                                           .rank = -1,
                                           .kind = "torch",
                                           .class_name = "DataLoader",
                                           .dataset = "Photos",
                                           .collate = "default_collate",
                                           .file = "/src/train.py",
                                           .line = 40,
                                           .batch_size = 32,
                                           .workers = 2,
                                           .prefetch_factor = 2,
                                           .pin_memory = 0,
                                           .persistent_workers = 0,
                                           .in_order = 1,
                                           .samples = 32000,
                                           .batches = 1000,
                                           .epochs = 1,
                                           .handed_out = 1000,
                                           .starts = 1,
                                           .fetch_median_ns = 50 * MILLI,
                                           .fetch_max_ns = 60 * MILLI};
}

/* Takes so many seconds from computing and gives them to a cause. */
MADE void made_wait(struct made *made, size_t rank, enum cause cause, uint64_t seconds)
{
    struct summary_rank *one = &made->ranks[rank];
    one->compute_ns -= seconds * SECOND;
    one->idle_ns += seconds * SECOND;
    one->causes[cause].ns += seconds * SECOND;
}

MADE void made_function(struct made *made, enum cause cause, const char *function, uint64_t seconds)
{
    made->ranks[0].causes[cause].functions[0] =
        (struct summary_function){.function = (char *)(uintptr_t)function,
                                  .file = (char *)(uintptr_t) "/src/train.py",
                                  .line = 31,
                                  .ns = seconds * SECOND};
}

/* Two workers that are always busy: a batch takes one of them 200 ms, nearly all on a CPU. */
MADE void made_busy_workers(struct made *made)
{
    made->loader.fetch_ns = 190 * SECOND;
    made->loader.fetch_cpu_ns = 185 * SECOND;
    made->loader.collate_ns = 8 * SECOND;
    made->loader.send_ns = 2 * SECOND;
    made->loader.next_ns = 60 * SECOND;
    made->ranks[0].next_ns = 60 * SECOND;
}

MADE void made_files(struct made *made, const char *extension, uint64_t count, uint64_t each)
{
    snprintf(made->loader.extension, sizeof made->loader.extension, "%s", extension);
    snprintf(made->loader.folder, sizeof made->loader.folder, "%s", "/data/photos");
    made->loader.opens = made->loader.distinct_files = count;
    made->loader.opened_bytes = count * each;
}

#endif
