#include "watch/summary_json.h"

#include <math.h>
#include <string.h>
#include <time.h>

#include "stoker/version.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "watch/findings.h"
#include "watch/host_json.h"
#include "watch/json_pen.h"
#include "watch/secret_mask.h"

#define RUN_VERSION 1
#define TREE_DEPTH 96    /* readers nest as deep as the file does, and some stop at a thousand */
#define TREE_SMALL 2000u /* a call of less than this part of the whole is left out */

static const char *const mode_names[] = {[WATCH_NOTHING] = "nothing",
                                         [WATCH_CPU] = "cpu",
                                         [WATCH_SAMPLED] = "sampled",
                                         [WATCH_GPU] = "gpu"};

/* --- the run as a whole -------------------------------------------------------------------- */

static void put_command(struct json_pen *pen, const struct summary *summary)
{
    const char *before = NULL;
    json_pen_open(pen, "command", '[');
    for (char **one = summary->command; one && *one; one++) {
        struct text shown = {0};
        secret_mask_add(&shown, *one, before);
        json_pen_text(pen, NULL, shown.data ? shown.data : "");
        pen->text.failed |= shown.failed;
        text_free(&shown);
        before = *one;
    }
    json_pen_close(pen, ']');
}

static void put_started(struct json_pen *pen, int64_t started)
{
    char words[40];
    time_t seconds = (time_t)started;
    struct tm date;
    if (gmtime_r(&seconds, &date) && strftime(words, sizeof words, "%Y-%m-%dT%H:%M:%SZ", &date))
        json_pen_text(pen, "started", words);
    else
        json_pen_null(pen, "started");
}

static void put_exit(struct json_pen *pen, const struct summary *summary)
{
    json_pen_open(pen, "exit", '{');
    if (summary->exit_signal) {
        json_pen_null(pen, "status");
        json_pen_i64(pen, "signal", summary->exit_signal);
    } else {
        json_pen_i64(pen, "status", summary->exit_status);
        json_pen_null(pen, "signal");
    }
    json_pen_close(pen, '}');
}

static void put_machine(struct json_pen *pen, const struct summary *summary)
{
    json_pen_open(pen, "machine", '{');
    json_pen_u64(pen, "cpus", summary->cpus);
    json_pen_u64(pen, "memory_bytes", summary->memory_bytes);
    json_pen_known(pen, "kernel", summary->kernel);
    json_pen_known(pen, "gpu", summary->gpu_name);
    json_pen_known(pen, "driver", summary->driver);
    json_pen_known(pen, "cupti", summary->cupti);
    json_pen_known(pen, "python", summary->python);
    json_pen_known(pen, "torch", summary->torch);
    json_pen_close(pen, '}');
}

static void put_sentences(struct json_pen *pen, const char *name, char *const *sentences)
{
    json_pen_open(pen, name, '[');
    for (size_t i = 0; i < SUMMARY_REASONS && sentences[i]; i++)
        json_pen_text(pen, NULL, sentences[i]);
    json_pen_close(pen, ']');
}

static void put_watching(struct json_pen *pen, const struct summary *summary)
{
    json_pen_open(pen, "watching", '{');
    json_pen_u64(pen, "records", summary->records);
    json_pen_u64(pen, "lost", summary->lost);
    json_pen_double(pen, "stacks_hz", summary->sampled_hz, 2);
    json_pen_seconds(pen, "cpu_s", summary->watcher_cpu_ns);
    json_pen_u64(pen, "rss_bytes", summary->watcher_rss);
    json_pen_close(pen, '}');
    json_pen_open(pen, "cpu", '{');
    json_pen_double(pen, "own", summary->own_cpu_share, 6);
    json_pen_double(pen, "foreign", summary->foreign_cpu_share, 6);
    json_pen_close(pen, '}');
}

