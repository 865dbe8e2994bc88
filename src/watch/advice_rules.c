#include "watch/advice_rules.h"

#include <string.h>

#include "watch/advice_snippet.h"
#include "watch/findings.h"
#include "watch/plain_words.h"

#define WORTH 0.03    /* of the judged time: what takes less is not worth a change */
#define HEALTHY 0.9   /* of the judged time is compute: there is little to gain */
#define MOST_RULES 32 /* more than there are */

/* How a rule reads: `evidence` says how many seconds of the judged time the change removes at most,
 * as findings.h counts it; 0: it does not apply. `tell` writes what to do, and why. */
struct rule {
    const char *name;
    double (*evidence)(const struct findings *findings); /* NULL: the time of `cause` */
    enum cause cause;
    void (*tell)(const struct findings *findings, struct advice *out);
    double ease; /* of two alike gains, the easier change comes first: 1 is an argument to change */
    int input;   /* what it gains is bounded by what free input would gain */
};

#define ACTION(out, ...) words_put((out)->action, sizeof(out)->action, __VA_ARGS__)
#define WHY(out, ...) words_put((out)->why, sizeof(out)->why, __VA_ARGS__)
#define PERCENT(part) word_percent(findings->judged > 0 ? (part) / findings->judged : 0).text
#define SECONDS(seconds) word_seconds(seconds).text

/* --- what the rules have in common --------------------------------------------------------- */

static int is_worth(const struct findings *findings, double seconds)
{
    return findings->judged > 0 && seconds >= WORTH * findings->judged;
}

static double when_worth(const struct findings *findings, double seconds)
{
    return is_worth(findings, seconds) ? seconds : 0;
}

static int is_torch(const struct findings *findings)
{
    return findings->loader && strcmp(findings->loader->kind, "stoker") != 0;
}

static int has_workers(const struct findings *findings)
{
    return is_torch(findings) && findings->loader->workers > 0;
}

static const char *who(const struct findings *findings)
{
    return findings->gpu ? "The GPU" : "The training step";
}

/* --- workers ------------------------------------------------------------------------------- */

static double find_more_workers(const struct findings *findings)
{
    if (!has_workers(findings) || findings->worker_idle > 0.3)
        return 0;
    int wanted = findings_workers(findings);
    if (wanted <= findings->loader->workers || !is_worth(findings, findings->work))
        return 0;
    return when_worth(findings, findings_workers_save(findings, wanted));
}

static void tell_more_workers(const struct findings *findings, struct advice *out)
{
    int now = findings->loader->workers, wanted = findings_workers(findings);
    ACTION(out, "Give %s %d workers instead of %d: num_workers=%d.",
           word_loader(findings->loader).text, wanted, now, wanted);
    WHY(out,
        "A batch takes a worker %s, so %d of them bring one every %s, and the step alone takes %s. "
        "The workers had work %s of the time; %.1f of %u CPUs are free.",
        SECONDS(findings->batch_work), now, SECONDS(findings->batch_work / now),
        SECONDS(findings->step_alone), word_percent(1 - findings->worker_idle).text,
        findings->free_cpus, findings->summary->cpus);
}

static double find_use_workers(const struct findings *findings)
{
    if (!is_torch(findings) || findings->loader->workers != 0 ||
        !is_worth(findings, findings->work))
        return 0;
    int wanted = findings_workers(findings);
    return wanted < 1 ? 0 : when_worth(findings, findings_workers_save(findings, wanted));
}

static void tell_use_workers(const struct findings *findings, struct advice *out)
{
    int wanted = findings_workers(findings);
    ACTION(out, "Give %s workers: num_workers=%d, persistent_workers=True.",
           word_loader(findings->loader).text, wanted);
    WHY(out,
        "It has none (num_workers=0): each batch is made in the loop itself, in %s, while nothing "
        "else happens. Workers make the next ones while the step runs (%s).",
        SECONDS(findings->batch_work), SECONDS(findings->step_alone));
}

