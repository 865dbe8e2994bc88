/* sim_capture.c -- captures of streams into graphs, as far as somebody who does not make graphs
 * meets them: what is refused, what spoils a capture. Nothing that is captured is ever run. */
#include "simulator.h"

static _Thread_local int thread_mode = CUDA_CAPTURE_MODE_GLOBAL;

static uint64_t thread_mark(void)
{
    return (uintptr_t)&thread_mode;
}

int sim_capture_spoil(int error)
{
    simulator.capture.spoiled = 1;
    return error;
}

int sim_capture_forbids(void)
{
    if (!simulator.capture.number || thread_mode == CUDA_CAPTURE_MODE_RELAXED)
        return CUDA_SUCCESS;
    if (thread_mode == CUDA_CAPTURE_MODE_THREAD_LOCAL && simulator.capture.thread != thread_mark())
        return CUDA_SUCCESS;
    return sim_capture_spoil(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

int sim_capture_check_sync(struct gpu_stream *stream)
{
    if (stream->capture)
        return sim_capture_spoil(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return sim_capture_forbids();
}

/* The legacy stream would wait for a stream that is captured. */
static int capture_meets_legacy(const struct gpu_stream *stream)
{
    return simulator.capture.number && stream == stream->context->legacy &&
           simulator.capture.origin->blocking;
}

int sim_capture_check_issue(struct gpu_stream *stream)
{
    if (stream->capture) {
        stream->joined = 0;
        return simulator.capture.spoiled ? SIM_ERROR_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    }
    if (capture_meets_legacy(stream))
        return sim_capture_spoil(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    return CUDA_SUCCESS;
}

int sim_capture_follow(struct gpu_stream *stream, struct gpu_event *event, int *error)
{
    const struct sim_capture *capture = &simulator.capture;
    if (!event->capture && !stream->capture)
        return 0;
    if (!event->capture || event->capture != capture->number) {
        *error = stream->capture ? sim_capture_spoil(SIM_ERROR_CAPTURE_ISOLATION)
                                 : SIM_ERROR_CAPTURE_ISOLATION;
    } else if (capture->spoiled) {
        *error = SIM_ERROR_CAPTURE_INVALIDATED;
    } else if (stream == stream->context->legacy) {
        *error = sim_capture_spoil(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    } else {
        if (!stream->capture)
            stream->capture = capture->number;
        stream->joined = 0;
        event->stream->joined = 1; /* the rest is up to whoever followed it */
    }
    return 1;
}

int cuStreamIsCapturing(struct gpu_stream *stream, int *status)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        struct gpu_stream *found;
        call.result = sim_stream_find(&call, stream, &found);
        if (!call.result && capture_meets_legacy(found))
            call.result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        if (!call.result && !found->capture)
            *status = CUDA_CAPTURE_NONE;
        else if (!call.result)
            *status = simulator.capture.spoiled ? CUDA_CAPTURE_INVALIDATED : CUDA_CAPTURE_ACTIVE;
    }
    return sim_leave(&call);
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_DEVICE)) {
        int before = thread_mode;
        if (!mode || *mode < CUDA_CAPTURE_MODE_GLOBAL || *mode > CUDA_CAPTURE_MODE_RELAXED) {
            call.result = CUDA_ERROR_INVALID_VALUE;
        } else {
            thread_mode = *mode;
            *mode = before;
        }
    }
    return sim_leave(&call);
}

int sim_cuda_begin_capture(struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        struct gpu_stream *found;
        call.result = sim_stream_find(&call, stream, &found);
        if (!call.result && (simulator.capture.number || found == call.context->legacy))
            call.result = simulator.capture.number ? CUDA_ERROR_ILLEGAL_STATE
                                                   : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        if (!call.result) {
            simulator.capture = (struct sim_capture){.origin = found, .thread = thread_mark()};
            simulator.capture.number = ++simulator.captures_begun;
            found->capture = simulator.capture.number;
        }
    }
    return sim_leave(&call);
}

int sim_cuda_end_capture(struct gpu_stream *stream)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_FREES)) {
        struct gpu_stream *found;
        call.result = sim_stream_find(&call, stream, &found);
        if (!call.result && (!found->capture || found != simulator.capture.origin))
            call.result = SIM_ERROR_CAPTURE_UNMATCHED;
        for (struct gpu_stream *s = simulator.streams; s && !call.result; s = s->next)
            if (s->capture && s != found && !s->joined)
                call.result = SIM_ERROR_CAPTURE_UNJOINED;
        if (simulator.capture.spoiled)
            call.result = SIM_ERROR_CAPTURE_INVALIDATED;
        for (struct gpu_stream *s = simulator.streams; s; s = s->next)
            s->capture = 0;
        simulator.capture = (struct sim_capture){0};
    }
    return sim_leave(&call);
}