static void put_throttle(struct json_pen *pen, uint64_t reasons)
{
    json_pen_open(pen, "throttle", '[');
    for (unsigned bit = 0; bit < 64; bit++) {
        const char *words = findings_throttle(reasons & (UINT64_C(1) << bit));
        if (words)
            json_pen_text(pen, NULL, words);
    }
    json_pen_close(pen, ']');
}

/* --- causes -------------------------------------------------------------------------------- */

static void put_functions(struct json_pen *pen, const struct summary_cause *cause)
{
    json_pen_open(pen, "functions", '[');
    for (size_t i = 0; i < 3 && cause->functions[i].function; i++) {
        const struct summary_function *one = &cause->functions[i];
        json_pen_open(pen, NULL, '{');
        json_pen_text(pen, "function", one->function);
        json_pen_known(pen, "file", one->file);
        json_pen_u64(pen, "line", one->line);
        json_pen_seconds(pen, "seconds", one->ns);
        json_pen_close(pen, '}');
    }
    json_pen_close(pen, ']');
}

static void put_causes(struct json_pen *pen, const struct summary_cause causes[CAUSE_COUNT],
                       uint64_t idle)
{
    int told[CAUSE_COUNT] = {0};
    json_pen_open(pen, "causes", '[');
    for (;;) {
        int most = -1;
        for (int i = 0; i < CAUSE_COUNT; i++)
            if (!told[i] && causes[i].ns && (most < 0 || causes[i].ns > causes[most].ns))
                most = i;
        if (most < 0)
            break;
        told[most] = 1;
        json_pen_open(pen, NULL, '{');
        json_pen_text(pen, "cause", cause_id((enum cause)most));
        json_pen_text(pen, "words", cause_words((enum cause)most));
        json_pen_seconds(pen, "seconds", causes[most].ns);
        json_pen_double(pen, "share", idle ? (double)causes[most].ns / (double)idle : 0, 6);
        put_functions(pen, &causes[most]);
        json_pen_close(pen, '}');
    }
    json_pen_close(pen, ']');
}

/* --- ranks --------------------------------------------------------------------------------- */

static void put_epochs(struct json_pen *pen, const struct summary_rank *rank)
{
    uint64_t sum = 0, count = 0;
    json_pen_open(pen, "epochs", '[');
    for (size_t i = 0; i < rank->epoch_count; i++) {
        const struct summary_epoch *epoch = &rank->epochs[i];
        json_pen_open(pen, NULL, '{');
        json_pen_seconds(pen, "start_s", epoch->start);
        json_pen_seconds(pen, "end_s", epoch->end);
        json_pen_u64(pen, "steps", epoch->steps);
        json_pen_u64(pen, "samples", epoch->samples);
        json_pen_close(pen, '}');
        sum += epoch->end > epoch->start ? epoch->end - epoch->start : 0;
        count += epoch->end > epoch->start;
    }
    json_pen_close(pen, ']');
    if (count)
        json_pen_seconds(pen, "epoch_s", sum / count);
    else
        json_pen_null(pen, "epoch_s");
}

static void put_steps(struct json_pen *pen, const struct summary_rank *rank, uint64_t judged)
{
    json_pen_u64(pen, "steps", rank->steps);
    json_pen_u64(pen, "samples", rank->samples);
    json_pen_double(pen, "samples_s", judged ? (double)rank->samples * 1e9 / (double)judged : 0, 3);
    json_pen_open(pen, "step_s", '{');
    json_pen_seconds(pen, "median", rank->step_median_ns);
    json_pen_seconds(pen, "p95", rank->step_p95_ns);
    json_pen_close(pen, '}');
    json_pen_seconds(pen, "next_s", rank->next_ns);
}

static void put_busy(struct json_pen *pen, const struct summary_rank *rank, uint64_t judged)
{
    double whole = judged ? (double)judged : 1;
    json_pen_open(pen, "busy", '{');
    json_pen_double(pen, "compute", (double)rank->compute_ns / whole, 6);
    json_pen_double(pen, "communication", (double)rank->communication_ns / whole, 6);
    json_pen_double(pen, "copy", (double)rank->copy_ns / whole, 6);
    json_pen_close(pen, '}');
    json_pen_seconds(pen, "compute_s", rank->compute_ns);
    json_pen_seconds(pen, "idle_s", rank->idle_ns);
}