static double find_fewer_workers(const struct findings *findings)
{
    if (!has_workers(findings) || findings->summary->foreign_cpu_share > 0.1 ||
        findings->loader->workers * findings->ranks <= findings->summary->cpus)
        return 0;
    return when_worth(findings, findings->main_delay);
}

static void tell_fewer_workers(const struct findings *findings, struct advice *out)
{
    unsigned cpus = findings->summary->cpus;
    unsigned each = cpus / (unsigned)findings->ranks;
    ACTION(out, "Give %s fewer workers: num_workers=%u.", word_loader(findings->loader).text,
           each > 1 ? each - 1 : 1);
    WHY(out,
        "There are %.0f workers for %u CPUs. They take the CPU from the loop itself: it could run "
        "but had no CPU for %s, %s of the time.",
        findings->loader->workers * findings->ranks, cpus, SECONDS(findings->main_delay),
        PERCENT(findings->main_delay));
}

static double find_persistent_workers(const struct findings *findings)
{
    const struct summary_loader *loader = findings->loader;
    if (!has_workers(findings) || loader->persistent_workers != 0 || loader->starts < 2)
        return 0;
    double again = (double)(loader->starts - 1) / (double)loader->starts;
    return when_worth(findings, findings->seconds[CAUSE_START] * again);
}

static void tell_persistent_workers(const struct findings *findings, struct advice *out)
{
    const struct summary_loader *loader = findings->loader;
    ACTION(out, "Keep the workers from one epoch to the next: persistent_workers=True in %s.",
           word_loader(loader).text);
    WHY(out, "Its %d workers were started %s times, and that took %s, %s of the time.",
        loader->workers, word_count(loader->starts).text, SECONDS(findings->seconds[CAUSE_START]),
        PERCENT(findings->seconds[CAUSE_START]));
}

static double find_epoch_start(const struct findings *findings)
{
    const struct summary_loader *loader = findings->loader;
    if (!loader || loader->epochs < 2 || (loader->workers > 0 && loader->persistent_workers == 0))
        return 0;
    return when_worth(findings, findings->seconds[CAUSE_START]);
}

static void tell_epoch_start(const struct findings *findings, struct advice *out)
{
    const struct summary_loader *loader = findings->loader;
    ACTION(out, "Make the start of an epoch shorter: keep what the sampler or the data set builds "
                "in __iter__ (lists, shuffles, open files), or let one epoch go over the data "
                "several times.");
    WHY(out,
        "%s epochs began, and until their first batch the loop waited %s in all, %s of the "
        "time.",
        word_count(loader->epochs).text, SECONDS(findings->seconds[CAUSE_START]),
        PERCENT(findings->seconds[CAUSE_START]));
}

/* --- transforms ---------------------------------------------------------------------------- */

/* The function that takes most of it; 0 where no stacks say which. */
static double function_seconds(const struct findings *findings)
{
    struct summary_cause workers;
    const struct summary_function *first = &findings->transform.functions[0];
    findings_cause(&workers, findings->summary, CAUSE_WORKERS);
    if (!first->function)
        return 0;
    uint64_t ns = first->ns;
    for (int i = 0; i < 3 && workers.functions[i].function; i++)
        if (strcmp(workers.functions[i].function, first->function) == 0)
            ns += workers.functions[i].ns;
    return (double)ns / 1e9;
}

static double find_transform_to_gpu(const struct findings *findings)
{
    const char *function = findings->transform.functions[0].function;
    int reads = function && (strcasestr(function, "decode") || strcasestr(function, "open") ||
                             strcasestr(function, "load") || strcasestr(function, "read"));
    return findings->gpu && !reads ? when_worth(findings, function_seconds(findings)) : 0;
}

static void tell_transform_to_gpu(const struct findings *findings, struct advice *out)
{
    const struct summary_function *first = &findings->transform.functions[0];
    ACTION(out,
           "Move %s to the GPU: call it on the whole batch after .to(device), with torch or "
           "torchvision.transforms.v2.",
           word_function(first).text);
    WHY(out, "%s waited for it %s, %s of the time, and it is idle then anyway.", who(findings),
        SECONDS(function_seconds(findings)), PERCENT(function_seconds(findings)));
}

