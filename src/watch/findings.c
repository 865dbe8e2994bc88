#include "watch/findings.h"

#include <math.h>
#include <string.h>

#include "watch/plain_words.h"

#define POOL_LEAST 0.05 /* of a CPU: what uses less is a helper of multiprocessing itself */

static int same_text(const char *a, const char *b)
{
    return strcmp(a ? a : "", b ? b : "") == 0;
}

static int same_function(const struct summary_function *a, const struct summary_function *b)
{
    return same_text(a->function, b->function) && same_text(a->file, b->file) && a->line == b->line;
}

/* Of each rank there are three; what one rank adds to another's is summed, the three largest of all
 * stay. */
void findings_cause(struct summary_cause *out, const struct summary *summary, enum cause cause)
{
    *out = (struct summary_cause){0};
    for (size_t i = 0; i < summary->rank_count; i++) {
        const struct summary_cause *one = &summary->ranks[i].causes[cause];
        out->ns += one->ns;
        for (size_t j = 0; j < 3 && one->functions[j].function; j++) {
            struct summary_function added = one->functions[j];
            size_t at = 0;
            while (at < 3 && out->functions[at].function &&
                   !same_function(&out->functions[at], &added))
                at++;
            if (at < 3 && out->functions[at].function)
                added.ns += out->functions[at].ns;
            else if (at == 3)
                at = added.ns > out->functions[2].ns ? 2 : 3;
            for (; at > 0 && at < 3 && out->functions[at - 1].ns < added.ns; at--)
                out->functions[at] = out->functions[at - 1];
            if (at < 3)
                out->functions[at] = added;
        }
    }
}

const struct summary_function *findings_function(const struct summary_cause *causes,
                                                 enum cause cause)
{
    int waits = cause == CAUSE_START || cause == CAUSE_COLLATE || cause == CAUSE_WORKERS;
    for (int i = 0; i < 3 && causes->functions[i].function; i++) {
        if (causes->functions[i].ns < causes->ns / 50) /* what took the time has no name */
            break;
        const char *file = causes->functions[i].file ? causes->functions[i].file : "";
        int library = strstr(file, "site-packages/") || strstr(file, "dist-packages/");
        if (!strstr(file, "/python3.") && strncmp(file, "python3.", 8) != 0 && file[0] != '<' &&
            !(library && waits))
            return &causes->functions[i];
        if (library && !waits)
            return &causes->functions[i];
    }
    return NULL;
}

uint64_t findings_judged(const struct summary_rank *rank)
{
    uint64_t whole = rank->end > rank->start ? rank->end - rank->start : 0;
    return whole > rank->excluded_ns ? whole - rank->excluded_ns : 0;
}

enum cause findings_first_cause(const struct summary_rank *rank)
{
    int most = CAUSE_COUNT;
    for (int i = 0; i < CAUSE_COUNT; i++)
        if (rank->causes[i].ns &&
            (most == CAUSE_COUNT || rank->causes[i].ns > rank->causes[most].ns))
            most = i;
    return (enum cause)most;
}

int findings_slowest(const struct summary *summary, char *words, size_t room)
{
    uint64_t waited = 0, judged = 0;
    size_t slowest = 0;
    words[0] = '\0';
    if (summary->rank_count < 2)
        return -1;
    for (size_t i = 0; i < summary->rank_count; i++) {
        const struct summary_rank *rank = &summary->ranks[i];
        waited += rank->causes[CAUSE_RANK].ns;
        judged += findings_judged(rank);
        if (rank->causes[CAUSE_RANK].ns < summary->ranks[slowest].causes[CAUSE_RANK].ns)
            slowest = i;
    }
    const struct summary_rank *slow = &summary->ranks[slowest];
    uint64_t others = waited - slow->causes[CAUSE_RANK].ns;
    double share = (double)others / ((double)(judged - findings_judged(slow)) + 1);
    double own = (double)slow->causes[CAUSE_RANK].ns / ((double)findings_judged(slow) + 1);
    if (share < 0.02 || own > 0.7 * share)
        return -1; /* they wait for each other in turn */
    struct summary_rank rest = *slow;
    rest.causes[CAUSE_RANK].ns = 0;
    enum cause first = findings_first_cause(&rest);
    words_put(words, room, "rank %d is the slowest: the others wait for it %s of the time%s%s",
              slow->rank, word_percent(share).text,
              first == CAUSE_COUNT ? "" : ", and what it waits for itself is first of all ",
              first == CAUSE_COUNT ? "" : cause_words(first));
    return (int)slowest;
}