static void put_rank(struct json_pen *pen, const struct summary *summary,
                     const struct summary_rank *rank)
{
    uint64_t judged = findings_judged(rank);
    json_pen_open(pen, NULL, '{');
    json_pen_count(pen, "rank", rank->rank);
    json_pen_u64(pen, "pid", rank->pid);
    if (summary->mode == WATCH_GPU || summary->mode == WATCH_SAMPLED)
        json_pen_u64(pen, "device", rank->device);
    else
        json_pen_null(pen, "device");
    json_pen_seconds(pen, "start_s", rank->start);
    json_pen_seconds(pen, "end_s", rank->end);
    json_pen_seconds(pen, "excluded_s", rank->excluded_ns);
    if (summary->mode == WATCH_GPU)
        json_pen_double(pen, "recorded", rank->recorded, 6);
    else
        json_pen_null(pen, "recorded");
    put_busy(pen, rank, judged);
    put_causes(pen, rank->causes, rank->idle_ns);
    put_steps(pen, rank, judged);
    put_epochs(pen, rank);
    json_pen_u64(pen, "kernels", rank->kernels);
    json_pen_u64(pen, "copies", rank->copies);
    json_pen_u64(pen, "copied_bytes", rank->copied_bytes);
    json_pen_u64(pen, "pageable_bytes", rank->pageable_bytes);
    json_pen_u64(pen, "graph_kernels", rank->graph_kernels);
    json_pen_close(pen, '}');
}

static void put_ranks(struct json_pen *pen, const struct summary *summary)
{
    struct summary_cause all[CAUSE_COUNT];
    char words[256];
    json_pen_open(pen, "ranks", '[');
    for (size_t i = 0; i < summary->rank_count; i++)
        put_rank(pen, summary, &summary->ranks[i]);
    json_pen_close(pen, ']');
    for (int i = 0; i < CAUSE_COUNT; i++)
        findings_cause(&all[i], summary, (enum cause)i);
    put_causes(pen, all, summary_idle(summary));
    int slowest = findings_slowest(summary, words, sizeof words);
    if (slowest < 0) {
        json_pen_null(pen, "slowest_rank");
        return;
    }
    json_pen_open(pen, "slowest_rank", '{');
    json_pen_i64(pen, "rank", summary->ranks[slowest].rank);
    json_pen_text(pen, "words", words);
    json_pen_close(pen, '}');
}

/* --- gaps, functions, loaders -------------------------------------------------------------- */

static void put_gaps(struct json_pen *pen, const struct summary *summary)
{
    size_t sizes = sizeof summary->gap_sizes / sizeof summary->gap_sizes[0];
    json_pen_open(pen, "gaps", '{');
    json_pen_u64(pen, "count", summary->gap_total);
    json_pen_open(pen, "longest", '[');
    for (size_t i = 0; i < summary->gap_count; i++) {
        const struct summary_gap *gap = &summary->gaps[i];
        json_pen_open(pen, NULL, '{');
        json_pen_seconds(pen, "start_s", gap->start);
        json_pen_seconds(pen, "seconds", gap->ns);
        json_pen_text(pen, "cause", cause_id(gap->cause));
        json_pen_count(pen, "rank", gap->rank);
        json_pen_close(pen, '}');
    }
    json_pen_close(pen, ']');
    json_pen_open(pen, "sizes", '[');
    for (size_t i = 0; i < sizes; i++) {
        uint64_t upto = summary->gap_sizes[i].upto_ns;
        if (!upto && !summary->gap_sizes[i].count)
            continue; /* a row that is not used */
        json_pen_open(pen, NULL, '{');
        if (upto && upto != UINT64_MAX)
            json_pen_seconds(pen, "upto_s", upto);
        else
            json_pen_null(pen, "upto_s");
        json_pen_u64(pen, "count", summary->gap_sizes[i].count);
        json_pen_seconds(pen, "seconds", summary->gap_sizes[i].ns);
        json_pen_close(pen, '}');
    }
    json_pen_close(pen, ']');
    json_pen_close(pen, '}');
}

