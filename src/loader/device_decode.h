/* device_decode.h -- images that the device decodes: which samples are its share, and the decoding
 * of a batch's share into device memory.
 * Owns: nvJPEG's handle and states, device memory for decoded images, what is pending of each
 * batch. Threads: wants, add, forget and count_cpu by any worker, each for places of its own; run
 * by the ship stage's thread, entered.   Errors: a JPEG that the device refuses is decoded by the
 * CPU, in its place; those of gpu.h.   Not here: nvJPEG itself (codec/nvjpeg_decoder.h), what
 * becomes of the pixels (pipeline/device_half.h). */
#ifndef LOADER_DEVICE_DECODE_H
#define LOADER_DEVICE_DECODE_H

#include "gpu/gpu.h"
#include "loader/box.h"
#include "pipeline/pipeline.h"

struct device_decode;
struct slot;
struct stk_loader;

struct device_decode_options {
    struct gpu *gpu;
    /* Its context, dataset, layout and bad_policy are there by now; plan and pool before the first
     * run, and until device_decode_free. */
    struct stk_loader *loader;
    enum stk_decode decode;
    uint32_t depth;   /* batches on their way at once */
    uint32_t threads; /* of the loader: so many decode while the share is measured */
    /* Bytes on the device for the decoded images of one batch and field, of which there are two: an
     * image that is larger than its share of them is the CPU's. 0: by what is free there. */
    uint64_t limit;
};
/* *out NULL: no field of the layout has images that the device may decode, or decode is CPU, or it
 * is AUTO and there is no nvJPEG (with a notice). GPU without nvJPEG is STK_UNSUPPORTED. With AUTO
 * the share is measured here, on the first samples (about 250 ms). Sets keeps_encoded in the
 * loader's layout. Entered. */
STK_CHECK stk_status device_decode_new(struct device_decode **out,
                                       const struct device_decode_options *options,
                                       struct stk_error *err);
void device_decode_free(struct device_decode *decode); /* entered; NULL is fine */

/* 0 to 1: kept in a loader's state, so that a run that goes on has the same pixels. */
double device_decode_share(const struct device_decode *decode); /* NULL: 0 */
void device_decode_set_share(struct device_decode *decode, double share);
/* That of a state, between batches: AUTO takes it, GPU stays what it is. NULL is fine. */
void device_decode_resume(struct device_decode *decode, double share);

/* Not 0: this sample is for the device. A pure function of share and sample. */
int device_decode_wants(const struct device_decode *decode, uint64_t sample);

/* An image whose bytes lie in the box, and whose record is in box->params. */
struct device_decode_image {
    uint32_t number; /* of the slot: 0 to depth - 1 */
    uint32_t field, place;
    struct stk_bytes bytes;
    struct pipeline_box box;
};
/* 0: the device's decoder does not take it; it is the CPU's. */
int device_decode_add(struct device_decode *decode, const struct device_decode_image *image);
/* The CPU fills that place, in all fields. */
void device_decode_forget(struct device_decode *decode, uint32_t number, uint32_t place);
/* Forgets all that was added for a slot: before it is filled anew. NULL is fine. */
void device_decode_clear(struct device_decode *decode, uint32_t number);
/* The CPU decoded an image of a field that keeps_encoded. */
void device_decode_count_cpu(struct device_decode *decode);

/* Decodes what was added for a field, into memory that stays until the field's next run; all runs
 * are for one stream, which follows the decoding. It is done in a stream of its own, beside what
 * the other one does with the batch before. Sets the records in the box (box->params) before they
 * are shipped. *decoded: the address that records with source 1 count from; 0: none has. What the
 * device refuses is run through the field's pipeline here instead: it then lands with the batch,
 * and its record says so. A sample that the CPU cannot decode either is treated as bad
 * (fill_stage.h), and a substitute changes all fields: so all of a batch's runs come before
 * anything of it is shipped. The box stays until the stream is past the decoding. */
STK_CHECK stk_status device_decode_run(struct device_decode *decode, struct slot *slot,
                                       uint32_t number, uint32_t f, struct gpu_stream *stream,
                                       gpu_address *decoded, struct stk_error *err);
/* Behind run. Not 0: this place was decoded on the device, and what is in its place in the box need
 * not be shipped. */
int device_decode_did(const struct device_decode *decode, uint32_t number, uint32_t f,
                      uint32_t place);

/* gpu_decoded, cpu_decoded, decode_share and decode_bytes. NULL: nothing is set. */
void device_decode_stats(const struct device_decode *decode, struct stk_device_stats *stats);

#endif
