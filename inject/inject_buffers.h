/* inject_buffers.h -- the buffers that CUPTI fills. It hands a buffer back only when all that is in
 * it is over, and a busy device always has something under way: buffers are therefore small enough
 * to be full after a tenth of a second, so that a kill loses little; and the more of them CUPTI
 * holds, the larger is the next, so that a burst of launches does not run out of them.
 * Owns: the memory, until the process ends.   Threads: any, without locks.   Errors: none; without
 * a buffer CUPTI counts what it drops.   Not here: what is in the buffers (inject_sink.h). */
#ifndef INJECT_BUFFERS_H
#define INJECT_BUFFERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum { BUFFER_SLOTS = 64, BUFFER_BYTES = 1 << 20 };

struct inject_buffers {
    uint8_t *memory; /* BUFFER_SLOTS of BUFFER_BYTES, taken from the front; NULL: none */
    _Atomic uint64_t since[BUFFER_SLOTS];   /* when CUPTI got it; 0: it is here */
    _Atomic uint8_t is_stale[BUFFER_SLOTS]; /* CUPTI kept it when it was taken over by others */
    _Atomic uint32_t held;                  /* by CUPTI, those that are not stale */
    _Atomic uint32_t records_s;             /* how many records a second there were of late */
};

/* Once in a process: CUPTI may hold a buffer for ever. 0, or -1: there is no memory. */
int inject_buffers_init(struct inject_buffers *buffers);
/* A buffer for CUPTI: its address, its size, and how many records are to be put into it. NULL and
 * 0: all are with CUPTI. */
uint8_t *inject_buffers_give(struct inject_buffers *buffers, uint64_t now, size_t *size,
                             size_t *most_records);
/* CUPTI gave one back and its records were read. */
void inject_buffers_take(struct inject_buffers *buffers, uint8_t *buffer);
/* Since when CUPTI holds a record that it has not handed out; `now`: it holds none. */
uint64_t inject_buffers_oldest(struct inject_buffers *buffers, uint64_t now);
/* Others take CUPTI over: what it holds now may never come back. */
void inject_buffers_forget(struct inject_buffers *buffers);

#endif
