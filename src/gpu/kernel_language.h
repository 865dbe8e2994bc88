/* kernel_language.h -- the words that kernels (X_kernel.cu) are written in: plain C that nvcc,
 * NVRTC and a C compiler take, the last one for tests that run kernels on the CPU.
 * Owns: nothing.   Threads: a kernel runs once for each thread of its grid.   Errors: none.
 * Not here: launching (gpu.h).
 *
 * A kernel is KERNEL(name)(struct x_job job) { ... }: one argument, by value. It uses no shared
 * memory, no barrier and nothing of its warp, so that running its threads one after the other gives
 * the same result. The headers of jobs hold numbers of fixed size alone. */
#ifndef GPU_KERNEL_LANGUAGE_H
#define GPU_KERNEL_LANGUAGE_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)

#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long long uint64_t;
typedef long long int64_t;
#else
#include <stdint.h>
#endif

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(1024) name
#define DEVICE static __device__ __forceinline__ __attribute__((unused))
/* For what is large and seldom used: called, not inlined. The driver compiles a kernel when it is
 * first loaded on a machine, and code that is inlined twenty times makes that take seconds. */
#define DEVICE_CALL static __device__ __noinline__ __attribute__((unused))
#define RESTRICT __restrict__
/* This thread's number along x, its block's along y, and how many threads there are along x. */
#define GRID_X ((uint64_t)blockIdx.x * blockDim.x + threadIdx.x)
#define GRID_Y ((uint32_t)blockIdx.y)
#define GRID_WIDTH ((uint64_t)gridDim.x * blockDim.x)

/* An address in device memory: the compiler need not ask which memory it is in. */
DEVICE void *device_memory(uint64_t address)
{
    uint64_t global;
    asm("cvta.to.global.u64 %0, %1;" : "=l"(global) : "l"(address));
    return __cvta_global_to_generic((size_t)global);
}
struct kernel_quad {
    uint32_t words[4];
} __attribute__((aligned(16)));
/* 16 bytes that are not needed again soon: they displace nothing in the device's cache. */
DEVICE struct kernel_quad load_once(const struct kernel_quad *from)
{
    struct kernel_quad quad;
    asm volatile("ld.global.cs.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(quad.words[0]), "=r"(quad.words[1]), "=r"(quad.words[2]),
                   "=r"(quad.words[3])
                 : "l"(from));
    return quad;
}
DEVICE void store_once(struct kernel_quad *to, struct kernel_quad quad)
{
    asm volatile("st.global.cs.v4.u32 [%0], {%1, %2, %3, %4};"
                 :
                 : "l"(to), "r"(quad.words[0]), "r"(quad.words[1]), "r"(quad.words[2]),
                   "r"(quad.words[3])
                 : "memory");
}
DEVICE uint16_t half_bits(float value)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
DEVICE float half_value(uint16_t bits)
{
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}
DEVICE uint32_t float_bits(float value)
{
    return __float_as_uint(value);
}
DEVICE float bits_float(uint32_t bits)
{
    return __uint_as_float(bits);
}
DEVICE float round_even(float value)
{
    return rintf(value);
}
/* Rounded by itself: never fused with an addition, so that whole numbers come out as on the CPU. */
DEVICE float product(float a, float b)
{
    return __fmul_rn(a, b);
}

#else

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"

/* Where the thread that runs now stands; whoever runs a kernel sets it. */
struct kernel_place {
    uint64_t x, width;
    uint32_t y;
};
extern _Thread_local struct kernel_place kernel_place;

#define KERNEL(name) void name
#define DEVICE static inline
#define DEVICE_CALL static inline
#define RESTRICT restrict
#define GRID_X (kernel_place.x)
#define GRID_Y (kernel_place.y)
#define GRID_WIDTH (kernel_place.width)

DEVICE void *device_memory(uint64_t address)
{
    return (void *)address;
}
struct kernel_quad {
    uint32_t words[4];
} __attribute__((aligned(16)));
DEVICE struct kernel_quad load_once(const struct kernel_quad *from)
{
    return *from;
}
DEVICE void store_once(struct kernel_quad *to, struct kernel_quad quad)
{
    *to = quad;
}
DEVICE uint16_t half_bits(float value)
{
    return half_of_float(value);
}
DEVICE float half_value(uint16_t bits)
{
    return half_to_float(bits);
}
DEVICE uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
DEVICE float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
DEVICE float round_even(float value)
{
    return rintf(value);
}
DEVICE float product(float a, float b)
{
    return a * b;
}

#endif

DEVICE uint16_t bfloat_bits(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40u); /* not a number stays one */
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}
DEVICE float bfloat_value(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}

#endif
