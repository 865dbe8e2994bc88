/* resident.h -- the data of a dataset on the device, filled while batches go by, from which later
 * batches are gathered by a kernel.
 * Owns: its device memory, and a reference to the dataset.   Threads: resident_find and
 * resident_has by any worker, resident_bytes and resident_samples by anyone; the rest by the ship
 * stage's thread, entered; new and free entered.   Errors: those of gpu.h; STK_UNSUPPORTED (with
 * the field and why) and STK_MEMORY from new say why the data cannot live there.   Not here:
 * batches (ship_stage.h), the kernels (transform/gather_kernel.cu, transform/window_kernel.cu).
 *
 * Tensors: a field has an array of all samples' values on the device. A batch that was shipped is
 * copied into it by a kernel, in the order of the stream; after that its samples are found there.
 * All fields are served, or nothing is.
 * Series (and tokens): the stored arrays go to the device in pieces, a few each time the ship stage
 * has nothing else to do, or between two batches; once they are whole, windows are gathered from
 * them, scaled on the way. Fields that are computed (entity, start, x_mask) land as ever.
 * So the first epoch never waits for either. */
#ifndef LOADER_RESIDENT_H
#define LOADER_RESIDENT_H

#include "gpu/gpu.h"
#include "loader/box.h"

struct resident;

struct resident_options {
    struct gpu *gpu;
    struct stk_dataset *dataset;
    uint64_t limit;  /* bytes of device memory */
    uint32_t blocks; /* of 256 threads, that a gather takes of the device; 0: enough to be as fast
                        as its memory */
};
/* Sets `resident` of the layout's fields that it serves. */
STK_CHECK stk_status resident_new(struct resident **out, const struct resident_options *options,
                                  struct layout *layout, struct stk_error *err);
void resident_free(struct resident *resident);              /* waits for the device; NULL is fine */
uint64_t resident_bytes(const struct resident *resident);   /* of device memory */
uint64_t resident_samples(const struct resident *resident); /* that are there */

/* --- workers ---------------------------------------------------------------------------------- */

/* Some places of a box, and the samples that are to go there. */
struct resident_span {
    struct box *box;
    uint32_t first, count;
    const uint64_t *samples; /* [count], of the index */
    /* [count * fields] as dataset_resolve gives them. NULL: what needs them is not found; try
     * without them first, for most does not. */
    const struct extent *extents;
};
/* Not 0: find may want extents. Else samples that it finds need not be resolved. */
int resident_needs_extents(const struct resident *resident);
/* Sets box->home of these places for all fields served: where the value lies, in the words of its
 * kernel, or STK_NOWHERE. How many of the samples are there; of a series all or none. */
uint32_t resident_find(const struct resident *resident, const struct resident_span *span);
/* Not 0: a sample of tensors is there, and its bytes need not be fetched. Once it is, it stays. */
int resident_has(const struct resident *resident, uint64_t sample);
/* This place's values land: they are read otherwise. Not 0: they had been found. */
int resident_land(const struct resident *resident, struct box *box, uint32_t place);

/* --- the ship stage --------------------------------------------------------------------------- */

/* Values of one field on the device: place i of the batch is at `values` + i * item (of what is
 * shipped: before the device half). */
struct resident_batch {
    uint32_t field;
    uint32_t count, real;      /* places; those from `real` on are masked */
    gpu_address home;          /* uint64_t[count], as shipped; gather only */
    const uint64_t *host_home; /* the same on the host */
    gpu_address values;        /* where they are wanted, or lie; aligned to 16 for full speed */
    const uint64_t *samples;   /* [count] of the host, substitutes in their places; keep only */
    struct gpu_stream *stream;
};
/* Values whose home is not STK_NOWHERE are put into their places; masked places are cleared. */
STK_CHECK stk_status resident_gather(struct resident *resident, const struct resident_batch *batch,
                                     struct stk_error *err);
/* Values that landed and are not there yet are kept, before the device half and before batches are
 * mixed. A series: nothing happens. */
STK_CHECK stk_status resident_keep(struct resident *resident, const struct resident_batch *batch,
                                   struct stk_error *err);
/* All served fields of these samples were kept, in the stream that gathers run in: resident_find
 * finds them from now on. */
void resident_found(struct resident *resident, const uint64_t *samples, uint32_t count);
/* Sends one more piece of a series, if the one before last is over: it never waits for the device.
 * Any stream: windows are found only once the last piece is known to have arrived. 0: there is
 * nothing left to send (tensors: always); do not call again. */
int resident_feed(struct resident *resident, struct gpu_stream *stream);

#endif
