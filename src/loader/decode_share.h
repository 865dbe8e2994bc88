/* decode_share.h -- how many of a field's images the device should decode, measured on the first of
 * them.
 * Owns: nothing that outlives the call.   Threads: one, entered.   Errors: those of gpu.h; a sample
 * that cannot be read or decoded is passed by.   Not here: keeping to the share (device_decode.h).
 */
#ifndef LOADER_DECODE_SHARE_H
#define LOADER_DECODE_SHARE_H

#include "codec/nvjpeg_decoder.h"
#include "loader/box.h"

struct decode_share {
    struct gpu *gpu;
    struct nvjpeg_decoder *decoder;
    struct stk_dataset *dataset;
    const struct layout *layout;
    uint32_t field;
    uint32_t threads;            /* of the CPU that decode beside the device */
    uint64_t limit, image_limit; /* bytes of decoded images on the device: of all, and of one */
};
/* 0 to 1: the device's speed beside that of both together. 0 when it is not worth it. */
STK_CHECK stk_status decode_share_measure(const struct decode_share *what, double *share,
                                          struct stk_error *err);

#endif
