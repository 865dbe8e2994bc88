/* device_pool.h -- the memory of batches on a device, used again and again, each with the events
 * that say when it may be read and when it may be written again. Owns: a slot belongs to the pool,
 * then to the ship stage, then to the caller, then to the pool. The pool is counted: it lives until
 * the loader is closed and the last batch is released. Threads: the pool has its own lock; take and
 * give by the ship stage's thread, entered; the rest by any.   Errors: those of gpu.h.   Not here:
 * what is copied into it (ship_stage.h).
 *
 * At release an event is recorded in each stream that used the batch; the caller does not wait for
 * it. The ship stage takes a slot only when they are over, and looks now and then whether they are.
 * Its streams could wait for them instead, but a stream that waits for another one slows the device
 * down: on an H200 a 3D-CNN then had 0.988 of the speed it has without a loader, else 0.994; an
 * LSTM 0.993, else 0.998. */
#ifndef LOADER_DEVICE_POOL_H
#define LOADER_DEVICE_POOL_H

#include "gpu/gpu.h"
#include "loader/box.h"

struct device_pool;

#define DEVICE_STREAMS 8      /* of consumers that are remembered for one batch */
#define DEVICE_LOOK_NS 100000 /* how often to look whether the device is done: nobody tells */

struct device_slot {
    struct stk_batch batch; /* first: the caller's pointer is the slot's */
    struct device_pool *pool;
    struct device_slot *next, *before; /* in the pool's lists */
    gpu_address data;
    uint64_t size;
    struct gpu_event *ready; /* the batch is there */
    /* Streams of the caller, and an event for each, recorded at release. */
    struct gpu_stream *streams[DEVICE_STREAMS];
    struct gpu_event *uses[DEVICE_STREAMS];
    uint32_t stream_count;
    int crowded; /* some stream is not remembered: the memory is freed, not used again */
    void *host;  /* the batch's own arrays */
    uint64_t host_size;
};

STK_CHECK stk_status device_pool_new(struct device_pool **out, struct gpu *gpu,
                                     struct stk_dataset *dataset, uint64_t limit,
                                     struct stk_error *err);
/* The loader goes away: free slots are freed now, the others as they are released. Entered. */
void device_pool_close(struct device_pool *pool);
struct budget *device_pool_budget(struct device_pool *pool);
void device_pool_caller(struct device_pool *pool, uint64_t *bytes, uint64_t *peak);

/* A slot of at least `size` bytes that may be written to, with `host_size` bytes of arrays. *out
 * NULL: not now; there is no room in the budget, or the device is not done with what there is.
 * anyway: over the budget if need be. */
STK_CHECK stk_status device_pool_take(struct device_pool *pool, uint64_t size, uint64_t host_size,
                                      int anyway, struct device_slot **out, struct stk_error *err);
/* Back to the pool, never shown to the caller. */
void device_pool_give(struct device_slot *slot);
/* To the caller: no longer counted against the budget. */
void device_pool_hand_over(struct device_slot *slot);
/* Until a slot comes back, someone wakes it, the time is over, or the device may be done. */
void device_pool_wait(struct device_pool *pool, int64_t ns);
void device_pool_wake(struct device_pool *pool);

/* stk_batch_release, stk_batch_use, stk_loader_use and stk_batch_copy_out for batches on a device.
 */
void device_slot_release(struct device_slot *slot);
STK_CHECK stk_status device_slot_use(struct device_slot *slot, struct gpu_stream *stream,
                                     struct stk_error *err);
STK_CHECK stk_status device_pool_use(struct device_pool *pool, const void *address,
                                     struct gpu_stream *stream, struct stk_error *err);
STK_CHECK stk_status device_slot_copy_out(struct device_slot *slot, void *to, const void *from,
                                          uint64_t size, struct stk_error *err);

#endif