const char *findings_throttle(uint64_t reason)
{
    static const struct {
        uint64_t bit; /* as nvml.h numbers nvmlClocksThrottleReason... */
        const char *words;
    } reasons[] = {{0x4, "power cap"},
                   {0x8, "hardware slowdown"},
                   {0x20, "too hot (by software)"},
                   {0x40, "too hot (by hardware)"},
                   {0x80, "power brake"}};
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].bit == reason)
            return reasons[i].words;
    return NULL;
}

static const struct summary_loader *find_loader(const struct findings *findings)
{
    const struct summary *summary = findings->summary;
    const struct summary_loader *most = NULL;
    for (size_t i = 0; i < summary->loader_count; i++) {
        const struct summary_loader *one = &summary->loaders[i];
        if (findings->slowest >= 0 && one->rank >= 0 &&
            one->rank != summary->ranks[findings->slowest].rank)
            continue;
        if (!most || one->next_ns + one->start_ns > most->next_ns + most->start_ns)
            most = one;
    }
    return most;
}

static void find_loader_work(struct findings *out)
{
    const struct summary_loader *loader = out->loader;
    if (!loader || !loader->handed_out)
        return;
    double batches = (double)loader->handed_out * 1e9;
    double work = (double)(loader->fetch_ns + loader->collate_ns + loader->send_ns);
    double cpu = (double)(loader->fetch_cpu_ns + loader->collate_ns + loader->send_ns);
    out->batch_work = work / batches;
    out->batch_cpu = cpu / batches;
    if (loader->workers > 0 && work > 0)
        out->worker_idle = (double)loader->idle_ns / (work + (double)loader->idle_ns);
}

static uint64_t function_time(const struct summary_tree *tree, const struct summary_function *one)
{
    uint64_t ns = 0;
    for (size_t i = 1; i < tree->count; i++)
        if (same_text(tree->nodes[i].function, one->function) &&
            same_text(tree->nodes[i].file, one->file))
            ns += tree->nodes[i].ns;
    return ns;
}

/* With workers, a function of the main thread's calls is none of theirs. Without, it may be run by
 * next(): then the loop was there as long. */
static int transform_on_main(const struct findings *findings)
{
    const struct summary_function *first = &findings->transform.functions[0];
    const struct summary *summary = findings->summary;
    double seconds = findings->seconds[CAUSE_TRANSFORM];
    if (findings->pooled)
        return 0;
    if (!findings->loader || findings->loader->workers <= 0)
        return seconds > 0 && findings->next < 0.7 * seconds;
    if (!first->function)
        return seconds > 0 && findings->next < 0.3 * seconds;
    return function_time(&summary->main_tree, first) > function_time(&summary->worker_tree, first);
}

static double clock_gain(const struct summary *summary)
{
    const float *clock = summary->series[SERIES_GPU_CLOCK];
    double most = 0, sum = 0, count = 0;
    for (size_t i = 0; clock && i < summary->bins; i++) {
        if (!(clock[i] > 0))
            continue;
        most = (double)clock[i] > most ? (double)clock[i] : most;
        sum += (double)clock[i];
        count++;
    }
    return count > 0 ? most * count / sum : 1;
}

static void add_processes(struct findings *out)
{
    const struct summary *summary = out->summary;
    for (size_t i = 0; i < summary->process_count; i++) {
        const struct summary_process *process = &summary->processes[i];
        out->read_bytes += (double)process->read_bytes;
        out->major_faults += (double)process->major_faults;
        out->rss += (double)process->max_rss;
        double cpu = (double)process->cpu_ns / 1e9;
        if (strcmp(process->role, "helper") == 0 && cpu > POOL_LEAST * out->judged / out->ranks)
            out->pooled = !out->loader;
        if (strcmp(process->role, "main") == 0)
            out->main_delay += (double)process->run_delay_ns / 1e9;
    }
    /* Of the whole run; the judged part of it is what counts. */
    if (summary->wall_ns)
        out->main_delay *= out->judged / out->ranks / ((double)summary->wall_ns / 1e9);
    if (out->main_delay > out->idle)
        out->main_delay = out->idle;
}

