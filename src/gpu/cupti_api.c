#include "gpu/cupti_api.h"

#include <assert.h>
#include <pthread.h>

#include "base/fail.h"
#include "gpu/library.h"

static_assert(offsetof(struct cupti_record, bytes) == 8, "as CUPTI lays records out");
static_assert(offsetof(struct cupti_record, start) == 16, "as CUPTI lays records out");
static_assert(offsetof(struct cupti_kernel_record, start) == 16, "as CUPTI lays records out");
static_assert(offsetof(struct cupti_kernel_record, device) == 40, "as CUPTI lays records out");
static_assert(offsetof(struct cupti_copy_record, device) == 32, "as CUPTI lays records out");

enum { VERSION_LEAST = 14 }; /* of CUDA 11.1 */

struct wanted {
    const char *name;
    size_t at; /* in the table */
};

static const struct wanted wanted_functions[] = {
    {"cuptiGetVersion", offsetof(struct cupti_api, get_version)},
    {"cuptiGetTimestamp", offsetof(struct cupti_api, get_timestamp)},
    {"cuptiGetResultString", offsetof(struct cupti_api, get_words)},
    {"cuptiActivityRegisterCallbacks", offsetof(struct cupti_api, register_callbacks)},
    {"cuptiActivityEnable", offsetof(struct cupti_api, enable)},
    {"cuptiActivityDisable", offsetof(struct cupti_api, disable)},
    {"cuptiActivityFlushAll", offsetof(struct cupti_api, flush_all)},
    {"cuptiActivityGetNextRecord", offsetof(struct cupti_api, next_record)},
    {"cuptiActivityGetNumDroppedRecords", offsetof(struct cupti_api, get_dropped)},
};

/* One table for the process. A library that was missing is looked for again: PyTorch may have
 * brought it meanwhile. */
static struct {
    pthread_mutex_t lock;
    int is_ready;
    struct cupti_api api; /* does not change once it is ready */
} opened = {.lock = PTHREAD_MUTEX_INITIALIZER};

static stk_status load_table(struct cupti_api *api, struct stk_error *err)
{
    for (size_t i = 0; i < sizeof wanted_functions / sizeof wanted_functions[0]; i++) {
        void *place = (char *)api + wanted_functions[i].at;
        stk_status status = gpu_library_function(GPU_CUPTI, wanted_functions[i].name, place, err);
        if (status)
            return status;
    }
    if (gpu_library_function(GPU_CUPTI, "cuptiActivityRegisterTimestampCallback",
                             &api->register_clock, NULL))
        api->register_clock = NULL; /* one that can be done without */
    uint32_t version = 0;
    if (api->get_version(&version) || version < VERSION_LEAST) {
        stk_status status = fail(err, STK_UNSUPPORTED, "this CUPTI is of API version %u", version);
        fail_remedy(err, "version %d or later is needed: CUDA 11.1", VERSION_LEAST);
        return status;
    }
    return STK_OK;
}

stk_status cupti_open(const struct cupti_api **out, struct stk_error *err)
{
    *out = NULL;
    stk_status status = STK_OK;
    pthread_mutex_lock(&opened.lock);
    if (!opened.is_ready)
        status = load_table(&opened.api, err);
    opened.is_ready = !status;
    pthread_mutex_unlock(&opened.lock);
    if (!status)
        *out = &opened.api;
    return status;
}

stk_status cupti_result(const struct cupti_api *api, int result, const char *doing,
                        struct stk_error *err)
{
    if (!result)
        return STK_OK;
    const char *words = NULL;
    if (api->get_words(result, &words) || !words)
        words = "no reason";
    if (result == CUPTI_OTHER_TOOL) {
        fail(err, STK_BUSY, "another profiler holds CUPTI (%s: %s)", doing, words);
        fail_remedy(err, "run without it: Nsight, PyTorch's profiler or another tool");
        return STK_BUSY;
    }
    return fail(err, STK_UNSUPPORTED, "CUPTI refused %s: %s (%d)", doing, words, result);
}