static double find_vectorise(const struct findings *findings)
{
    return find_transform_to_gpu(findings) > 0 ? 0
                                               : when_worth(findings, function_seconds(findings));
}

static void tell_vectorise(const struct findings *findings, struct advice *out)
{
    const struct summary_function *first = &findings->transform.functions[0];
    ACTION(out,
           "Make %s cheaper: no Python loops over elements (numpy or torch for the whole "
           "array), smaller input to it, or do it once and store the result.",
           word_function(first).text);
    WHY(out, "%s waited for it %s, %s of the time.", who(findings),
        SECONDS(function_seconds(findings)), PERCENT(function_seconds(findings)));
}

static double find_main_thread(const struct findings *findings)
{
    return findings->on_main && findings->loader
               ? when_worth(findings, findings->seconds[CAUSE_TRANSFORM])
               : 0;
}

static void tell_main_thread(const struct findings *findings, struct advice *out)
{
    const struct summary_function *first = &findings->transform.functions[0];
    ACTION(out,
           "Move %s out of the training loop into the data set's __getitem__ (or collate_fn), "
           "and let workers run it.",
           first->function ? word_function(first).text : "the work on the batch");
    WHY(out,
        "It runs on the main thread between batches: for %s, %s of the time, nothing is "
        "computed meanwhile.",
        SECONDS(findings->seconds[CAUSE_TRANSFORM]), PERCENT(findings->seconds[CAUSE_TRANSFORM]));
}

static double own_input(const struct findings *findings)
{
    return findings->seconds[CAUSE_FETCH] + findings->seconds[CAUSE_TRANSFORM];
}

static double find_own_input(const struct findings *findings)
{
    int has_one = findings->loader || findings->pooled;
    return has_one ? 0 : when_worth(findings, own_input(findings));
}

static void tell_own_input(const struct findings *findings, struct advice *out)
{
    struct summary_cause cause;
    int reads = findings->seconds[CAUSE_FETCH] > findings->seconds[CAUSE_TRANSFORM];
    findings_cause(&cause, findings->summary, reads ? CAUSE_FETCH : CAUSE_TRANSFORM);
    const struct summary_function *made = findings_function(&cause, CAUSE_TRANSFORM);
    ACTION(out,
           "Have batches made ahead: put %s into a data set's __getitem__ and draw from a "
           "DataLoader(num_workers=%u, persistent_workers=True), or read the data with "
           "stoker.Loader.",
           made ? word_function(made).text : "what makes them",
           findings->summary->cpus > 1 ? findings->summary->cpus : 1);
    WHY(out,
        "No loader was seen: the loop makes its batches itself, or one thread does, and %s "
        "waited for that %s, %s of the time.",
        findings->gpu ? "the GPU" : "the training step", SECONDS(own_input(findings)),
        PERCENT(own_input(findings)));
}

/* --- reading ------------------------------------------------------------------------------- */

static double find_shards(const struct findings *findings)
{
    if (!is_torch(findings) || !advice_snippet_small(findings->loader))
        return 0;
    return when_worth(findings, findings->seconds[CAUSE_FETCH]);
}

static void tell_shards(const struct findings *findings, struct advice *out)
{
    const struct summary_loader *loader = findings->loader;
    ACTION(out,
           "Pack the %s files in %s into shards, which are read in large pieces (Stoker and "
           "WebDataset read them).",
           word_count(loader->distinct_files).text, loader->folder);
    WHY(out,
        "They are %s each, and one is opened for every sample: %s opens. Reading took %s, %s "
        "of the time.",
        word_bytes((double)loader->opened_bytes / (double)loader->opens).text,
        word_count(loader->opens).text, SECONDS(findings->seconds[CAUSE_FETCH]),
        PERCENT(findings->seconds[CAUSE_FETCH]));
    advice_snippet_pack(out->snippet, sizeof out->snippet, loader);
}

