/* input_split.h -- what held next(): where the batch that it waited for was meanwhile.
 * Owns: nothing.   Threads: one.   Errors: as idle_split.h.   Not here: time outside next(). */
#ifndef WATCH_INPUT_SPLIT_H
#define WATCH_INPUT_SPLIT_H

#include "watch/idle_split.h"

/* Gives a moment that lies in next() to its causes. */
void input_split(struct idle_split *split, const struct split_moment *moment);

#endif
