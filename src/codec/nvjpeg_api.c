#include "codec/nvjpeg_api.h"

#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "gpu/library.h"

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define X(name, arguments) {#name, offsetof(struct nvjpeg_api, name)},
    NVJPEG_API_LIST(X)
#undef X
};

stk_status nvjpeg_api_load(struct nvjpeg_api *api, struct stk_error *err)
{
    int number[3] = {0};
    void *handle;
    *api = (struct nvjpeg_api){0};
    stk_status status = gpu_library_open(GPU_NVJPEG, &handle, err);
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !status; i++) {
        void (*function)(void);
        status = gpu_library_function(GPU_NVJPEG, functions[i].name, &function, err);
        if (!status)
            memcpy((char *)api + functions[i].offset, &function, sizeof function);
    }
    if (status)
        return status;
    for (int property = NVJPEG_MAJOR; property <= NVJPEG_PATCH; property++)
        if (api->nvjpegGetProperty(property, &number[property]))
            return fail(err, STK_UNSUPPORTED, "nvJPEG does not tell its version");
    snprintf(api->version, sizeof api->version, "%d.%d.%d", number[0], number[1], number[2]);
    return STK_OK;
}