static void put_node(struct json_pen *pen, const struct summary_tree *tree, uint32_t number,
                     const char *name, int depth)
{
    const struct summary_node *node = &tree->nodes[number];
    json_pen_open(pen, name, '{');
    json_pen_text(pen, "function", node->function ? node->function : "");
    json_pen_known(pen, "file", node->file);
    json_pen_u64(pen, "line", node->line);
    json_pen_seconds(pen, "seconds", node->ns);
    json_pen_seconds(pen, "cpu_s", node->cpu_ns);
    json_pen_open(pen, "children", '[');
    for (uint32_t child = node->first_child; child && child < tree->count && depth < TREE_DEPTH;
         child = tree->nodes[child].next_sibling)
        if (tree->nodes[child].ns >= tree->nodes[0].ns / TREE_SMALL)
            put_node(pen, tree, child, NULL, depth + 1);
    json_pen_close(pen, ']');
    json_pen_close(pen, '}');
}

static void put_tree(struct json_pen *pen, const char *name, const struct summary_tree *tree)
{
    if (tree->count)
        put_node(pen, tree, 0, name, 0);
    else
        json_pen_null(pen, name);
}

static void put_choice(struct json_pen *pen, const char *name, int32_t value)
{
    if (value < 0)
        json_pen_null(pen, name);
    else
        json_pen_bool(pen, name, value);
}

static void put_loader_options(struct json_pen *pen, const struct summary_loader *loader)
{
    json_pen_u64(pen, "id", loader->id);
    json_pen_count(pen, "rank", loader->rank);
    json_pen_text(pen, "kind", loader->kind);
    json_pen_known(pen, "class", loader->class_name);
    json_pen_known(pen, "dataset", loader->dataset);
    json_pen_known(pen, "collate", loader->collate);
    json_pen_known(pen, "file", loader->file);
    json_pen_u64(pen, "line", loader->line);
    json_pen_count(pen, "batch_size", loader->batch_size);
    json_pen_count(pen, "workers", loader->workers);
    json_pen_count(pen, "prefetch_factor", loader->prefetch_factor);
    put_choice(pen, "pin_memory", loader->pin_memory);
    put_choice(pen, "persistent_workers", loader->persistent_workers);
    put_choice(pen, "in_order", loader->in_order);
    json_pen_count(pen, "samples", loader->samples);
    json_pen_count(pen, "batches", loader->batches);
}

static void put_loader(struct json_pen *pen, const struct summary_loader *loader)
{
    json_pen_open(pen, NULL, '{');
    put_loader_options(pen, loader);
    json_pen_u64(pen, "epochs", loader->epochs);
    json_pen_u64(pen, "handed_out", loader->handed_out);
    json_pen_u64(pen, "starts", loader->starts);
    json_pen_seconds(pen, "next_s", loader->next_ns);
    json_pen_seconds(pen, "start_s", loader->start_ns);
    json_pen_seconds(pen, "fetch_s", loader->fetch_ns);
    json_pen_seconds(pen, "fetch_cpu_s", loader->fetch_cpu_ns);
    json_pen_seconds(pen, "collate_s", loader->collate_ns);
    json_pen_seconds(pen, "send_s", loader->send_ns);
    json_pen_seconds(pen, "idle_s", loader->idle_ns);
    json_pen_seconds(pen, "pin_s", loader->pin_ns);
    json_pen_seconds(pen, "fetch_max_s", loader->fetch_max_ns);
    json_pen_seconds(pen, "fetch_median_s", loader->fetch_median_ns);
    json_pen_u64(pen, "batch_bytes", loader->batch_bytes);
    if (loader->opens) {
        json_pen_open(pen, "files", '{');
        json_pen_u64(pen, "opens", loader->opens);
        json_pen_u64(pen, "distinct", loader->distinct_files);
        json_pen_u64(pen, "bytes", loader->opened_bytes);
        json_pen_known(pen, "folder", loader->folder);
        json_pen_known(pen, "extension", loader->extension);
        json_pen_close(pen, '}');
    } else {
        json_pen_null(pen, "files");
    }
    json_pen_close(pen, '}');
}

