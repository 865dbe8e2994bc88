#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "watch/attribution_state.h"
#include "watch/rest_fold.h"

#define COLLATE_BESIDE 4u /* collating of less than this part of the computing is beside it */

/* --- ranks -------------------------------------------------------------------------------------*/

static int line_is_rank(const struct process_line *line)
{
    return line->rank && line->facts.role != PROCESS_WORKER && line->rank->judged_from &&
           line->rank->judged_to > line->rank->judged_from;
}

static uint64_t account_idle(const struct account *account)
{
    uint64_t idle = 0;
    for (int i = 0; i < CAUSE_COUNT; i++)
        idle += account->ns[i];
    return idle;
}

static stk_status epochs_copy(const struct attribution *attribution,
                              const struct process_line *line, struct summary_rank *out,
                              struct stk_error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < attribution->loader_count; i++)
        count += attribution->loaders[i].main == line->facts.pid
                     ? attribution->loaders[i].epoch_count
                     : 0;
    if (!count)
        return STK_OK;
    out->epochs = memory_alloc(count * sizeof *out->epochs);
    if (!out->epochs)
        return fail_memory(err, count * sizeof *out->epochs);
    uint64_t begun = attribution->options.begun;
    for (size_t i = 0; i < attribution->loader_count; i++) {
        const struct loader_facts *loader = &attribution->loaders[i];
        if (loader->main != line->facts.pid || (line->rank->steps && !loader->steps))
            continue;
        for (size_t k = 0; k < loader->epoch_count; k++) {
            struct summary_epoch epoch = loader->epochs[k];
            epoch.end = epoch.end ? epoch.end : line->rank->judged_to;
            if (!epoch.samples || epoch.end < epoch.start)
                continue;
            epoch.start -= begun;
            epoch.end -= begun;
            out->epochs[out->epoch_count++] = epoch;
        }
    }
    return STK_OK;
}

static void steps_fill(const struct attribution *attribution, const struct process_line *line,
                       struct summary_rank *out)
{
    const struct rank_line *rank = line->rank;
    const struct durations *lengths = &rank->step_lengths;
    out->steps = rank->steps;
    for (size_t i = 0; i < attribution->loader_count; i++) {
        const struct loader_facts *loader = &attribution->loaders[i];
        if (loader->main != line->facts.pid || (rank->steps && !loader->steps))
            continue;
        out->samples += loader->seen;
        out->steps += rank->steps ? 0 : loader->summary.handed_out;
    }
    const struct loader_facts *loader = loop_points_loader(attribution, line);
    if (!lengths->count && loader)
        lengths = &loader->distances;
    out->step_median_ns = durations_at(lengths, 0.5);
    out->step_p95_ns = durations_at(lengths, 0.95);
}

/* By NVML's samples, where they stand in for kernels; < 0: they do not. */
static double sampled_busy(const struct attribution *attribution, const struct process_line *line)
{
    if (!line_is_rank(line) || !device_use_unrecorded(line))
        return -1;
    return device_use_busy(attribution, line, line->rank->judged_from, line->rank->judged_to);
}

/* The samples say how busy it was; the loop says what it waited for. */
static void sampled_scale(double busy, struct summary_rank *out)
{
    uint64_t judged = out->end - out->start - out->excluded_ns, told = 0;
    uint64_t idle = (uint64_t)((double)judged * (busy < 1 ? 1 - busy : 0));
    double scale = out->idle_ns > idle ? (double)idle / (double)out->idle_ns : 1;
    for (int i = 0; i < CAUSE_COUNT; i++) {
        out->causes[i].ns = (uint64_t)((double)out->causes[i].ns * scale);
        told += out->causes[i].ns;
        for (int k = 0; k < 3; k++)
            out->causes[i].functions[k].ns =
                (uint64_t)((double)out->causes[i].functions[k].ns * scale);
    }
    out->causes[CAUSE_OTHER].ns += idle > told ? idle - told : 0;
    out->idle_ns = told > idle ? told : idle;
}