static double find_faster_storage(const struct findings *findings)
{
    double fetch = findings->seconds[CAUSE_FETCH];
    return fetch >= 0.1 * findings->judged ? when_worth(findings, fetch) : 0;
}

static void tell_faster_storage(const struct findings *findings, struct advice *out)
{
    double opened = findings->loader ? (double)findings->loader->opened_bytes : 0;
    int local = findings->read_bytes > 1e6 && findings->read_bytes > 0.1 * opened;
    ACTION(out, "Read from a faster place: a local disk, or memory if the data fit (%s here).",
           word_bytes((double)findings->summary->memory_bytes).text);
    WHY(out, "%s waited %s for reading, %s of the time; %s%s came from a local disk%s.",
        who(findings), SECONDS(findings->seconds[CAUSE_FETCH]),
        PERCENT(findings->seconds[CAUSE_FETCH]), local ? "" : "only ",
        word_bytes(findings->read_bytes).text,
        local ? "" : ", so it is another machine or many small calls that take the time");
}

static double find_prefetch(const struct findings *findings)
{
    const struct summary_loader *loader = findings->loader;
    if (!has_workers(findings) || loader->prefetch_factor > 4 || findings->worker_idle < 0.15 ||
        loader->fetch_max_ns < 3 * loader->fetch_median_ns ||
        is_worth(findings, findings->seconds[CAUSE_SLOW_SAMPLE])) /* that rule says it too */
        return 0;
    return when_worth(findings, findings->work * findings->worker_idle);
}

static void tell_prefetch(const struct findings *findings, struct advice *out)
{
    const struct summary_loader *loader = findings->loader;
    ACTION(out, "Let the workers go further ahead: prefetch_factor=8 in %s.",
           word_loader(loader).text);
    WHY(out,
        "Batches take from %s (median) to %s, and the workers have nothing to do %s of the "
        "time, for they may be only %d batches ahead.",
        SECONDS((double)loader->fetch_median_ns / 1e9), SECONDS((double)loader->fetch_max_ns / 1e9),
        word_percent(findings->worker_idle).text,
        loader->prefetch_factor > 0 ? loader->prefetch_factor : 2);
}

/* What of the input Stoker would take over: not a function of the script that it does not know. */
static double stoker_seconds(const struct findings *findings)
{
    const double *seconds = findings->seconds;
    const char *function = findings->transform.functions[0].function;
    double sum = seconds[CAUSE_FETCH] + seconds[CAUSE_COLLATE] + seconds[CAUSE_START] +
                 seconds[CAUSE_GIL] + seconds[CAUSE_SLOW_SAMPLE];
    if (!function || advice_snippet_does(function))
        sum += seconds[CAUSE_TRANSFORM] + seconds[CAUSE_WORKERS];
    return sum;
}

static double find_use_stoker(const struct findings *findings)
{
    const struct summary_loader *loader = findings->loader;
    if (!is_torch(findings) || !loader->opens || !advice_snippet_known(loader->extension))
        return 0;
    double sum = stoker_seconds(findings);
    return sum >= 0.1 * findings->judged ? sum : 0;
}

static void tell_use_stoker(const struct findings *findings, struct advice *out)
{
    const struct summary_loader *loader = findings->loader;
    ACTION(out, "Read these files with Stoker: it opens, decodes and collates in C, in threads, "
                "straight into the batch.");
    WHY(out,
        "%s waited %s for input that Stoker makes itself, %s of the time: %s files (.%s) in "
        "%s.",
        who(findings), SECONDS(stoker_seconds(findings)), PERCENT(stoker_seconds(findings)),
        word_count(loader->distinct_files).text,
        loader->extension[0] == '.' ? loader->extension + 1 : loader->extension, loader->folder);
    advice_snippet(out->snippet, sizeof out->snippet, findings);
}

static double find_memory(const struct findings *findings)
{
    if (findings->judged <= 0 || findings->major_faults / findings->judged < 100)
        return 0;
    return when_worth(findings,
                      findings->seconds[CAUSE_FETCH] + findings->seconds[CAUSE_CONTENTION]);
}

