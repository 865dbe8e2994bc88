/* input_split.h -- what held next(): where the batch that it waited for was meanwhile.
 * Owns: nothing.   Threads: one.   Errors: as idle_split.h.   Not here: time outside next(). */
#ifndef WATCH_INPUT_SPLIT_H
#define WATCH_INPUT_SPLIT_H

#include "watch/idle_split.h"

/* Gives a moment that lies in next() to its causes. */
void input_split(struct idle_split *split, const struct split_moment *moment);

/* What a process ran and would have run, by all its threads: libraries may decode in threads of
 * their own, and batches are sent by another one. May be more than 1. */
struct process_use {
    double ran, delay;
};
struct process_use process_use(const struct process_line *line, uint64_t start, uint64_t end);

#endif
