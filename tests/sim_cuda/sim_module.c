/* sim_module.c -- modules and kernels. A module's text is looked at only as far as to tell what the
 * real driver would refuse; its kernels are the .cu files that were compiled as C. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/kernel_language.h"
#include "sim_image.h"
#include "simulator.h"

enum { JIT_ERROR_LOG = 5, JIT_ERROR_LOG_SIZE = 6 };

struct gpu_kernel {
    struct gpu_kernel *next;
    const struct sim_kernel *kernel;
};

struct cuda_module {
    struct cuda_module *next;
    struct gpu_kernel *kernels;
    char *text; /* NULL: any kernel is in it */
};

#define FAT_IMAGE_MARK "\x50\xed\x55\xba" /* machine code for several GPUs, and PTX */

_Thread_local struct kernel_place kernel_place;

/* --- modules ---------------------------------------------------------------------------------- */

static void tell_log(const char *words, unsigned count, const int *options, void **values)
{
    char *log = NULL;
    size_t cap = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == JIT_ERROR_LOG)
            log = values[i];
        else if (options[i] == JIT_ERROR_LOG_SIZE)
            cap = (uintptr_t)values[i];
    }
    if (log && cap)
        snprintf(log, cap, "%s", words);
}

/* 0 and the text of a module in PTX, or NULL: a source may make its kernels' names by macros. */
static int module_text(const char *image, const char **words, char **out)
{
    *out = NULL;
    if (!strncmp(image, SIM_IMAGE_MARK, strlen(SIM_IMAGE_MARK))) {
        *words = "the image is damaged";
        return sim_image_is_whole(image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    }
    if (!strncmp(image, FAT_IMAGE_MARK, strlen(FAT_IMAGE_MARK))) { /* as nvcc -fatbin makes them */
        *words = "the image is of a later toolchain than the driver";
        return simulator.refuse_ptx ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_SUCCESS;
    }
    if (!isprint((unsigned char)*image) && !isspace((unsigned char)*image)) {
        *words = "the image is neither PTX nor a cubin";
        return CUDA_ERROR_INVALID_IMAGE;
    }
    if (!strstr(image, ".version") || !strstr(image, ".target"))
        return CUDA_SUCCESS;
    *words = "the PTX is of a later toolchain than the driver";
    if (simulator.refuse_ptx)
        return CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    *out = strdup(image);
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int cuModuleLoadDataEx(struct cuda_module **module, const void *image, unsigned count, int *options,
                       void **values)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_UNSAFE)) {
        const char *words = "";
        char *text;
        call.result = module_text(image, &words, &text);
        struct cuda_module *made = call.result ? NULL : calloc(1, sizeof *made);
        if (made) {
            made->text = text;
            made->next = simulator.modules;
            simulator.modules = made;
            simulator.counts.modules++;
            *module = made;
        } else if (call.result) {
            tell_log(words, count, options, values);
        }
    }
    return sim_leave(&call);
}

static struct cuda_module **module_find(struct cuda_module *module)
{
    struct cuda_module **link = &simulator.modules;
    while (*link && *link != module)
        link = &(*link)->next;
    return link;
}

int cuModuleUnload(struct cuda_module *module)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT | CALL_UNSAFE | CALL_FREES)) {
        struct cuda_module **link = module_find(module);
        call.result = *link ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        if (*link) {
            sim_drain();
            *link = module->next;
            for (struct gpu_kernel *next; module->kernels; module->kernels = next) {
                next = module->kernels->next;
                free(module->kernels);
            }
            free(module->text);
            free(module);
            simulator.counts.modules--;
        }
    }
    return sim_leave(&call);
}

/* --- kernels ---------------------------------------------------------------------------------- */

static const struct sim_kernel *kernel_of_name(const char *name)
{
    for (size_t list = 0; sim_kernel_lists[list]; list++)
        for (const struct sim_kernel *kernel = sim_kernel_lists[list]; kernel->name; kernel++)
            if (!strcmp(kernel->name, name))
                return kernel;
    return NULL;
}