/* What was recorded stands for the time after it, too. */
static void rested_scale(const struct rank_line *rank, double scale, struct summary_rank *out)
{
    uint64_t judged = out->end - out->start - out->excluded_ns;
    out->recorded = judged ? 1 - (double)rank->rested_ns / (double)judged : 1;
    uint64_t *const counted[] = {&out->communication_ns, &out->copy_ns,      &out->kernels,
                                 &out->copies,           &out->copied_bytes, &out->pageable_bytes,
                                 &out->graph_kernels};
    for (size_t i = 0; i < sizeof counted / sizeof counted[0]; i++)
        *counted[i] = (uint64_t)((double)*counted[i] * scale + 0.5);
}

/* Where more workers would do, they would collate and hand over too, and be waited for less by the
 * pin thread: the little of that which is seen beside their computing is no cause of its own. */
static stk_status worker_cpu_move(struct attribution *attribution, struct process_line *line,
                                  struct stk_error *err)
{
    struct account *account = &line->rank->account;
    enum cause cause = judge_worker_cause(attribution, line);
    uint64_t beside = account->ns[CAUSE_COLLATE] + account->ns[CAUSE_GIL];
    int is_little = beside < account->ns[ACCOUNT_WORKER_CPU] / COLLATE_BESIDE;
    stk_status status = account_move(account, ACCOUNT_WORKER_CPU, cause, err);
    if (!status && cause == CAUSE_WORKERS && is_little)
        status = account_move(account, CAUSE_COLLATE, cause, err);
    if (!status && cause == CAUSE_WORKERS && is_little)
        status = account_move(account, CAUSE_GIL, cause, err);
    return status;
}

static uint32_t device_first(const struct process_line *line)
{
    if (line->rank->device_known || !line->devices)
        return line->rank->device;
    return (uint32_t)__builtin_ctz(line->devices);
}

static stk_status rank_fill(struct attribution *attribution, struct process_line *line,
                            struct summary_rank *out, struct stk_error *err)
{
    struct rank_line *rank = line->rank;
    struct account *account = &rank->account;
    uint64_t begun = attribution->options.begun;
    double counts;
    stk_status status = rest_fold(rank, &counts, err);
    if (!status)
        status = worker_cpu_move(attribution, line, err);
    *out = (struct summary_rank){.rank = line->facts.rank,
                                 .pid = line->facts.pid,
                                 .device = device_first(line),
                                 .start = rank->judged_from - begun,
                                 .end = rank->judged_to - begun,
                                 .communication_ns = rank->talk_ns,
                                 .copy_ns = rank->copy_ns,
                                 .next_ns = rank->next_ns,
                                 .kernels = rank->kernels,
                                 .copies = rank->copy_count,
                                 .copied_bytes = rank->copied_bytes,
                                 .pageable_bytes = rank->pageable_bytes,
                                 .graph_kernels = rank->graph_kernels,
                                 .loop_unseen = !line->loop_told};
    out->idle_ns = account_idle(account);
    out->excluded_ns =
        account->ns[ACCOUNT_PROFILED] + account->ns[ACCOUNT_COMPILED] + account->ns[ACCOUNT_SET_UP];
    for (int i = 0; !status && i < CAUSE_COUNT; i++) {
        out->causes[i].ns = account->ns[i];
        if (account->ns[i])
            status = account_functions(account, (uint32_t)i, &attribution->tree,
                                       out->causes[i].functions, err);
    }
    double busy = sampled_busy(attribution, line);
    if (busy >= 0)
        sampled_scale(busy, out);
    rested_scale(rank, counts, out);
    out->compute_ns = out->busy_ns = out->end - out->start - out->excluded_ns - out->idle_ns;
    steps_fill(attribution, line, out);
    return status ? status : epochs_copy(attribution, line, out, err);
}

static enum watch_mode mode_find(const struct attribution *attribution)
{
    enum watch_mode mode = WATCH_NOTHING;
    for (size_t i = 0; i < attribution->process_count; i++) {
        const struct process_line *line = attribution->processes[i];
        if (!line->rank || line->facts.role == PROCESS_WORKER)
            continue;
        enum watch_mode own = line->rank->kernels                    ? WATCH_GPU
                              : sampled_busy(attribution, line) >= 0 ? WATCH_SAMPLED
                              : line_is_rank(line)                   ? WATCH_CPU
                                                                     : WATCH_NOTHING;
        mode = own > mode ? own : mode;
    }
    return mode;
}

