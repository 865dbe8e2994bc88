/* sim_nvjpeg.c -- a simulated nvJPEG: what src/codec/nvjpeg_api.h names, done by libjpeg in the
 * stream's thread. It takes and refuses what nvJPEG does: baseline images in grey or YCbCr.
 *   SIM_NVJPEG=gpu       (the default) no hardware decoder; colours are interpolated
 *   SIM_NVJPEG=hardware  a hardware decoder, which takes whole images alone
 *   SIM_NVJPEG=old       no hardware, nor interpolation: as before 12.1
 *   SIM_NVJPEG=none      works with no GPU
 *   SIM_NVJPEG=broken    takes images, and then fails to decode them */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/nvjpeg_api.h"
#include "sim_cuda.h"
#include "sim_jpeg.h"

#define X(name, arguments) SIM_API int name arguments;
NVJPEG_API_LIST(X)
#undef X

struct nvjpeg_handle {
    struct nvjpeg_allocator allocator;
    int hardware, interpolates;
};

struct nvjpeg_stream {
    struct sim_jpeg_header header;
};

struct nvjpeg_params {
    int format;
    int x, y, width, height; /* (0, 0, -1, -1): all */
};

struct nvjpeg_state {
    struct nvjpeg_handle *handle;
    void *scratch; /* device memory that it works in, or so it says */
    size_t scratch_size;
    int count, format; /* of the next batch */
};

/* What is done in the stream. */
struct decode_job {
    int interpolates, count;
    struct sim_jpeg_task tasks[];
};

static int mode_is(const char *name)
{
    const char *mode = getenv("SIM_NVJPEG");
    return mode && !strcmp(mode, name);
}

int nvjpegGetProperty(int property, int *value)
{
    static const int current[] = {13, 0, 2}, old[] = {11, 9, 0};
    if (property < NVJPEG_MAJOR || property > NVJPEG_PATCH)
        return NVJPEG_INVALID_PARAMETER;
    *value = (mode_is("old") ? old : current)[property];
    return NVJPEG_SUCCESS;
}

/* --- handles ---------------------------------------------------------------------------------- */

static int new_zero(size_t size, void *out)
{
    void *made = calloc(1, size);
    memcpy(out, &made, sizeof made);
    return made ? NVJPEG_SUCCESS : NVJPEG_ALLOCATOR_FAILURE;
}

int nvjpegCreateExV2(int backend, struct nvjpeg_allocator *device, struct nvjpeg_allocator *pinned,
                     unsigned flags, struct nvjpeg_handle **handle)
{
    if (!device || !pinned || !handle || (flags & ~(unsigned)NVJPEG_INTERPOLATE) ||
        (flags && mode_is("old")))
        return NVJPEG_INVALID_PARAMETER;
    if ((backend == NVJPEG_HARDWARE && !mode_is("hardware")) || mode_is("none"))
        return NVJPEG_ARCH_MISMATCH;
    int result = new_zero(sizeof **handle, handle);
    if (!result)
        **handle = (struct nvjpeg_handle){*device, backend == NVJPEG_HARDWARE, flags != 0};
    return result;
}

int nvjpegDestroy(struct nvjpeg_handle *handle)
{
    free(handle);
    return handle ? NVJPEG_SUCCESS : NVJPEG_INVALID_PARAMETER;
}

int nvjpegJpegStateCreate(struct nvjpeg_handle *handle, struct nvjpeg_state **state)
{
    int result = new_zero(sizeof **state, state);
    if (!result)
        (*state)->handle = handle;
    return result;
}

/* Grows, and stays until the state goes. */
static int scratch_take(struct nvjpeg_state *state, size_t size, struct gpu_stream *stream)
{
    const struct nvjpeg_allocator *allocator = &state->handle->allocator;
    if (size <= state->scratch_size)
        return NVJPEG_SUCCESS;
    if (state->scratch)
        allocator->give(allocator->user, state->scratch, state->scratch_size, stream);
    state->scratch = NULL;
    state->scratch_size = 0;
    if (allocator->take(allocator->user, &state->scratch, size, stream)) {
        state->scratch = NULL;
        return NVJPEG_ALLOCATOR_FAILURE;
    }
    state->scratch_size = size;
    return NVJPEG_SUCCESS;
}

int nvjpegJpegStateDestroy(struct nvjpeg_state *state)
{
    const struct nvjpeg_allocator *allocator = &state->handle->allocator;
    if (state->scratch)
        allocator->give(allocator->user, state->scratch, state->scratch_size, NULL);
    free(state);
    return NVJPEG_SUCCESS;
}

int nvjpegJpegStreamCreate(struct nvjpeg_handle *handle, struct nvjpeg_stream **stream)
{
    (void)handle;
    return new_zero(sizeof **stream, stream);
}

int nvjpegJpegStreamDestroy(struct nvjpeg_stream *stream)
{
    free(stream);
    return NVJPEG_SUCCESS;
}

int nvjpegDecodeParamsCreate(struct nvjpeg_handle *handle, struct nvjpeg_params **params)
{
    (void)handle;
    int result = new_zero(sizeof **params, params);
    if (!result)
        (*params)->width = (*params)->height = -1;
    return result;
}

int nvjpegDecodeParamsDestroy(struct nvjpeg_params *params)
{
    free(params);
    return NVJPEG_SUCCESS;
}

int nvjpegDecodeParamsSetOutputFormat(struct nvjpeg_params *params, int format)
{
    if (format != NVJPEG_Y && format != NVJPEG_RGBI)
        return NVJPEG_INVALID_PARAMETER;
    params->format = format;
    return NVJPEG_SUCCESS;
}

