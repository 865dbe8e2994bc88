/* block_folder.h -- the folder that a block cache lies in: which segments there are, how much they
 * take, who goes when there are too many, and who fetches what.
 * Owns: the folder's descriptors and the segments.   Threads: any.   Errors: minus errno; status
 * when opening.   Not here: what is in a segment (block_segment.h), when it is written
 * (block_writer.h).
 *
 *   DIR/stoker-blocks-1/limit    one line: most bytes that the segments may take
 *                       claims   empty; its bytes are locked (OFD locks, which die with who took
 *                                them): byte 0 while room is made, the others a block each
 *                       s-*      segments
 *                       t-*      files that do not have their name yet; locked by who makes them
 * A folder of another number beside it is of another layout: nobody looks into it but clear. */
#ifndef STORE_BLOCK_FOLDER_H
#define STORE_BLOCK_FOLDER_H

#include <limits.h>
#include <time.h>

#include "store/block_index.h"

#define BLOCK_FOLDER_PREFIX "stoker-blocks-"
#define BLOCK_FOLDER_NAME BLOCK_FOLDER_PREFIX "1"

struct block_folder {
    int fd;
    int claims_fd; /* -1: this user may not lock: blocks may be fetched twice */
    const struct block_fault *fault;
    struct block_index *index;
    _Atomic uint64_t limit, bytes, evicted;
    pthread_mutex_t lock;      /* of all below */
    struct segment **segments; /* sorted by name */
    uint32_t count, cap;
    struct segment **growing; /* those of them that others may add to; made anew when stale */
    uint32_t growing_count, growing_cap;
    int growing_stale;
    struct segment *gone;    /* unlinked, but not all refs are back: a list */
    struct timespec changed; /* the folder's own time when it was last read */
    int settled;             /* not 0: it was read long enough after that to trust it */
    uint64_t turn;           /* of the dice */
};

/* size as block_cache_open's. make 0: it must be there already. */
STK_CHECK stk_status block_folder_open(struct block_folder *folder, const char *path, uint64_t size,
                                       int make, struct stk_error *err);
void block_folder_close(struct block_folder *folder);
/* In a child of fork: what this process claimed is its parent's alone. */
void block_folder_let_go(struct block_folder *folder);
void block_folder_set_limit(struct block_folder *folder, uint64_t limit);

/* Removes what those left who died while they made a file; without it that is done after a minute.
 */
void block_folder_sweep(struct block_folder *folder);
/* Notes what other processes added or took away since the last time. */
void block_folder_look(struct block_folder *folder);
/* What the segments take on the disk; one that is still written to counts as if it were full. */
uint64_t block_folder_measure(struct block_folder *folder);
/* Tells the others which segments are in use here, now and then. */
void block_folder_touch(struct block_folder *folder);

/* How many bytes of blocks a new segment is for. */
uint64_t block_folder_segment_size(uint64_t limit);
/* Opens a segment to write to: one that was left, else a new one, for which others may have to go.
 * Minus errno: -EBUSY when too few can go. The segment is known to the folder from then on; its
 * `scanned` is the writer's to count up. */
int block_folder_writer(struct block_folder *folder, struct segment_writer *writer,
                        struct segment **segment);
/* 0: somebody took it away, with all that follows. */
int block_folder_has(struct block_folder *folder, const struct segment *segment);
/* This process writes to it no more; sealed: nobody does. It may be gone on return. */
void block_folder_written(struct block_folder *folder, struct segment *segment, int sealed);

/* 1: it is ours to fetch. 0: another process's. */
int block_claim(struct block_folder *folder, uint64_t hash);
void block_unclaim(struct block_folder *folder, uint64_t hash);

#endif
