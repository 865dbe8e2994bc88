/* block_census.h -- how many bytes a set of objects has, each counted once.
 * Owns: its marks.   Threads: any.   Errors: none; without memory an object is not counted.
 * Not here: what the sum is good for (block_cache.c). */
#ifndef STORE_BLOCK_CENSUS_H
#define STORE_BLOCK_CENSUS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct block_mark {
    uint64_t mark;  /* of the object; 0: free */
    uint64_t users; /* 0: it does not count, until somebody comes again */
};
struct block_census {
    pthread_mutex_t lock;     /* of the marks */
    struct block_mark *marks; /* open addressing */
    uint32_t count, cap;
    _Atomic uint64_t bytes; /* of the objects that have users */
};

void census_init(struct block_census *census);
void census_reset(struct block_census *census);
/* One more user of an object, or one less. */
void census_change(struct block_census *census, uint64_t mark, uint64_t size, int is_more);

#endif
