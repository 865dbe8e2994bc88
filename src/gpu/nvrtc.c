#include "gpu/nvrtc.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "gpu/library.h"

#define ARCH_MOST 256 /* kinds of devices that an NVRTC may know */

struct nvrtc_program;

/* Filled for each compilation: that is rare, and a row of dlsym is nothing beside it. */
struct nvrtc_api {
    int (*version)(int *major, int *minor);
    int (*arch_count)(int *count);
    int (*archs)(int *archs);
    int (*create)(struct nvrtc_program **program, const char *source, const char *name,
                  int header_count, const char *const *headers, const char *const *names);
    int (*destroy)(struct nvrtc_program **program);
    int (*compile)(struct nvrtc_program *program, int option_count, const char *const *options);
    int (*log_size)(struct nvrtc_program *program, size_t *size);
    int (*log)(struct nvrtc_program *program, char *log);
    int (*image_size[2])(struct nvrtc_program *program, size_t *size); /* by enum nvrtc_kind */
    int (*image[2])(struct nvrtc_program *program, char *image);
    const char *(*words)(int result);
};

static stk_status load_api(struct nvrtc_api *api, struct stk_error *err)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {
        {"nvrtcVersion", &api->version},
        {"nvrtcCreateProgram", &api->create},
        {"nvrtcDestroyProgram", &api->destroy},
        {"nvrtcCompileProgram", &api->compile},
        {"nvrtcGetProgramLogSize", &api->log_size},
        {"nvrtcGetProgramLog", &api->log},
        {"nvrtcGetCUBINSize", &api->image_size[NVRTC_CUBIN]},
        {"nvrtcGetCUBIN", &api->image[NVRTC_CUBIN]},
        {"nvrtcGetPTXSize", &api->image_size[NVRTC_PTX]},
        {"nvrtcGetPTX", &api->image[NVRTC_PTX]},
        {"nvrtcGetErrorString", &api->words},
    };
    stk_status status = STK_OK;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0] && !status; i++)
        status = gpu_library_function(GPU_NVRTC, wanted[i].name, wanted[i].function, err);
    /* Those of CUDA 11.1 do not tell what they know. */
    if (!status &&
        gpu_library_function(GPU_NVRTC, "nvrtcGetNumSupportedArchs", &api->arch_count, NULL))
        api->arch_count = NULL;
    if (!status && gpu_library_function(GPU_NVRTC, "nvrtcGetSupportedArchs", &api->archs, NULL))
        api->arch_count = NULL;
    return status;
}

static stk_status fail_nvrtc(const struct nvrtc_api *api, int result, const char *doing,
                             struct stk_error *err)
{
    return fail(err, STK_UNSUPPORTED, "NVRTC, %s: %s (%d)", doing, api->words(result), result);
}

/* --- what to compile for ---------------------------------------------------------------------- */

/* The device itself, or the nearest before it; 0: it knows none. NVRTC's own error if it has one.
 */
static int nearest_arch(const struct nvrtc_api *api, int device, int *nearest)
{
    int archs[ARCH_MOST], count = 0;
    *nearest = api->arch_count ? 0 : device;
    int result = api->arch_count ? api->arch_count(&count) : 0;
    if (result || count > ARCH_MOST)
        return result;
    result = count ? api->archs(archs) : 0;
    for (int i = 0; i < count && !result; i++)
        if (archs[i] <= device && archs[i] > *nearest)
            *nearest = archs[i];
    return result;
}

stk_status nvrtc_aim(int32_t major, int32_t minor, struct nvrtc_target *out, struct stk_error *err)
{
    struct nvrtc_api api = {0};
    int first = 0, second = 0, nearest = 0, device = major * 10 + minor;
    *out = (struct nvrtc_target){0};
    stk_status status = load_api(&api, err);
    if (status)
        return status;
    int result = api.version(&first, &second);
    if (!result)
        result = nearest_arch(&api, device, &nearest);
    if (result)
        return fail_nvrtc(&api, result, "asking what it knows", err);
    if (!nearest) {
        status = fail(err, STK_UNSUPPORTED, "NVRTC %d.%d does not know this GPU (%d.%d)", first,
                      second, major, minor);
        fail_remedy(err, "the GPU is too old for it: install an older CUDA toolkit, or let the CPU "
                         "do the work");
        return status;
    }
    out->version = (uint32_t)(first * 1000 + second * 10);
    out->arch = (uint32_t)nearest;
    out->kind = nearest == device ? NVRTC_CUBIN : NVRTC_PTX;
    return STK_OK;
}