static void add_rank(struct findings *out, const struct summary_rank *rank)
{
    out->judged += (double)findings_judged(rank) / 1e9;
    out->compute += (double)rank->compute_ns / 1e9;
    out->idle += (double)rank->idle_ns / 1e9;
    out->next += (double)rank->next_ns / 1e9;
    out->steps += (double)rank->steps;
    out->copied += (double)rank->copied_bytes;
    out->pageable += (double)rank->pageable_bytes;
    out->kernels += (double)rank->kernels;
    for (int cause = 0; cause < CAUSE_COUNT; cause++)
        out->seconds[cause] += (double)rank->causes[cause].ns / 1e9;
}

void findings_make(struct findings *out, const struct summary *summary, enum findings_of of)
{
    char words[256];
    *out = (struct findings){.summary = summary, .slowest = -1};
    if (of == FINDINGS_SLOWEST)
        out->slowest = findings_slowest(summary, words, sizeof words);
    out->loader = find_loader(out);
    out->gpu = summary->mode == WATCH_GPU || summary->mode == WATCH_SAMPLED;
    out->ranks = summary->rank_count ? (double)summary->rank_count : 1;
    out->loop_unseen = summary->rank_count > 0;
    for (size_t i = 0; i < summary->rank_count; i++)
        out->loop_unseen &= summary->ranks[i].loop_unseen;
    for (size_t i = 0; i < summary->rank_count; i++)
        if (out->slowest < 0 || (size_t)out->slowest == i)
            add_rank(out, &summary->ranks[i]);
    for (int cause = CAUSE_FETCH; cause <= CAUSE_START; cause++)
        out->input += out->seconds[cause];
    out->step = out->steps > 0 ? out->judged / out->steps : 0;
    out->foreign_cpus = summary->foreign_cpu_share * summary->cpus;
    out->free_cpus = (1 - summary->own_cpu_share - summary->foreign_cpu_share) * summary->cpus;
    out->free_cpus = out->free_cpus > 0 ? out->free_cpus : 0;
    out->clock_gain = clock_gain(summary);
    add_processes(out);
    findings_cause(&out->transform, summary, CAUSE_TRANSFORM);
    if (out->pooled) /* its stacks are not looked at */
        out->transform.functions[0] = (struct summary_function){
            .function = (char *)(uintptr_t) "what the pool's processes do",
            .ns = out->transform.ns};
    find_loader_work(out);
    out->on_main = transform_on_main(out);
    out->work = out->seconds[CAUSE_FETCH] + out->seconds[CAUSE_COLLATE] +
                out->seconds[CAUSE_WORKERS] + (out->on_main ? 0 : out->seconds[CAUSE_TRANSFORM]);
    double rest = out->judged - out->input + (out->on_main ? out->seconds[CAUSE_TRANSFORM] : 0);
    out->step_alone = out->steps > 0 && rest > 0 ? rest / out->steps : 0;
}

int findings_workers(const struct findings *findings)
{
    double alone = findings->step_alone, work = findings->batch_work;
    int now = findings->loader && findings->loader->workers > 0 ? findings->loader->workers : 0;
    if (alone <= 0 || work <= 0)
        return now;
    double on_cpu = findings->batch_cpu / work;
    double room = now + findings->free_cpus / findings->ranks / (on_cpu > 0.05 ? on_cpu : 0.05);
    double wanted = ceil(1.1 * work / alone);
    if (!now)
        room += 1; /* what the loop did itself goes to the first one */
    wanted = wanted < room ? wanted : floor(room);
    return wanted > 64 ? 64 : (int)wanted;
}

double findings_workers_save(const struct findings *findings, int workers)
{
    const struct summary *summary = findings->summary;
    double fed = findings->batch_work / workers;
    double cpu = findings->step * summary->own_cpu_share / (1.001 - summary->foreign_cpu_share);
    double step = findings->step_alone > fed ? findings->step_alone : fed;
    step = step > cpu ? step : cpu;
    double saved = (findings->step - step) * findings->steps;
    return saved < findings->work ? saved : findings->work;
}