static void tell_memory(const struct findings *findings, struct advice *out)
{
    ACTION(out, "Leave more memory free: fewer workers, smaller batches or prefetch_factor, or a "
                "machine with more.");
    WHY(out, "Pages had to be read back from the disk %s times; the processes held up to %s of %s.",
        word_count((uint64_t)findings->major_faults).text, word_bytes(findings->rss).text,
        word_bytes((double)findings->summary->memory_bytes).text);
}

/* --- collating and order ------------------------------------------------------------------- */

static void tell_collate(const struct findings *findings, struct advice *out)
{
    const struct summary_loader *loader = findings->loader;
    const char *function = loader && loader->collate[0] ? loader->collate : "collate_fn";
    const char *dot = strrchr(function, '.');
    function = dot ? dot + 1 : function;
    int own = strcmp(function, "default_collate") != 0;
    ACTION(out,
           "Make collating cheaper: %s tensors of one type from __getitem__ and torch.stack "
           "them once, no lists or copies; smaller batches; convert to float after the copy.",
           own ? "return" : "return few large");
    WHY(out, "%s and the way between processes took %s, %s of the time; a batch is %s.", function,
        SECONDS(findings->seconds[CAUSE_COLLATE]), PERCENT(findings->seconds[CAUSE_COLLATE]),
        loader && loader->batch_bytes ? word_bytes((double)loader->batch_bytes).text
                                      : "of unknown size");
}

static void tell_slow_sample(const struct findings *findings, struct advice *out)
{
    const struct summary_loader *loader = findings->loader;
    ACTION(out,
           "Keep one slow sample from holding up the rest: %sprefetch_factor=8, or make the "
           "large samples smaller beforehand (crop, decode once, sort by size).",
           loader && loader->in_order != 0 ? "in_order=False (torch 2.6 and later), " : "");
    WHY(out,
        "The slowest batch took %s and the median %s; batches behind it were ready and waited "
        "%s in all, %s of the time.",
        SECONDS(loader ? (double)loader->fetch_max_ns / 1e9 : 0),
        SECONDS(loader ? (double)loader->fetch_median_ns / 1e9 : 0),
        SECONDS(findings->seconds[CAUSE_SLOW_SAMPLE]),
        PERCENT(findings->seconds[CAUSE_SLOW_SAMPLE]));
}

/* --- the device ---------------------------------------------------------------------------- */

static double find_pin_memory(const struct findings *findings)
{
    return findings->pageable > 0.2 * findings->copied
               ? when_worth(findings, findings->seconds[CAUSE_COPY])
               : 0;
}

static void tell_pin_memory(const struct findings *findings, struct advice *out)
{
    ACTION(out,
           "Copy from pinned memory, beside the computing: pin_memory=True in %s, and "
           ".to(device, non_blocking=True).",
           findings->loader ? word_loader(findings->loader).text : "the DataLoader");
    WHY(out,
        "%s of %s were copied from pageable memory, which the GPU cannot fetch by itself; it "
        "waited %s for copies, %s of the time.",
        word_bytes(findings->pageable).text, word_bytes(findings->copied).text,
        SECONDS(findings->seconds[CAUSE_COPY]), PERCENT(findings->seconds[CAUSE_COPY]));
}

static double find_overlap_copy(const struct findings *findings)
{
    return find_pin_memory(findings) > 0 ? 0 : when_worth(findings, findings->seconds[CAUSE_COPY]);
}

static void tell_overlap_copy(const struct findings *findings, struct advice *out)
{
    ACTION(out, "Copy the next batch while this one is computed: non_blocking=True on a stream of "
                "its own; and copy less: uint8, made float on the GPU.");
    WHY(out, "%s were copied while nothing was computed: %s, %s of the time.",
        word_bytes(findings->copied).text, SECONDS(findings->seconds[CAUSE_COPY]),
        PERCENT(findings->seconds[CAUSE_COPY]));
}

