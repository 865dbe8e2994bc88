/* image_kernel.h -- the job of image_kernel.cu: pixels of a batch -> finished images, each byte
 * written once: crop, resize, flip, normalise, cast, layout.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: who fills it (image_device.h,
 * pipeline/device_half.h). */
#ifndef TRANSFORM_IMAGE_KERNEL_H
#define TRANSFORM_IMAGE_KERNEL_H

#include "gpu/kernel_language.h"

/* image_record.filter: enum image_filter; image_device.c asserts that the numbers are the same. */
enum image_kernel_filter {
    IMAGE_KERNEL_BILINEAR,
    IMAGE_KERNEL_BICUBIC,
    IMAGE_KERNEL_AREA,
    IMAGE_KERNEL_NEAREST,
    IMAGE_KERNEL_LANCZOS
};

/* Where the pixels of one sample are, and what is cut of them: struct image_geometry as plain
 * numbers. Made on the host, shipped with the batch. uint8 (frames, H, W, C), without padding. */
struct image_record {
    uint64_t pixels;       /* offset of the first pixel from its source; any */
    int32_t source;        /* 0: image_job.landed, 1: image_job.decoded */
    int32_t width, height; /* of the stored pixels: of a row, of a frame */
    int32_t x, y, box_width, box_height;
    int32_t resized, filter, antialias;
    int32_t to_width, to_height;
    int32_t out_x, out_y; /* the window of the resized box; its size is the job's */
    int32_t flip_x, flip_y;
    uint8_t fill[4];
};

/* Records are aligned to 8 bytes, sources to 4; of a source, the aligned 4 bytes that hold its
 * first and its last pixel are read whole. Results as elements are; the fast ways ask for 16 bytes.
 */
struct image_job {
    uint64_t records;         /* struct image_record[count], in device memory ... */
    uint32_t record_stride;   /* ... so many bytes apart */
    uint32_t count;           /* samples */
    uint64_t landed, decoded; /* sources */
    uint64_t out;             /* sample i is at out + i * item */
    uint64_t item;
    uint32_t frames; /* of a sample; 1: an image */
    uint32_t clip;   /* frames that share their channels: (frames / clip, C, clip, H, W); 0: all */
    uint32_t width, height, channels; /* channels: 1 to 4 */
    uint32_t dtype;                   /* enum stk_dtype of the result: U8, F16, BF16 or F32 */
    uint32_t channels_first;          /* (C, T, H, W); clips of several frames too */
    uint32_t plain;                   /* values are only cast */
    float multiply[4], add[4];
};

#endif