/* --- what is drawn ------------------------------------------------------------------------- */

static void put_series(struct json_pen *pen, const struct summary *summary)
{
    static const struct {
        const char *name;
        int digits; /* after the point */
    } kinds[SERIES_COUNT] = {
        [SERIES_COMPUTE] = {"compute", 4},
        [SERIES_COMMUNICATION] = {"communication", 4},
        [SERIES_COPY] = {"copy", 4},
        [SERIES_WAITING] = {"waiting", 4},
        [SERIES_SAMPLES] = {"samples_s", 2},
        [SERIES_CPU] = {"cpu", 3},
        [SERIES_MACHINE_CPU] = {"machine_cpu", 3},
        [SERIES_IOWAIT] = {"iowait", 3},
        [SERIES_RSS] = {"rss_bytes", 0},
        [SERIES_READ] = {"read_bytes_s", 0},
        [SERIES_WRITTEN] = {"written_bytes_s", 0},
        [SERIES_NETWORK] = {"network_bytes_s", 0},
        [SERIES_GPU_MEMORY] = {"gpu_memory_bytes", 0},
        [SERIES_GPU_POWER] = {"gpu_power_w", 1},
        [SERIES_GPU_CLOCK] = {"gpu_clock_mhz", 0},
        [SERIES_GPU_NVML] = {"gpu_nvml", 4},
        [SERIES_PCIE_IN] = {"gpu_pcie_received_bytes_s", 0},
        [SERIES_PCIE_OUT] = {"gpu_pcie_sent_bytes_s", 0},
    };
    json_pen_open(pen, "series", '{');
    json_pen_seconds(pen, "bin_s", summary->bin_ns);
    for (int i = 0; i < SERIES_COUNT; i++) {
        if (!summary->series[i])
            continue;
        json_pen_open(pen, kinds[i].name, '[');
        for (size_t bin = 0; bin < summary->bins; bin++)
            json_pen_double(pen, NULL, (double)summary->series[i][bin], kinds[i].digits);
        json_pen_close(pen, ']');
    }
    json_pen_close(pen, '}');
}

static void put_timeline(struct json_pen *pen, const struct summary *summary)
{
    json_pen_open(pen, "timeline", '{');
    json_pen_seconds(pen, "start_s", summary->excerpt_start);
    json_pen_seconds(pen, "end_s", summary->excerpt_end);
    json_pen_open(pen, "lanes", '[');
    for (size_t i = 0; i < summary->lane_count; i++) {
        const struct summary_lane *lane = &summary->lanes[i];
        json_pen_open(pen, NULL, '{');
        json_pen_text(pen, "name", lane->name ? lane->name : "");
        json_pen_open(pen, "slices", '[');
        for (size_t j = 0; j < lane->count; j++) {
            json_pen_open(pen, NULL, '[');
            json_pen_seconds(pen, NULL, lane->slices[j].start);
            json_pen_seconds(pen, NULL, lane->slices[j].end);
            json_pen_text(pen, NULL, lane->slices[j].name ? lane->slices[j].name : "");
            json_pen_close(pen, ']');
        }
        json_pen_close(pen, ']');
        json_pen_close(pen, '}');
    }
    json_pen_close(pen, ']');
    json_pen_close(pen, '}');
}

/* --- what follows from it ------------------------------------------------------------------ */