static void tell_sync(const struct findings *findings, struct advice *out)
{
    struct summary_cause sync;
    findings_cause(&sync, findings->summary, CAUSE_SYNC);
    const struct summary_function *place = findings_function(&sync, CAUSE_SYNC);
    ACTION(out,
           "Ask the GPU for values less often%s%s, and log less: .item(), print(loss) and .cpu() "
           "once in 50 steps; keep sums on the GPU meanwhile.",
           place ? " in " : "", place ? word_function(place).text : "");
    WHY(out,
        "Python waited for the GPU to finish, or logged, and the GPU then for Python: %s, %s of "
        "the time.",
        SECONDS(findings->seconds[CAUSE_SYNC]), PERCENT(findings->seconds[CAUSE_SYNC]));
}

static void tell_launch(const struct findings *findings, struct advice *out)
{
    ACTION(out, "Launch fewer and larger kernels: torch.compile(model, mode=\"reduce-overhead\") "
                "(CUDA graphs), larger batches, foreach=True or fused=True in the optimizer.");
    WHY(out,
        "The GPU waited %s for Python to launch, %s of the time. A step launches %.0f kernels "
        "of %s.",
        SECONDS(findings->seconds[CAUSE_LAUNCH]), PERCENT(findings->seconds[CAUSE_LAUNCH]),
        findings->steps > 0 ? findings->kernels / findings->steps : 0,
        SECONDS(findings->kernels > 0 ? findings->compute / findings->kernels : 0));
}

static double find_throttle(const struct findings *findings)
{
    if (!(findings->summary->throttle & (0x8 | 0x20 | 0x40 | 0x80)))
        return 0;
    double saved = findings->compute * (1 - 1 / findings->clock_gain);
    return when_worth(findings, saved);
}

static void tell_throttle(const struct findings *findings, struct advice *out)
{
    ACTION(out, "See to the GPU's cooling and power: it slowed itself down.");
    WHY(out, "NVML names the reason (%s), and at its best clock it would be %s as fast.",
        findings->summary->throttle & 0x88 ? "hardware slowdown" : "too hot",
        word_gain(findings->clock_gain).text);
}

/* --- the host ------------------------------------------------------------------------------ */

static void tell_gil(const struct findings *findings, struct advice *out)
{
    ACTION(out, "Leave the interpreter to the loop: fewer Python threads in the training process "
                "(loggers, metrics, threads of your own), and smaller batches for the pin thread.");
    WHY(out,
        "The loop, the pin thread and others take turns at one interpreter (the GIL): %s, %s "
        "of the time.",
        SECONDS(findings->seconds[CAUSE_GIL]), PERCENT(findings->seconds[CAUSE_GIL]));
}

static void tell_checkpoint(const struct findings *findings, struct advice *out)
{
    ACTION(out, "Write checkpoints beside the training: torch.distributed.checkpoint.async_save; "
                "or less often, or to a faster disk.");
    WHY(out, "Training stood still for %s while they were written, %s of the time.",
        SECONDS(findings->seconds[CAUSE_CHECKPOINT]), PERCENT(findings->seconds[CAUSE_CHECKPOINT]));
}

static void tell_validation(const struct findings *findings, struct advice *out)
{
    ACTION(out, "Validate less often, or on a part of the data; and give its loader workers too, "
                "and larger batches (there are no gradients to keep).");
    WHY(out, "%s waited in validation for %s, %s of the time.", who(findings),
        SECONDS(findings->seconds[CAUSE_VALIDATION]), PERCENT(findings->seconds[CAUSE_VALIDATION]));
}

/* The greatest of those that the run itself started and that serve no loop; NULL: there is none. */
static const struct summary_process *neighbour_within(const struct findings *findings)
{
    const struct summary_process *most = NULL;
    double foreign = findings->foreign_cpus * findings->judged / findings->ranks * 1e9;
    for (size_t i = 0; i < findings->summary->process_count; i++) {
        const struct summary_process *process = &findings->summary->processes[i];
        if (strcmp(process->role, "unknown") == 0 && (double)process->cpu_ns > foreign / 4 &&
            (!most || process->cpu_ns > most->cpu_ns))
            most = process;
    }
    return most;
}

