/* batch_transform.h -- transforms of whole batches, in place: MixUp and CutMix.
 * Owns: its chain; the memory it works in is the slot's.   Threads: immutable once made; a run has
 * its slot to itself.   Errors: STK_USAGE at open.   Not here: what they mean
 * (transform/mix_transform.h). */
#ifndef LOADER_BATCH_TRANSFORM_H
#define LOADER_BATCH_TRANSFORM_H

#include "loader/layout.h"
#include "loader/slot.h"

struct batch_transform;

/* Parses the chain and finds its fields; the labels of the layout become rows of classes, and
 * layout->mix the bytes that a slot needs. */
STK_CHECK stk_status batch_transform_new(struct batch_transform **out, struct layout *layout,
                                         const char *chain, struct stk_error *err);
void batch_transform_free(struct batch_transform *transform);

/* The slot's last span is done. What is drawn depends on seed, epoch and position alone. With a
 * device only labels are mixed here, and images by batch_transform_run_device once they are there.
 */
void batch_transform_run(const struct batch_transform *transform, struct slot *slot, uint64_t seed);

/* Where a batch lies on the device. */
struct batch_transform_device {
    struct gpu *gpu;
    struct gpu_stream *stream;
    gpu_address (*values)(void *user, uint32_t field);
    void *user;
};
STK_CHECK stk_status batch_transform_run_device(const struct batch_transform *transform,
                                                const struct slot *slot, uint64_t seed,
                                                const struct batch_transform_device *device,
                                                struct stk_error *err);

#endif
