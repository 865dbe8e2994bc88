/* nvrtc.h -- compiles a kernel's source for the device at hand, by NVRTC.
 * Owns: an image is its receiver's.   Threads: any.   Errors: UNSUPPORTED (no NVRTC, a device that
 * it does not know, a source that it does not take: its first words are told), MEMORY. Not here:
 * keeping images (kernel_cache.h), loading them (module.h). */
#ifndef GPU_NVRTC_H
#define GPU_NVRTC_H

#include <stddef.h>
#include <stdint.h>

#include "stoker/error.h"

/* Machine code of one kind of device, or PTX ended by NUL: the driver takes both. */
struct kernel_image {
    char *data; /* to be given to memory_free */
    size_t size;
};

enum nvrtc_kind { NVRTC_CUBIN, NVRTC_PTX };

/* What decides the image besides the source. */
struct nvrtc_target {
    uint32_t version; /* of NVRTC: 13000 is 13.0 */
    uint32_t arch;    /* 90: compute capability 9.0 */
    enum nvrtc_kind kind;
};

/* Machine code where this NVRTC knows the device; PTX of the nearest that it knows else. */
STK_CHECK stk_status nvrtc_aim(int32_t major, int32_t minor, struct nvrtc_target *out,
                               struct stk_error *err);
STK_CHECK stk_status nvrtc_compile(const char *name, const char *source,
                                   const struct nvrtc_target *target, struct kernel_image *out,
                                   struct stk_error *err);

#endif
