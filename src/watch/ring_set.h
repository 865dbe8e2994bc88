/* ring_set.h -- all rings of a run's folder: finds new ones, reads them, and takes those away whose
 * processes are over.
 * Owns: the open rings.   Threads: one.   Errors: a ring that is broken is left, with a notice.
 * Not here: what records mean (attribution.h), one ring (ring_read.h). */
#ifndef WATCH_RING_SET_H
#define WATCH_RING_SET_H

#include <stddef.h>
#include <stdint.h>

#include "watch/event.h"

/* Who hears of what was seen. */
struct watch_sink {
    void (*event)(void *user, const struct watch_event *event);
    void (*notice)(void *user, const char *sentence);
    /* The process of a ring, as soon as it is found; parent: as the ring says. */
    void (*ring)(void *user, uint32_t pid, uint32_t parent);
    void *user;
};

struct ring_set;

struct ring_set *ring_set_new(int folder, const struct watch_sink *sink); /* NULL: no memory */
void ring_set_free(struct ring_set *set);                                 /* NULL is fine */

/* Finds new rings and reads all. alive: whether a process still runs; the rings of others are read
 * to their end and removed. */
void ring_set_read(struct ring_set *set, uint64_t now, int (*alive)(void *user, uint32_t pid));
/* Everything that ended before this moment has been read: `now` less some patience, or less where a
 * writer says that it is not that far. A writer that is stuck does not hold the others up for
 * ever. */
uint64_t ring_set_settled(const struct ring_set *set, uint64_t now);

uint64_t ring_set_records(const struct ring_set *set);
uint64_t ring_set_lost(const struct ring_set *set);
size_t ring_set_count(const struct ring_set *set); /* that are open */

#endif
