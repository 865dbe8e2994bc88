/* inject_ring.h -- the ring of this process (watch/record.h): made, written, closed.
 * Owns: the mapping of the ring's file; the file is the folder's.   Threads: one at a time (its
 * caller has a lock).   Errors: errno's numbers; a record without room is counted, never waited
 * for.   Not here: what is in the records (inject_sink.h). */
#ifndef INJECT_RING_H
#define INJECT_RING_H

#include <stddef.h>
#include <stdint.h>

#include "watch/record.h"

struct inject_ring {
    struct ring_header *header; /* NULL: there is no ring */
    uint8_t *bytes;
    uint64_t capacity;
    uint64_t head; /* with what is not published yet */
    uint64_t tail; /* as it was last looked at */
    uint64_t lost;
};

/* Makes "ring.PID.gpu" in a folder, with its space reserved: a full disk is met here and not by a
 * signal later. Where there is too little space a smaller ring is made. 0, or an error. */
int inject_ring_open(struct inject_ring *ring, const char *folder, uint64_t capacity);
/* Room for a record, with its head filled in; NULL: none, and that is counted. */
void *inject_ring_add(struct inject_ring *ring, enum record_type type, size_t size);
/* Shows the reader what was added. */
void inject_ring_publish(struct inject_ring *ring);
/* Tells the reader that this is all. The file stays. NULL-safe in its parts. */
void inject_ring_close(struct inject_ring *ring);

#endif
