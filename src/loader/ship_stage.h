/* ship_stage.h -- the last stage of a loader with a device: batches that were filled are copied to
 * the device and finished there, in order, by one thread.
 * Owns: its thread, streams, device memory and events; the gpu is held.   Threads: new, start, stop
 * and free by the loader's owner; stats by any.   Errors: status at open; a batch that cannot be
 * shipped is its own error.   Not here: the memory of batches (device_pool.h), what is computed
 * (pipeline/device_half.h, resident.h, device_decode.h).
 *
 * Two streams: one copies, one computes, so that kernels that wait for their turn behind the
 * caller's never hold up a copy. A box goes back to the workers as soon as its copy is done; the
 * batch is the caller's as soon as its work is enqueued. */
#ifndef LOADER_SHIP_STAGE_H
#define LOADER_SHIP_STAGE_H

#include "loader/loader_impl.h"

struct ship;

/* Opens the device. Before the layout is made: chains are cut for it. */
STK_CHECK stk_status ship_new(struct ship **out, struct stk_loader *loader,
                              const struct stk_loader_options *options, struct stk_error *err);
struct gpu *ship_gpu(struct ship *ship);
/* 0: kernels can be had neither from PTX nor by NVRTC. The CPU does all work then, and the device
 * gets finished batches. */
int ship_computes(const struct ship *ship);
/* After the layout is made, and before boxes are: halves of chains, decoder, resident data. */
STK_CHECK stk_status ship_prepare(struct ship *ship, const struct stk_loader_options *options,
                                  struct stk_error *err);
STK_CHECK stk_status ship_start(struct ship *ship, struct stk_error *err);
void ship_stop(struct ship *ship); /* the loader's stop is set; joins the thread */
void ship_free(struct ship *ship); /* NULL and half-built are fine */

struct device_slot;
/* The batch in a shipped slot: never shown to the caller. */
void ship_give_back(struct ship *ship, struct device_slot *slot);
/* A batch was taken: there may be room for the next. NULL is fine. */
void ship_taken(struct ship *ship);
STK_CHECK stk_status ship_use(struct ship *ship, const void *address, void *stream,
                              struct stk_error *err);
void ship_stats(struct ship *ship, struct stk_device_stats *stats);

#endif
