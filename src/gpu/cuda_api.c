#include "gpu/cuda_api.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

#define DRIVER_FILE "libcuda.so.1"

/* The driver of the process. It stands for a library that would be linked if every machine had it,
 * and like one it is never closed. Written once, under `once`. */
static struct {
    pthread_once_t once;
    struct cuda_api api;
    int found;           /* the library */
    const char *missing; /* a function that it lacks */
    char words[256];     /* of the loader, when it was not found */
} driver = {.once = PTHREAD_ONCE_INIT};

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define X(name, arguments) {#name, offsetof(struct cuda_api, name)},
    CUDA_API_LIST(X)
#undef X
};

static void load_driver(void)
{
    void *handle = dlopen(DRIVER_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *words = dlerror();
        snprintf(driver.words, sizeof driver.words, "%s", words ? words : "no reason given");
        return;
    }
    driver.found = 1;
    for (size_t i = 0; i < sizeof functions / sizeof functions[0] && !driver.missing; i++) {
        void *function = dlsym(handle, functions[i].name);
        memcpy((char *)&driver.api + functions[i].offset, &function, sizeof function);
        if (!function)
            driver.missing = functions[i].name;
    }
}

stk_status cuda_api_load(const struct cuda_api **out, struct stk_error *err)
{
    stk_status status;
    *out = NULL;
    pthread_once(&driver.once, load_driver);
    if (driver.found && !driver.missing) {
        *out = &driver.api;
        return STK_OK;
    }
    if (!driver.found) {
        status = fail(err, STK_UNSUPPORTED, "no NVIDIA driver: %s", driver.words);
        fail_remedy(err,
                    "install NVIDIA's driver (nvidia-smi must work here; in a container, start "
                    "it with --gpus all), or run without a device");
    } else {
        status = fail(err, STK_UNSUPPORTED, "the NVIDIA driver is too old: it has no %s",
                      driver.missing);
        fail_remedy(err, "install a driver for CUDA 11.4 or newer (470 or newer)");
    }
    return status;
}
