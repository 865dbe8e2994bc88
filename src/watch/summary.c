#include "watch/summary.h"

#include "base/memory.h"

static void texts_free(char **texts, size_t most)
{
    for (size_t i = 0; i < most && texts[i]; i++)
        memory_free(texts[i]);
}

static void causes_free(struct summary_cause *causes)
{
    for (int i = 0; i < CAUSE_COUNT; i++)
        for (int k = 0; k < 3; k++) {
            memory_free(causes[i].functions[k].function);
            memory_free(causes[i].functions[k].file);
        }
}

static void tree_free(struct summary_tree *tree)
{
    for (size_t i = 0; tree->nodes && i < tree->count; i++) {
        memory_free(tree->nodes[i].function);
        memory_free(tree->nodes[i].file);
    }
    memory_free(tree->nodes);
}

static void lanes_free(struct summary_lane *lanes, size_t count)
{
    for (size_t i = 0; lanes && i < count; i++) {
        for (size_t k = 0; lanes[i].slices && k < lanes[i].count; k++)
            memory_free(lanes[i].slices[k].name);
        memory_free(lanes[i].slices);
        memory_free(lanes[i].name);
    }
    memory_free(lanes);
}

void summary_free(struct summary *summary)
{
    if (!summary)
        return;
    for (size_t i = 0; summary->command && summary->command[i]; i++)
        memory_free(summary->command[i]);
    memory_free(summary->command);
    texts_free(summary->unreliable, SUMMARY_REASONS);
    texts_free(summary->notices, SUMMARY_REASONS);
    for (size_t i = 0; summary->ranks && i < summary->rank_count; i++) {
        causes_free(summary->ranks[i].causes);
        memory_free(summary->ranks[i].epochs);
    }
    memory_free(summary->ranks);
    memory_free(summary->loaders);
    memory_free(summary->gaps);
    tree_free(&summary->main_tree);
    tree_free(&summary->worker_tree);
    memory_free(summary->processes);
    for (int i = 0; i < SERIES_COUNT; i++)
        memory_free(summary->series[i]);
    lanes_free(summary->lanes, summary->lane_count);
    memory_free(summary->what_if);
    *summary = (struct summary){0};
}

uint64_t summary_idle(const struct summary *summary)
{
    uint64_t idle = 0;
    for (size_t i = 0; i < summary->rank_count; i++)
        idle += summary->ranks[i].idle_ns;
    return idle;
}

double summary_share(const struct summary *summary, enum cause cause)
{
    uint64_t idle = summary_idle(summary), part = 0;
    for (size_t i = 0; i < summary->rank_count; i++)
        part += summary->ranks[i].causes[cause].ns;
    return idle ? (double)part / (double)idle : 0;
}

double summary_busy(const struct summary *summary)
{
    uint64_t judged = 0, busy = 0;
    for (size_t i = 0; i < summary->rank_count; i++) {
        const struct summary_rank *rank = &summary->ranks[i];
        judged += rank->end - rank->start - rank->excluded_ns;
        busy += rank->compute_ns;
    }
    return judged ? (double)busy / (double)judged : 0;
}
