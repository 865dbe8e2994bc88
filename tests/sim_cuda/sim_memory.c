/* sim_memory.c -- device memory, which is host memory from malloc so that sanitizers guard its
 * ends, and the host memory that was registered. Both are known to the byte. */
#include <stdlib.h>
#include <string.h>

#include "simulator.h"

enum { ALIGNMENT = 512, DIRT = 0xa5, DIRT_BYTES = 1 << 20 };

/* The first range that ends after the address. */
static uint64_t range_place(const struct sim_ranges *ranges, uint64_t address)
{
    uint64_t low = 0, high = ranges->count;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (ranges->items[middle].start + ranges->items[middle].size <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct sim_range *sim_find(const struct sim_ranges *ranges, uint64_t address, uint64_t size)
{
    uint64_t place = range_place(ranges, address);
    if (place == ranges->count || address < ranges->items[place].start)
        return NULL;
    const struct sim_range *range = &ranges->items[place];
    return size <= range->size - (address - range->start) ? range : NULL;
}

/* 0, or 712: it overlaps. */
static int range_add(struct sim_ranges *ranges, struct sim_range range)
{
    uint64_t place = range_place(ranges, range.start);
    if (place < ranges->count && ranges->items[place].start < range.start + range.size)
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    if (ranges->count == ranges->capacity) {
        uint64_t capacity = ranges->capacity ? 2 * ranges->capacity : 64;
        struct sim_range *items = realloc(ranges->items, capacity * sizeof *items);
        if (!items)
            return CUDA_ERROR_OUT_OF_MEMORY;
        ranges->items = items;
        ranges->capacity = capacity;
    }
    memmove(ranges->items + place + 1, ranges->items + place,
            (ranges->count - place) * sizeof *ranges->items);
    ranges->items[place] = range;
    ranges->count++;
    ranges->bytes += range.size;
    return CUDA_SUCCESS;
}

/* 1: the range that begins there is in *out and no longer in the list. */
static int range_take(struct sim_ranges *ranges, uint64_t start, struct sim_range *out)
{
    uint64_t place = range_place(ranges, start);
    if (place == ranges->count || ranges->items[place].start != start)
        return 0;
    *out = ranges->items[place];
    ranges->count--;
    ranges->bytes -= out->size;
    memmove(ranges->items + place, ranges->items + place + 1,
            (ranges->count - place) * sizeof *ranges->items);
    return 1;
}

static int check(const char *name, uint64_t address, uint64_t size)
{
    if (sim_find(&simulator.device_memory, address, size))
        return CUDA_SUCCESS;
    sim_complain("%s: %lu bytes at 0x%lx are not device memory", name, size, address);
    return CUDA_ERROR_ILLEGAL_ADDRESS;
}

int sim_check_operation(const struct sim_operation *operation)
{
    int error = CUDA_SUCCESS;
    if (operation->to_device)
        error = check(operation->name, operation->to, operation->size);
    if (!error && operation->from_device)
        error = check(operation->name, operation->from, operation->size);
    return error;
}

int sim_cuda_is_device_memory(uint64_t address, uint64_t size)
{
    pthread_mutex_lock(&simulator.lock);
    int found = sim_find(&simulator.device_memory, address, size) != NULL;
    pthread_mutex_unlock(&simulator.lock);
    return found;
}

int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        *free_bytes = simulator.memory - call.context->allocated;
        *total = simulator.memory;
    }
    return sim_leave(&call);
}

static int memory_new(struct cuda_context *context, gpu_address *address, size_t size)
{
    if (!address || !size)
        return CUDA_ERROR_INVALID_VALUE;
    if (size > simulator.memory - context->allocated)
        return CUDA_ERROR_OUT_OF_MEMORY;
    void *data;
    if (posix_memalign(&data, ALIGNMENT, size))
        return CUDA_ERROR_OUT_OF_MEMORY;
    /* What was never written is not zero; a large one keeps its untouched pages. */
    memset(data, DIRT, size < DIRT_BYTES ? size : DIRT_BYTES);
    struct sim_range range = {.start = (uintptr_t)data, .size = size, .context = context};
    if (range_add(&simulator.device_memory, range)) {
        free(data);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    context->allocated += size;
    if (simulator.device_memory.bytes > simulator.counts.peak_bytes)
        simulator.counts.peak_bytes = simulator.device_memory.bytes;
    *address = range.start;
    return CUDA_SUCCESS;
}

int cuMemAlloc_v2(gpu_address *address, size_t size)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_UNSAFE))
        call.result = memory_new(call.context, address, size);
    return sim_leave(&call);
}

int cuMemFree_v2(gpu_address address)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_UNSAFE | CALL_FREES) && address) {
        sim_drain(); /* as CUDA: work that uses it comes to its end */
        struct sim_range range;
        if (range_take(&simulator.device_memory, address, &range)) {
            range.context->allocated -= range.size;
            memset((void *)(uintptr_t)range.start, DIRT ^ 0xff,
                   range.size < DIRT_BYTES ? range.size : DIRT_BYTES);
            free((void *)(uintptr_t)range.start);
        } else {
            sim_complain("%s: nothing is allocated at 0x%lx, or no longer", call.name, address);
            call.result = CUDA_ERROR_ILLEGAL_ADDRESS;
        }
    }
    return sim_leave(&call);
}

int cuMemHostRegister_v2(void *data, size_t size, unsigned flags)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_UNSAFE)) {
        struct sim_range range = {.start = (uintptr_t)data, .size = size, .context = call.context};
        if (!data || !size || flags > 15)
            call.result = CUDA_ERROR_INVALID_VALUE;
        else
            call.result = range_add(&simulator.host_memory, range);
    }
    return sim_leave(&call);
}

int cuMemHostUnregister(void *data)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_UNSAFE | CALL_FREES)) {
        sim_drain();
        struct sim_range range;
        if (!range_take(&simulator.host_memory, (uintptr_t)data, &range)) {
            sim_complain("%s: %p is not registered", call.name, data);
            call.result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        }
    }
    return sim_leave(&call);
}
