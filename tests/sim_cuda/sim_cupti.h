/* sim_cupti.h -- a simulated CUPTI (libcupti.so.12 and .13) for tests without a GPU: what it offers
 * besides CUPTI's own functions. Tests find these with dlsym.
 * Owns: nothing; the state is the library's.   Threads: any.   Errors: none.   Not here: CUPTI's
 * functions (inject/inject_cupti.h names those that we call).
 *
 * As the real one it hands a buffer out when it is asked (flush) and all records in it are over,
 * clears buffers before use, drops and counts records for which it gets no buffer, takes the time
 * from a registered clock, and records only kinds that are enabled. */
#ifndef SIM_CUDA_SIM_CUPTI_H
#define SIM_CUDA_SIM_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#define SIM_API __attribute__((visibility("default")))

struct sim_cupti_counts {
    uint64_t enabled;    /* a bit for each kind */
    uint64_t subscribes; /* must stay 0: there is one subscriber, and it is the program's */
    uint64_t registers, flushes, forced;
    uint64_t calls;             /* of any function of CUPTI's */
    uint64_t held;              /* buffers that it has */
    uint64_t largest, smallest; /* buffers that it got, in bytes */
    int all_syncs;
};
SIM_API void sim_cupti_counts(struct sim_cupti_counts *out);

/* Adds a record, if its kind is enabled: `size` bytes from `record`, then others that mean nothing,
 * up to the size that records of its kind have in this version. is_over 0: it is complete only
 * after sim_cupti_complete. */
SIM_API void sim_cupti_add(const void *record, size_t size, int is_over);
SIM_API void sim_cupti_complete(void);
/* The size of a kind's records, so that other versions can be played. */
SIM_API void sim_cupti_layout(uint32_t kind, size_t size);
/* All calls of a function answer this result from now on; NULL: all work again. */
SIM_API void sim_cupti_refuse(const char *function, int result);
/* As cuptiFinalize: callbacks, clock and kinds are forgotten. */
SIM_API void sim_cupti_finalize(void);
/* The time as CUPTI would write it into a record now. */
SIM_API uint64_t sim_cupti_time(void);

#endif
