/* sim_event.c -- events: a mark in a stream's queue. */
#include <stdlib.h>

#include "simulator.h"

static int event_find(struct sim_call *call, struct gpu_event *handle)
{
    for (struct gpu_event *event = simulator.events; event; event = event->next)
        if (event == handle)
            return CUDA_SUCCESS;
    sim_complain("%s: %p is no event", call->name, (void *)handle);
    return CUDA_ERROR_INVALID_HANDLE;
}

static int event_is_over(const struct gpu_event *event)
{
    return !event->stream || event->stream->finished >= event->sequence;
}

int cuEventCreate(struct gpu_event **event, unsigned flags)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        struct gpu_event *made = NULL;
        if (!event || flags > 7)
            call.result = CUDA_ERROR_INVALID_VALUE;
        else if (!(made = calloc(1, sizeof *made)))
            call.result = CUDA_ERROR_OUT_OF_MEMORY;
        if (made) {
            made->context = call.context;
            made->next = simulator.events;
            simulator.events = made;
            *event = made;
        }
    }
    return sim_leave(&call);
}

int cuEventDestroy_v2(struct gpu_event *event)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_FREES))
        call.result = event_find(&call, event);
    else
        return sim_leave(&call);
    if (!call.result) { /* waits that are in queues know the stream, not the event */
        struct gpu_event **link = &simulator.events;
        while (*link != event)
            link = &(*link)->next;
        *link = event->next;
        sim_stream_release(event->stream);
        free(event);
    }
    return sim_leave(&call);
}

static int event_record(struct sim_call *call, struct gpu_event *event, struct gpu_stream *handle)
{
    struct gpu_stream *stream;
    int error = event_find(call, event);
    if (!error)
        error = sim_stream_find(call, handle, &stream);
    if (!error && event->context != stream->context)
        error = CUDA_ERROR_INVALID_HANDLE;
    uint64_t sequence;
    struct sim_operation mark = {.name = call->name};
    if (!error)
        error = sim_issue(stream, &mark, &sequence);
    if (error)
        return error;
    sim_stream_keep(stream);
    sim_stream_release(event->stream);
    event->stream = stream;
    event->sequence = sequence;
    event->capture = stream->capture;
    return CUDA_SUCCESS;
}

int cuEventRecord(struct gpu_event *event, struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT))
        call.result = event_record(&call, event, stream);
    return sim_leave(&call);
}

int cuStreamWaitEvent(struct gpu_stream *stream, struct gpu_event *event, unsigned flags)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        struct gpu_stream *found = NULL;
        call.result = flags > 1 ? CUDA_ERROR_INVALID_VALUE : event_find(&call, event);
        if (!call.result)
            call.result = sim_stream_find(&call, stream, &found);
        if (!call.result && !sim_capture_follow(found, event, &call.result) &&
            !event_is_over(event)) {
            struct sim_operation wait = {
                .name = call.name, .wait = event->stream, .wait_sequence = event->sequence};
            call.result = sim_issue(found, &wait, NULL);
        }
    }
    return sim_leave(&call);
}

/* 1: the state of the event may be asked for. */
static int event_enter(struct sim_call *call, const char *name, struct gpu_event *event)
{
    if (!sim_enter(call, name, CALL_CONTEXT))
        return 0;
    call->result = event_find(call, event);
    if (!call->result && event->capture)
        call->result = event->capture == simulator.capture.number
                           ? sim_capture_spoil(CUDA_ERROR_CAPTURED_EVENT)
                           : CUDA_ERROR_CAPTURED_EVENT;
    if (!call->result)
        call->result = sim_capture_forbids();
    return !call->result;
}

int cuEventQuery(struct gpu_event *event)
{
    struct sim_call call;
    if (event_enter(&call, __func__, event) && !event_is_over(event))
        call.result = CUDA_ERROR_NOT_READY;
    return sim_leave(&call);
}

int cuEventSynchronize(struct gpu_event *event)
{
    struct sim_call call;
    if (event_enter(&call, __func__, event)) {
        if (event->stream)
            sim_stream_wait(event->stream, event->sequence);
        call.result = call.context->lost;
    }
    return sim_leave(&call);
}
