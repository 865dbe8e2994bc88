#include "gpu/module.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "gpu/cuda_fail.h"
#include "gpu/gpu_impl.h"
#include "gpu/kernel_cache.h"
#include "gpu/nvrtc.h"

struct loaded {
    struct cuda_module *module; /* NULL: not loaded */
    enum module_way way;
    stk_status status; /* no way leads to it, and none will: compiling takes a second each time */
    struct stk_error error;
};

struct module_shelf {
    pthread_mutex_t lock;
    uint32_t count;
    struct loaded modules[]; /* as gpu_modules; under lock */
};

stk_status module_shelf_new(struct module_shelf **out, struct stk_error *err)
{
    uint32_t count = 0;
    while (gpu_modules[count].name)
        count++;
    size_t size = sizeof **out + count * sizeof(struct loaded);
    *out = memory_zero(1, size);
    if (!*out)
        return fail_memory(err, size);
    pthread_mutex_init(&(*out)->lock, NULL);
    (*out)->count = count;
    return STK_OK;
}

void module_shelf_free(struct module_shelf *shelf, struct gpu *gpu)
{
    if (!shelf)
        return;
    for (uint32_t i = 0; gpu && i < shelf->count; i++)
        if (shelf->modules[i].module)
            (void)gpu->api->cuModuleUnload(shelf->modules[i].module);
    pthread_mutex_destroy(&shelf->lock);
    memory_free(shelf);
}

/* --- the ways --------------------------------------------------------------------------------- */

/* UNSUPPORTED: the driver does not take this image, another may do. *out is NULL when it fails. */
static stk_status load_image(struct gpu *gpu, const void *image, struct cuda_module **out,
                             struct stk_error *err)
{
    const char *name = NULL;
    *out = NULL;
    int result = gpu->api->cuModuleLoadDataEx(out, image, 0, NULL, NULL);
    if (!result)
        return STK_OK;
    *out = NULL;
    if (result == CUDA_ERROR_OUT_OF_MEMORY || cuda_lost(result))
        return cuda_status(gpu->api, result, "loading kernels", err);
    if (gpu->api->cuGetErrorName(result, &name) || !name)
        name = "an unknown error";
    return fail(err, STK_UNSUPPORTED, "the driver does not take them (CUDA says %s, %d)", name,
                result);
}

static stk_status load_ptx(struct gpu *gpu, const struct gpu_module *module,
                           struct cuda_module **out, struct stk_error *err)
{
    const char *refuse = getenv("STOKER_REFUSE_PTX");
    *out = NULL;
    if (!module->ptx)
        return fail(err, STK_UNSUPPORTED, "this build has no PTX of %s", module->name);
    if (refuse && refuse[0] && strcmp(refuse, "0"))
        return fail(err, STK_UNSUPPORTED, "$STOKER_REFUSE_PTX is set");
    return load_image(gpu, module->ptx, out, err);
}

static stk_status load_source(struct gpu *gpu, const struct gpu_module *module,
                              struct cuda_module **out, struct stk_error *err)
{
    struct nvrtc_target target;
    struct kernel_image image = {0};
    char key[KERNEL_KEY_CAP];
    *out = NULL;
    stk_status status = nvrtc_aim(gpu->info.major, gpu->info.minor, &target, err);
    if (status)
        return status;
    kernel_key(module->source, &target, key);
    if (kernel_cache_load(key, &image)) {
        status = load_image(gpu, image.data, out, err);
        if (status != STK_UNSUPPORTED)
            goto done;
        memory_free(image.data); /* whole, and yet of no use: made anew below */
    }
    status = nvrtc_compile(module->name, module->source, &target, &image, err);
    if (!status)
        status = load_image(gpu, image.data, out, err);
    if (!status)
        kernel_cache_save(key, &image);
done:
    memory_free(image.data);
    return status;
}

/* Under the shelf's lock. */
static stk_status load(struct gpu *gpu, const struct gpu_module *module, struct loaded *loaded,
                       struct stk_error *err)
{
    struct stk_error first = {0}, second = {0};
    stk_status status = load_ptx(gpu, module, &loaded->module, &first);
    loaded->way = MODULE_PTX;
    if (status == STK_UNSUPPORTED) {
        loaded->way = MODULE_NVRTC;
        status = load_source(gpu, module, &loaded->module, &second);
    }
    if (!status)
        return STK_OK;
    if (status != STK_UNSUPPORTED) {
        *err = second.status ? second : first;
        return status;
    }
    (void)fail(err, STK_UNSUPPORTED, "the kernels %s do not load: %.120s; %.120s", module->name,
               first.what, second.what);
    fail_remedy(err, "%s", second.remedy);
    return STK_UNSUPPORTED;
}

/* --- what others call ------------------------------------------------------------------------- */

static stk_status find_loaded(struct gpu *gpu, const char *name, struct loaded **out,
                              struct stk_error *err)
{
    for (uint32_t i = 0; i < gpu->shelf->count; i++) {
        if (strcmp(gpu_modules[i].name, name))
            continue;
        struct loaded *loaded = *out = &gpu->shelf->modules[i];
        stk_status status = STK_OK;
        pthread_mutex_lock(&gpu->shelf->lock);
        if (!loaded->module && !loaded->status) {
            status = load(gpu, &gpu_modules[i], loaded, &loaded->error);
            loaded->status = status == STK_UNSUPPORTED ? status : STK_OK;
        } else {
            status = loaded->status;
        }
        if (status && err)
            *err = loaded->error;
        pthread_mutex_unlock(&gpu->shelf->lock);
        return status;
    }
    return fail(err, STK_UNSUPPORTED, "this build has no kernels named %s", name);
}

stk_status module_load(struct gpu *gpu, const char *name, enum module_way *way,
                       struct stk_error *err)
{
    struct loaded *loaded = NULL;
    stk_status status = find_loaded(gpu, name, &loaded, err);
    *way = status ? MODULE_NONE : loaded->way;
    return status;
}

stk_status gpu_kernel(struct gpu *gpu, const char *module, const char *name,
                      struct gpu_kernel **out, struct stk_error *err)
{
    struct loaded *loaded = NULL;
    *out = NULL;
    stk_status status = gpu_enter(gpu, err);
    if (status)
        return status;
    status = find_loaded(gpu, module, &loaded, err);
    if (!status) {
        int result = gpu->api->cuModuleGetFunction(out, loaded->module, name);
        if (result == CUDA_ERROR_NOT_FOUND)
            status = fail(err, STK_UNSUPPORTED, "%s has no kernel %s", module, name);
        else
            status = cuda_status(gpu->api, result, "finding a kernel", err);
    }
    if (status)
        *out = NULL;
    gpu_leave(gpu);
    return status;
}