static void put_what_if(struct json_pen *pen, const struct summary_what_if *what_if)
{
    if (!what_if || !what_if->measured) {
        json_pen_null(pen, "what_if");
        return;
    }
    json_pen_open(pen, "what_if", '{');
    json_pen_seconds(pen, "wall_s", what_if->wall_ns);
    json_pen_u64(pen, "steps", what_if->steps);
    json_pen_seconds(pen, "step_median_s", what_if->step_median_ns);
    json_pen_double(pen, "samples_s", what_if->samples_s, 3);
    json_pen_double(pen, "busy", what_if->busy, 6);
    json_pen_double(pen, "gain", what_if->gain, 4);
    json_pen_close(pen, '}');
}

static void put_advice(struct json_pen *pen, const struct advice *advice, int against)
{
    json_pen_open(pen, NULL, '{');
    json_pen_text(pen, "rule", advice->rule);
    json_pen_text(pen, "do", advice->action);
    json_pen_text(pen, "why", advice->why);
    if (!against) {
        json_pen_known(pen, "snippet", advice->snippet);
        json_pen_double(pen, "gain", advice->gain, 4);
        json_pen_text(pen, "gain_is", advice->measured ? "measured" : "estimated");
    }
    json_pen_close(pen, '}');
}

static void put_verdict(struct json_pen *pen, const struct summary *summary,
                        const struct verdict *verdict)
{
    int measured = summary->what_if && summary->what_if->measured && verdict->bound == BOUND_INPUT;
    json_pen_open(pen, "verdict", '{');
    json_pen_text(pen, "bound", verdict_bound_name(verdict->bound));
    json_pen_known(pen, "cause",
                   verdict->cause < CAUSE_COUNT && verdict->bound != BOUND_UNKNOWN
                       ? cause_id(verdict->cause)
                       : NULL);
    json_pen_text(pen, "words", verdict->words);
    json_pen_text(pen, "why", verdict->why);
    json_pen_text(pen, "sure", verdict->sure);
    json_pen_text(pen, "sure_why", verdict->sure_why);
    json_pen_double(pen, "gain_bound", verdict->gain_bound, 4);
    json_pen_text(pen, "gain_is", measured ? "measured" : "estimated");
    json_pen_open(pen, "advice", '[');
    for (size_t i = 0; i < verdict->advice_count; i++)
        put_advice(pen, &verdict->advice[i], 0);
    json_pen_close(pen, ']');
    json_pen_open(pen, "against", '[');
    for (size_t i = 0; i < verdict->against_count; i++)
        put_advice(pen, &verdict->against[i], 1);
    json_pen_close(pen, ']');
    json_pen_close(pen, '}');
}

static void put_lists(struct json_pen *pen, const struct summary *summary)
{
    json_pen_open(pen, "functions", '{');
    put_tree(pen, "main", &summary->main_tree);
    put_tree(pen, "workers", &summary->worker_tree);
    json_pen_close(pen, '}');
    json_pen_open(pen, "loaders", '[');
    for (size_t i = 0; i < summary->loader_count; i++)
        put_loader(pen, &summary->loaders[i]);
    json_pen_close(pen, ']');
    put_series(pen, summary);
    put_timeline(pen, summary);
    host_json_put(pen, summary);
}

stk_status summary_json_write(const struct summary *summary, const struct verdict *verdict,
                              char **out, struct stk_error *err)
{
    struct json_pen pen = {0};
    *out = NULL;
    json_pen_open(&pen, NULL, '{');
    json_pen_u64(&pen, "stoker_run", RUN_VERSION);
    json_pen_text(&pen, "stoker", stk_version());
    put_command(&pen, summary);
    put_started(&pen, summary->started);
    json_pen_seconds(&pen, "wall_s", summary->wall_ns);
    put_exit(&pen, summary);
    put_machine(&pen, summary);
    json_pen_text(&pen, "mode", mode_names[summary->mode]);
    json_pen_bool(&pen, "reliable", !summary->unreliable[0]);
    put_sentences(&pen, "unreliable", summary->unreliable);
    put_sentences(&pen, "notices", summary->notices);
    put_ranks(&pen, summary);
    put_gaps(&pen, summary);
    put_lists(&pen, summary);
    put_watching(&pen, summary);
    put_throttle(&pen, summary->throttle);
    put_what_if(&pen, summary->what_if);
    put_verdict(&pen, summary, verdict);
    json_pen_close(&pen, '}');
    text_add(&pen.text, "\n", 1);
    if (pen.text.failed) {
        size_t len = pen.text.len;
        text_free(&pen.text);
        return fail_memory(err, len);
    }
    *out = pen.text.data;
    return STK_OK;
}