int nvjpegDecodeParamsSetROI(struct nvjpeg_params *params, int x, int y, int width, int height)
{
    int whole = x == 0 && y == 0 && width == -1 && height == -1;
    if (!whole && (x < 0 || y < 0 || width <= 0 || height <= 0))
        return NVJPEG_INVALID_PARAMETER;
    params->x = x;
    params->y = y;
    params->width = width;
    params->height = height;
    return NVJPEG_SUCCESS;
}

/* --- decoding --------------------------------------------------------------------------------- */

int nvjpegJpegStreamParseHeader(struct nvjpeg_handle *handle, const uint8_t *data, size_t len,
                                struct nvjpeg_stream *stream)
{
    (void)handle;
    return sim_jpeg_read_header(data, len, &stream->header) ? NVJPEG_BAD_JPEG : NVJPEG_SUCCESS;
}

static int is_refused(const struct nvjpeg_handle *handle, const struct sim_jpeg_header *header,
                      const struct nvjpeg_params *params)
{
    return !header->plain || (handle->hardware && params->width >= 0);
}

int nvjpegDecodeBatchedSupportedEx(struct nvjpeg_handle *handle, struct nvjpeg_stream *stream,
                                   struct nvjpeg_params *params, int *refused)
{
    *refused = is_refused(handle, &stream->header, params);
    return NVJPEG_SUCCESS;
}

int nvjpegDecodeBatchedInitialize(struct nvjpeg_handle *handle, struct nvjpeg_state *state,
                                  int count, int threads, int format)
{
    if (handle != state->handle || count < 1 || threads < 1)
        return NVJPEG_INVALID_PARAMETER;
    state->count = count;
    state->format = format;
    return NVJPEG_SUCCESS;
}

int nvjpegDecodeBatchedPreAllocate(struct nvjpeg_handle *handle, struct nvjpeg_state *state,
                                   int count, int width, int height, int sampling, int format)
{
    (void)handle, (void)sampling, (void)format;
    return scratch_take(state, (size_t)count * (size_t)width * (size_t)height * 3, NULL);
}

/* 0 and the task, or what is wrong with the image, as far as its header tells. */
static int task_init(struct sim_jpeg_task *task, const struct nvjpeg_handle *handle,
                     const struct nvjpeg_params *params, const struct nvjpeg_destination *to)
{
    struct sim_jpeg_header header;
    if (sim_jpeg_read_header(task->data, task->len, &header))
        return NVJPEG_BAD_JPEG;
    if (is_refused(handle, &header, params))
        return NVJPEG_JPEG_NOT_SUPPORTED;
    if (!header.whole)
        return NVJPEG_INCOMPLETE_BITSTREAM;
    int all = params->width < 0;
    task->x = all ? 0 : params->x;
    task->y = all ? 0 : params->y;
    task->width = all ? header.width : params->width;
    task->height = all ? header.height : params->height;
    task->channels = params->format == NVJPEG_RGBI ? 3 : 1;
    task->out = (uint8_t *)(uintptr_t)to->channel[0];
    task->pitch = to->pitch[0];
    size_t row = (size_t)task->width * (size_t)task->channels;
    if (task->x + task->width > header.width || task->y + task->height > header.height ||
        task->pitch < row)
        return NVJPEG_INVALID_PARAMETER;
    if (!sim_cuda_is_device_memory(to->channel[0],
                                   task->pitch * ((size_t)task->height - 1) + row)) {
        fprintf(stderr,
                "sim_cuda: nvjpegDecodeBatchedEx: %d x %d pixels at 0x%lx are not all in "
                "device memory\n",
                task->width, task->height, to->channel[0]);
        return NVJPEG_EXECUTION_FAILED;
    }
    return NVJPEG_SUCCESS;
}

static void job_run(void *data)
{
    const struct decode_job *job = data;
    for (int i = 0; i < job->count; i++)
        sim_jpeg_decode(&job->tasks[i], job->interpolates);
}

int nvjpegDecodeBatchedEx(struct nvjpeg_handle *handle, struct nvjpeg_state *state,
                          const uint8_t *const *data, const size_t *lengths,
                          struct nvjpeg_destination *destinations, struct nvjpeg_params **params,
                          struct gpu_stream *stream)
{
    if (handle != state->handle || !state->count)
        return NVJPEG_INVALID_PARAMETER;
    if (mode_is("broken"))
        return NVJPEG_EXECUTION_FAILED;
    size_t size = sizeof(struct decode_job) + (size_t)state->count * sizeof(struct sim_jpeg_task);
    struct decode_job *job = calloc(1, size);
    if (!job)
        return NVJPEG_ALLOCATOR_FAILURE;
    int result = NVJPEG_SUCCESS;
    size_t pixels = 0;
    job->interpolates = handle->interpolates;
    job->count = state->count;
    for (int i = 0; i < job->count && !result; i++) {
        job->tasks[i].data = data[i];
        job->tasks[i].len = lengths[i];
        result = task_init(&job->tasks[i], handle, params[i], &destinations[i]);
        pixels += (size_t)job->tasks[i].width * (size_t)job->tasks[i].height;
    }
    if (!result)
        result = scratch_take(state, pixels * 3, stream);
    if (result)
        free(job);
    else if (sim_cuda_call_in_stream(stream, job_run, job)) /* takes the job */
        result = NVJPEG_EXECUTION_FAILED;
    return result;
}
