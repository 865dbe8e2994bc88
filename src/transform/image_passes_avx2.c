#include "transform/image_passes.h"

#include <stddef.h>

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
#define WIDE_INLINE static inline __attribute__((target("avx2"), always_inline))
#define WIDE_ADD_PRODUCTS(sums, a, b) _mm256_add_epi32(sums, _mm256_madd_epi16(a, b))
#include "transform/image_passes_wide.h"

const struct image_passes *image_passes_avx2(void)
{
    return __builtin_cpu_supports("avx2") ? &passes_wide : NULL;
}

#else

const struct image_passes *image_passes_avx2(void)
{
    return NULL;
}

#endif
