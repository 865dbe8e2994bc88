/* sim_copy.c -- copies and fills, in the order of a stream. */
#include <string.h>

#include "simulator.h"

static void operation_copy(struct sim_operation *operation)
{
    memmove((void *)(uintptr_t)operation->to, (const void *)(uintptr_t)operation->from,
            operation->size);
}

static void operation_fill(struct sim_operation *operation)
{
    memset((void *)(uintptr_t)operation->to, operation->value, operation->size);
}

/* Puts it into the stream; `wait`: the caller comes back when it is over, as with memory that is
 * not registered. */
static int copy_issue(struct sim_call *call, struct gpu_stream *handle,
                      struct sim_operation *operation, int wait)
{
    struct gpu_stream *stream;
    int error = sim_stream_find(call, handle, &stream);
    uint64_t sequence;
    operation->name = call->name;
    if (!error)
        error = sim_check_operation(operation);
    if (!error)
        error = sim_issue(stream, operation, &sequence);
    if (!error && wait)
        sim_stream_wait(stream, sequence);
    return error;
}

static int is_pageable(const struct sim_call *call, const void *data, size_t size)
{
    if (sim_find(&simulator.device_memory, (uintptr_t)data, 1))
        sim_complain("%s: %p is device memory, not the host's", call->name, data);
    return !sim_find(&simulator.host_memory, (uintptr_t)data, size);
}

int cuMemcpyHtoDAsync_v2(gpu_address to, const void *from, size_t size, struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT) && size) {
        struct sim_operation operation = {
            .run = operation_copy, .to = to, .to_device = 1, .from = (uintptr_t)from, .size = size};
        int pageable = is_pageable(&call, from, size);
        simulator.counts.copies_in++;
        simulator.counts.copied_in_bytes += size;
        simulator.counts.pageable_copies += (uint64_t)pageable;
        call.result = copy_issue(&call, stream, &operation, pageable);
    }
    return sim_leave(&call);
}

int cuMemcpyDtoHAsync_v2(void *to, gpu_address from, size_t size, struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT) && size) {
        struct sim_operation operation = {.run = operation_copy,
                                          .to = (uintptr_t)to,
                                          .from = from,
                                          .from_device = 1,
                                          .size = size};
        int pageable = is_pageable(&call, to, size);
        simulator.counts.copies_out++;
        simulator.counts.copied_out_bytes += size;
        simulator.counts.pageable_copies += (uint64_t)pageable;
        call.result = copy_issue(&call, stream, &operation, pageable);
    }
    return sim_leave(&call);
}

int cuMemcpyDtoDAsync_v2(gpu_address to, gpu_address from, size_t size, struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT) && size) {
        struct sim_operation operation = {.run = operation_copy,
                                          .to = to,
                                          .to_device = 1,
                                          .from = from,
                                          .from_device = 1,
                                          .size = size};
        call.result = copy_issue(&call, stream, &operation, 0);
    }
    return sim_leave(&call);
}

int cuMemsetD8Async(gpu_address to, unsigned char value, size_t size, struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT) && size) {
        struct sim_operation operation = {
            .run = operation_fill, .to = to, .to_device = 1, .size = size, .value = value};
        call.result = copy_issue(&call, stream, &operation, 0);
    }
    return sim_leave(&call);
}
