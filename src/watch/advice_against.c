/* What people try first, and what would gain nothing in this run: a table too. */
#include <string.h>

#include "watch/advice_rules.h"
#include "watch/findings.h"
#include "watch/plain_words.h"

#define LITTLE 0.02 /* of the judged time */

struct idea {
    const char *name, *words;
    /* Not 0: it would not help, and `why` says so. */
    int (*find)(const struct findings *findings, char *why, size_t room);
};

static double part(const struct findings *findings, double seconds)
{
    return findings->judged > 0 ? seconds / findings->judged : 0;
}

static double part_of_idle(const struct findings *findings, double seconds)
{
    return findings->idle > 0 ? seconds / findings->idle : 0;
}

static int is_input(const struct findings *findings)
{
    return part(findings, findings->input) > 0.1;
}

static int has_workers(const struct findings *findings)
{
    return findings->loader && strcmp(findings->loader->kind, "stoker") != 0 &&
           findings->loader->workers > 0;
}

static int not_more_workers(const struct findings *findings, char *why, size_t room)
{
    const struct summary *summary = findings->summary;
    if (!has_workers(findings))
        return 0;
    if (part(findings, findings->input) < LITTLE) {
        words_put(why, room, "input is waited for %s of the time",
                  word_percent(part(findings, findings->input)).text);
        return 1;
    }
    if (findings->on_main && findings->seconds[CAUSE_TRANSFORM] > 0.5 * findings->input) {
        words_put(why, room, "the work is on the main thread, where no worker helps");
        return 1;
    }
    double on_cpu = findings->batch_work > 0 ? findings->batch_cpu / findings->batch_work : 1;
    if (findings->free_cpus < 0.5 && on_cpu > 0.5) {
        words_put(why, room, "no CPU is free: %.1f of %u are in use",
                  summary->cpus - findings->free_cpus, summary->cpus);
        return 1;
    }
    if (findings->worker_idle > 0.5) {
        words_put(why, room, "the workers have nothing to do %s of the time",
                  word_percent(findings->worker_idle).text);
        return 1;
    }
    return 0;
}

static int not_faster_storage(const struct findings *findings, char *why, size_t room)
{
    double share = part_of_idle(findings, findings->seconds[CAUSE_FETCH]);
    if (!is_input(findings) || share > 0.05)
        return 0;
    words_put(why, room, "reading is %s of the waiting", word_percent(share).text);
    return 1;
}

static int not_faster_device(const struct findings *findings, char *why, size_t room)
{
    if (!findings->gpu || part(findings, findings->compute) > 0.6)
        return 0;
    words_put(why, room, "this one is busy %s of the time",
              word_percent(part(findings, findings->compute)).text);
    return 1;
}

static int not_pin_memory(const struct findings *findings, char *why, size_t room)
{
    double share = part(findings, findings->seconds[CAUSE_COPY]);
    if (findings->summary->mode != WATCH_GPU || share > LITTLE || !findings->loader ||
        findings->loader->pin_memory == 1)
        return 0;
    words_put(why, room, "copies are waited for %s of the time", word_percent(share).text);
    return 1;
}

static int not_prefetch(const struct findings *findings, char *why, size_t room)
{
    if (!has_workers(findings) || !is_input(findings) || findings->worker_idle > 0.1 ||
        findings->seconds[CAUSE_SLOW_SAMPLE] > 0.2 * findings->input)
        return 0;
    words_put(why, room, "every worker is busy; a longer queue does not fill itself faster");
    return 1;
}

static int not_compile(const struct findings *findings, char *why, size_t room)
{
    double share = part(findings, findings->seconds[CAUSE_LAUNCH]);
    if (findings->summary->mode != WATCH_GPU || findings->loop_unseen || share > LITTLE ||
        part(findings, findings->compute) > 0.6)
        return 0;
    words_put(why, room, "the GPU waits for launches %s of the time", word_percent(share).text);
    return 1;
}

static int not_precision(const struct findings *findings, char *why, size_t room)
{
    if (part(findings, findings->compute) > 0.4)
        return 0;
    words_put(why, room, "computing is %s of the time only",
              word_percent(part(findings, findings->compute)).text);
    return 1;
}

static const struct idea ideas[] = {
    {"more-workers", "more workers", not_more_workers},
    {"faster-storage", "a faster disk", not_faster_storage},
    {"pin-memory", "pin_memory", not_pin_memory},
    {"prefetch-factor", "a larger prefetch_factor", not_prefetch},
    {"faster-gpu", "a faster GPU", not_faster_device},
    {"mixed-precision", "mixed precision or a smaller model", not_precision},
    {"cuda-graphs", "CUDA graphs", not_compile},
};

size_t advice_against(const struct summary *summary, struct advice *out, size_t room)
{
    struct findings findings;
    size_t count = 0;
    if (summary->unreliable[0] || !summary->rank_count)
        return 0;
    findings_make(&findings, summary, FINDINGS_ALL);
    for (size_t i = 0; i < sizeof ideas / sizeof ideas[0] && count < room; i++) {
        struct advice *one = &out[count];
        *one = (struct advice){.rule = ideas[i].name, .gain = 1};
        if (!ideas[i].find(&findings, one->why, sizeof one->why))
            continue;
        words_put(one->action, sizeof one->action, "%s", ideas[i].words);
        count++;
    }
    return count;
}