static int rank_order(const struct process_line *left, const struct process_line *right)
{
    if (left->facts.rank != right->facts.rank)
        return left->facts.rank < right->facts.rank;
    return left->facts.pid < right->facts.pid;
}

static stk_status ranks_fill(struct attribution *attribution, struct summary *out,
                             struct stk_error *err)
{
    size_t count = 0;
    struct process_line **lines =
        memory_alloc((attribution->process_count + 1) * sizeof(struct process_line *));
    if (!lines)
        return fail_memory(err, attribution->process_count * sizeof *lines);
    for (size_t i = 0; i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        if (!line_is_rank(line))
            continue;
        size_t at = count++;
        for (; at > 0 && rank_order(line, lines[at - 1]); at--)
            lines[at] = lines[at - 1];
        lines[at] = line;
    }
    stk_status status = STK_OK;
    out->ranks = memory_zero(count, sizeof *out->ranks);
    if (!out->ranks)
        status = fail_memory(err, count * sizeof *out->ranks);
    for (size_t i = 0; !status && i < count; i++) {
        out->rank_count = i + 1;
        status = rank_fill(attribution, lines[i], &out->ranks[i], err);
    }
    memory_free(lines);
    return status;
}

/* --- the rest ----------------------------------------------------------------------------------*/

static int32_t rank_of(struct attribution *attribution, uint32_t pid)
{
    const struct process_line *line = attribution_process(attribution, pid);
    return line ? line->facts.rank : -1;
}

/* A loader that the script makes anew each epoch is one: the same place, the same work. */
static struct summary_loader *loader_alike(struct summary *out, const struct summary_loader *loader)
{
    for (size_t i = 0; loader->line && i < out->loader_count; i++) {
        struct summary_loader *known = &out->loaders[i];
        if (known->rank == loader->rank && known->line == loader->line &&
            known->workers == loader->workers && known->batch_size == loader->batch_size &&
            !strcmp(known->file, loader->file) && !strcmp(known->dataset, loader->dataset))
            return known;
    }
    return NULL;
}

static void loader_join(struct summary_loader *known, const struct summary_loader *loader)
{
    known->epochs += loader->epochs;
    known->handed_out += loader->handed_out;
    known->starts += loader->starts;
    known->next_ns += loader->next_ns;
    known->start_ns += loader->start_ns;
    known->fetch_ns += loader->fetch_ns;
    known->fetch_cpu_ns += loader->fetch_cpu_ns;
    known->collate_ns += loader->collate_ns;
    known->send_ns += loader->send_ns;
    known->idle_ns += loader->idle_ns;
    known->pin_ns += loader->pin_ns;
    known->opens += loader->opens;
    known->opened_bytes += loader->opened_bytes;
    if (loader->distinct_files > known->distinct_files)
        known->distinct_files = loader->distinct_files;
    if (loader->fetch_max_ns > known->fetch_max_ns)
        known->fetch_max_ns = loader->fetch_max_ns;
}

static stk_status loaders_fill(struct attribution *attribution, struct summary *out,
                               struct stk_error *err)
{
    if (!attribution->loader_count)
        return STK_OK;
    out->loaders = memory_zero(attribution->loader_count, sizeof *out->loaders);
    if (!out->loaders)
        return fail_memory(err, attribution->loader_count * sizeof *out->loaders);
    for (size_t i = 0; i < attribution->loader_count; i++) {
        const struct loader_facts *facts = &attribution->loaders[i];
        if (!facts->summary.handed_out && !facts->described)
            continue;
        struct summary_loader loader = facts->summary;
        loader.rank = rank_of(attribution, facts->main);
        loader.cpus = (int32_t)attribution->options.cpus;
        loader.fetch_max_ns = facts->fetch_lengths.most;
        loader.fetch_median_ns = durations_at(&facts->fetch_lengths, 0.5);
        struct summary_loader *known = loader_alike(out, &loader);
        if (known)
            loader_join(known, &loader);
        else
            out->loaders[out->loader_count++] = loader;
    }
    return STK_OK;
}

