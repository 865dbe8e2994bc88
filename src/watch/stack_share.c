#include "watch/stack_share.h"

#define OTHERS_LENGTH UINT64_C(1500000000) /* of the longest sample */
#define OTHERS_LAST 64                     /* samples, among which is the one that ends last */
#define RAN_MOSTLY 0.5 /* a sample of several things says of one that it ran, or nothing */
#define SELDOM 15e6    /* ns: stacks of a thread that always runs are taken less often */

/* --- the loop's thread -------------------------------------------------------------------------*/

static double cpu_share(const struct host_sample *sample)
{
    return (double)sample->cpu / (double)(sample->end - sample->start);
}

/* How much of a sample a kind of span covers, and what the thread ran of it by the span's word. */
static void sample_less(const struct process_line *line, int kind, const struct host_sample *sample,
                        double *rest, double *cpu)
{
    const struct time_list *list = &line->spans[kind];
    for (size_t i = time_list_after(list, sample->start); i < list->count; i++) {
        const struct host_span *span = time_list_at(list, i);
        if (span->start >= sample->end)
            break;
        double share = host_span_cpu(span);
        if (share < 0)
            continue;
        double part = (double)stretch_overlap(span->start, span->end, sample->start, sample->end);
        *rest -= part;
        *cpu -= part * share;
    }
}

/* What the thread ran of a sample outside the spans that know it themselves; a share of the rest.
 */
static double sample_ran(const struct process_line *line, const struct host_sample *sample)
{
    static const int known[] = {SPAN_NEXT,      SPAN_FORWARD,    SPAN_BACKWARD,
                                SPAN_OPTIMIZER, SPAN_CHECKPOINT, SPAN_COLLECTIVE};
    double rest = (double)(sample->end - sample->start), cpu = (double)sample->cpu;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        sample_less(line, known[i], sample, &rest, &cpu);
    double share = rest > 0 && cpu > 0 ? cpu / rest : 0;
    return share < 1 ? share : 1;
}

/* A sample that reaches out of the stretch tells of several things at once: it ran, or it did not;
 * and the last one, whose stack is of a later moment, was where the one before it was. */
double stack_user_ran(const struct process_line *line, uint64_t start, uint64_t end)
{
    const struct time_list *samples = &line->samples;
    double user = 0, all = 0;
    int torch = -1;
    for (size_t i = time_list_after(samples, start); i < samples->count; i++) {
        const struct host_sample *sample = time_list_at(samples, i);
        if (sample->start >= end)
            break;
        int later = sample->end > end && !(sample->flags & SAMPLE_JOINED);
        if (!later || torch < 0)
            torch = (sample->flags & FRAME_TORCH) != 0;
        if (sample->cpu == CPU_UNKNOWN)
            continue;
        double share = sample_ran(line, sample);
        if (sample->start < start || sample->end > end)
            share = share < RAN_MOSTLY ? 0 : 1;
        double part = (double)stretch_overlap(sample->start, sample->end, start, end);
        all += part;
        user += torch ? 0 : part * share;
    }
    return all > 0 ? user / all : 0;
}

double stack_share(const struct process_line *line, const struct stack_where *where, double *ran)
{
    double in = 0, all = 0, cpu = 0;
    int is_in = -1;
    for (size_t i = time_list_after(&line->samples, where->start); i < line->samples.count; i++) {
        const struct host_sample *sample = time_list_at(&line->samples, i);
        if (sample->start >= where->end)
            break;
        int later = sample->end > where->end && !(sample->flags & SAMPLE_JOINED);
        if (is_in < 0 || !later || !where->is_cut)
            is_in = (sample->flags & (where->flags | where->without)) == where->flags;
        double part = (double)stretch_overlap(sample->start, sample->end, where->start, where->end);
        double share = sample->cpu == CPU_UNKNOWN ? 1 : cpu_share(sample);
        if ((double)(sample->end - sample->start) > SELDOM && share >= RAN_MOSTLY)
            share = 1; /* it tells of more than these frames */
        all += part;
        in += is_in ? part : 0;
        cpu += is_in ? part * share : 0;
    }
    if (ran)
        *ran = in > 0 ? cpu / in : 0;
    return all > 0 ? in / all : 0;
}

/* --- other threads -----------------------------------------------------------------------------*/

size_t stack_others_from(const struct time_list *others, uint64_t start)
{
    return time_list_from(others, start > OTHERS_LENGTH ? start - OTHERS_LENGTH : 0);
}

/* Up to when the stacks of a process's other threads are known. */
static uint64_t others_until(const struct time_list *others)
{
    uint64_t until = 0;
    size_t from = others->count > OTHERS_LAST ? others->count - OTHERS_LAST : 0;
    for (size_t i = from; i < others->count; i++) {
        const struct host_sample *sample = time_list_at(others, i);
        until = sample->end > until ? sample->end : until;
    }
    return until;
}

/* A thread that ends leaves its last moments untold: those just before them stand for them. */
double stack_others_ran(const struct process_line *line, uint64_t start, uint64_t end,
                        double *mapped)
{
    const struct time_list *others = &line->others;
    double ran = 0, maps = 0;
    uint64_t until = others_until(others);
    if (end > until && end - until < OTHERS_LENGTH && end - start < until) {
        start = until - (end - start);
        end = until;
    }
    for (size_t i = stack_others_from(others, start); i < others->count; i++) {
        const struct host_sample *sample = time_list_at(others, i);
        if (sample->start >= end)
            break;
        if (sample->cpu == CPU_UNKNOWN)
            continue;
        double part = (double)stretch_overlap(sample->start, sample->end, start, end);
        part *= cpu_share(sample);
        ran += part;
        maps += sample->flags & FRAME_MAP ? part : 0;
    }
    *mapped = ran > 0 ? maps / ran : 0;
    return ran / (double)(end - start);
}
