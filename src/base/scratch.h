/* scratch.h -- memory for the work on one sample: taken piece by piece, given back all at once.
 * Owns: its block, which grows to the largest sample seen, and then no call allocates any more.
 * Threads: one.   Errors: NULL when memory is short.   Not here: what lives longer than a sample.
 */
#ifndef BASE_SCRATCH_H
#define BASE_SCRATCH_H

#include <stdint.h>

struct scratch_extra; /* pieces that did not fit: freed at the next reset, when the block grows */

struct scratch {
    uint8_t *block;
    uint64_t size, used; /* of block */
    uint64_t wanted;     /* bytes taken and not given back, with what did not fit */
    uint64_t most;       /* of wanted, since the last reset */
    struct scratch_extra *extra;
};

#define SCRATCH_ALIGN 64

/* Zeroed memory is an empty scratch. Pieces are aligned to SCRATCH_ALIGN, have 64 readable bytes
 * behind them (for vector loads), and stay valid until the next reset. Contents are not cleared. */
void *scratch_take(struct scratch *scratch, uint64_t bytes);
/* All pieces are given back. When some did not fit, the block becomes large enough for all. */
void scratch_reset(struct scratch *scratch);
/* As reset, after work that failed: the block stays as it is, for what was asked for may have been
 * a lie of the data. */
void scratch_drop(struct scratch *scratch);
/* Pieces taken since the mark are given back at once: for work that is done again and again within
 * one sample. */
struct scratch_mark {
    struct scratch_extra *extra;
    uint64_t used, wanted;
};
struct scratch_mark scratch_mark(const struct scratch *scratch);
void scratch_return(struct scratch *scratch, struct scratch_mark mark);
/* Frees everything; zeroed is fine. */
void scratch_free(struct scratch *scratch);
/* Bytes that it holds now. */
uint64_t scratch_size(const struct scratch *scratch);

#endif