static double find_neighbour(const struct findings *findings)
{
    if (findings->summary->foreign_cpu_share < 0.05)
        return 0;
    return when_worth(findings, findings->seconds[CAUSE_CONTENTION]);
}

static void tell_neighbour(const struct findings *findings, struct advice *out)
{
    ACTION(out, "Run it where nothing else runs, or give it CPUs of its own (taskset, a cgroup): "
                "other programs take the CPUs.");
    const struct summary_process *own = neighbour_within(findings);
    char name[176] = "";
    if (own)
        words_put(name, sizeof name, " (the script itself started %s, process %u)", own->name,
                  own->pid);
    WHY(out,
        "Others used %.1f of %u CPUs%s; this run could have gone on but had no CPU for %s, %s "
        "of the time.",
        findings->foreign_cpus, findings->summary->cpus, name,
        SECONDS(findings->seconds[CAUSE_CONTENTION]), PERCENT(findings->seconds[CAUSE_CONTENTION]));
}

static double find_slow_rank(const struct findings *findings)
{
    const struct summary *summary = findings->summary;
    double judged = 0, waited = 0;
    for (size_t i = 0; i < summary->rank_count; i++) {
        judged += (double)findings_judged(&summary->ranks[i]);
        waited += (double)summary->ranks[i].causes[CAUSE_RANK].ns;
    }
    if (findings->slowest < 0 || !(judged > 0))
        return 0;
    return when_worth(findings, findings->judged * waited / judged);
}

static void tell_slow_rank(const struct findings *findings, struct advice *out)
{
    char words[256];
    findings_slowest(findings->summary, words, sizeof words);
    words[0] = 'R';
    ACTION(out,
           "Look at rank %d first: give the ranks equal work (batches of equal cost, equal "
           "machines), or mend what holds it up.",
           findings->summary->ranks[findings->slowest].rank);
    WHY(out, "%s.", words);
}

static double find_nothing(const struct findings *findings)
{
    if (findings->slowest >= 0 || !(findings->judged > 0))
        return 0;
    return findings->compute >= HEALTHY * findings->judged ? 1e-9 : 0;
}

static void tell_nothing(const struct findings *findings, struct advice *out)
{
    ACTION(out,
           "Leave the input as it is. To go faster, compute less or quicker: mixed precision "
           "(torch.autocast), torch.compile, larger batches, a smaller model%s.",
           findings->gpu ? ", more GPUs" : "");
    WHY(out, "%s was at work %s of the time.", who(findings), PERCENT(findings->compute));
}

/* --- the table ----------------------------------------------------------------------------- */

