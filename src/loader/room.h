/* room.h -- memory that grows to the largest value seen, and is then used again and again.
 * Owns: its block.   Threads: one at a time; the budget is shared.   Errors: NULL when memory is
 * short.   Not here: the memory of batches (box.h). */
#ifndef LOADER_ROOM_H
#define LOADER_ROOM_H

#include <stdint.h>

#include "work/budget.h"

struct room {
    uint8_t *data;
    uint64_t size;
};

#define ROOM_SLACK 64 /* bytes behind what was asked for that may be read: for vector loads */

/* At least `size` bytes; what was in it is lost when it grows. Counted in the budget, over its
 * limit if need be: what is admitted must be done. budget NULL: not counted. */
uint8_t *room_reserve(struct room *room, uint64_t size, struct budget *budget);
void room_reset(struct room *room, struct budget *budget); /* zeroed is fine */

#endif
