/* ring_read.h -- reads the ring of one watched process. What it says is not trusted: every record
 * is checked against its type before it is handed over, and a ring that breaks the rules is left.
 * Owns: the mapping of its file.   Threads: one.   Errors: STK_CORRUPT (not a ring, or broken),
 * STK_IO, STK_MEMORY.   Not here: which rings there are (collect.h), the layout (record.h). */
#ifndef WATCH_RING_READ_H
#define WATCH_RING_READ_H

#include "stoker/error.h"
#include "watch/record.h"

#define RING_MOST ((uint64_t)64 << 20) /* no writer makes a larger one */

struct ring_read;

/* folder: an open one. */
STK_CHECK stk_status ring_read_open(struct ring_read **out, int folder, const char *name,
                                    struct stk_error *err);
void ring_read_close(struct ring_read *ring); /* NULL is fine */

/* Hands over all records that are there. The record lives until take returns: it is a copy, so that
 * its writer cannot change it any more. Not STK_OK: the ring is broken and has no more to say; what
 * take returned goes through. */
STK_CHECK stk_status ring_read_drain(struct ring_read *ring,
                                     stk_status (*take)(void *user, const struct record *record,
                                                        struct stk_error *err),
                                     void *user, struct stk_error *err);

enum ring_kind ring_read_kind(const struct ring_read *ring);
uint32_t ring_read_pid(const struct ring_read *ring);
uint32_t ring_read_parent(const struct ring_read *ring);
uint64_t ring_read_born(const struct ring_read *ring);
uint64_t ring_read_lost(const struct ring_read *ring);  /* as the writer counted */
uint64_t ring_read_taken(const struct ring_read *ring); /* records handed over */
int ring_read_closed(const struct ring_read *ring);     /* its writer ended in order */

/* Not 0: `size` bytes hold one whole record of a known type, texts and all. Records of types that
 * this reader does not know are whole, too: a newer writer has them. */
int record_whole(const struct record *record, uint64_t size);

#endif
