/* decode_share.h -- how many of a field's images the device should decode, measured on the first of
 * them: each alone, and the CPU's threads beside the device as in a loader.
 * Owns: nothing that outlives the call, its threads too.   Threads: one, entered.   Errors: those
 * of gpu.h; a sample that cannot be read or decoded is passed by.   Not here: keeping to the share
 * (device_decode.h).
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
/* 0 to 1: what the device did of all that was decoded while both worked. 0 or 1: the better one
 * alone, where both are hardly faster. */
STK_CHECK stk_status decode_share_measure(const struct decode_share *what, double *share,
                                          struct stk_error *err);

struct decode_rates {
    double gpu, cpu; /* images a second */
};
/* What is made of the rates. */
double decode_share_choose(const struct decode_rates *alone, const struct decode_rates *together);

#endif