static stk_status processes_fill(const struct attribution *attribution, struct summary *out,
                                 struct stk_error *err)
{
    static const char *const roles[] = {[PROCESS_UNKNOWN] = "unknown",
                                        [PROCESS_MAIN] = "main",
                                        [PROCESS_WORKER] = "worker",
                                        [PROCESS_HELPER] = "helper",
                                        [PROCESS_LAUNCHER] = "launcher"};
    out->processes = memory_zero(attribution->process_count, sizeof *out->processes);
    if (!out->processes)
        return fail_memory(err, attribution->process_count * sizeof *out->processes);
    for (size_t i = 0; i < attribution->process_count; i++) {
        const struct process_line *line = attribution->processes[i];
        struct summary_process *process = &out->processes[out->process_count++];
        *process = (struct summary_process){
            .pid = line->facts.pid,
            .rank = line->facts.rank,
            .worker = line->facts.worker,
            .told = line->use.told,
            .cpu_ns = line->use.cpu_user_ns + line->use.cpu_system_ns,
            .run_delay_ns = line->use.run_delay_ns,
            .block_ns = line->use.block_ns,
            .read_bytes = line->use.read_bytes,
            .written_bytes = line->use.written_bytes,
            .read_calls_bytes = line->use.read_calls_bytes,
            .write_calls_bytes = line->use.write_calls_bytes,
            .minor_faults = line->use.minor_faults,
            .major_faults = line->use.major_faults,
            .max_rss = line->use.most_rss_bytes,
        };
        snprintf(process->role, sizeof process->role, "%s", roles[line->facts.role]);
        snprintf(process->name, sizeof process->name, "%s", line->name);
    }
    return STK_OK;
}

static void shares_fill(const struct attribution *attribution, struct summary *out)
{
    uint64_t cpus = attribution->options.cpus ? attribution->options.cpus : 1;
    double whole = (double)attribution->machine_sums.length * (double)cpus;
    if (whole <= 0)
        return;
    uint64_t own = attribution->machine_sums.own, busy = attribution->machine_sums.busy;
    out->own_cpu_share = (double)own / whole;
    out->foreign_cpu_share = busy > own ? (double)(busy - own) / whole : 0;
}

static void reasons_say(struct attribution *attribution)
{
    static const char *const why[LOST_KINDS] = {
        [LOST_CUPTI] = "CUPTI dropped %llu records of the GPU's work.",
        [LOST_ZERO_TIMES] = "%llu records of the GPU's work had no times.",
        [LOST_GRAPHS] = "%llu CUDA graphs ran without records of their kernels.",
        [LOST_RING] = "%llu records were lost because they came faster than they could be read.",
    };
    for (int i = LOST_CUPTI; i < LOST_KINDS; i++) {
        char text[SPEECH];
        if (!attribution->lost[i])
            continue;
        snprintf(text, sizeof text, why[i], (unsigned long long)attribution->lost[i]);
        attribution_say(attribution->unreliable, "%s", text);
    }
}

static void notices_say(struct attribution *attribution)
{
    uint64_t profiled = 0, compiled = 0, set_up = 0, rested = 0, whole = 0;
    int sampled = 0;
    for (size_t i = 0; i < attribution->process_count; i++) {
        const struct process_line *line = attribution->processes[i];
        if (!line_is_rank(line))
            continue;
        profiled += line->rank->account.ns[ACCOUNT_PROFILED];
        compiled += line->rank->account.ns[ACCOUNT_COMPILED];
        set_up += line->rank->account.ns[ACCOUNT_SET_UP];
        rested += line->rank->rested_ns;
        whole += line->rank->judged_to - line->rank->judged_from;
        sampled |= sampled_busy(attribution, line) >= 0;
        if (line->rank->kernels && !line->hooked)
            attribution_say(attribution->notices,
                            "Python's side of process %u was not seen: what its GPU waited for is "
                            "known only from the GPU's own records.",
                            line->facts.pid);
    }
    if (profiled)
        attribution_say(attribution->notices,
                        "%.1f s in which the script's own profiler had the GPU's records are not "
                        "judged.",
                        (double)profiled / 1e9);
    if (rested)
        attribution_say(
            attribution->notices,
            "The GPU was recorded for the first %.1f s, %.0f %% of the time: so many kernels are "
            "launched that recording all of them would slow the script down. A step is taken "
            "to have kept it as busy afterwards; --every-kernel records it.",
            (double)(whole - rested) / 1e9, 100 * (1 - (double)rested / (double)whole));
    if (sampled)
        attribution_say(attribution->notices,
                        "NVML's samples stand in for kernels, which were not recorded: they say "
                        "how busy the GPU was at most.");
    if (compiled)
        attribution_say(attribution->notices, "%.1f s of torch.compile are not judged.",
                        (double)compiled / 1e9);
    if (set_up)
        attribution_say(attribution->notices,
                        "%.1f s of the first step, which loads libraries and kernels, are not "
                        "judged.",
                        (double)set_up / 1e9);
}

