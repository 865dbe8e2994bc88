/* MixUp and CutMix: the device twin of loader/batch_transform.c. A thread takes one element through
 * all samples, from the last to the first: each finds the one before it unchanged, and the first
 * one's other, the last, is kept in a register. So it is done in place, and each byte is read once
 * and written once: memory bounds it. */
#include "transform/mix_kernel.h"

#include "transform/kernel_dtype.h"

DEVICE uint64_t load_element(uint64_t at, uint32_t size)
{
    switch (size) {
    case 1:
        return *(const uint8_t *)at;
    case 2:
        return *(const uint16_t *)at;
    case 4:
        return *(const uint32_t *)at;
    default:
        return *(const uint64_t *)at;
    }
}

DEVICE void store_element(uint64_t at, uint32_t size, uint64_t bits)
{
    switch (size) {
    case 1:
        *(uint8_t *)at = (uint8_t)bits;
        break;
    case 2:
        *(uint16_t *)at = (uint16_t)bits;
        break;
    case 4:
        *(uint32_t *)at = (uint32_t)bits;
        break;
    default:
        *(uint64_t *)at = bits;
    }
}

DEVICE uint64_t blend_double(uint64_t own, uint64_t other, double lam)
{
    union {
        uint64_t bits;
        double value;
    } a, b;
    a.bits = own;
    b.bits = other;
    a.value = a.value * lam + b.value * (1 - lam);
    return a.bits;
}

DEVICE uint64_t blend(uint32_t dtype, uint64_t own, uint64_t other, double lam)
{
    float mine = (float)lam, theirs = (float)(1 - lam);
    uint32_t weight = (uint32_t)(lam * 65536 + 0.5);
    switch (dtype) {
    case KERNEL_U8:
        return (own * weight + other * (65536 - weight) + 32768) >> 16;
    case KERNEL_F16:
        return half_bits(half_value((uint16_t)own) * mine + half_value((uint16_t)other) * theirs);
    case KERNEL_BF16:
        return bfloat_bits(bfloat_value((uint16_t)own) * mine +
                           bfloat_value((uint16_t)other) * theirs);
    case KERNEL_F32:
        return float_bits(bits_float((uint32_t)own) * mine + bits_float((uint32_t)other) * theirs);
    default:
        return blend_double(own, other, lam);
    }
}

DEVICE int in_box(const struct mix_job *job, uint64_t element)
{
    uint64_t pixel = element / job->inner;
    int64_t x = (int64_t)(pixel % job->width), y = (int64_t)(pixel / job->width % job->height);
    return x >= job->x0 && x < job->x1 && y >= job->y0 && y < job->y1;
}

KERNEL(mix_batch)(struct mix_job job)
{
    uint64_t stride = job.elements * job.size;
    for (uint64_t e = GRID_X; e < job.elements; e += GRID_WIDTH) {
        uint64_t at = job.images + e * job.size + stride * (job.count - 1);
        uint64_t last = load_element(at, job.size), own = last;
        if (job.cut && !in_box(&job, e))
            continue;
        for (uint32_t i = job.count; i-- > 0; at -= stride) {
            uint64_t other = i ? load_element(at - stride, job.size) : last;
            store_element(at, job.size, job.cut ? other : blend(job.dtype, own, other, job.lam));
            own = other;
        }
    }
}
