#include "transform/cufft_api.h"

#include <string.h>

#include "gpu/library.h"

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define X(name, arguments) {#name, offsetof(struct cufft_api, name)},
    CUFFT_API_LIST(X)
#undef X
};

stk_status cufft_api_load(struct cufft_api *api, struct stk_error *err)
{
    stk_status status = STK_OK;
    *api = (struct cufft_api){0};
    for (size_t i = 0; i < sizeof functions / sizeof *functions && !status; i++) {
        void (*function)(void);
        status = gpu_library_function(GPU_CUFFT, functions[i].name, &function, err);
        if (!status)
            memcpy((char *)api + functions[i].offset, &function, sizeof function);
    }
    return status;
}