static void sentences_move(char **from, char **to)
{
    memcpy(to, from, SUMMARY_REASONS * sizeof *to);
    memset(from, 0, SUMMARY_REASONS * sizeof *from);
}

/* --- all of it ---------------------------------------------------------------------------------*/

static stk_status all_judge(struct attribution *attribution, uint64_t *end, struct stk_error *err)
{
    stk_status status = STK_OK;
    *end = 0;
    for (size_t i = 0; !status && i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        if (!line->rank)
            continue;
        status = loop_points_follow(attribution, line, UINT64_MAX, err);
        if (!status)
            status = busy_line_close(&line->rank->compute, err);
        if (!status && line->rank->yielded_at) { /* it never came back */
            struct stretch yield = {line->rank->yielded_at, attribution->latest};
            if (yield.end > yield.start)
                status = time_list_add(&line->rank->yields, &yield, sizeof yield, err);
            line->rank->yielded_at = 0;
        }
    }
    if (!status)
        status = attribution_told(attribution, err);
    if (!status)
        status = device_use_judge(attribution, err);
    for (size_t i = 0; i < attribution->process_count; i++)
        process_line_sort(attribution->processes[i]);
    time_list_untangle(&attribution->machine);
    for (size_t i = 0; !status && i < attribution->process_count; i++) {
        struct process_line *line = attribution->processes[i];
        if (!line->rank || line->facts.role == PROCESS_WORKER)
            continue;
        uint64_t over = judge_end(line);
        status = judge_rank(attribution, line, over, 1, err);
        *end = over > *end ? over : *end;
    }
    return status;
}

stk_status attribution_finish(struct attribution *attribution, struct summary *out,
                              struct stk_error *err)
{
    uint64_t end;
    stk_status status = all_judge(attribution, &end, err);
    if (status)
        return status;
    out->mode = mode_find(attribution);
    reasons_say(attribution);
    notices_say(attribution);
    status = ranks_fill(attribution, out, err);
    if (!status)
        status = loaders_fill(attribution, out, err);
    if (!status)
        status = processes_fill(attribution, out, err);
    if (!status)
        status = gap_list_summary(&attribution->gaps, out, err);
    if (!status)
        status = call_tree_summary(&attribution->tree, CALL_MAIN, &out->main_tree, err);
    if (!status)
        status = call_tree_summary(&attribution->tree, CALL_WORKER, &out->worker_tree, err);
    if (!status)
        status = device_use_series(attribution, err);
    if (!status)
        status = series_summary(&attribution->series, out->rank_count, out, err);
    if (!status)
        status = excerpt_summary(&attribution->excerpt, attribution->options.begun, end, out, err);
    if (status)
        return status;
    shares_fill(attribution, out);
    host_sums_summary(&attribution->host, out);
    out->sampled_hz = attribution->sampled_hz;
    out->throttle = attribution->throttle;
    out->records = attribution->records;
    out->lost = attribution->lost[LOST_RING] + attribution->lost[LOST_CUPTI];
    sentences_move(attribution->unreliable, out->unreliable);
    sentences_move(attribution->notices, out->notices);
    return STK_OK;
}