/* --- compiling -------------------------------------------------------------------------------- */

/* The start of what the compiler said, on one line. */
static void tell_log(const struct nvrtc_api *api, struct nvrtc_program *program, int result,
                     const char *name, struct stk_error *err)
{
    size_t size = 0;
    char *log = NULL;
    if (!api->log_size(program, &size) && size > 1)
        log = memory_zero(1, size + 1);
    if (log && api->log(program, log))
        log[0] = 0;
    for (char *c = log; c && *c; c++)
        if (*c == '\n' || *c == '\t')
            *c = ' ';
    (void)fail(err, STK_UNSUPPORTED, "NVRTC does not compile %s: %.200s", name,
               log && log[0] ? log : api->words(result));
    fail_remedy(err, "another version of NVRTC may; this one is %s", gpu_library_path(GPU_NVRTC));
    memory_free(log);
}

static stk_status take_image(const struct nvrtc_api *api, struct nvrtc_program *program,
                             enum nvrtc_kind kind, struct kernel_image *out, struct stk_error *err)
{
    size_t size = 0;
    int result = api->image_size[kind](program, &size);
    if (result || !size)
        return fail_nvrtc(api, result, "handing over what it compiled", err);
    char *data = memory_zero(1, size + 1); /* PTX ends with a NUL whatever it says */
    if (!data)
        return fail_memory(err, size + 1);
    result = api->image[kind](program, data);
    if (result) {
        memory_free(data);
        return fail_nvrtc(api, result, "handing over what it compiled", err);
    }
    *out = (struct kernel_image){data, size};
    return STK_OK;
}

/* NVRTC opens a second library by its bare name. It lies beside the first, where not every build of
 * NVRTC looks; once it is open, the name is enough. */
static void open_builtins(uint32_t version)
{
    char path[PATH_MAX];
    const char *own = gpu_library_path(GPU_NVRTC), *slash = strrchr(own, '/');
    int len = slash ? snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%u.%u",
                               (int)(slash - own), own, version / 1000, version % 1000 / 10)
                    : PATH_MAX;
    if (len < PATH_MAX)
        (void)dlopen(path, RTLD_NOW | RTLD_LOCAL); /* kept, as NVRTC itself is */
}

stk_status nvrtc_compile(const char *name, const char *source, const struct nvrtc_target *target,
                         struct kernel_image *out, struct stk_error *err)
{
    /* NVRTC has no system headers. What kernels need of these, kernel_language.h says. */
    static const char *const headers[] = {"", "", ""};
    static const char *const names[] = {"stdint.h", "stddef.h", "assert.h"};
    struct nvrtc_api api = {0};
    struct nvrtc_program *program = NULL;
    char arch[64], file[128];
    const char *options[] = {arch};
    *out = (struct kernel_image){0};
    snprintf(arch, sizeof arch, "--gpu-architecture=%s_%u",
             target->kind == NVRTC_CUBIN ? "sm" : "compute", target->arch);
    snprintf(file, sizeof file, "%s.cu", name);
    stk_status status = load_api(&api, err);
    if (status)
        return status;
    open_builtins(target->version);
    int result = api.create(&program, source, file, 3, headers, names);
    if (result)
        return fail_nvrtc(&api, result, "taking a source", err);
    result = api.compile(program, 1, options);
    if (result) {
        tell_log(&api, program, result, name, err);
        status = STK_UNSUPPORTED;
    } else {
        status = take_image(&api, program, target->kind, out, err);
    }
    (void)api.destroy(&program);
    return status;
}
