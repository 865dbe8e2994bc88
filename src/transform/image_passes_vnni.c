#include "transform/image_passes.h"

#include <stddef.h>

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2,avx512vl,avx512vnni")))
#define WIDE_INLINE static inline __attribute__((target("avx2,avx512vl,avx512vnni"), always_inline))
#define WIDE_ADD_PRODUCTS(sums, a, b) _mm256_dpwssd_epi32(sums, a, b)
#include "transform/image_passes_wide.h"

const struct image_passes *image_passes_vnni(void)
{
    return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") ? &passes_wide
                                                                                      : NULL;
}

#else

const struct image_passes *image_passes_vnni(void)
{
    return NULL;
}

#endif
