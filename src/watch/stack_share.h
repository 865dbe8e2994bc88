/* stack_share.h -- what the stacks of a process say of a stretch of time: where its threads were,
 * and how much they ran there.
 * Owns: nothing.   Threads: one.   Errors: none.   Not here: what follows from it (idle_split.h).
 */
#ifndef WATCH_STACK_SHARE_H
#define WATCH_STACK_SHARE_H

#include "watch/rank_line.h"

/* The share of [start, end) in which the loop's thread ran code of the user's: not under torch. */
double stack_user_ran(const struct process_line *line, uint64_t start, uint64_t end);

/* Frames with all of `flags` and none of `without`. is_cut: the stretch ends in the middle of
 * something, and so of a sample, whose stack is of a later moment: it was where it had been before.
 * Else the stretch holds all that the loop does in turn, and whole samples count as they come. */
struct stack_where {
    uint64_t start, end;
    uint32_t flags, without;
    int is_cut;
};
/* The share of the stretch in which the loop's thread was there; and the share of that which it
 * ran, if asked. */
double stack_share(const struct process_line *line, const struct stack_where *where, double *ran);

/* The share of [start, end) that other threads of the process ran, more than 1 where they are
 * several; and of that, what they ran in functions that Stoker's Loader calls. */
double stack_others_ran(const struct process_line *line, uint64_t start, uint64_t end,
                        double *mapped);
/* The first of their samples to look at. They overlap, so that their ends are not in order. */
size_t stack_others_from(const struct time_list *others, uint64_t start);

#endif
