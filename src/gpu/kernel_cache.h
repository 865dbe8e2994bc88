/* kernel_cache.h -- compiled kernels, kept in the user's cache folder: $XDG_CACHE_HOME or ~/.cache,
 * in stoker/kernels.
 * Owns: nothing; a loaded image is its receiver's.   Threads: any, and any process: a file is
 * written beside and renamed.   Errors: none; what is not there, damaged or cannot be written is
 * compiled again.   Not here: compiling (nvrtc.h). */
#ifndef GPU_KERNEL_CACHE_H
#define GPU_KERNEL_CACHE_H

#include "gpu/nvrtc.h"

#define KERNEL_KEY_CAP 40

/* Of all that decides the image. */
void kernel_key(const char *source, const struct nvrtc_target *target, char key[KERNEL_KEY_CAP]);
/* Not 0: *out is set. */
int kernel_cache_load(const char *key, struct kernel_image *out);
void kernel_cache_save(const char *key, const struct kernel_image *image);

#endif
