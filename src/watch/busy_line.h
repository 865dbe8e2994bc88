/* busy_line.h -- when a device computed, as the gaps between its kernels. Kernels come in any
 * order, overlap, and may come late; the gaps are exact until they are taken away.
 * Half a million kernels a second fit: gaps under 10 us are kept together, a millisecond's a piece,
 * with their number and their exact sum.
 * Owns: the gaps.   Threads: one.   Errors: STK_MEMORY.   Not here: why there is a gap. */
#ifndef WATCH_BUSY_LINE_H
#define WATCH_BUSY_LINE_H

#include "watch/time_list.h"

#define BUSY_SMALL UINT64_C(10000)  /* gaps below are kept together */
#define BUSY_CELL UINT64_C(1000000) /* those of so long */
#define BUSY_WAITING ((size_t)1 << 16)

/* A gap (idle is end - start), or several small ones and the kernels between them. */
struct busy_gap {
    uint64_t start, end, idle;
    uint64_t count;
};

struct busy_line {            /* all zero is a line without kernels, but see origin */
    uint64_t origin;          /* the first gap begins here */
    struct time_list waiting; /* struct stretch: not yet made into gaps */
    struct time_list gaps;    /* struct busy_gap, sorted, without overlaps */
    struct busy_gap cell;     /* small gaps of the millisecond at hand */
    uint64_t frontier;        /* gaps are known up to here; 0: no kernel yet */
    uint64_t first;           /* where the first kernel began */
    /* Told of each stretch that was not known to be busy before; NULL: nobody. */
    void (*busy)(void *user, uint64_t start, uint64_t end);
    void *user;
};

STK_CHECK stk_status busy_line_add(struct busy_line *line, uint64_t start, uint64_t end,
                                   struct stk_error *err);
/* Makes gaps of all kernels that came so far. */
STK_CHECK stk_status busy_line_fold(struct busy_line *line, struct stk_error *err);
/* The same, and the small gaps of the last millisecond too: no kernel follows. */
STK_CHECK stk_status busy_line_close(struct busy_line *line, struct stk_error *err);
void busy_line_reset(struct busy_line *line);

#endif
