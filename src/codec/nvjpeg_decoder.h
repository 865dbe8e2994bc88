/* nvjpeg_decoder.h -- JPEGs decoded by the GPU, a batch at a time: by its hardware decoder where it
 * has one, else by its cores.
 * Owns: nvJPEG's handle and states, with the device memory they ask for.   Threads: take by any, at
 * any time; the rest by one at a time, entered (gpu.h).   Errors: STK_UNSUPPORTED without nvJPEG;
 * those of gpu.h. An image that nvJPEG does not take is no error: it is marked.   Not here: which
 * images come this way, and who decodes the others (loader/device_decode.h).
 *
 * The pixels are not those of libjpeg-turbo to the bit. Where nvJPEG can interpolate colours (12.1
 * and later) its test allows 3 levels of 255; an older one repeats a colour for all pixels of its
 * block, which makes tens of levels at hard edges between colours. */
#ifndef CODEC_NVJPEG_DECODER_H
#define CODEC_NVJPEG_DECODER_H

#include <stdint.h>

#include "stoker/bytes.h"
#include "gpu/gpu.h"

struct nvjpeg_decoder;

/* most: images decoded at once; a longer batch is decoded in parts. */
STK_CHECK stk_status nvjpeg_decoder_new(struct nvjpeg_decoder **out, struct gpu *gpu, uint32_t most,
                                        struct stk_error *err);
void nvjpeg_decoder_free(struct nvjpeg_decoder *decoder); /* waits for what is in the works; NULL */
uint64_t nvjpeg_decoder_bytes(
    const struct nvjpeg_decoder *decoder); /* of device memory; any thread */

enum nvjpeg_part {
    NVJPEG_NOTHING, /* not taken, or it failed */
    NVJPEG_BOX,     /* the box is decoded */
    NVJPEG_WHOLE    /* the whole image is: the box is cut out of it later */
};

struct nvjpeg_image {
    struct stk_bytes bytes;      /* stay until the stream is past the decoding */
    int32_t x, y, width, height; /* the box that is wanted */
    int32_t image_width, image_height;
    int32_t channels; /* 1: brightness alone, or 3: RGB */
    enum nvjpeg_part part;
    gpu_address out; /* nvjpeg_image_size bytes, pixel beside pixel, row behind row */
};
#define NVJPEG_ALIGN 256 /* of `out` */

/* Sets part: what of the image will be decoded, before any memory is needed. Baseline JPEGs of one
 * scan, in grey or YCbCr; nvJPEG itself is asked once for each kind of them. */
void nvjpeg_decoder_take(struct nvjpeg_decoder *decoder, struct nvjpeg_image *image);
/* 0 for NOTHING. */
uint64_t nvjpeg_image_size(const struct nvjpeg_image *image);

/* Decodes those that were taken, in the order of the stream; returns before it is done. Calls in
 * one stream overlap: while one is decoded, the next is prepared. Where the bytes are bad, part
 * becomes NOTHING and the others are decoded all the same. */
STK_CHECK stk_status nvjpeg_decoder_run(struct nvjpeg_decoder *decoder, struct nvjpeg_image *images,
                                        uint32_t count, struct gpu_stream *stream,
                                        struct stk_error *err);

/* "nvJPEG 13.0.2, hardware": for the user. */
const char *nvjpeg_decoder_name(const struct nvjpeg_decoder *decoder);

#endif
