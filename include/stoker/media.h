/* media.h -- what the axes of a tensor mean on its way through transforms.
 * Owns: nothing.   Threads: any.   Errors: none.   Not here: decoding (src/codec), transforms
 * (pipeline.h). */
#ifndef STOKER_MEDIA_H
#define STOKER_MEDIA_H

#include <stdint.h>

#include "stoker/tensor.h"

enum stk_media {
    STK_MEDIA_TENSOR, /* any axes */
    STK_MEDIA_IMAGE,  /* (H, W, C), or (C, H, W) after Layout */
    STK_MEDIA_AUDIO,  /* (channels, frames), float32 */
    STK_MEDIA_VIDEO, /* (T, H, W, C), or (C, T, H, W) after Layout; several clips: one axis in front
                      */
    STK_MEDIA_POINTS, /* (N, columns), float32; x, y, z first */
    STK_MEDIA_COUNT
};
#define STK_MEDIA_BIT(media) (1u << (media))
#define STK_MEDIA_ANY ((1u << STK_MEDIA_COUNT) - 1)

/* "image", "audio" ...; never NULL. */
STK_API const char *stk_media_name(enum stk_media media);

/* What goes from one transform to the next. While a chain is compiled, data is NULL and a length
 * that differs from sample to sample is -1. */
struct stk_flow {
    enum stk_media media;
    struct stk_tensor tensor;
    int channels_first; /* image: (C, H, W); video: (C, T, H, W) */
    double rate;        /* audio: frames a second, video: frames a second; 0: not known */
    int64_t real;       /* audio frames or points that are not padding; -1: all are real */
};

#endif
