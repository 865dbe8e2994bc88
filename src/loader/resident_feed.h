/* resident_feed.h -- brings the stored arrays of a series to the device, a piece at a time.
 * Owns: a thread that reads, and two pieces of locked memory; both until the last piece is sent.
 * Threads: one caller, entered.   Errors: an array that cannot be read, or a device that refuses,
 * ends the feed: the data then never is whole.   Not here: what the arrays hold
 * (resident_series.h). */
#ifndef LOADER_RESIDENT_FEED_H
#define LOADER_RESIDENT_FEED_H

#include "gpu/gpu.h"
#include "store/store.h"

struct resident_feed;

/* An object's place on the device. */
struct feed_object {
    uint32_t number; /* of the store */
    uint64_t size;
    gpu_address to;
};

struct feed_options {
    struct gpu *gpu;
    struct store *store;
    const struct feed_object *objects; /* copied */
    uint32_t object_count;
};
STK_CHECK stk_status resident_feed_new(struct resident_feed **out,
                                       const struct feed_options *options, struct stk_error *err);
/* Ends the thread, and waits for what is under way. NULL is fine. */
void resident_feed_free(struct resident_feed *feed);

enum feed_state {
    FEED_MORE,  /* something is left to send or to arrive */
    FEED_WHOLE, /* all has arrived */
    FEED_BROKEN /* it never will */
};
/* Sends the piece that was read, if there is one; waits for nothing. */
enum feed_state resident_feed_step(struct resident_feed *feed, struct gpu_stream *stream);

#endif