static const struct rule rules[] = {
    {"use-workers", find_use_workers, CAUSE_COUNT, tell_use_workers, 1.0, 1},
    {"more-workers", find_more_workers, CAUSE_COUNT, tell_more_workers, 1.0, 1},
    {"fewer-workers", find_fewer_workers, CAUSE_COUNT, tell_fewer_workers, 1.0, 0},
    {"persistent-workers", find_persistent_workers, CAUSE_COUNT, tell_persistent_workers, 1.0, 1},
    {"epoch-start", find_epoch_start, CAUSE_COUNT, tell_epoch_start, 0.7, 1},
    {"transform-to-gpu", find_transform_to_gpu, CAUSE_COUNT, tell_transform_to_gpu, 0.85, 1},
    {"transform-vectorise", find_vectorise, CAUSE_COUNT, tell_vectorise, 0.75, 1},
    {"main-thread-transform", find_main_thread, CAUSE_COUNT, tell_main_thread, 0.9, 1},
    {"use-a-loader", find_own_input, CAUSE_COUNT, tell_own_input, 0.95, 1},
    {"shard-small-files", find_shards, CAUSE_COUNT, tell_shards, 0.85, 1},
    {"faster-storage", find_faster_storage, CAUSE_COUNT, tell_faster_storage, 0.5, 1},
    {"prefetch-factor", find_prefetch, CAUSE_COUNT, tell_prefetch, 1.0, 1},
    {"use-stoker", find_use_stoker, CAUSE_COUNT, tell_use_stoker, 0.8, 1},
    {"memory-pressure", find_memory, CAUSE_COUNT, tell_memory, 0.7, 0},
    {"collate", NULL, CAUSE_COLLATE, tell_collate, 0.8, 1},
    {"slow-sample", NULL, CAUSE_SLOW_SAMPLE, tell_slow_sample, 0.95, 1},
    {"pin-memory", find_pin_memory, CAUSE_COUNT, tell_pin_memory, 1.0, 0},
    {"overlap-copy", find_overlap_copy, CAUSE_COUNT, tell_overlap_copy, 0.8, 0},
    {"sync", NULL, CAUSE_SYNC, tell_sync, 1.0, 0},
    {"cuda-graphs", NULL, CAUSE_LAUNCH, tell_launch, 0.9, 0},
    {"throttle", find_throttle, CAUSE_COUNT, tell_throttle, 0.5, 0},
    {"gil", NULL, CAUSE_GIL, tell_gil, 0.7, 0},
    {"checkpoint-async", NULL, CAUSE_CHECKPOINT, tell_checkpoint, 1.0, 0},
    {"validation-less-often", NULL, CAUSE_VALIDATION, tell_validation, 1.0, 0},
    {"noisy-neighbour", find_neighbour, CAUSE_COUNT, tell_neighbour, 0.8, 0},
    {"slow-rank", find_slow_rank, CAUSE_COUNT, tell_slow_rank, 0.8, 0},
    {"nothing-to-do", find_nothing, CAUSE_COUNT, tell_nothing, 1.0, 0},
};
_Static_assert(sizeof rules / sizeof rules[0] <= MOST_RULES, "a choice has a place for each");

const char *advice_rule_name(size_t number)
{
    return number < sizeof rules / sizeof rules[0] ? rules[number].name : NULL;
}

struct choice {
    const struct rule *rule;
    double gain, rating;
    int measured;
};

/* Rests on figures of the host and of the GPU alone. */
static int needs_no_loop(const struct rule *rule)
{
    return rule->evidence == find_throttle || rule->evidence == find_neighbour ||
           rule->evidence == find_memory || rule->evidence == find_slow_rank;
}

/* Amdahl's law on the judged time. What was measured bounds what is estimated. */
static struct choice weigh(const struct rule *rule, const struct findings *findings, double seconds)
{
    const struct summary_what_if *bound = findings->summary->what_if;
    double left = findings->judged - seconds;
    struct choice choice = {.rule = rule};
    choice.gain = left > 0.001 * findings->judged ? findings->judged / left : 1000;
    if (rule->input && bound && bound->measured && bound->gain < choice.gain) {
        choice.gain = bound->gain > 1 ? bound->gain : 1;
        choice.measured = 1;
    }
    choice.rating = (choice.gain - 1) * rule->ease;
    return choice;
}

size_t advice_find(const struct summary *summary, struct advice *out, size_t room)
{
    struct findings findings;
    struct choice found[MOST_RULES];
    size_t count = 0;
    if (summary->unreliable[0])
        return 0;
    findings_make(&findings, summary, FINDINGS_SLOWEST);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (findings.loop_unseen && !needs_no_loop(&rules[i]))
            continue;
        double seconds = rules[i].evidence
                             ? rules[i].evidence(&findings)
                             : when_worth(&findings, findings.seconds[rules[i].cause]);
        if (!(seconds > 0))
            continue;
        struct choice choice = weigh(&rules[i], &findings, seconds);
        size_t at = count++;
        for (; at > 0 && found[at - 1].rating < choice.rating; at--)
            found[at] = found[at - 1];
        found[at] = choice;
    }
    count = count < room ? count : room;
    for (size_t i = 0; i < count; i++) {
        out[i] = (struct advice){
            .rule = found[i].rule->name, .gain = found[i].gain, .measured = found[i].measured};
        found[i].rule->tell(&findings, &out[i]);
    }
    return count;
}
