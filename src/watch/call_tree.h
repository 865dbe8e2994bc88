/* call_tree.h -- stacks as a tree of calls, and the places in the user's code that they stand for.
 * Trees of all processes are one: a node is its function, its file and its caller.
 * Owns: its nodes, places and texts.   Threads: one.   Errors: STK_MEMORY. What is beyond the most
 * nodes or places is counted at the caller.   Not here: when a thread was there (rank_line.h). */
#ifndef WATCH_CALL_TREE_H
#define WATCH_CALL_TREE_H

#include "stoker/error.h"
#include "watch/record.h"
#include "watch/summary.h"

enum call_side { CALL_MAIN, CALL_WORKER, CALL_SIDES };
enum frame_flags {
    FRAME_TORCH = 1, /* under a call into torch: a module, the backward pass, an optimizer */
    FRAME_USER = 2,  /* some of it is the user's own code */
    FRAME_WAITS = 4, /* it is in one of Python's own waits: a queue, a condition */
    FRAME_MAP = 8,   /* under a function of the user's that Stoker's Loader calls */
    FRAME_SOURCE =
        16, /* under what a loop iterates over or indexes; not torch's own, and above it */
};

/* What a process's frame stands for. */
struct call_frame {
    uint32_t node, flags;
    uint32_t place; /* the innermost that is the user's own; else the innermost */
};
struct call_frames { /* of one process, by their number; all zero is none */
    struct call_frame *frames;
    size_t count;
};

struct call_place {
    uint32_t function, file, line; /* texts by their number */
};
struct call_node {
    uint32_t parent, first_child, next_sibling;
    uint32_t function, file, line;
    uint64_t ns[CALL_SIDES], cpu_ns[CALL_SIDES]; /* of itself, without its children */
};
struct call_text {
    char *text;
    uint64_t hash;
};

struct call_tree {             /* all zero is an empty one */
    struct call_node *nodes;   /* [0] is the root */
    struct call_place *places; /* [0] is none */
    struct call_text *texts;   /* [0] is "" */
    size_t node_count, node_cap, place_count, place_cap, text_count, text_cap;
    uint32_t *text_slots, *place_slots; /* numbers by hash; 0 is free */
};

STK_CHECK stk_status call_tree_init(struct call_tree *tree, struct stk_error *err);
STK_CHECK stk_status call_tree_frame(struct call_tree *tree, struct call_frames *frames,
                                     const struct record_frame *record, struct stk_error *err);
/* The frame of a number; all zero where it was never told. */
struct call_frame call_tree_find(const struct call_frames *frames, uint32_t number);
void call_tree_count(struct call_tree *tree, enum call_side side, uint32_t node, uint64_t ns,
                     uint64_t cpu_ns);
/* The side's part that is worth a look, as summary.h has it. */
STK_CHECK stk_status call_tree_summary(const struct call_tree *tree, enum call_side side,
                                       struct summary_tree *out, struct stk_error *err);
const char *call_tree_text(const struct call_tree *tree, uint32_t number);
/* 0: it belongs to Python, to torch or to another installed package. */
int call_file_is_users(const char *file);
void call_frames_reset(struct call_frames *frames);
void call_tree_reset(struct call_tree *tree);

#endif
