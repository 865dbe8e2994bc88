/* RandomErasing: the device twin of erasing_transform.c, with its random numbers. The threads of a
 * grid's row share one sample's rectangle, in the order in which the CPU numbers it. */
#include "transform/erasing_kernel.h"

#include "transform/kernel_dtype.h"
#include "transform/kernel_random.h"

DEVICE void put_value(uint32_t dtype, double value, uint64_t data, uint64_t place)
{
    switch (dtype) {
    case KERNEL_U8:
        ((uint8_t *)device_memory(data))[place] = (uint8_t)(value <= 0     ? 0
                                                            : value >= 255 ? 255
                                                                           : value);
        break;
    case KERNEL_F16:
        ((uint16_t *)device_memory(data))[place] = half_bits((float)value);
        break;
    case KERNEL_BF16:
        ((uint16_t *)device_memory(data))[place] = bfloat_bits((float)value);
        break;
    default:
        ((float *)device_memory(data))[place] = (float)value;
    }
}

DEVICE double random_value(uint32_t dtype, uint64_t key, uint64_t counter)
{
    double u = kernel_random_unit(key, 2 * counter), v = kernel_random_unit(key, 2 * counter + 1);
    if (dtype == KERNEL_U8)
        return u * 256;
    return sqrt(-2 * log(1 - u)) * cos(6.283185307179586 * v);
}

/* Element i of the rectangles of all channels and clips. */
DEVICE void erase_element(const struct erasing_job *job, const struct erasing_params *box,
                          uint64_t sample, uint64_t i)
{
    uint64_t width = (uint64_t)box->width, height = (uint64_t)box->height;
    uint64_t all = job->frames * height * width; /* of one channel of a clip */
    uint64_t counter = i % all, channel = i / all % job->channels, clip = i / all / job->channels;
    uint64_t x = counter % width, y = counter / width % height, frame = counter / width / height;
    uint64_t place = sample * job->item + clip * job->clip + frame * job->frame +
                     ((uint64_t)box->y + y) * job->row + ((uint64_t)box->x + x) * job->column +
                     channel * job->channel;
    double value = job->values ? job->value[job->values == 1 ? 0 : channel]
                               : random_value(job->dtype, box->key, (channel << 40) + counter);
    put_value(job->dtype, value, job->data, place);
}

KERNEL(erasing_fill)(struct erasing_job job)
{
    for (uint64_t sample = GRID_Y; sample < job.samples; sample += job.rows) {
        const struct erasing_params box =
            *(const struct erasing_params *)device_memory(job.params + sample * job.params_stride);
        uint64_t area = (uint64_t)box.width * (uint64_t)box.height;
        uint64_t count = job.clips * job.channels * job.frames * area;
        for (uint64_t i = GRID_X; i < count; i += GRID_WIDTH)
            erase_element(&job, &box, sample, i);
    }
}