/* --- reading ------------------------------------------------------------------------------- */

static stk_status check_version(const struct json *run, struct stk_error *err)
{
    uint64_t version;
    if (!json_get_u64(run, "stoker_run", &version))
        return fail(err, STK_CORRUPT, "this is no run file: it has no \"stoker_run\"");
    if (version == RUN_VERSION)
        return STK_OK;
    fail(err, STK_CORRUPT, "this run file is of version %llu, and this Stoker reads version %d",
         (unsigned long long)version, RUN_VERSION);
    fail_remedy(err, "watch the run again with this Stoker, or read it with the one that wrote it");
    return STK_CORRUPT;
}

static double number_in(const struct json *object, const char *name)
{
    double number = 0;
    return json_double(json_member(object, name), &number) ? number : 0;
}

static double input_seconds(const struct json *rank)
{
    const struct json *causes = json_member(rank, "causes");
    double sum = 0;
    for (size_t i = 0; i < json_count(causes); i++) {
        const char *id = "";
        json_get_text(json_item(causes, i), "cause", &id);
        if (strncmp(id, "input/", 6) == 0)
            sum += number_in(json_item(causes, i), "seconds");
    }
    return sum;
}

/* A step's mean length in the first run, all that it waited for included. The median would not do:
 * batches that come in bursts leave most steps short. */
static double step_seconds(const struct summary *first)
{
    double seconds = 0, steps = 0;
    for (size_t i = 0; i < first->rank_count; i++) {
        seconds += (double)findings_judged(&first->ranks[i]) / 1e9;
        steps += (double)first->ranks[i].steps;
    }
    return steps > 0 ? seconds / steps : 0;
}

stk_status summary_json_read_what_if(const char *json, const struct summary *first,
                                     struct summary_what_if *out, struct stk_error *err)
{
    struct json *run = NULL;
    double judged = 0, steps = 0, median = 0, input = 0;
    *out = (struct summary_what_if){0};
    stk_status status = json_parse(&run, json, strlen(json), err);
    if (status == STK_CORRUPT)
        fail_remedy(err, "the run file is cut short or not one of Stoker's: watch the run again");
    if (!status)
        status = check_version(run, err);
    if (status)
        goto done;
    const struct json *ranks = json_member(run, "ranks");
    for (size_t i = 0; i < json_count(ranks); i++) {
        const struct json *rank = json_item(ranks, i);
        judged += number_in(rank, "end_s") - number_in(rank, "start_s");
        judged -= number_in(rank, "excluded_s");
        input += input_seconds(rank);
        steps += number_in(rank, "steps");
        out->samples_s += number_in(rank, "samples_s");
        out->busy += number_in(json_member(rank, "busy"), "compute") / (double)json_count(ranks);
        median += number_in(json_member(rank, "step_s"), "median") / (double)json_count(ranks);
    }
    /* What its own first batches took is not the step's: they were read as before. */
    double step = steps > 0 ? (judged - input) / steps : 0;
    if (!(step > 0) || !(step_seconds(first) > 0)) {
        status = fail(err, STK_CORRUPT, "there are no steps in both runs to compare");
        goto done;
    }
    out->wall_ns = (uint64_t)(number_in(run, "wall_s") * 1e9);
    out->steps = (uint64_t)steps;
    out->step_median_ns = (uint64_t)(median * 1e9);
    out->gain = step_seconds(first) / step;
    out->measured = 1;
done:
    json_free(run);
    return status;
}
