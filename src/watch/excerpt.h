/* excerpt.h -- some seconds of the run as lanes, for a picture: what streams, the loop and its
 * workers did, and what was waited for. Windows are opened at the start of the loop, then whenever
 * it has lasted twice as long; the last ones are kept, so that one lies in steady training.
 * Owns: the slices.   Threads: one.   Errors: STK_MEMORY.   Not here: the whole run (trace_out.h).
 */
#ifndef WATCH_EXCERPT_H
#define WATCH_EXCERPT_H

#include "stoker/error.h"
#include "watch/summary.h"

#define EXCERPT_WINDOWS 3
#define EXCERPT_LANES 20
#define EXCERPT_SLICES 400 /* of one lane; then they are joined */
#define EXCERPT_LENGTH UINT64_C(3000000000)
#define EXCERPT_NAME 40
#define EXCERPT_STREAM(device, stream) ((device) << 24 | ((stream)&0xffffffu))

enum excerpt_kind { /* in the order of the picture */
                    LANE_STREAM,
                    LANE_COPIES,
                    LANE_IDLE,
                    LANE_MAIN,
                    LANE_WORKER
};

struct excerpt_slice {
    uint64_t start, end;
    char name[EXCERPT_NAME];
};
struct excerpt_lane {
    enum excerpt_kind kind;
    uint32_t pid, number; /* EXCERPT_STREAM, or the worker */
    struct excerpt_slice *slices;
    size_t count, cap;
};
struct excerpt {
    struct excerpt_window {
        uint64_t start, end; /* 0: not open */
        struct excerpt_lane lanes[EXCERPT_LANES];
        size_t lane_count;
    } windows[EXCERPT_WINDOWS]; /* [0] is the latest */
    uint64_t loop_start, next_age;
    uint32_t pid; /* one rank is in the picture: the first that tells something */
};

/* The loop goes on at a moment; `latest` is the latest that was heard of: a window begins there. */
void excerpt_reach(struct excerpt *excerpt, uint64_t moment, uint64_t latest);
STK_CHECK stk_status excerpt_add(struct excerpt *excerpt, const struct excerpt_lane *lane,
                                 const struct excerpt_slice *slice, struct stk_error *err);
/* The lanes of the latest window that ends before `end`; of the first, where none does. */
STK_CHECK stk_status excerpt_summary(struct excerpt *excerpt, uint64_t begun, uint64_t end,
                                     struct summary *out, struct stk_error *err);
void excerpt_reset(struct excerpt *excerpt);

#endif