int cuModuleGetFunction(struct gpu_kernel **kernel, struct cuda_module *module, const char *name)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        const struct sim_kernel *found = kernel_of_name(name);
        if (!*module_find(module))
            call.result = CUDA_ERROR_INVALID_HANDLE;
        else if (!found || (module->text && !strstr(module->text, name)))
            call.result = CUDA_ERROR_NOT_FOUND;
        struct gpu_kernel *made = call.result ? NULL : malloc(sizeof *made);
        if (made) {
            *made = (struct gpu_kernel){.next = module->kernels, .kernel = found};
            module->kernels = made;
            *kernel = made;
        }
    }
    return sim_leave(&call);
}

static const struct sim_kernel *kernel_of_handle(const struct gpu_kernel *handle)
{
    for (struct cuda_module *module = simulator.modules; module; module = module->next)
        for (struct gpu_kernel *kernel = module->kernels; kernel; kernel = kernel->next)
            if (kernel == handle)
                return kernel->kernel;
    return NULL;
}

/* All threads of the grid, one after the other: from the first to the last, or the other way round,
 * so that a kernel whose threads lean on each other's order shows it. */
static void operation_launch(struct sim_operation *operation)
{
    uint64_t threads = operation->width * operation->height;
    for (uint64_t i = 0; i < threads; i++) {
        uint64_t thread = operation->backwards ? threads - 1 - i : i;
        kernel_place.x = thread % operation->width;
        kernel_place.y = (uint32_t)(thread / operation->width);
        kernel_place.width = operation->width;
        operation->kernel->run(operation->data);
    }
}

/* The job in the `extra` of a launch. */
static int launch_job(const char *name, const struct sim_kernel *kernel, void **extra, void **out)
{
    const void *job = NULL;
    size_t size = 0;
    for (; extra && *extra != CUDA_LAUNCH_END; extra += 2) {
        if (*extra == CUDA_LAUNCH_POINTER)
            job = extra[1];
        else if (*extra == CUDA_LAUNCH_SIZE)
            size = *(const size_t *)extra[1];
    }
    if (!job || size != kernel->job_size) {
        sim_complain("%s: %s takes a job of %lu bytes, not of %lu", name, kernel->name,
                     kernel->job_size, size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = malloc(size);
    if (!*out)
        return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(*out, job, size);
    return CUDA_SUCCESS;
}

int cuLaunchKernel(struct gpu_kernel *kernel, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   struct gpu_stream *stream, void **params, void **extra)
{
    struct sim_call call;
    if (sim_enter(&call, __func__, CALL_CONTEXT)) {
        struct sim_operation launch = {.name = call.name, .run = operation_launch, .free_data = 1};
        struct gpu_stream *found = NULL;
        launch.kernel = kernel_of_handle(kernel);
        launch.width = (uint64_t)grid_x * block_x;
        launch.height = grid_y;
        call.result = launch.kernel ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
        if (!call.result)
            call.result = sim_stream_find(&call, stream, &found);
        if (!call.result &&
            (!launch.width || grid_x > INT32_MAX || !grid_y || grid_y > 65535 || grid_z != 1 ||
             block_x > 1024 || block_y != 1 || block_z != 1 || shared_bytes || params)) {
            sim_complain("%s: %s cannot be launched with (%u, %u, %u) x (%u, %u, %u)", call.name,
                         launch.kernel->name, grid_x, grid_y, grid_z, block_x, block_y, block_z);
            call.result = CUDA_ERROR_INVALID_VALUE;
        }
        if (!call.result)
            call.result = launch_job(call.name, launch.kernel, extra, &launch.data);
        if (!call.result)
            call.result = sim_issue(found, &launch, NULL);
        simulator.counts.launches += !call.result;
    }
    return sim_leave(&call);
}
